"""What a scheduler knows about a job when it is submitted."""

from dataclasses import dataclass
from datetime import datetime

from luthier.errors import InvalidInputError

MOST_NODES = 2**31 - 1
"""The largest number of nodes of a job; databases keep it in 32 bits."""

LONGEST_SCRIPT = 64 * 1024
"""Most characters of a script that are read."""

LONGEST_HEAD = 16 * 1024
"""Most characters of a script in which options of sbatch are looked for."""


@dataclass(frozen=True, slots=True)
class NewJob:
    """A job as it is submitted, before it runs.

    `program` is the name of the program that the job's script runs, `command` its command line. `submitted_at` is a
    time with a time zone, that of the cluster: jobs are compared by their local time.
    """

    user: str
    name: str
    program: str
    command: str
    submitted_at: datetime
    nodes: int

    def __post_init__(self) -> None:
        if self.submitted_at.utcoffset() is None:
            raise InvalidInputError("submitted_at: has no time zone; add one, for example with .astimezone()")
        if not 1 <= self.nodes <= MOST_NODES:
            raise InvalidInputError(f"nodes: {self.nodes} is not between 1 and {MOST_NODES}; give the nodes of the job")
