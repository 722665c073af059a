"""Times runs from where their scripts say that the application begins."""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from luthier.runners.base import Runner
from luthier.trial import Execution, Job

_LONGEST_READ_BYTES = 1024 * 1024


class ApplicationRunner:
    """Another runner's runs, of which only the time from a mark on counts: not the queue, and no preparation.

    The mark is a line of the error output that begins with `mark` and ends with the time, in seconds since the epoch.
    Until it is there, a run has not started; a run that ends without it took no time at all.
    """

    def __init__(self, runner: Runner, folder: Path, mark: str) -> None:
        self._runner = runner
        self._folder = folder
        self._mark = re.compile(rf"^{re.escape(mark)} (\d+\.\d+)$".encode(), re.MULTILINE)

    @property
    def slots(self) -> int:
        """How many jobs may be under way at once."""
        return self._runner.slots

    def submit(self, job: Job) -> None:
        """Start the job, or adopt it."""
        self._runner.submit(job)

    def poll(self, many: Sequence[str], wait_s: float) -> Sequence[Execution]:
        """Return those of the named jobs that have ended."""
        return [self._from_mark(execution) for execution in self._runner.poll(many, wait_s)]

    def cancel(self, many: Sequence[str]) -> None:
        """Stop the named jobs."""
        self._runner.cancel(many)

    def started_at(self, key: str) -> float | None:
        """When the application of a job began, or None if it has not."""
        return self._began(self._folder / key)

    def _from_mark(self, execution: Execution) -> Execution:
        wall_s = execution.metrics.get("wall_s")
        if wall_s is None or execution.logs is None:
            return execution
        began = self._began(Path(execution.logs))
        before_s = wall_s if began is None else began - execution.started_at
        counted_s = min(max(wall_s - before_s, 0.0), wall_s)
        return replace(execution, metrics={**execution.metrics, "wall_s": counted_s})

    def _began(self, logs: Path) -> float | None:
        try:
            with (logs / "stderr").open("rb") as file:
                match = self._mark.search(file.read(_LONGEST_READ_BYTES))
        except OSError:
            return None
        return None if match is None else float(match[1])
