"""How Slurm's commands are run: protected from Ctrl-C, and with a time limit."""

import logging
import os
import subprocess
import threading
import time
from collections.abc import Sequence

from luthier.errors import UnavailableError
from luthier.runners import slurm_text
from luthier.runners.pace import Pace
from luthier.runners.slurm_text import ListedJob

logger = logging.getLogger(__name__)

_PATIENCE_S = 15.0
_PATIENCE_WITH_QUESTIONS_S = 60.0
_LONGEST_BETWEEN_QUESTIONS_S = 30.0
_SOON_S = 0.2


def call(argv: Sequence[str | bytes], *, cwd: bytes | None = None, patience_s: float = _PATIENCE_S) -> str:
    """Run one of Slurm's commands and return what it printed; `cwd` is where a job is submitted from.

    If it fails, an `UnavailableError` has its error output in one line.
    """
    program = os.fsdecode(argv[0])
    environment = slurm_text.environment_for_slurm(os.environ)
    if cwd is not None:
        environment = slurm_text.environment_for_sbatch(os.environ, os.fsdecode(cwd))
    try:
        done = subprocess.run(
            argv,
            cwd=cwd,
            env=environment,
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
    """A command that runs in the background: a busy or dead controller may take long to answer."""

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


class Controller:
    """Slurm's controller, through its commands; it may be unreachable for a while.

    `is_away` is true after a command failed, until the next answer: meanwhile nothing is submitted or cancelled.
    `complaint` is what that command said.
    Questions are asked at most every `ask_every_s` seconds, less often while nothing happens, and sooner when jobs end.
    """

    def __init__(self, ask_every_s: float) -> None:
        self.is_away = False
        self.complaint: str | None = None
        self._question: Question | None = None
        self._asking = Pace(ask_every_s, max(ask_every_s, _LONGEST_BETWEEN_QUESTIONS_S))
        self._has_accounting = True

    def submit(self, words: Sequence[bytes], *, others_queued: bool) -> int | str | None:
        """Submit a job by a folder and the command line of sbatch to run there.

        Returns its number, or why Slurm will never take it; None if that is not known: it may have taken the job, or
        may take it later.
        """
        cwd, *command = words
        try:
            return slurm_text.parse_submitted(call(command, cwd=cwd))
        except UnavailableError as error:
            if slurm_text.is_refusal(str(error), others_queued=others_queued):
                return str(error)
            self._note_away(str(error))
            return None

    def answer(self) -> tuple[Sequence[ListedJob], float] | None:
        """What squeue lists, and when it was asked, if there is a new answer."""
        question = self._question
        if question is None or not question.is_answered():
            return None
        self._question = None
        self._asking.done(time.monotonic())
        try:
            listed = slurm_text.parse_squeue(question.answer())
        except (UnavailableError, OSError) as error:
            self._note_away(str(error))
            return None
        self.is_away = False
        return listed, question.asked_at

    def ask(self) -> None:
        """Ask squeue about all jobs, if it is time and no question is open."""
        if self._question is None and self._asking.left_s(time.monotonic()) <= 0:
            self._question = Question(slurm_text.squeue_command(os.geteuid()))

    def accounted(self, numbers: Sequence[int]) -> Sequence[ListedJob]:
        """What the accounting has about these jobs: nothing if it is away, with one warning until it answers again."""
        if not numbers:
            return []
        try:
            listed = slurm_text.parse_sacct(call(slurm_text.sacct_command(numbers)))
        except (UnavailableError, FileNotFoundError) as error:
            if self._has_accounting:
                logger.warning("Slurm has forgotten jobs: %s; how they ended is known from their records alone", error)
            self._has_accounting = False
            return []
        self._has_accounting = True
        return listed

    def cancel(self, numbers: Sequence[int]) -> None:
        """Cancel jobs; if that fails, they are listed and cancelled again later."""
        if not numbers or self.is_away:
            return
        try:
            call(slurm_text.scancel_command(numbers))
        except UnavailableError as error:
            logger.info("scancel: %s", error)

    def hurry(self) -> None:
        """Ask soon: something happened."""
        self._asking.hurry()

    def expect_end(self) -> None:
        """Ask very soon: a job has written its result, and Slurm is about to say that it is over."""
        self._asking.hurry(_SOON_S)

    def wait(self, wait_s: float) -> None:
        """Wait for an answer, or for the time if nothing was asked."""
        if self._question is not None:
            self._question.is_answered(wait_s)
        else:
            time.sleep(wait_s)

    def note_reached(self) -> None:
        """Log that the controller answers again, after it was away."""
        if not self.is_away and self.complaint is not None:
            logger.info("Slurm answers again")
            self.complaint = None

    def _note_away(self, complaint: str) -> None:
        if self.complaint is None:
            logger.warning("Slurm: %s; trying again until it works", complaint)
        self.complaint = complaint
        self.is_away = True
