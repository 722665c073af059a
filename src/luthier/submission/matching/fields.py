"""Cleaning and extraction: from a job to the fields that are compared (Robert 2021, table 7.2)."""

from dataclasses import dataclass

from luthier.submission.job import NewJob
from luthier.submission.matching.command_line import invocation

LONGEST_TEXT = 200
"""Most characters of a cleaned name; what follows is ignored, so that the time of a comparison is limited."""

_NIGHT_BEGINS, _NIGHT_ENDS = 22, 6  # hours; the thesis does not say which hours are night


@dataclass(frozen=True, slots=True)
class Fields:
    """The fields of a job that are compared.

    `name` and `program` are cleaned: letters and digits only, lower case. `path` is that of the program, `options` are
    its options, sorted, each with its values, sorted; arguments that belong to no option have the option "". The time
    of submission is local: `day` is that of the month (1 to 31), `weekday` is 0 on Monday.
    """

    user: str
    name: str
    program: str
    path: str
    options: tuple[tuple[str, tuple[str, ...]], ...]
    second: int
    minute: int
    hour: int
    day: int
    weekday: int
    nodes: int

    @property
    def night(self) -> bool:
        """Whether the job was submitted at night, from 22:00 to 06:00."""
        return is_night(self.hour)


def is_night(hour: int) -> bool:
    """Whether an hour of the day is at night."""
    return hour >= _NIGHT_BEGINS or hour < _NIGHT_ENDS


def fields_of(job: NewJob) -> Fields:
    """The fields of a job, cleaned and extracted."""
    called, at = invocation(job.command), job.submitted_at
    return Fields(
        job.user,
        _cleaned(job.name),
        _cleaned(job.program),
        called.path,
        called.options,
        at.second,
        at.minute,
        at.hour,
        at.day,
        at.weekday(),
        job.nodes,
    )


def _cleaned(text: str) -> str:
    """Letters and digits only, in lower case; of a long text only the beginning."""
    return "".join(filter(str.isalnum, text[: 4 * LONGEST_TEXT].lower()))[:LONGEST_TEXT]
