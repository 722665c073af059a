"""A chain of experiments that learn from each other, through the command line: spaces change, processes are killed."""

import json
import signal
import sqlite3
from pathlib import Path

import pytest
from tests.cli.test_cli import Shell, wait_for

import luthier as lt
from luthier.errors import InvalidInputError

FIRST = ["-p", "x=1..30@30", "-p", "mode=slow,fast,odd", "-p", "old=1,2"]
SECOND = ["-p", "x=1..60@60", "-p", "mode=slow,quick,odd", "-p", "y=1..9@9"]
THIRD = ["-p", "x=1..60@50", "-p", "y=1..9@9", "-p", "new=1..5"]
SETTINGS = ["-n", "20", "--verify", "0", "--resample", "once", "-m", "regex:v=(\\d+)"]


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


def program(shell: Shell, text: str) -> str:
    path = shell.home / "program.sh"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def tune(shell: Shell, *arguments: str) -> str:
    answer = shell("tune", *SETTINGS, *arguments)
    assert answer.returncode == 0, answer.stderr
    return answer.stderr


def settings_of(shell: Shell, number: int) -> dict[str, object]:
    with sqlite3.connect(shell.home / "luthier" / "luthier.db") as store:
        (text,) = store.execute("SELECT settings FROM experiments WHERE id = ?", [number]).fetchone()
    return dict(json.loads(text))


def tried(shell: Shell, number: int) -> list[dict[str, object]]:
    return [run["config"] for run in json.loads(shell("export", str(number), "-f", "json").stdout)]


def test_a_chain_of_three_experiments_with_changed_spaces(shell: Shell) -> None:
    """A range is wider, a category has another name, a parameter is gone, others are new; some runs fail."""
    work = program(shell, '[ "$1" = 13 ] && exit 1; echo "v=$(( ($1 - 7) * ($1 - 7) + 3 * $2 ))" $3')
    tune(shell, *FIRST, "--", work, "{x}", "{old}", "{mode}")
    said = tune(shell, *SECOND, "--after", "1", "--", work, "{x}", "{y}", "{mode}")
    assert "learns from experiment 1 (program.sh): 2 of 3 parameters, 20 configurations" in said
    known = settings_of(shell, 2)
    assert known["after"] == [1]
    earlier = known["earlier"]
    assert isinstance(earlier, dict)
    assert earlier["names"] == ["mode", "x"]
    assert len(earlier["rows"]) == 20
    modes = {row[3] for row in earlier["rows"]}
    assert modes <= {"slow", "odd", None}
    assert "quick" not in modes
    said = tune(shell, *THIRD, "--after", "2,1", "--transfer", "vae:30%", "--", work, "{x}", "{y}", "{new}")
    assert [line.split(" (")[0] for line in said.splitlines() if line.startswith("learns")] == [
        "learns from experiment 2",
        "learns from experiment 1",
    ]
    assert "learned from experiment 2 (program.sh): 2 of 3 parameters" in shell("show", "3").stdout
    first = {name: value for name, value in tried(shell, 3)[1].items() if name != "new"}
    assert first in [{"x": config["x"], "y": config["y"]} for config in tried(shell, 2)]
    html = shell.home / "report.html"
    assert shell("report", "3", "--output", str(html)).returncode == 0
    assert "experiment 2 (program.sh): 2 of 3 parameters" in html.read_text()


def test_auto_finds_experiments_of_the_same_program_and_none_finds_nothing(shell: Shell) -> None:
    work = program(shell, 'echo "v=$(( $1 + $2 ))"')
    pair = ["-p", "x=1..40", "-p", "y=1..9"]
    said = tune(shell, *pair, "--after", "auto", "--", work, "{x}", "{y}")
    assert "learns from no earlier experiment" in said
    tune(shell, *pair, "--", "echo", "v={x}{y}")
    said = tune(shell, *pair, "-p", "z=1,2", "--after", "auto", "--", work, "{x}", "{y}", "{z}")
    assert "learns from experiment 1 (program.sh): the same program, 2 of 3 parameters, 20 configurations" in said
    assert "experiment 2" not in said
    assert settings_of(shell, 3)["after"] == [1]
    said = tune(shell, *pair, "--after", "none", "--", work, "{x}", "{y}")
    assert "learns" not in said
    assert "earlier" not in settings_of(shell, 4)


@pytest.mark.parametrize("transfer", ["model", "vae"])
def test_a_killed_experiment_goes_on_in_the_same_way_without_the_earlier_one(shell: Shell, transfer: str) -> None:
    """What was learned is stored with the experiment: the earlier one is deleted before it is resumed."""
    slow = program(shell, 'echo started >> "$LOG"; sleep 0.1; echo "v=$(( ($1 - 7) * ($1 - 7) + $2 ))"')
    knobs = ["-p", "x=1..60@50", "-p", "y=1..60@30", "--name", "slow"]
    shell.environment["LOG"] = str(shell.home / "first")
    tune(shell, *knobs, "--", slow, "{x}", "{y}")
    again = [*knobs, "--seed", "5", "--after", "1", "--transfer", transfer]
    tune(shell, *again, "--", slow, "{x}", "{y}")
    shell.environment["LOG"] = str(shell.home / "log")
    process = shell.start("tune", *SETTINGS, *again, "--", slow, "{x}", "{y}")
    wait_for(shell.home / "log", process, 8)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=60)
    with sqlite3.connect(shell.home / "luthier" / "luthier.db") as store:
        store.execute("DELETE FROM runs WHERE experiment_id = 1")
        store.execute("DELETE FROM experiments WHERE id = 1")
    assert shell("show", "1").returncode == 2
    answer = shell("resume", "3")
    assert answer.returncode == 0, answer.stderr
    assert tried(shell, 3) == tried(shell, 2)


def test_bad_settings_are_one_line(shell: Shell) -> None:
    for words, said in (
        (["--after", "x"], "'x' is not the number of an experiment"),
        (["--after", "3,auto"], "give numbers of experiments, or auto, or none"),
        (["--transfer", "magic"], "transfer: 'magic' is unknown; use auto, best, density, vae, model"),
        (["--transfer", "model:5%"], "only density and vae take a share"),
        (["--after", "9"], "experiment 9 is not in this store"),
        (["--set", "earlier=1"], "options: earlier is not an option of an optimizer; use the setting after"),
        (["--set", "seed=1"], "options: seed is not an option of an optimizer; use the setting seed"),
    ):
        answer = shell("tune", "-p", "x=1..9", *words, "--", "echo", "{x}")
        assert answer.returncode == 2
        assert said in answer.stderr
        assert len(answer.stderr.splitlines()) == 1


def test_python_functions_learn_from_each_other(tmp_path: Path) -> None:
    store = str(tmp_path / "store.db")

    def bowl(config: lt.Config) -> float:
        return (float(config["x"]) - 20.0) ** 2 + float(config["y"]) + 1.0

    space = lt.Space(lt.Integer("x", 1, 50), lt.Integer("y", 1, 50))
    count = len(lt.tune(bowl, space, budget=20, seed=1, store=store, verify_pairs=0).trials)
    wider = lt.Space(lt.Integer("x", 1, 90), lt.Integer("y", 1, 50), lt.Choice("mode", ["a", "b"]))
    result = lt.tune(bowl, wider, budget=20, seed=1, store=store, after=[1], transfer="density:20%", verify_pairs=0)
    assert result.experiment.earlier is not None
    assert result.experiment.earlier.notes == (f"experiment 1 (bowl): 2 of 3 parameters, {count} configurations",)
    found = lt.tune(bowl, wider, budget=20, seed=1, store=store, after="auto", verify_pairs=0).experiment
    assert found.after == (2, 1)
    with pytest.raises(InvalidInputError, match="transfer"):
        lt.tune(bowl, space, budget=20, store=store, transfer="magic")
