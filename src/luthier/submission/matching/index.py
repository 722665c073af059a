"""An index over records: finds those that a job is most like without comparing it with each of them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from luthier.arrays import FloatArray, IntArray
from luthier.submission.job import NewJob
from luthier.submission.matching.columns import Columns
from luthier.submission.matching.fields import Fields, fields_of
from luthier.submission.matching.score import Weights, similarities, total

THRESHOLD = 0.75
"""The lowest score of a match, by default."""

_ROUNDING = 1e-9  # sums in another order differ by less than this
_CUTOFF_ROUNDING = 1e-5  # rapidfuzz may drop a similarity that is just the one needed
_FIRST_COMPARED = 4  # records that are compared in full first, to know a score that is reached


@dataclass(frozen=True, slots=True)
class Match:
    """A record that a job is like: its number, its score, and the similarity of each field, from 0 to 1."""

    record: int
    score: float
    by_field: Mapping[str, float]


class Index:
    """The records that a new job is compared with. It is not safe for several threads: lock around it.

    The result is the one of comparing the job with every record. Fields that are cheap to compare give every record an
    upper bound of its score; the others are only compared for records that can still be among the best.
    """

    def __init__(
        self,
        records: Iterable[tuple[int, NewJob]] = (),
        weights: Weights | None = None,
        threshold: float = THRESHOLD,
        *,
        most_nodes: int | None = None,
    ) -> None:
        """`most_nodes` is the number of nodes of the cluster; by default that of the largest job so far."""
        self.weights = Weights() if weights is None else weights
        self.threshold = threshold
        self._columns = Columns(most_nodes)
        for record, job in records:
            self.add(record, job)

    def __len__(self) -> int:
        return len(self._columns)

    def add(self, record: int, job: NewJob) -> None:
        """Add a record, or replace the one with this number."""
        self._columns.remove(record)
        self._columns.append(record, fields_of(job))

    def remove(self, record: int) -> None:
        """Remove a record; an unknown number is ignored."""
        self._columns.remove(record)

    def match(self, job: NewJob, count: int = 1) -> list[Match]:
        """The records most like the job, best first; only those with a score of at least the threshold.

        Of equal scores, the newest record (the highest number) comes first.
        """
        if count < 1 or not len(self):
            return []
        fields, found = fields_of(job), list[Match]()
        rows, bounds = self._candidates(fields, count)
        records = self._columns.records(rows)
        least = self.threshold
        for place in np.lexsort((-records, -bounds)).tolist():
            if bounds[place] < least - _ROUNDING:
                break
            one = self._compared(fields, int(rows[place]), int(records[place]))
            if one.score >= least:
                found = sorted([*found, one], key=_best_first)[:count]
                least = found[-1].score if len(found) == count else least
        return found

    def _compared(self, fields: Fields, row: int, record: int) -> Match:
        by_field = similarities(fields, self._columns.fields(row), self._columns.corpus)
        return Match(record, total(by_field, self.weights), by_field)

    def _candidates(self, fields: Fields, count: int) -> tuple[IntArray, FloatArray]:
        """Rows among which the best ones are, with a bound that no score is above.

        Stages from cheap to expensive turn the bounds into scores. Between them the rows are dropped that cannot reach
        a score which `count` rows have for certain.
        """
        columns, shares = self._columns, self.weights.shares()
        bounds = columns.bounds(fields, shares)
        rows = np.arange(len(bounds))
        least = self._least(fields, rows, bounds, count)
        for name in ("program", "name", "options", "path"):
            keep = np.flatnonzero(bounds >= least - _ROUNDING)
            rows, bounds = rows[keep], bounds[keep]
            if rows.size <= count:
                break
            if name == "path":
                losses = columns.path_losses(fields.path, rows)
            elif name == "options":
                losses = columns.option_losses(fields.options, rows)
            else:
                slack = float(bounds.max()) - least
                needed = 1.0 - slack / shares[name] - _CUTOFF_ROUNDING if shares[name] else 0.0
                losses = columns.text_losses(name, getattr(fields, name), rows, needed)
            bounds = bounds - shares[name] * losses
        return rows, bounds

    def _least(self, fields: Fields, rows: IntArray, bounds: FloatArray, count: int) -> float:
        """A score that at least `count` rows have: the lowest of those with the highest bounds; or the threshold."""
        size = max(_FIRST_COMPARED, count)
        if size >= rows.size:
            return self.threshold
        first = np.argpartition(bounds, rows.size - size)[rows.size - size :]
        scores = sorted(self._compared(fields, int(rows[place]), 0).score for place in first)
        return max(self.threshold, scores[-count])


def _best_first(match: Match) -> tuple[float, int]:
    return -match.score, -match.record
