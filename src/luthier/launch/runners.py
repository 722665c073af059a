"""The runner that an experiment asks for."""

import platform
from dataclasses import replace
from pathlib import Path

from luthier.errors import InvalidInputError
from luthier.runners.base import Runner, RunnerSetup
from luthier.runners.command import Command
from luthier.runners.registry import make_runner, runner_kind
from luthier.runners.slurm import Batch
from luthier.spec.experiment import Experiment
from luthier.spec.script import JobScript
from luthier.store import data_directory
from luthier.trial import Config


def runner_of(experiment: Experiment) -> Runner:
    """The runner of an experiment that tunes a command or a job script."""
    tuned = experiment.command
    if tuned is None:
        raise InvalidInputError("the experiment tunes a Python function, which only its program has")
    job = tuned if isinstance(tuned, JobScript) else None

    def command(config: Config) -> Command:
        is_marked = job is not None and job.is_timed_apart
        return Command(*tuned.render(experiment.space, config), experiment.cwd, is_marked)

    def batch(config: Config) -> Batch:
        if job is None:
            raise InvalidInputError("a single command has no batch script; write an experiment file")
        return replace(job.batch(experiment.space, config), cwd=experiment.cwd)

    if (job is None or runner_kind(job.where).is_local) and not Path(experiment.cwd or ".").is_dir():
        raise InvalidInputError(
            f"folder: {experiment.cwd} does not exist on {platform.node()}, or is not a folder; create it and try again"
        )
    setup = RunnerSetup(command, batch, data_directory() / "runs", experiment.slots)
    if job is None:
        return make_runner("local", setup)
    return make_runner(job.where, replace(setup, allocation=job.allocation))
