"""The folder of one Slurm job: what luthier, the job and its supervisor leave there for each other."""

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from luthier.runners import supervisor
from luthier.runners.error_message import error_message
from luthier.runners.job_folder import JobFolder, note_in, write_note
from luthier.runners.slurm_text import ListedJob, problem_of
from luthier.runners.supervisor import JobFile
from luthier.trial import Execution, Failed, Lost, Problem, Pruned

_LONGEST_LOG_BYTES = 64 * 1024


class SlurmFolder:
    """One run's folder; nothing here waits or asks Slurm. `run` is what it has in common with a local run's.

    Beside the files of a local run: `script` (the user's), `batch` (what is submitted), `sbatch` (how), `output` (the
    files that the script asks for), `name` and `id` (the job's name and number), `taken` (its number as the job itself
    reports it), `cwd` (a link to where it ran), `told` (it got a signal to stop), `slurm.log` (Slurm's own messages),
    `refused` (why Slurm will not run it) and `state` (the last state that Slurm reported).
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.run = JobFolder(path)

    def prepare(
        self, job: JobFile, *, name: str, script: bytes, batch: bytes, sbatch: Sequence[bytes], output: str | None
    ) -> None:
        """Put everything that the job needs in its folder; valid once the file `job`, the last of all, is there."""
        files = {"name": name.encode(), "script": script, "batch": batch, "sbatch": b"\0".join(sbatch)}
        if output is not None:
            files["output"] = os.fsencode(output)
        supervisors = [Path(supervisor.__file__).with_name(name) for name in ("supervisor.py", "slurm_supervisor.py")]
        self.run.prepare(job, {**files, **{path.name: path.read_bytes() for path in supervisors}})

    def job_name(self) -> str:
        """The name of the job, by which it is found if its number could not be written down."""
        return note_in(self.path / "name") or ""

    def sbatch_words(self) -> list[bytes]:
        """The folder to run sbatch in, and its command line."""
        return (self.path / "sbatch").read_bytes().split(b"\0")

    def number(self) -> int | None:
        """The number of the job that claimed the run, or else of the one that luthier submitted."""
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

    def last_word(self) -> ListedJob | None:
        """The last state of the job that Slurm reported, if it is over."""
        state = note_in(self.path / "state")
        return None if state is None else ListedJob(self.number() or 0, state)

    def note_last_word(self, last: ListedJob) -> None:
        """Write down the last state; Slurm forgets jobs after a while."""
        write_note(self.path / "state", last.state)

    def has_result(self) -> bool:
        """Whether the supervisor has written down how the run ended."""
        return (self.path / "result").exists()

    def ending(self, last: ListedJob | None, *, settled: bool) -> Execution | None:
        """How the run ended, when Slurm reported `last` (None: it does not know the job).

        None while a result may still appear on a shared file system; with `settled` enough time has passed.
        """
        execution = self.run.execution()
        if (refusal := self.refusal()) is not None:
            return replace(execution, duration_s=0.0, problem=Failed(refusal), metrics={})
        if not self.has_result():
            never_began = last is not None and last.state == "CANCELLED" and self.run.claimed_at() is None
            if not settled and not never_began:
                return None
            execution = self._without_result(execution, last)
        problem = problem_of(
            None if last is None else last.state,
            execution.problem,
            by_itself=self.has_result() and not (self.path / "told").exists(),
            cancelled=self.run.is_cancelled(),
            log=self._log(),
        )
        return replace(execution, problem=problem)

    def _without_result(self, execution: Execution, last: ListedJob | None) -> Execution:
        """What is known when the supervisor died before it wrote a result.

        Slurm's times are those of the whole job; they do not tell when its application began.
        """
        duration_s = 0.0
        if last is not None and last.started_at is not None and last.ended_at is not None:
            duration_s = max(0.0, last.ended_at - last.started_at)
        problem = self._unexplained(last) if self.path.exists() else execution.problem
        metrics = {} if (self.path / supervisor.MARK).exists() else {"wall_s": duration_s}
        return replace(execution, duration_s=duration_s, problem=problem, metrics=metrics)

    def _unexplained(self, last: ListedJob | None) -> Problem:
        if self.run.is_cancelled() and (last is None or self.run.claimed_at() is None):
            return Pruned("cancelled")  # a job that starts nevertheless sees that it was cancelled, and ends
        if last is None:
            return Lost(f"Slurm no longer knows job {self.number()}, and it left no record")
        said = error_message(self.path / "slurm.log")
        if last.state == "FAILED" and said and self.run.claimed_at() is None:
            return Failed(said)
        return Lost(f"job {last.number} left no record; Slurm says {last.state}")

    def _log(self) -> str:
        try:
            with (self.path / "slurm.log").open("rb") as file:
                file.seek(max(0, file.seek(0, os.SEEK_END) - _LONGEST_LOG_BYTES))
                return file.read().decode(errors="replace")
        except FileNotFoundError:
            return ""
