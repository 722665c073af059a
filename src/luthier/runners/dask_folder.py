"""The folder of one run that Dask makes: what the tuner wrote before, and what came back from the worker."""

import json
import secrets
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from luthier.runners.job_folder import JobFolder, note_in, write_note
from luthier.runners.supervisor import MARK, JobFile
from luthier.trial import Execution, Failed, Lost, Problem, Pruned

CALL = "call"
"""The file with a function to call, its argument and where its modules are found; only the worker has it."""

RETURNED = "returned"
"""The file with what a function returned: a list of numbers, or a text that says why they are missing."""

_NO_RECORD = "the supervisor of this run died"


class DaskFolder:
    """One run's folder on the tuner's side; nothing here waits or asks Dask. `run` is what all such folders share.

    Beside the files of a local run, of which `lock` and `claimed` stay on the worker: `name` (of the task),
    `scheduler` (the id of the scheduler that got it), `returned` (by a function), `closed` (why it ended without a
    record) and `refused` (why no worker can make it).
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.run = JobFolder(path)

    def prepare(self, job: JobFile) -> None:
        """Make the folder; valid once the file `job`, the last of all, is there."""
        name = f"luthier-{self.path.name}-{secrets.token_hex(4)}"  # another luthier may use the same key
        self.run.prepare(job, {"name": name.encode()})
        (self.path / MARK).unlink(missing_ok=True)  # the pipe is on the worker's side

    def task_name(self) -> str:
        """The name of the task on the cluster."""
        return note_in(self.path / "name") or ""

    def job(self) -> bytes:
        """The content of the job file."""
        return (self.path / "job").read_bytes()

    def scheduler(self) -> str | None:
        """The id of the scheduler that has or had the task; None if it was never submitted."""
        return note_in(self.path / "scheduler")

    def note_scheduler(self, scheduler: str) -> None:
        """Write down which scheduler gets the task."""
        write_note(self.path / "scheduler", scheduler)

    def keep(self, files: Mapping[str, bytes]) -> None:
        """Write what came back from the worker; the file `result`, which makes it valid, last and whole."""
        if not self.path.exists():
            return  # somebody removed it
        if "result" not in files:
            self.close(_NO_RECORD)
        for name in (name for name in files if name != "result"):
            (self.path / name).write_bytes(files[name])
        if "result" in files:
            draft = self.path / "result.new"
            draft.write_bytes(files["result"])
            draft.rename(self.path / "result")

    def close(self, why: str) -> None:
        """Write down that nothing will come back."""
        write_note(self.path / "closed", why)

    def refuse(self, why: str) -> None:
        """Write down that the worker cannot make this run."""
        write_note(self.path / "refused", why)

    def ending(self) -> Execution | None:
        """How the run ended; None until that is known."""
        if (why := note_in(self.path / "closed")) is not None:
            return self._without_record("closed", Pruned("cancelled") if self.run.is_cancelled() else Lost(why))
        if (why := note_in(self.path / "refused")) is not None:
            return self._without_record("refused", Failed(why))
        if not (self.path / "result").exists():
            return None
        return self._with_value(self.run.execution())

    def final(self) -> Execution:
        """How a run ended that will report nothing more; lost if its folder was removed."""
        gone = Lost(f"the folder of this run is gone: {self.path}")
        return self.ending() or Execution(self.path.name, time.time(), 0.0, gone)

    def _without_record(self, note: str, problem: Problem) -> Execution:
        noted_at = (self.path / note).stat().st_mtime
        return Execution(self.path.name, noted_at, 0.0, problem, logs=str(self.path))

    def _with_value(self, execution: Execution) -> Execution:
        """The execution with what a function returned."""
        path = self.path / RETURNED
        if execution.problem is not None and not isinstance(execution.problem, Failed):
            return execution
        if not path.exists():
            return execution
        try:
            said = json.loads(path.read_bytes())
        except ValueError:
            return replace(execution, problem=Lost(f"what the function returned is damaged: {path}"))
        if isinstance(said, str):
            return replace(execution, problem=Failed(said))
        value, *others = (float(number) for number in said)
        return replace(execution, value=value, others=tuple(others))
