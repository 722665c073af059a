"""The runner that an experiment asks for."""

from dataclasses import replace

from luthier.errors import InvalidInputError
from luthier.runners.base import Runner, RunnerSetup
from luthier.runners.command import Command
from luthier.runners.registry import make_runner
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

    setup = RunnerSetup(command, batch, data_directory() / "runs", experiment.slots)
    if job is None:
        return make_runner("local", setup)
    return make_runner(job.where, replace(setup, allocation=job.allocation))
