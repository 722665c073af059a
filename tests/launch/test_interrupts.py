"""Ctrl-C while a Python function is tuned reaches the caller, and nothing that was measured is lost."""

import subprocess
import sys
from pathlib import Path

import pytest

import luthier as lt
from luthier.store import open_store
from luthier.trial import Completed, Config

SPACE = lt.Space(lt.Integer("n", 1, 99, default=50))

PROGRAM = """
import os, signal, sys
import luthier as lt

calls = 0

def measure(config):
    global calls
    calls += 1
    if calls == 4:
        os.kill(os.getpid(), signal.SIGINT)
    return float(config["n"])

try:
    lt.tune(measure, lt.Space(lt.Integer("n", 1, 99, default=50)), budget=9, store=sys.argv[1])
except KeyboardInterrupt as interrupt:
    print(interrupt)
    sys.exit(130)
"""


def value(config: Config) -> float:
    return float(config["n"])


def completed(store: str) -> int:
    return sum(isinstance(run.outcome, Completed) for run in open_store(store).runs(1))


def test_ctrl_c_reaches_the_caller(tmp_path: Path) -> None:
    store = str(tmp_path / "s.db")
    done = subprocess.run([sys.executable, "-c", PROGRAM, store], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (130, "experiment 1 was interrupted; luthier.resume continues it\n")
    assert open_store(store).experiment(1).status == "stopped"
    assert completed(store) == 4
    assert len(lt.resume(value, 1, store=store).runs) == 9


def test_an_interrupt_of_the_function_reaches_the_caller(tmp_path: Path) -> None:
    store, calls = str(tmp_path / "s.db"), []

    def impatient(config: Config) -> float:
        calls.append(config)
        if len(calls) == 4:
            raise KeyboardInterrupt("enough")
        return value(config)

    with pytest.raises(KeyboardInterrupt, match="enough"):
        lt.tune(impatient, SPACE, budget=9, store=store)
    assert open_store(store).experiment(1).status == "stopped"
    assert completed(store) == 3
    result = lt.resume(value, 1, store=store)
    assert len(result.runs) == 9
    assert all(isinstance(run.outcome, Completed) for run in result.runs)
