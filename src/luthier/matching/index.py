"""The records that a job is compared with."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from luthier.matching.fields import fields_of
from luthier.matching.score import Corpus, Weights, similarity
from luthier.submission import Job

THRESHOLD = 0.75
"""The lowest score of a match, by default."""


@dataclass(frozen=True, slots=True)
class Match:
    """A record that a job is like: its number, its score, and the similarity of each field, from 0 to 1."""

    record: int
    score: float
    by_field: Mapping[str, float]


class Index:
    """The records that a new job is compared with. It is not safe for several threads: lock around it."""

    def __init__(
        self,
        records: Iterable[tuple[int, Job]] = (),
        weights: Weights | None = None,
        threshold: float = THRESHOLD,
        *,
        most_nodes: int | None = None,
    ) -> None:
        """`most_nodes` is the number of nodes of the cluster; by default that of the largest job so far."""
        self.weights = Weights() if weights is None else weights
        self.threshold = threshold
        self._most_nodes = most_nodes
        self._jobs: dict[int, Job] = dict(records)

    def __len__(self) -> int:
        return len(self._jobs)

    def __contains__(self, record: int) -> bool:
        return record in self._jobs

    def add(self, record: int, job: Job) -> None:
        """Add a record, or replace the one with this number."""
        self._jobs[record] = job

    def remove(self, record: int) -> None:
        """Remove a record; an unknown number is ignored."""
        self._jobs.pop(record, None)

    def match(self, job: Job, count: int = 1) -> list[Match]:
        """The records most like the job, best first; only those with a score of at least the threshold.

        Of equal scores, the newest record (the highest number) comes first.
        """
        corpus = Corpus.of(self._jobs.values())
        fields = fields_of(job)
        scores = ((record, similarity(fields, other, self.weights, corpus)) for record, other in self._jobs.items())
        found = [Match(record, one.total, one.by_field) for record, one in scores if one.total >= self.threshold]
        return sorted(found, key=lambda match: (-match.score, -match.record))[:count]
