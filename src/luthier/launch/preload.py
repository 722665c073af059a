"""Preload libraries of luthier in the programs that are run: those that a component names, and the counters of I/O."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace

from luthier.compiled import part, preload
from luthier.errors import UnavailableError
from luthier.io.counts import COUNT_FOLDER
from luthier.io.measures import PREFIX
from luthier.runners.supervisor import COUNT_VARIABLE
from luthier.spec.experiment import Experiment
from luthier.spec.script import OWN_LIBRARY, JobScript

VARIABLE = "LD_PRELOAD"
_COUNTERS = ("io", "io-mpi")


def is_counted(experiment: Experiment) -> bool:
    """Whether a measure of the experiment needs the counters of I/O."""
    return any(objective.measure.startswith(PREFIX) for objective in experiment.objectives)


def counters() -> str:
    """The libraries that count I/O, for LD_PRELOAD: that for MPI only where it can be built."""
    needed, for_mpi = _COUNTERS
    try:
        return preload([needed, for_mpi])
    except UnavailableError:
        return preload([needed])


def named_libraries(job: JobScript) -> Sequence[str]:
    """The libraries of luthier that a component preloads; raise if one does not exist."""
    names = OWN_LIBRARY.findall(job.component.ld_preload)
    for name in names:
        part(name)
    return names


def with_libraries(job: JobScript, *, counted: bool) -> JobScript:
    """The job with the paths of luthier's libraries; they are built first if necessary.

    The counters come first, so that they see what the program does and not what another library makes of it.
    """
    named_libraries(job)
    own = OWN_LIBRARY.sub(lambda match: preload([match[1]]), job.component.ld_preload)
    libraries = " ".join(filter(None, [counters() if counted else "", own]))
    return replace(job, component=job.component.model_copy(update={"ld_preload": libraries}))


def build_libraries(experiment: Experiment) -> None:
    """Build what the runs of an experiment preload; raise if something is missing for that."""
    if isinstance(experiment.command, JobScript):
        with_libraries(experiment.command, counted=is_counted(experiment))
    elif is_counted(experiment):
        counters()


def counting(environment: Mapping[str, str], libraries: str = "") -> dict[str, str]:
    """The variables of a run whose I/O is counted; `libraries` are added to those that it preloads anyway."""
    given = environment.get(VARIABLE, os.environ.get(VARIABLE, ""))
    preloaded = {VARIABLE: ":".join(filter(None, [libraries, given]))} if libraries else {}
    return {**environment, **preloaded, COUNT_VARIABLE: COUNT_FOLDER}
