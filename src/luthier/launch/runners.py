"""The runner that an experiment asks for, and what its runs preload and get as variables."""

import os
import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

from luthier.compiled import part, preload
from luthier.errors import InvalidInputError
from luthier.folders import data_directory
from luthier.measures.instruments import INSTRUMENTS, PRELOAD_VARIABLE, Instrument
from luthier.runners.base import Runner, RunnerSetup
from luthier.runners.command import Command
from luthier.runners.function import Returned
from luthier.runners.registry import check_runner, make_runner, runner_kind
from luthier.runners.slurm import Batch
from luthier.spec.experiment import Experiment
from luthier.spec.script import OWN_LIBRARY, JobScript
from luthier.texts import shown
from luthier.trial import Config


def runner_of(
    experiment: Experiment, *, instruments: Sequence[Instrument] = (), prefix: tuple[str, ...] = ()
) -> Runner:
    """The runner of an experiment that tunes a command or a job script.

    Its runs are watched by the `instruments`, and by those that its measures need. `prefix` are words before a command,
    such as `perf stat`; batch scripts are run without them.
    """
    tuned = experiment.command
    if tuned is None:
        raise InvalidInputError("the experiment tunes a Python function; only the program that defines it can run it")
    used = list({id(one): one for one in (*instruments_of(experiment), *instruments)}.values())
    job = with_libraries(tuned, used) if isinstance(tuned, JobScript) else None
    libraries = preloaded_by(used) if job is None else ""

    def variables(environment: Mapping[str, str]) -> Mapping[str, str]:
        return watched(environment, used, libraries) if used else environment

    def command(config: Config) -> Command:
        is_marked = job is not None and job.is_timed_apart
        argv, environment = (job or tuned).render(experiment.space, config)
        return Command((*prefix, *argv), variables(environment), experiment.cwd, is_marked)

    def batch(config: Config) -> Batch:
        if job is None:
            raise InvalidInputError("a single command has no batch script; write an experiment file")
        rendered = job.batch(experiment.space, config)
        return replace(rendered, environment=variables(rendered.environment), cwd=experiment.cwd)

    if (job is None or runner_kind(job.where).is_local) and not Path(experiment.cwd or ".").is_dir():
        raise InvalidInputError(
            f"folder: {experiment.cwd} does not exist on {platform.node()}, or is not a folder; create it and try again"
        )
    setup = RunnerSetup(command, batch, data_directory() / "runs", experiment.slots)
    return make_runner(tuned.where, setup if job is None else replace(setup, allocation=job.allocation))


def function_runner(where: str, function: Callable[[Config], Returned], slots: int) -> Runner:
    """The runner of this name that calls a Python function."""
    check_runner(where)
    make = runner_kind(where).make_for_function
    if make is None:
        raise InvalidInputError(f"runner: {shown(where)} is not a runner for functions; use dask")
    setup = RunnerSetup(_no_command, _no_command, data_directory() / "runs", slots)
    return make(function, setup, where.partition(":")[2])


def usual_slots(where: str) -> int:
    """The number of slots where none is given: that of the workers, for a runner that has workers."""
    return runner_kind(where).usual_slots(where.partition(":")[2])


def with_usual_slots(experiment: Experiment) -> Experiment:
    """An experiment that gives no number of slots, with the usual one of its runner."""
    if experiment.command is None:
        return experiment
    return replace(experiment, slots=usual_slots(experiment.command.where))


@contextmanager
def closed_at_end(runner: Runner) -> Iterator[Runner]:
    """Close a runner that has something to close when its experiment is over or stopped."""
    try:
        yield runner
    finally:
        if callable(close := getattr(runner, "close", None)):
            close()


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

    Those of instruments come first, so that they see what the program does, before another library changes it.
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
    given = environment.get(PRELOAD_VARIABLE, os.environ.get(PRELOAD_VARIABLE, ""))
    preloaded = {PRELOAD_VARIABLE: ":".join(filter(None, [libraries, given]))} if libraries else {}
    wanted = {name: text for instrument in instruments for name, text in instrument.variables.items()}
    return {**environment, **preloaded, **wanted}


def _no_command(_config: Config) -> NoReturn:
    raise InvalidInputError("the experiment tunes a Python function, and has no command")
