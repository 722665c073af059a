"""Jobs that were submitted, and what was decided about each: the values that a store keeps."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias

from luthier.submission.job import NewJob

Decision: TypeAlias = Literal["set", "default", "none", "unused"]
"""`set`: the job got a configuration; `default`: it kept the default although it matched, for comparison;
`none`: no record is similar enough; `unused`: it matched, but the configuration could not be used."""


@dataclass(frozen=True, slots=True)
class NewSubmission:
    """A submitted job and the decision about it.

    `author` may see it. `record_id` is the record that it matched, of the experiment `experiment_id`; `by_field` has
    the similarity of each field. `environment` are the variables that were set. `reason` is one line for people.
    """

    author: str
    job: NewJob
    decision: Decision
    reason: str
    record_id: int | None = None
    experiment_id: int | None = None
    component: str | None = None
    score: float | None = None
    by_field: Mapping[str, float] | None = None
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Submission(NewSubmission):
    """A submitted job in the store: also its number, how it ended, and what a person said about the match.

    `state` is that of Slurm, such as COMPLETED or FAILED; None until the end is reported.
    """

    id: int = 0
    job_id: str | None = None
    state: str | None = None
    elapsed_s: float | None = None
    confirmed: bool | None = None


@dataclass(frozen=True, slots=True)
class EndedJob:
    """How a job ended: with a record's configuration (`set`), with the default for comparison (`default`), or with the
    default because it matched nothing (`none`).
    """

    id: int
    job: NewJob
    decision: Decision
    state: str
    elapsed_s: float | None


@dataclass(frozen=True, slots=True)
class Usage:
    """The jobs of one author that got the configuration of one record; `elapsed_s` is that of the completed ones."""

    author: str
    record_id: int
    jobs: int
    completed: int
    elapsed_s: float


@dataclass(frozen=True, slots=True)
class ProgramUse:
    """A program whose jobs match no record: how many, and the time of those whose end is known."""

    author: str
    user_name: str
    program: str
    jobs: int
    ended: int
    elapsed_s: float
    last_at: float
    last_id: int


class Submissions(Protocol):
    """Submitted jobs and what was decided about each. Every method is one transaction.

    An unknown number raises `NotFoundError`, except where a method says otherwise.
    """

    def add(self, new: Sequence[NewSubmission]) -> list[int]:
        """Add jobs, all of them or none; return their numbers in the same order."""
        ...

    def get(self, submission_id: int) -> Submission:
        """One submitted job."""
        ...

    def all(
        self,
        *,
        author: str | None = None,
        decision: Decision | None = None,
        before: int | None = None,
        limit: int = 100,
    ) -> Sequence[Submission]:
        """The newest submitted jobs first; with an `author`, only theirs."""
        ...

    def note_end(self, submission_id: int, job_id: str, state: str, elapsed_s: float | None) -> bool:
        """Record how the job ended; False if that is known already, or if the number is unknown."""
        ...

    def review(self, submission_id: int, *, confirmed: bool | None) -> None:
        """Record whether a person says that the match is right; None removes an earlier review."""
        ...

    def reviews(self) -> Sequence[tuple[Mapping[str, float], bool]]:
        """The scores per field of the newest reviewed matches, and whether each is right."""
        ...

    def ended(self, record_id: int) -> Sequence[EndedJob]:
        """The newest ended jobs that matched this record, and equal jobs that matched nothing; oldest first.

        Equal jobs have the same user, program, command and number of nodes. Those that could not get a configuration
        are left out.
        """
        ...

    def usage(self, *, author: str | None = None) -> Sequence[Usage]:
        """For each author and record: the jobs that got its configuration, and the time they took."""
        ...

    def unmatched(self, *, author: str | None = None, since: float = 0.0, limit: int = 50) -> Sequence[ProgramUse]:
        """The programs with at least two jobs that matched no record, those that took most time first."""
        ...
