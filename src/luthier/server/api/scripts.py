"""What is run for a configuration."""

import shlex
from dataclasses import dataclass

from luthier.errors import InvalidInputError
from luthier.spec.experiment import Experiment
from luthier.spec.script import JobScript, interpreter
from luthier.trial import Config


@dataclass(frozen=True, slots=True)
class Script:
    """A script, and the command line that runs it."""

    script: str
    command: str


def script_of(experiment: Experiment, config: Config) -> Script:
    """The script for one configuration; where a plain command is tuned, it is its own script."""
    job = experiment.command
    if job is None:
        raise InvalidInputError("a Python function is tuned; there is no script")
    if not isinstance(job, JobScript):
        line = job.line(experiment.space, config)
        return Script(line, line)
    batch = job.batch(experiment.space, config)
    program = ["sbatch", *batch.options] if job.where == "slurm" else interpreter(job.application, job.name)
    variables = [f"{name}={shlex.quote(text)}" for name, text in batch.environment.items()]
    return Script(batch.script, " ".join([*variables, shlex.join([*program, "SCRIPT"])]))
