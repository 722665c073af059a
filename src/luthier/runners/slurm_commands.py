"""How Slurm's own commands are run: out of reach of a Ctrl-C, and never waited for without end."""

import os
import subprocess
import threading
import time
from collections.abc import Sequence

from luthier.errors import UnavailableError
from luthier.runners.slurm_text import environment_for_slurm

_PATIENCE_S = 15.0
_PATIENCE_WITH_QUESTIONS_S = 60.0
_SLOWER = 1.5


def call(argv: Sequence[str | bytes], *, cwd: bytes | None = None, patience_s: float = _PATIENCE_S) -> str:
    """Run one of Slurm's commands and return what it printed.

    An `UnavailableError` says in one line what it said instead.
    """
    program = os.fsdecode(argv[0])
    try:
        done = subprocess.run(
            argv,
            cwd=cwd,
            env=environment_for_slurm(os.environ),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=patience_s,
            start_new_session=True,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise UnavailableError(f"{program}: timed out after {patience_s:g} s") from error
    if done.returncode != 0:
        lines = done.stderr.decode(errors="replace").split("\n")
        said = "; ".join(line.strip() for line in lines if line.strip())
        raise UnavailableError(said or f"{program}: exit code {done.returncode}")
    return done.stdout.decode(errors="replace")


class Question:
    """A command that runs beside everything else: a busy or dead controller can keep it waiting for long."""

    def __init__(self, argv: Sequence[str]) -> None:
        self.asked_at = time.monotonic()
        self._answer: str | Exception = ""
        self._thread = threading.Thread(target=self._ask, args=(argv,), daemon=True)
        self._thread.start()

    def is_answered(self, wait_s: float = 0.0) -> bool:
        """Whether there is an answer, waiting up to `wait_s` seconds for it."""
        self._thread.join(wait_s)
        return not self._thread.is_alive()

    def answer(self) -> str:
        """What the command printed; raises what `call` would."""
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer

    def _ask(self, argv: Sequence[str]) -> None:
        try:
            self._answer = call(argv, patience_s=_PATIENCE_WITH_QUESTIONS_S)
        except (UnavailableError, OSError) as error:
            self._answer = error


class Pace:
    """When to do something again: soon at first, then less and less often, until something happens."""

    def __init__(self, shortest_s: float, longest_s: float) -> None:
        self._shortest_s = shortest_s
        self._longest_s = longest_s
        self._step_s = shortest_s
        self._last = -longest_s

    def left_s(self, now: float) -> float:
        """How long to wait for the next time; 0 or less when it has come."""
        return self._last + self._step_s - now

    def done(self, now: float) -> None:
        """Note that it was done."""
        self._last = now
        self._step_s = min(self._step_s * _SLOWER, self._longest_s)

    def hurry(self) -> None:
        """Note that something happened."""
        self._step_s = self._shortest_s
