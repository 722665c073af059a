"""The runner that an experiment asks for."""

from dataclasses import replace
from pathlib import Path

from luthier.errors import InvalidInputError
from luthier.runners.base import Runner
from luthier.runners.command import Command, CommandRunner
from luthier.spec.experiment import Experiment
from luthier.spec.script import JobScript
from luthier.store import data_directory
from luthier.trial import Config


def runner_of(experiment: Experiment) -> Runner:
    """The runner of an experiment that tunes a command or a job script."""
    template = experiment.command
    if template is None:
        raise InvalidInputError("the experiment tunes a Python function, which only its program has")
    if isinstance(template, JobScript):
        return _job_runner(experiment, template)

    def render(config: Config) -> Command:
        argv, environment = template.render(experiment.space, config)
        return Command(argv, environment, cwd=experiment.cwd)

    return CommandRunner(render, data_directory() / "runs", slots=experiment.slots)


def _job_runner(experiment: Experiment, job: JobScript) -> Runner:
    """The runner that an experiment with a job script asks for."""
    folder = data_directory() / "runs"
    if job.executor is not None:
        return _psij(experiment, job, job.executor, folder)
    return _slurm(experiment, job, folder) if job.where == "slurm" else _local(experiment, job, folder)


def _local(experiment: Experiment, job: JobScript, folder: Path) -> Runner:
    def render(config: Config) -> Command:
        return Command(*job.render(experiment.space, config), experiment.cwd, job.is_timed_apart)

    return CommandRunner(render, folder, slots=experiment.slots)


def _psij(experiment: Experiment, job: JobScript, executor: str, folder: Path) -> Runner:
    from luthier.runners.psij import PsijRunner

    def render(config: Config) -> Command:
        return Command(*job.render(experiment.space, config), experiment.cwd, job.is_timed_apart)

    return PsijRunner(render, executor, folder, slots=experiment.slots, allocation=job.allocation)


def _slurm(experiment: Experiment, job: JobScript, folder: Path) -> Runner:
    from luthier.runners.slurm import Batch, SlurmRunner

    def render(config: Config) -> Batch:
        batch = job.batch(experiment.space, config)
        return replace(batch, options=(f"--chdir={experiment.cwd}", *batch.options))

    return SlurmRunner(render, folder, slots=experiment.slots)
