"""The plug point of the ways to run a configuration."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from luthier.errors import InvalidInputError
from luthier.texts import shown
from luthier.trial import BatchJob, Config, Execution, Job

if TYPE_CHECKING:
    from luthier.runners.command import Command
    from luthier.runners.function import Returned
    from luthier.runners.psij import Allocation
    from luthier.runners.slurm import Batch


@runtime_checkable
class Runner(Protocol):
    """Runs jobs, several at a time: the experiment's `slots` says how many.

    A key is run at most once: to submit a key that was started before (also by a process that died since) adopts that
    run instead of starting another, wherever the runner's jobs can outlive their parent. It is adopted for the
    configuration it was started with only: for another one nothing is started, and the job is reported as `Lost`. So is
    a job of another machine that may have started there, if it has no files here.
    """

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

    def started_at(self, key: str) -> float | None:
        """When the time of a job that is running began to count, in seconds since the epoch.

        None while the job waits in a queue or prepares its application, after it was reported, and for a key that was
        not submitted.
        """
        ...

    # A runner with a method `close()` is closed when the experiment for which luthier made it is over or stopped.


@runtime_checkable
class BatchRunner(Runner, Protocol):
    """A runner whose jobs go through a batch system, in which they have numbers and wait in a queue.

    This one method more makes the waiting visible, and keeps it out of the experiment's time limit.
    """

    def batch_job(self, key: str) -> BatchJob | None:
        """What is known of a job that was submitted and not yet reported; None for any other key. Does not wait."""
        ...


@dataclass(frozen=True, slots=True)
class RunnerSetup:
    """What a runner is made from.

    `command` makes from a configuration the command that runs it on a machine, `batch` the script and the options for a
    batch system. A run may keep its files in the folder `folder/KEY`. At most `slots` jobs are submitted at a time.
    `allocation` is what each job asks of the batch system, if that was given.
    """

    command: "Callable[[Config], Command]"
    batch: "Callable[[Config], Batch]"
    folder: Path
    slots: int = 1
    allocation: "Allocation | None" = None


def no_argument(argument: str) -> None:
    """Refuse an argument: most runners are named without one."""
    if argument:
        raise InvalidInputError(f"this runner takes no argument; remove {shown(':' + argument)}")


@dataclass(frozen=True, slots=True)
class RunnerKind:
    """A runner that experiment files can name: `runner: NAME`, or `runner: NAME:ARGUMENT`.

    `make` makes it, from the setup and the argument ("" without one), which `check` has accepted. With `is_local` its
    jobs run on this machine, where experiments would disturb each other. `program` submits a batch script and takes
    the component's options for sbatch; without one, the script is run by the interpreter of its first line. Only with
    `takes_allocation` can an experiment file have an `allocation`. With `has_remote_argument` the jobs of
    a runner with an argument run on other machines. `make_for_function` makes a runner that calls a Python function; it
    does not use the commands of the setup. `usual_slots` is the number of slots of an experiment that gives none.
    """

    make: Callable[[RunnerSetup, str], Runner]
    check: Callable[[str], None] = no_argument
    is_local: bool = True
    program: str = ""
    takes_allocation: bool = False
    has_remote_argument: bool = False
    make_for_function: "Callable[[Callable[[Config], Returned], RunnerSetup, str], Runner] | None" = None
    usual_slots: Callable[[str], int] = lambda _: 1

    def is_local_with(self, argument: str) -> bool:
        """Whether a runner that was named with this argument uses this machine."""
        return self.is_local and not (self.has_remote_argument and argument)
