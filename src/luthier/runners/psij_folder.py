"""The folder of one run that PSI/J submits: what luthier, the job and its supervisor leave there for each other."""

import os
import shlex
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from luthier.runners import supervisor
from luthier.runners.job_folder import JobFolder, last_line, note_in, write_note
from luthier.runners.supervisor import JobFile
from luthier.trial import Config, Execution, Failed, Lost, Pruned, TimedOut

_NUMBER_VARIABLES = {
    "cobalt": "COBALT_JOBID",
    "lsf": "LSB_JOBID",
    "pbs": "PBS_JOBID",
    "pbs_classic": "PBS_JOBID",
    "slurm": "SLURM_JOB_ID",
}
"""Where a job of an executor's finds its own id, as far as that is the one by which PSI/J knows it."""


def batch_script(folder: str, executor: str, python: str) -> str:
    """What a job runs: the supervisor, unless the run was claimed before, called off or given up.

    `told` is there before `ended` if the job was signalled: a shell obeys its trap when the supervisor has ended.
    """
    variable = _NUMBER_VARIABLES.get(executor)
    taken = f'echo "${variable}" >"$folder/taken"\n' if variable else ""
    return f"""#!/bin/sh
folder={shlex.quote(folder)}
exec 2>>"$folder/batch.log"
for word in claimed cancel closed; do [ ! -e "$folder/$word" ] || exit 0; done
{taken}python={shlex.quote(python)}
[ -x "$python" ] || python=$(command -v python3) || {{ echo "no Python on $(uname -n)" >&2; exit 127; }}
trap ': >"$folder/told"' TERM INT HUP
"$python" -I -S "$folder/supervisor.py" "$folder"
: >"$folder/ended"
"""


class PsijFolder:
    """One run's folder; nothing here waits or asks PSI/J.

    Beside the files of a local run: `batch` (what the job runs), `batch.log` (what went wrong there), `id` (the job by
    PSI/J's word), `taken` (by its own), `told` (it was signalled), `ended` (it has nothing more to write) and `closed`
    (luthier reported it without a record, and why).
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._run = JobFolder(path)

    def prepare(self, job: JobFile, executor: str) -> None:
        """Put everything that the job needs in its folder; valid once the file `job`, the last of all, is there."""
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        (self.path / "batch").write_bytes(os.fsencode(batch_script(str(self.path), executor, sys.executable)))
        (self.path / "supervisor.py").write_bytes(Path(supervisor.__file__).read_bytes())
        self._run.prepare(job)

    def has_job(self) -> bool:
        """Whether somebody prepared this run before."""
        return self._run.has_job()

    def foreign(self, config: Config) -> Execution | None:
        """What is to be reported of this run if it must not be adopted for a configuration; None if it may."""
        return self._run.foreign(config)

    def is_supervised(self) -> bool:
        """Whether the run goes on, whatever PSI/J thinks: its supervisor holds a lock."""
        return self._run.is_supervised()

    def native_id(self) -> str | None:
        """The job that took the run on, before that the one that luthier submitted; None if none is known."""
        return note_in(self.path / "taken") or note_in(self.path / "id") or None

    def note_id(self, native_id: str) -> None:
        """Write down which job was submitted."""
        write_note(self.path / "id", native_id)

    def request_cancel(self) -> None:
        """Leave word that luthier wants this run stopped; a job that has not begun will not."""
        with suppress(FileNotFoundError):
            self._run.request_cancel()

    def is_cancelled(self) -> bool:
        """Whether luthier wanted this run stopped."""
        return self._changed_at("cancel") is not None

    def began_at(self) -> float | None:
        """When the run began; None before that."""
        return self._changed_at("claimed")

    def counted_from(self) -> float | None:
        """When the time that counts began; None while the job waits, or prepares its application."""
        return None if self.began_at() is None else self._run.counted_from()

    def ending(self) -> Execution | None:
        """How the run ended; None as long as that is not written down for good."""
        if (said := note_in(self.path / "closed")) is not None:
            return self._without_record(said)
        return self._by_record() if (self.path / "ended").exists() else None

    def close(self, said: str) -> Execution:
        """How a run ended whose job is over by PSI/J's word; without a record, a job that still starts goes away."""
        if (execution := self._by_record()) is not None:
            return execution
        write_note(self.path / "closed", said)
        return self._without_record(said)

    def _by_record(self) -> Execution | None:
        """How the run ended by its supervisor's word, unless it was cut short and does not show it."""
        if not (self.path / "result").exists():
            return None
        execution = self._run.execution()
        if not (self.path / "told").exists() or isinstance(execution.problem, TimedOut | Pruned | Lost):
            return execution
        stopped = Pruned("cancelled") if self.is_cancelled() else Lost("it was told to stop, but not by luthier")
        return replace(execution, problem=stopped)

    def _without_record(self, said: str) -> Execution:
        """What can be said when the supervisor did not live to tell.

        How long the run took is not known: the times of its files are no measurement, for clocks are set.
        """
        execution, began_at = self._run.execution(), self.began_at()
        if self.is_cancelled():
            return replace(execution, duration_s=0.0, problem=Pruned("cancelled"), metrics={})
        complaint = last_line(self.path / "batch.log")
        if began_at is None and complaint:
            return replace(execution, problem=Failed(complaint))
        return replace(execution, problem=Lost(f"its job left no record; {said}")) if self.path.exists() else execution

    def _changed_at(self, name: str) -> float | None:
        try:
            return (self.path / name).stat().st_mtime
        except FileNotFoundError:
            return None
