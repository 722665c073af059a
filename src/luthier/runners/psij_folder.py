"""The folder of one run that PSI/J submits: what luthier, the job and its supervisor leave there for each other."""

import os
import shlex
import sys
from dataclasses import replace
from pathlib import Path

from luthier.runners import supervisor
from luthier.runners.error_message import error_message
from luthier.runners.job_folder import JobFolder, note_in, write_note
from luthier.runners.supervisor import JobFile
from luthier.trial import Execution, Failed, Lost, Pruned, TimedOut

_NUMBER_VARIABLES = {
    "cobalt": "COBALT_JOBID",
    "lsf": "LSB_JOBID",
    "pbs": "PBS_JOBID",
    "pbs_classic": "PBS_JOBID",
    "slurm": "SLURM_JOB_ID",
}
"""Where a job of an executor's finds its own id, as far as that is the one by which PSI/J knows it."""


def batch_script(folder: str, executor: str, python: str) -> str:
    """What a job runs: the supervisor, unless the run was claimed before, cancelled or given up.

    If the job got a signal, `told` is written before `ended`: a shell runs its trap when the supervisor has ended.
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
"$python" -I -S "$folder/supervisor.py" "$folder" </dev/null
: >"$folder/ended"
"""


class PsijFolder:
    """One run's folder; nothing here waits or asks PSI/J. `run` is what it has in common with a local run's.

    Beside the files of a local run: `batch` (what the job runs), `batch.log` (what went wrong there), `id` (the
    job's id as PSI/J reports it), `taken` (as the job itself reports it), `told` (it got a signal), `ended` (it will
    write nothing more) and `closed` (luthier reported it without a record, and why).
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.run = JobFolder(path)

    def prepare(self, job: JobFile, executor: str) -> None:
        """Put everything that the job needs in its folder; valid once the file `job`, the last of all, is there."""
        script = os.fsencode(batch_script(str(self.path), executor, sys.executable))
        self.run.prepare(job, {"batch": script, "supervisor.py": Path(supervisor.__file__).read_bytes()})

    def native_id(self) -> str | None:
        """The id of the job that claimed the run, or else of the one that luthier submitted; None if unknown."""
        return note_in(self.path / "taken") or note_in(self.path / "id") or None

    def note_id(self, native_id: str) -> None:
        """Write down which job was submitted."""
        write_note(self.path / "id", native_id)

    def counted_from(self) -> float | None:
        """When the time that counts began; None while the job waits, or prepares its application."""
        return None if self.run.claimed_at() is None else self.run.counted_from()

    def ending(self) -> Execution | None:
        """How the run ended; None until that is final."""
        if (said := note_in(self.path / "closed")) is not None:
            return self._without_record(said)
        return self._by_record() if (self.path / "ended").exists() else None

    def close(self, said: str) -> Execution:
        """How a run ended whose job is over according to PSI/J; without a record, a late job ends immediately."""
        if (execution := self._by_record()) is not None:
            return execution
        write_note(self.path / "closed", said)
        return self._without_record(said)

    def _by_record(self) -> Execution | None:
        """How the run ended according to its supervisor; None without a record."""
        if not (self.path / "result").exists():
            return None
        execution = self.run.execution()
        if not (self.path / "told").exists() or isinstance(execution.problem, TimedOut | Pruned | Lost):
            return execution
        stopped = Pruned("cancelled") if self.run.is_cancelled() else Lost("it was stopped, but not by luthier")
        return replace(execution, problem=stopped)

    def _without_record(self, said: str) -> Execution:
        """What is known when the supervisor died before it wrote a record.

        How long the run took is unknown: clocks may have been set, so the times of its files do not show it.
        """
        execution, began_at = self.run.execution(), self.run.claimed_at()
        if self.run.is_cancelled():
            return replace(execution, duration_s=0.0, problem=Pruned("cancelled"), metrics={})
        complaint = error_message(self.path / "batch.log")
        if began_at is None and complaint:
            return replace(execution, problem=Failed(complaint))
        return replace(execution, problem=Lost(f"its job left no record; {said}")) if self.path.exists() else execution
