"""What runs preload and get as variables: libraries that a component names, and what instruments need."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace

from luthier.compiled import part, preload
from luthier.measures.instruments import INSTRUMENTS, Instrument
from luthier.spec.experiment import Experiment
from luthier.spec.script import OWN_LIBRARY, JobScript

VARIABLE = "LD_PRELOAD"


def instruments_of(experiment: Experiment) -> list[Instrument]:
    """The instruments that the measures of an experiment need."""
    names = dict.fromkeys(name for objective in experiment.objectives for name in objective.about.instruments)
    return [INSTRUMENTS.get(name) for name in names]


def preloaded_by(instruments: Sequence[Instrument]) -> str:
    """The libraries of instruments, for LD_PRELOAD."""
    return ":".join(instrument.libraries() for instrument in instruments)


def named_libraries(job: JobScript) -> Sequence[str]:
    """The libraries of luthier that a component preloads; raise if one does not exist."""
    names = OWN_LIBRARY.findall(job.component.ld_preload)
    for name in names:
        part(name)
    return names


def with_libraries(job: JobScript, instruments: Sequence[Instrument]) -> JobScript:
    """The job with the paths of luthier's libraries; they are built first if necessary.

    Those of instruments come first, so that they see what the program does and not what another library makes of it.
    """
    named_libraries(job)
    own = OWN_LIBRARY.sub(lambda match: preload([match[1]]), job.component.ld_preload)
    libraries = " ".join(filter(None, [preloaded_by(instruments), own]))
    return replace(job, component=job.component.model_copy(update={"ld_preload": libraries}))


def build_libraries(experiment: Experiment) -> None:
    """Build what the runs of an experiment preload; raise if something is missing for that."""
    instruments = instruments_of(experiment)
    if isinstance(experiment.command, JobScript):
        with_libraries(experiment.command, instruments)
    else:
        preloaded_by(instruments)


def watched(environment: Mapping[str, str], instruments: Sequence[Instrument], libraries: str = "") -> dict[str, str]:
    """The variables of a run under instruments; `libraries` are added to those that it preloads anyway."""
    given = environment.get(VARIABLE, os.environ.get(VARIABLE, ""))
    preloaded = {VARIABLE: ":".join(filter(None, [libraries, given]))} if libraries else {}
    wanted = {name: text for instrument in instruments for name, text in instrument.variables.items()}
    return {**environment, **preloaded, **wanted}
