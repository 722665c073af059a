"""The example of a Python loop runs, in process and with a service."""

import re
import subprocess
import sys
from pathlib import Path

from tests.online.serving import PATIENCE_S, Serving

PROGRAM = Path(__file__).parents[2] / "examples" / "online_loop.py"


def said_by(*words: str) -> str:
    command = [sys.executable, str(PROGRAM), "--size", "65536", *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    return done.stdout


def test_the_loop_is_tuned_in_process() -> None:
    said = said_by("--steps", "150")
    found = re.search(r"best block: (\d+) elements", said)
    assert found is not None, said
    assert int(found[1]) > 256  # the shortest block is far slower on every machine


def test_the_loop_is_tuned_by_a_service(served: Serving) -> None:
    assert "best block" in said_by("--steps", "60", "--service", str(served.unix))
    assert served.view("online-loop").totals.steps == 60
