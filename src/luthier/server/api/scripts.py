"""What is run for a configuration."""

from dataclasses import dataclass

from luthier.errors import InvalidInputError
from luthier.spec.experiment import Experiment
from luthier.spec.script import JobScript
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
    return Script(batch.script, job.command_line(batch))
