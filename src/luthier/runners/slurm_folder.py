"""The folder of one Slurm job: what luthier, the job and its supervisor leave there for each other."""

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from luthier.runners import supervisor
from luthier.runners.job_folder import JobFolder, last_line, note_in, write_note
from luthier.runners.slurm_text import Listed, problem_of
from luthier.runners.supervisor import JobFile
from luthier.trial import Config, Execution, Failed, Lost, Problem, Pruned

_LONGEST_LOG_BYTES = 64 * 1024


class SlurmFolder:
    """One run's folder; nothing here waits or asks Slurm.

    Beside the files of a local run: `script` (the user's), `batch` (what is submitted), `sbatch` (how), `name` and `id`
    (the job's name and number), `taken` (its number by its own word), `cwd` (a link to where it ran), `told` (it was
    signalled), `slurm.log` (Slurm's own messages), `refused` (why Slurm will not have it) and `state` (Slurm's last
    word).
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._run = JobFolder(path)

    def prepare(self, job: JobFile, *, name: str, script: bytes, batch: bytes, sbatch: Sequence[bytes]) -> None:
        """Put everything that the job needs in its folder; valid once the file `job`, the last of all, is there."""
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_note(self.path / "name", name)
        (self.path / "script").write_bytes(script)
        (self.path / "script").chmod(0o700)
        (self.path / "batch").write_bytes(batch)
        (self.path / "sbatch").write_bytes(b"\0".join(sbatch))
        (self.path / "supervisor.py").write_bytes(Path(supervisor.__file__).read_bytes())
        self._run.prepare(job)

    def has_job(self) -> bool:
        """Whether somebody prepared this run before."""
        return self._run.has_job()

    def foreign(self, config: Config) -> Execution | None:
        """What is to be reported of this run if it must not be adopted for a configuration; None if it may."""
        return self._run.foreign(config)

    def job_name(self) -> str:
        """The name of the job, by which it is found when nobody could write its number down."""
        return note_in(self.path / "name") or ""

    def sbatch_words(self) -> list[bytes]:
        """The folder to run sbatch in, and its command line."""
        return (self.path / "sbatch").read_bytes().split(b"\0")

    def number(self) -> int | None:
        """The number of the job that took the run on, before that of the one that luthier submitted."""
        numbers = (note_in(self.path / name) or "" for name in ("taken", "id"))
        return next((int(number) for number in numbers if number.isdecimal()), None)

    def note_number(self, number: int) -> None:
        """Write down which job was submitted."""
        write_note(self.path / "id", str(number))

    def refusal(self) -> str | None:
        """Why Slurm will never run this, if it will not."""
        return note_in(self.path / "refused")

    def note_refusal(self, reason: str) -> None:
        """Write down that Slurm will never run this."""
        write_note(self.path / "refused", reason)

    def last_word(self) -> Listed | None:
        """What Slurm said when it had done with the job, if it was heard."""
        state = note_in(self.path / "state")
        return None if state is None else Listed(self.number() or 0, state)

    def note_last_word(self, last: Listed) -> None:
        """Write down what Slurm said; it forgets jobs after a while."""
        write_note(self.path / "state", last.state)

    def request_cancel(self) -> None:
        """Leave word that luthier wants this run stopped; a job that has not begun will not."""
        with suppress(FileNotFoundError):
            self._run.request_cancel()

    def is_cancelled(self) -> bool:
        """Whether luthier wanted this run stopped."""
        return (self.path / "cancel").exists()

    def began_at(self) -> float | None:
        """When the run began; None before that."""
        try:
            return (self.path / "claimed").stat().st_mtime
        except FileNotFoundError:
            return None

    def counted_from(self) -> float | None:
        """When the time that counts began of a run that has begun; None while a script prepares its application."""
        return self._run.counted_from()

    def has_result(self) -> bool:
        """Whether the supervisor has written down how the run ended."""
        return (self.path / "result").exists()

    def ending(self, last: Listed | None, *, settled: bool) -> Execution | None:
        """How the run ended, when Slurm's last word is `last` (None: it knows nothing of the job).

        None if a result may still show: `settled` tells that time enough has passed.
        """
        execution = self._run.execution()
        if (refusal := self.refusal()) is not None:
            return replace(execution, duration_s=0.0, problem=Failed(refusal), metrics={})
        if not self.has_result():
            never_began = last is not None and last.state == "CANCELLED" and self.began_at() is None
            if not settled and not never_began:
                return None
            execution = self._without_result(execution, last)
        problem = problem_of(
            None if last is None else last.state,
            execution.problem,
            by_itself=self.has_result() and not (self.path / "told").exists(),
            cancelled=self.is_cancelled(),
            log=self._log(),
        )
        return replace(execution, problem=problem)

    def _without_result(self, execution: Execution, last: Listed | None) -> Execution:
        """What can be said when the supervisor did not live to tell.

        Slurm's times are those of the job; from them nothing follows for an application that begins later.
        """
        duration_s = 0.0
        if last is not None and last.started_at is not None and last.ended_at is not None:
            duration_s = max(0.0, last.ended_at - last.started_at)
        problem = self._unexplained(last) if self.path.exists() else execution.problem
        metrics = {} if (self.path / supervisor.MARK).exists() else {"wall_s": duration_s}
        return replace(execution, duration_s=duration_s, problem=problem, metrics=metrics)

    def _unexplained(self, last: Listed | None) -> Problem:
        if self.is_cancelled() and (last is None or self.began_at() is None):
            return Pruned("cancelled")  # a job that is started nevertheless sees that it was called off, and completes
        if last is None:
            return Lost(f"Slurm no longer knows job {self.number()}, and it left no record")
        said = last_line(self.path / "slurm.log")
        if last.state == "FAILED" and said and self.began_at() is None:
            return Failed(said)
        return Lost(f"job {last.number} left no record; Slurm says {last.state}")

    def _log(self) -> str:
        try:
            with (self.path / "slurm.log").open("rb") as file:
                file.seek(max(0, file.seek(0, os.SEEK_END) - _LONGEST_LOG_BYTES))
                return file.read().decode(errors="replace")
        except FileNotFoundError:
            return ""
