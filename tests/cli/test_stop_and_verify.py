"""`luthier stop --verify` from another terminal, with real processes."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from luthier.store import open_store
from luthier.trial import Run

PATIENCE_S = 120.0
ENDING = "stopped by request, then verified"


class Terminal:
    """A user with a store, who tunes in one terminal and types commands in another."""

    def __init__(self, home: Path) -> None:
        self.home, self.slow = home, home / "slow"  # while this file exists, runs take seconds
        self._environment = {**os.environ, "XDG_DATA_HOME": str(home), "LUTHIER_STORE": str(home / "s.db")}
        self.started: list[subprocess.Popen[bytes]] = []

    def tune(self, *options: str) -> "subprocess.Popen[bytes]":
        words = ["tune", "-q", *options, "-m", "regex:(.+)", "-o", "random", "-p", "x=1..500@500", "--"]
        script = f"sleep 0.05; [ ! -e {self.slow} ] || sleep 3; echo {{x}}"
        argv = [sys.executable, "-m", "luthier", *words, "sh", "-c", script]
        self.started.append(subprocess.Popen(argv, env=self._environment, stdout=subprocess.DEVNULL))
        return self.started[-1]

    def type(self, *words: str) -> subprocess.CompletedProcess[str]:
        argv = [sys.executable, "-m", "luthier", *words]
        return subprocess.run(argv, env=self._environment, capture_output=True, text=True, check=False, timeout=300)

    def runs(self) -> Sequence[Run]:
        return open_store(str(self.home / "s.db")).runs(1) if (self.home / "s.db").exists() else []

    def verifies(self) -> bool:
        return any(run.purpose == "verify" for run in self.runs())


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    made = Terminal(tmp_path)
    yield made
    for process in made.started:
        process.kill()
        process.wait()


def wait_until(true: Callable[[], bool]) -> None:
    give_up_at = time.monotonic() + PATIENCE_S
    while not true():
        assert time.monotonic() < give_up_at
        time.sleep(0.05)


def started(terminal: Terminal, *options: str) -> "subprocess.Popen[bytes]":
    process = terminal.tune("-n", "400", *options)
    wait_until(lambda: (terminal.home / "s.db").exists() and '"number"' in terminal.type("list", "--json").stdout)
    wait_until(lambda: len(terminal.runs()) >= 8)
    return process


@pytest.mark.parametrize("is_killed", [False, True])
def test_the_search_ends_and_the_best_is_verified(terminal: Terminal, is_killed: bool) -> None:
    process = started(terminal)
    if is_killed:
        terminal.slow.touch()
    asked = terminal.type("stop", "1", "--verify")
    assert asked.returncode == 0, asked.stderr
    assert "then its best is verified" in asked.stdout
    if is_killed:
        wait_until(terminal.verifies)
        process.send_signal(signal.SIGKILL)
        process.wait()
        terminal.slow.unlink()
        assert terminal.type("resume", "1", "-q").returncode == 0
    assert process.wait(PATIENCE_S) == (-signal.SIGKILL if is_killed else 0)
    result = json.loads(terminal.type("show", "1", "--json").stdout)
    assert (result["status"], result["ending"], result["improved"]) == ("finished", ENDING, True)
    assert result["runs"] < 400
    purposes = [run.purpose for run in terminal.runs()]
    assert set(purposes[purposes.index("verify") :]) == {"verify"}
    assert result["elapsed_s"] > 0.0
    assert result["left_s"] is None
    assert " s elapsed\n" in terminal.type("show", "1").stdout
    assert f"the search ended: {ENDING}" in terminal.type("show", "1").stdout


@pytest.mark.parametrize(
    ("options", "words", "message"),
    [
        (["--verify", "0"], ["--verify"], "verify: 0, which disables the verification; stop it instead"),
        (["-m", "wall"], ["--verify"], "a Pareto front is not verified; stop it instead"),
        ([], ["--verify", "--now"], "--now and --verify cannot be combined"),
    ],
)
def test_nothing_to_verify_is_one_line(terminal: Terminal, options: list[str], words: list[str], message: str) -> None:
    process = started(terminal, *options)
    answer = terminal.type("stop", "1", *words)
    assert answer.returncode == 2
    assert message in answer.stderr
    assert len(answer.stderr.splitlines()) == 1
    assert process.poll() is None
    assert terminal.type("stop", "1", "--now").returncode == 0
    process.wait(PATIENCE_S)
    assert "not running: it is stopped" in terminal.type("stop", "1", "--verify").stderr
