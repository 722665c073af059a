"""The plug point of the ways to run a configuration."""

from collections.abc import Sequence
from typing import Protocol

from luthier.trial import Execution, Job


class Runner(Protocol):
    """Runs jobs, several at a time.

    A key is run at most once: to submit a key that was started before (also by a process that died since) adopts that
    run instead of starting another, wherever the runner's jobs can outlive their parent.
    It is adopted for the configuration it was started with only: for another one nothing is started, and the job is
    reported as `Lost`.
    """

    @property
    def slots(self) -> int:
        """How many jobs may be under way at once."""
        ...

    def submit(self, job: Job) -> None:
        """Start the job, or adopt it if its key was started before; return without waiting for it.

        After a normal return the job will be reported by `poll` exactly once, whatever happens to it. An
        `UnavailableError` means that nothing was started and the same call may work later; an `InvalidInputError`,
        that no job of this kind can ever start.
        """
        ...

    def poll(self, many: Sequence[str], wait_s: float) -> Sequence[Execution]:
        """Return those of the named jobs that have ended, waiting up to `wait_s` seconds for the first of them."""
        ...

    def cancel(self, many: Sequence[str]) -> None:
        """Stop the named jobs; each is still reported by `poll`, as `Pruned` unless it ended by itself before."""
        ...
