"""The command line, run as a user runs it: a process of its own, real commands, a store of its own."""

import csv
import io
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from luthier.__main__ import main

LUTHIER = [sys.executable, "-m", "luthier"]
KNOBS = ["-p", "x=1..9@5", "-p", "mode=slow,fast"]
WORK = ["sh", "-c", "echo v=$(( {x} * {x} )) {mode}"]


class Shell:
    """A user with a data directory of their own."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.environment = {**os.environ, "XDG_DATA_HOME": str(home), "COLUMNS": "200"}
        self.environment.pop("LUTHIER_STORE", None)

    def __call__(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*LUTHIER, *arguments],
            env=self.environment,
            cwd=self.home,
            capture_output=True,
            text=True,
            errors="surrogateescape",
            stdin=subprocess.DEVNULL,
            check=False,
            timeout=300,
        )

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*LUTHIER, *arguments],
            env=self.environment,
            cwd=self.home,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


def tuned(shell: Shell, *options: str) -> dict[str, object]:
    answer = shell("tune", *KNOBS, "-m", "regex:v=(\\d+)", "-n", "24", "--json", *options, "--", *WORK)
    assert answer.returncode == 0, answer.stderr
    result: dict[str, object] = json.loads(answer.stdout)
    return result


def test_tune_finds_verifies_and_says_what_to_type(shell: Shell) -> None:
    result = tuned(shell)
    assert result["status"] == "finished"
    assert result["improved"] is True
    assert result["recommended"] == {"x": 1, "mode": result["recommended"]["mode"]}  # type: ignore[index]  # JSON
    assert str(result["command"]).startswith("sh -c 'echo v=$(( 1 * 1")
    text = shell("show", "1").stdout
    assert "better than the default" in text
    assert "command to use:" in text
    assert "parameter importance:" in text
    bars = [line.split() for line in text.splitlines() if "█" in line or "▏" in line]
    assert [bar[0] for bar in bars] == ["x", "mode"]
    importance = json.loads(shell("show", "1", "--json").stdout)["importance"]["parameters"]
    assert [f"{one['share']:.0%}" for one in importance] == [f"{bar[2]}%" for bar in bars]
    assert importance[0]["share"] > 0.9


def test_what_matters_is_left_out_where_nothing_can_be_told(shell: Shell) -> None:
    assert shell("tune", *KNOBS, "-n", "3", "--", *WORK).returncode == 0
    assert "parameter importance" not in shell("show", "1").stdout
    assert json.loads(shell("show", "1", "--json").stdout)["importance"]["parameters"] == []


def test_two_measures_give_a_front(shell: Shell) -> None:
    script = "echo rate {x} cost $(( {x} * {x} + {y} * {y} ))"
    options = [
        "-p",
        "x=1..9@5",
        "-p",
        "y=-3..3@-2",
        "-n",
        "30",
        "-m",
        "max:regex:rate (.+) cost",
        "-m",
        "regex:cost (.+)",
    ]
    answer = shell("tune", *options, "--json", "--", "sh", "-c", script)
    assert answer.returncode == 0, answer.stderr
    assert "run   0  (1/30)  default  5, 29  x=5 y=-2  [best: 1 on the Pareto front]" in answer.stderr
    result = json.loads(answer.stdout)
    assert result["runs"] == 30
    front = [(trial["config"]["x"], trial["others"][0]["value"]) for trial in result["front"]]
    assert front == [(x, float(x * x)) for x in range(9, 0, -1)]
    assert result["recommended"] == {"x": 5, "y": 0}
    assert result["verdict"].startswith("9 configurations on the Pareto front, 0 of them better")
    text = shell("show", "1").stdout
    assert "no worse than the default in any objective" in text
    assert "parameter importance for regex:rate" in text
    rows = list(csv.DictReader(io.StringIO(shell("export", "1").stdout)))
    assert {row["value.regex:cost (.+)"] for row in rows[:1]} == {"29.0"}
    assert shell("apply", "1").stdout.startswith("sh -c 'echo rate 5")


def test_a_later_experiment_begins_with_what_earlier_ones_found(shell: Shell) -> None:
    tuned(shell)
    best = [trial["config"] for trial in by_value(shell, 1)[:3]]
    knobs = ["-p", "x=3..30@30", "-p", "mode=slow,fast", "-p", "y=2..4@4", "-m", "regex:v=(\\d+)"]
    work = ["sh", "-c", "echo v=$(( {x} * {y} )) {mode}"]
    answer = shell("tune", *knobs, "-n", "8", "--after", "1", "--", *work)
    assert answer.returncode == 0, answer.stderr
    first = list(dict.fromkeys((max(config["x"], 3), config["mode"]) for config in best))
    word = "configuration" if len(first) == 1 else "configurations"
    assert answer.stderr.splitlines()[0].endswith(f"; {len(first)} {word} to try right after it")
    runs = json.loads(shell("export", "2", "-f", "json").stdout)
    assert [run["purpose"] for run in runs[: len(first) + 1]] == ["default", *["search"] * len(first)]
    tried = [run["config"] for run in runs[1 : len(first) + 1]]
    assert tried == [{"x": x, "mode": mode, "y": 4} for x, mode in first]
    again = shell("tune", *knobs, "-n", "8", "--after", "2", "--after", "1", "--", *work)
    assert again.returncode == 0, again.stderr
    runs = json.loads(shell("export", "3", "-f", "json").stdout)
    assert [run["config"] for run in runs[1:4]] == [trial["config"] for trial in by_value(shell, 2)[:3]]


def by_value(shell: Shell, number: int) -> list[dict[str, dict[str, int]]]:
    trials = json.loads(shell("show", str(number), "--json").stdout)["trials"]
    return sorted(trials, key=lambda trial: float(trial["estimate"]["value"]))


def test_nothing_is_begun_where_nothing_can_be_carried_over(shell: Shell) -> None:
    absent = shell("tune", *KNOBS, "-n", "3", "--after", "1", "--", *WORK)
    assert absent.returncode == 2
    assert absent.stderr.startswith("luthier: experiment 1 is not in this store")
    tuned(shell)
    foreign = shell("tune", "-p", "z=1..9", "-n", "3", "--after", "1", "--", "echo", "{z}")
    assert foreign.returncode == 2
    assert foreign.stderr == (
        "luthier: after: none of the best configurations of experiment 1 is valid here, except the default; "
        "see: luthier show 1\n"
    )
    assert len(json.loads(shell("list", "--json").stdout)) == 1


@pytest.mark.parametrize("words", [(), ("component",), ("user",), ("shaman",)])
def test_a_command_without_its_subcommand_prints_its_help(shell: Shell, words: tuple[str, ...]) -> None:
    answer = shell(*words)
    assert (answer.returncode, answer.stderr) == (0, "")
    assert answer.stdout == shell(*words, "--help").stdout
    assert len(answer.stdout.splitlines()) > 5


def test_why_the_search_ended(shell: Shell) -> None:
    answer = shell("tune", "-q", "-n", "20", "-p", "x=1..3", "--", "true", "{x}")
    assert "the search ended: " in answer.stdout
    ending = json.loads(shell("show", "1", "--json").stdout)["ending"]
    assert f"the search ended: {ending}\n" in shell("show", "1").stdout
    failing = shell("tune", "-q", "-n", "20", "-p", "x=1..9", "--", "false", "{x}")
    assert "the search ended: every configuration has been tried\n" in failing.stdout


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
def test_a_closed_stream_is_no_error(shell: Shell, closed: str) -> None:
    shell("tune", "-q", "-n", "1", "-p", "x=1,2", "--", "true", "{x}")
    done = subprocess.run(
        ["/bin/sh", "-c", f'"$0" -m luthier list {closed}', sys.executable],
        env=shell.environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_plain_lines_without_a_terminal_and_results_on_stdout(shell: Shell) -> None:
    answer = shell("tune", *KNOBS, "-n", "3", "--", *WORK)
    assert answer.returncode == 0
    lines = answer.stderr.splitlines()
    assert lines[0] == "default: x=5 mode=slow (the first value of mode; choose another one with @)"
    assert lines[1] == "experiment 1: sh, up to 3 runs"
    assert [line.split()[:3] for line in lines[2:]] == [
        ["run", "0", "(1/3)"],
        ["run", "1", "(2/3)"],
        ["run", "2", "(3/3)"],
    ]
    assert "default" in answer.stdout
    assert "\x1b" not in answer.stdout + answer.stderr


def test_everything_that_reads_history(shell: Shell) -> None:
    tuned(shell, "--name", "first [bold]")
    assert "first [bold]" in shell("list").stdout
    assert json.loads(shell("list", "--json").stdout)[0]["name"] == "first [bold]"
    shown = json.loads(shell("show", "1", "--json").stdout)
    assert len(shown["trials"]) <= 18
    rows = list(csv.DictReader(io.StringIO(shell("export", "1").stdout)))
    assert len(rows) == shown["runs"]
    assert {"param.x", "param.mode", "value", "outcome", "metric.wall_s"} <= set(rows[0])
    assert shell("export", "1", "-f", "json", "-o", "out.json").returncode == 0
    assert len(json.loads((shell.home / "out.json").read_text())) == shown["runs"]
    assert shell("export", "1", "-f", "parquet", "-o", "out.parquet").returncode == 0
    from pyarrow import parquet

    assert parquet.read_table(shell.home / "out.parquet").num_rows == shown["runs"]
    assert shell("apply", "1").stdout.startswith("sh -c")
    assert "export x=1" in shell("apply", "1", "--env").stdout
    assert json.loads(shell("apply", "1", "--json").stdout)["x"] == 1


def test_what_is_no_text_is_exported_all_the_same(shell: Shell) -> None:
    assert shell("tune", "-q", "-n", "2", "-p", "x=a,b\udcff", "--", "true", "{x}").returncode == 0
    for form in ("csv", "json", "parquet"):
        assert shell("export", "1", "-f", form, "-o", f"out.{form}").stderr == ""
    rows = list(csv.DictReader(io.StringIO((shell.home / "out.csv").read_text("utf-8"))))
    assert {row["param.x"] for row in rows} == {"a", "b\ufffd"}
    assert {run["config"]["x"] for run in json.loads((shell.home / "out.json").read_text("utf-8"))} == {"a", "b\ufffd"}


def test_values_reach_the_program_verbatim_and_through_the_environment(shell: Shell) -> None:
    nasty = "$(touch broken) 'q' \"d\" ü ; *"
    answer = shell(
        "tune", "-p", f"v={nasty},plain", "-e", "KNOB={v}", "-n", "2", "--", "sh", "-c", 'printf %s "$KNOB" > out-$$'
    )  # fmt: skip
    assert answer.returncode == 0, answer.stderr
    assert {path.read_text() for path in shell.home.glob("out-*")} == {nasty, "plain"}
    assert not (shell.home / "broken").exists()


def test_outcomes_are_kept_as_what_they_are(shell: Shell) -> None:
    script = "case {how} in ok) exit 0;; bad) echo why >&2; exit 3;; hang) sleep 60;; esac"
    answer = shell("tune", "-p", "how=ok,bad,hang", "--timeout", "300ms", "-n", "3", "--json", "--", "sh", "-c", script)
    assert answer.returncode == 0, answer.stderr
    runs = json.loads(shell("export", "1", "-f", "json").stdout)
    by_how = {run["config"]["how"]: run for run in runs}
    assert by_how["ok"]["outcome"] == "completed"
    assert by_how["bad"]["reason"] == "exit code 3: why"
    assert by_how["bad"]["value"] is None
    assert by_how["hang"]["outcome"] == "timed out"
    assert by_how["hang"]["at_least"] >= 0.3


def test_a_pruned_command_is_really_stopped(shell: Shell) -> None:
    """The default takes 0.2 s; everything else would take a minute and write a file at its end."""
    script = "if [ {x} = 1 ]; then sleep 0.2; else sleep 60; touch survived; fi"
    answer = shell("tune", "-p", "x=1..5", "--prune", "default", "-n", "5", "--json", "--", "sh", "-c", script)
    assert answer.returncode == 0, answer.stderr
    runs = json.loads(shell("export", "1", "-f", "json").stdout)
    pruned = [run for run in runs if run["config"]["x"] != 1]
    assert {run["outcome"] for run in pruned} == {"pruned"}
    assert all(0.0 < run["at_least"] <= run["duration_s"] < 60 for run in pruned)
    assert all(run["value"] is None for run in pruned)
    assert not (shell.home / "survived").exists()
    processes = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    assert "touch survived" not in processes


def test_a_noisy_command_is_run_again_and_the_noise_is_told(shell: Shell) -> None:
    script = "n=$(cat n 2>/dev/null || echo 0); echo $((n + 1)) > n; echo v=$(( 100 + {x} * {x} + n % 3 ))"
    options = ["-p", "x=1..60@40", "-m", "regex:v=(\\d+)", "-n", "40", "--stop", "after 32 runs", "-o", "random"]
    answer = shell("tune", *options, "--json", "--", "sh", "-c", script)
    assert answer.returncode == 0, answer.stderr
    result = json.loads(answer.stdout)
    assert result["repeats"] >= 2
    assert result["estimator"] == "median"
    assert result["noise"]["relative"] is True
    assert 0.0 < result["noise"]["deviation"] < 0.02
    text = shell("show", "1").stdout
    assert "% from run to run" in text
    assert f"{result['repeats']} runs of the search were repeats (estimator: median)" in text


def test_a_criterion_ends_the_search_and_says_so(shell: Shell) -> None:
    stop = ["--stop", "target 25% of default", "--stop", "after 20 runs and no improvement over 15", "--verify", "0"]
    result = tuned(shell, *stop)
    assert isinstance(result["runs"], int)
    assert result["runs"] < 18
    listed = json.loads(shell("list", "--json").stdout)
    assert listed[0]["status"] == "finished"


def test_nothing_measured_is_exit_code_1(shell: Shell) -> None:
    answer = shell("tune", "-p", "x=1,2,3", "-n", "3", "--", "sh", "-c", "exit {x}")
    assert answer.returncode == 1
    assert "none of 3 runs gave a number" in answer.stdout


def test_an_experiment_in_which_every_run_fails_says_why(shell: Shell, tmp_path: Path) -> None:
    broken = 'echo about {x}; echo "no input-{x}\033[31m" >&2; exit 7'
    tune = ("tune", "-p", "x=1..3", "-n", "3", "--", "sh", "-c", broken)
    answer = shell(*tune)
    assert answer.returncode == 1
    for text in (answer.stdout, shell("show", "1").stdout):
        assert re.search(r"\b3 +failed: exit code 7: no input-1\S* +run 0 \(x=1\)", text), text
        assert "stderr of run 0 (x=1):\n  no input-1\\x1b[31m\n" in text
        assert "stdout of run 0 (x=1):\n  about 1\n" in text
        assert "no result: correct the cause" in text
    listed = shell("list").stdout
    assert "no result" in listed
    assert "exit code 7: no input-1" in " ".join(listed.split())
    assert shell("resume", "1").stderr.strip() == (
        "luthier: experiment 1 has no result; look at it with: luthier show 1, "
        "or add runs with: luthier resume 1 --budget +30"
    )
    assert shell("report", "1", "-o", str(tmp_path / "r.html")).returncode == 0
    assert "no input-1\\x1b[31m" in (tmp_path / "r.html").read_text(encoding="utf-8")


def test_resume_of_a_finished_experiment(shell: Shell) -> None:
    tuned(shell)
    answer = shell("resume", "1")
    assert answer.returncode == 2
    assert answer.stderr.strip() == (
        "luthier: experiment 1 is finished; look at it with: luthier show 1, "
        "or add runs with: luthier resume 1 --budget +30"
    )


def test_more_runs_for_a_finished_experiment(shell: Shell) -> None:
    tuned(shell)
    before = json.loads(shell("show", "1", "--json").stdout)
    for budget in ("+0", "-1", "1", str(before["runs"]), "many"):
        answer = shell("resume", "1", "--budget", budget)
        assert answer.returncode == 2
        assert answer.stderr.startswith("luthier: budget: ")
        assert answer.stderr.count("\n") == 1
    assert json.loads(shell("show", "1", "--json").stdout) == before
    after = json.loads(shell("resume", "1", "--budget", "+12", "--json").stdout)
    assert after["budget"] == before["runs"] + 12
    assert before["runs"] < after["runs"] <= after["budget"]
    assert after["status"] == "finished"
    assert len(json.loads(shell("export", "1", "-f", "json").stdout)) == after["runs"]


def test_learned_stopping_and_the_return_of_the_tuning(shell: Shell) -> None:
    sleeps = ("-p", "x=0..40@40", "--", "sh", "-c", "sleep 0.$(printf %03d $((10 + 2 * {x})))")
    rule = ("--stop", "learned for 1 runs", "--production-runs", "7", "-n", "60")
    answer = shell("tune", "-q", *rule, *sleeps)
    assert answer.returncode == 0, answer.stderr
    told = re.search(r"the search ended: the next .*expected to save ([\d.e-]+) s in 1 run and to cost", answer.stdout)
    assert told is not None, answer.stdout
    assert "return on tuning (RoTI): " in answer.stdout
    assert "net gain over 7 runs in production: -" in answer.stdout
    shown = json.loads(shell("show", "1", "--json").stdout)
    assert shown["runs"] < 20
    production = shown["return"]["production"]
    assert production["runs"] == 7
    assert (production["viable_after"] is None) == (not shown["improved"])
    bad = shell("tune", "-m", "memory", "--stop", "learned", *sleeps)
    assert bad.returncode == 2
    assert "says nothing about time" in bad.stderr
    rate = shell("tune", "-m", "max:regex:(.+)", "--stop", "learned", "-n", "3", "-p", "x=1..9", "--", "echo", "{x}")
    assert "is assumed to be in inverse proportion to regex:(.+)" in " ".join(rate.stderr.split())


SLOW = ["sh", "-c", "echo started >> log; sleep 0.3; echo {x} >> done"]


def wait_for(path: Path, process: subprocess.Popen[str], lines: int) -> None:
    """Until the tuned program has written so many lines."""
    import time

    for _ in range(3000):
        if path.exists() and len(path.read_text().split()) >= lines:
            return
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)
    raise AssertionError(f"{path} never got {lines} lines")


def test_ctrl_c_once_finishes_what_runs_and_resume_goes_on(shell: Shell) -> None:
    process = shell.start("tune", "-p", "x=1..50", "-n", "8", "--verify", "0", "--", *SLOW)
    wait_for(shell.home / "log", process, 3)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "luthier resume 1" in out
    runs = json.loads(shell("export", "1", "-f", "json").stdout)
    assert all(run["outcome"] == "completed" for run in runs)
    assert len(runs) == len((shell.home / "done").read_text().split())
    assert json.loads(shell("resume", "1", "--json").stdout)["runs"] == 8
    assert len((shell.home / "done").read_text().split()) == 8


def test_ctrl_c_twice_kills(shell: Shell) -> None:
    process = shell.start(
        "tune", "-p", "x=1..50", "-n", "8", "--", "sh", "-c", "echo started >> log; sleep 100; echo {x}"
    )
    wait_for(shell.home / "log", process, 1)
    assert process.stderr is not None
    process.send_signal(signal.SIGINT)
    while "Ctrl-C again to kill" not in process.stderr.readline():
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    runs = json.loads(shell("export", "1", "-f", "json").stdout)
    assert [run["outcome"] for run in runs] == ["lost"]


def test_stop_from_elsewhere_and_two_resumes(shell: Shell) -> None:
    process = shell.start("tune", "-p", "x=1..500", "-n", "400", "--", *SLOW)
    wait_for(shell.home / "log", process, 2)
    second = shell("resume", "1")
    assert second.returncode == 2
    assert "experiment 1 is in use by process" in second.stderr
    assert shell("stop", "1").returncode == 0
    process.communicate(timeout=60)
    assert json.loads(shell("list", "--json").stdout)[0]["status"] == "stopped"
    again = shell("stop", "1")
    assert again.returncode == 2
    assert "is not running: it is stopped" in again.stderr


BAD = [
    (["tune"], "no command to tune"),
    (["tune", "-p", "x=1,2"], "no command to tune"),
    (["tune", "--", "true"], "nothing to tune"),
    (["tune", "-p", "x", "--", "true", "{x}"], "-p x:"),
    (["tune", "-p", "x=5..1", "--", "true", "{x}"], "swap"),
    (["tune", "-p", "x=1,2@3", "--", "true", "{x}"], "3"),
    (["tune", "-p", "x=1,2", "-p", "x=3,4", "--", "true", "{x}"], "x"),
    (["tune", "-p", "x=1,2", "--", "true", "{y}"], "placeholder {y} has no parameter"),
    (["tune", "-p", "x=1,2", "--", "true"], "parameter x is not used"),
    (["tune", "-p", "x=1,2", "--", "no-such-program", "{x}"], "no-such-program: no such program"),
    (["tune", "-p", "x=1,2", "-c", "x > 9", "--", "true", "{x}"], "x > 9"),
    (["tune", "-p", "x=1,2", "-c", "__import__('os')", "--", "true", "{x}"], "__import__"),
    (["tune", "-p", "x=1,2", "-m", "regex:(", "--", "true", "{x}"], "regex"),
    (["tune", "-p", "x=1,2", "-m", "wal", "--", "true", "{x}"], "wall"),
    (["tune", "-p", "x=1,2", "-m", "wall", "-m", "memry", "--", "true", "{x}"], "memory"),
    (["tune", "-p", "x=1,2", "-m", "wall", "-m", "wall", "--", "true", "{x}"], "once"),
    (["tune", "-p", "x=1,2", "-m", "wall", "-m", "cpu", "--maximize", "--", "true", "{x}"], "max:wall"),
    (["tune", "-p", "x=1,2", "-m", "min:wall", "--maximize", "--", "true", "{x}"], "max:wall"),
    (["tune", "-p", "x=1,2", "-m", "wall", "-m", "cpu", "--verify", "3", "--", "true", "{x}"], "verify"),
    (["tune", "-p", "x=1,2", "-m", "wall", "-m", "cpu", "--prune", "3s", "--", "true", "{x}"], "prune"),
    (["tune", "-p", "x=1,2", "-m", "wall", "-m", "cpu", "-m", "user", "-m", "memory", "--", "true", "{x}"], "4"),
    (["tune", "-p", "x=1,2", "-o", "magic", "--", "true", "{x}"], "magic"),
    (["tune", "-p", "x=1,2,3", "-n", "2", "-o", "gp", "--set", "kernal=rbf", "--", "true", "{x}"], "kernel"),
    (["tune", "-p", "x=1,2,3", "-n", "2", "-o", "gp", "--set", "kernel=round", "--", "true", "{x}"], "round"),
    (["tune", "-p", "x=1,2,3", "-n", "2", "-o", "gp", "--set", "design=odd", "--", "true", "{x}"], "odd"),
    (["tune", "-p", "x=1,2", "-o", "gp", "--set", "kernel", "--", "true", "{x}"], "--set: 'kernel': write NAME=VALUE"),
    (["tune", "-p", "x=1,2", "-n", "0", "--", "true", "{x}"], "budget"),
    (["tune", "-p", "x=1,2", "-n", "many", "--", "true", "{x}"], "many"),
    (["tune", "-p", "x=1,2", "--timeout", "soon", "--", "true", "{x}"], "soon"),
    (["tune", "-p", "x=1,2", "--estimator", "mode", "--", "true", "{x}"], "mode"),
    (["tune", "-p", "x=1,2", "--resample", "often", "--", "true", "{x}"], "often"),
    (["tune", "-p", "x=1,2", "--resample", "static:0", "--", "true", "{x}"], "static"),
    (["tune", "-p", "x=1,2", "--stop", "soon", "--", "true", "{x}"], "soon"),
    (["tune", "-p", "x=1,2", "--stop", "target 200% of default", "--", "true", "{x}"], "less than 100"),
    (["tune", "-p", "x=1,2", "-m", "cpu", "--prune", "median", "--", "true", "{x}"], "wall"),
    (["tune", "-p", "x=1,2", "-m", "cpu", "--stop", "gain < cost for 9 runs", "--", "true", "{x}"], "wall"),
    (["tune", "-p", "x=1,2", "-m", "wall", "-m", "cpu", "--stop", "target 3", "--", "true", "{x}"], "stop"),
    (["tune", "-p", "x=1,2", "-m", "wall", "-m", "cpu", "--resample", "evadyr", "--", "true", "{x}"], "evadyr"),
    (["tune", "-p", "x=1,2", "--prune", "maybe", "--", "true", "{x}"], "maybe"),
    (["tune", "-p", "x=1,2", "-e", "A-B={x}", "--", "true"], "A-B"),
    (["tune", "-p", "x=1,2", "--bugdet", "3", "--", "true", "{x}"], "--bugdet"),
    (["tune", "-p", "x=0.1..0.9", "-o", "exhaustive", "--", "true", "{x}"], "exhaustive"),
    (["tun"], "tun"),
    (["show", "7"], "7"),
    (["show", "x"], "x"),
    (["show"], "NUMBER"),
    (["resume", "7"], "7"),
    (["apply", "7"], "7"),
    (["export", "7"], "7"),
    (["stop", "7"], "7"),
    (["list", "--store", "nowhere"], "nowhere"),
    (["list", "--store", "mysql://u:secret@h/d"], "mysql"),
    (["list", "--store", "/no/such/folder/x.db"], "/no/such/folder"),
    (["list", "--store", "postgresql://u:secret@127.0.0.1:1/d"], "127.0.0.1"),
]


@pytest.mark.parametrize(("arguments", "told"), BAD, ids=[" ".join(arguments) for arguments, _ in BAD])
def test_bad_input_is_one_line_and_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: list[str], told: str
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.delenv("LUTHIER_STORE", raising=False)
    monkeypatch.setattr(sys, "argv", ["luthier", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    out, err = capsys.readouterr()
    assert ended.value.code == 2, out + err
    assert len(err.splitlines()) == 1, err
    assert err.startswith("luthier: ")
    assert told in err
    assert "secret" not in err
    assert out == ""
    if arguments[0] == "tune":
        assert not list(tmp_path.rglob("*")), "nothing may be written"


def test_a_bad_flag_leaves_no_traceback_in_a_process_of_its_own(shell: Shell) -> None:
    answer = shell("tune", "-p", "x=5..1", "--", "true", "{x}")
    assert answer.returncode == 2
    assert answer.stderr == "luthier: -p x=5..1: x: low 5 is above high 1; swap them\n"


def test_a_working_directory_that_is_gone(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    code = f"import os; os.chdir({str(gone)!r}); os.rmdir({str(gone)!r}); from luthier.__main__ import main; main()"
    command = [sys.executable, "-c", code, "tune", "-p", "x=1,2", "--", "echo", "{x}"]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    assert answer.returncode == 2
    assert len(answer.stderr.splitlines()) == 1
    assert "No such file or directory" in answer.stderr


@pytest.fixture
def locked(shell: Shell) -> Iterator[str]:
    """A store that somebody else is writing to and does not let go."""
    path = shell.home / "locked.db"
    assert shell("list", "--store", str(path)).returncode == 0
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("BEGIN EXCLUSIVE")
    yield str(path)
    connection.close()


def test_a_locked_store_is_one_line(shell: Shell, locked: str) -> None:
    answer = shell("tune", *KNOBS, "-n", "3", "--store", locked, "--", *WORK)
    assert answer.returncode == 2
    assert len(answer.stderr.splitlines()) == 1
    assert "lock" in answer.stderr


COMMANDS = [
    *("tune", "resume", "list", "show", "stop", "export", "apply", "report", "serve", "worker", "online", "explain"),
    *("io profile", "io discover", "native list", "native build", "native path"),
]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["luthier", *command.split(), "--help"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 0
    assert f"luthier {command}" in capsys.readouterr().out.split("Example:")[1]


def test_help_lists_every_command(shell: Shell) -> None:
    answer = shell("--help")
    assert all(command.split()[0] in answer.stdout for command in COMMANDS)
    assert shell().returncode in (0, 2)


def test_starting_is_light() -> None:
    """Nothing heavy is imported for a page of help."""
    heavy = "('numpy', 'scipy', 'sqlalchemy', 'rich')"
    code = f"import sys, luthier, luthier.cli.app; print([m for m in {heavy} if m in sys.modules])"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"
