"""Runners by name; other packages add theirs through the entry point group `luthier.runners`."""

import shutil

from luthier.errors import InvalidInputError
from luthier.plugins import Registry
from luthier.runners.base import Runner, RunnerKind, RunnerSetup

RUNNERS: Registry[RunnerKind] = Registry(
    "runner",
    {
        "local": "luthier.runners.command:LOCAL",
        "slurm": "luthier.runners.slurm:SLURM",
        "psij": "luthier.runners.psij:PSIJ",
        "dask": "luthier.runners.dask:DASK",
    },
    fits=lambda found: isinstance(found, RunnerKind),
)
"""A plug-in is a `RunnerKind`. A runner is written as its name, or as name, colon and argument: `psij:pbs`."""

AUTO = "auto"
"""The name for whichever runner `automatic` chooses."""


def runner_kind(where: str) -> RunnerKind:
    """The kind of runner that a text such as `psij:pbs` names."""
    return RUNNERS.get(where.partition(":")[0])


def check_runner(where: str) -> None:
    """Raise unless there is such a runner and it accepts its argument."""
    runner_kind(where).check(where.partition(":")[2])


def make_runner(where: str, setup: RunnerSetup) -> Runner:
    """Make the runner that a text such as `psij:pbs` names."""
    return runner_kind(where).make(setup, where.partition(":")[2])


def automatic(script: str, *, has_options: bool) -> str:
    """The runner for a script: Slurm if it, or its component, has options for sbatch, else this machine.

    Without sbatch such a script is refused: it was written for a cluster, and must not start on a login node unasked.
    """
    asks = has_options or any(line.startswith("#SBATCH") for line in script.split("\n"))
    if asks and shutil.which("sbatch") is None:
        what = "the component has options for sbatch" if has_options else "the script has #SBATCH lines"
        raise InvalidInputError(
            f"{what}, and sbatch is not installed here; to run it on this machine, set runner: local (--runner local)"
        )
    return "slurm" if asks else "local"
