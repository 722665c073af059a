"""Impact first in whole experiments: on the command line, after a kill, and what the store keeps."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import luthier as lt
from luthier.errors import InvalidInputError
from luthier.launch.earlier import SUBSET_PICKER
from luthier.policies.learned_subset import shipped
from luthier.spec.experiment import Experiment
from luthier.store import open_server_store, open_store
from luthier.store.base import Store

PARAMETERS = [word for name in "abcdef" for word in ("-p", f"{name}=1..9")]
PROGRAM = "echo v=$(( ({a}-7)*({a}-7)*9 + ({b}-4)*({b}-4)*4 + {c}+1 + ({d}+{e}+{f})/9 ))"


def command(store: Path, *words: str) -> list[str]:
    return [sys.executable, "-m", "luthier", *words, "--store", str(store)]


def tune_words(way: str, budget: int) -> list[str]:
    return ["tune", "-n", str(budget), "-o", "genetic", "--impact-first", way, *PARAMETERS, "-m", "regex:v=(.*)"]


def run(store: Path, way: str, budget: int = 45) -> subprocess.CompletedProcess[str]:
    words = command(store, *tune_words(way, budget))
    return subprocess.run([*words, "--", "bash", "-c", PROGRAM], capture_output=True, text=True, check=False)


def configs(history: Store) -> list[dict[str, object]]:
    return [dict(each.config) for each in history.runs(1)]


def space() -> lt.Space:
    return lt.Space(*(lt.Integer(name, 1, 9) for name in "abcdef"))


def measure(config: lt.Config) -> float:
    return 1.0 + (int(config["a"]) - 7) ** 2 * 9.0 + (int(config["b"]) - 4) ** 2 * 4.0 + int(config["c"])


def test_the_command_line_says_what_is_tuned_now_and_why(tmp_path: Path) -> None:
    done = run(tmp_path / "a.db", "statistical")
    assert done.returncode == 0, done.stderr
    told = [line for line in done.stderr.splitlines() if line.startswith("tuned now: ")]
    assert told[0] == "tuned now: all 6 parameters: nothing is known yet"
    assert any("of 6): largest expected gain; " in line and " % of the differences between " in line for line in told)
    assert "tuned last: " in done.stdout
    shown = subprocess.run(
        command(tmp_path / "a.db", "show", "1", "--json"), capture_output=True, text=True, check=True
    )
    tuned = json.loads(shown.stdout)["impact_first"]
    assert tuned["of"] == 6
    assert tuned["steps"][0]["first_trial"] == 0
    said = {line.removeprefix("tuned now: ") for line in told}
    assert all(any(", ".join(step["parameters"]) in line for line in said) for step in tuned["steps"][1:-1])


@pytest.mark.parametrize("way", ["statistical", "learned"])
def test_a_killed_experiment_goes_on_with_the_same_configurations(tmp_path: Path, way: str) -> None:
    whole, store = tmp_path / "whole.db", tmp_path / "killed.db"
    assert run(whole, way).returncode == 0
    words = [*command(store, *tune_words(way, 45)), "--", "bash", "-c", f"{PROGRAM}; sleep 0.02"]
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    history = open_store(str(store))
    deadline = time.monotonic() + 60.0
    while time.monotonic() < deadline and len(_runs(history)) < 18:
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert 18 <= len(_runs(history)) < 45
    resumed = subprocess.run(command(store, "resume", "1"), capture_output=True, text=True, check=False)
    assert resumed.returncode == 0, resumed.stderr
    assert configs(history) == configs(open_store(str(whole)))


def _runs(history: Store) -> list[object]:
    return [*history.runs(1)] if history.experiments() else []


def test_what_was_learnt_is_kept_and_an_experiment_keeps_its_own_weights(tmp_path: Path) -> None:
    url = str(tmp_path / "learned.db")
    for _ in range(2):
        lt.tune(measure, space(), budget=50, seed=2, optimizer="genetic", impact_first="learned", store=url)
    server = open_server_store(url)
    first, second = (Experiment.from_json(record.settings) for record in server.history.experiments())
    learned = server.learned.get(SUBSET_PICKER)
    assert first.picker_weights == shipped().to_json()
    assert second.picker_weights not in (None, first.picker_weights)
    assert learned not in (None, second.picker_weights)
    lt.tune(measure, space(), budget=20, seed=2, impact_first="statistical", store=url)
    assert open_server_store(url).learned.get(SUBSET_PICKER) == learned


def test_several_objectives_and_unknown_pickers_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"^impact_first: needs a single measure; remove it"):
        lt.tune(lambda _: (1.0, 2.0), space(), goals=("minimize", "minimize"), impact_first="statistical")
    with pytest.raises(InvalidInputError, match=r"^impact_first: 'statistcal' is unknown; did you mean 'statistical'"):
        lt.tune(measure, space(), impact_first="statistcal")
    done = run(tmp_path / "a.db", "lerned")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "did you mean 'learned'" in done.stderr


@pytest.mark.parametrize("slots", [1, 3])
def test_it_finds_the_best_with_failing_runs_and_several_slots(slots: int) -> None:
    def fails_sometimes(config: lt.Config) -> float:
        if int(config["d"]) == 3:
            raise ValueError("three")
        return measure(config)

    result = lt.tune(fails_sometimes, space(), budget=90, slots=slots, seed=3, optimizer="genetic", impact_first="auto")
    assert result.best.estimate is not None
    assert result.best.estimate.value <= 12.0, result.best.config
