"""The score of two jobs: a weighted mean of the similarities of their fields (Robert 2021, section 7.4.3)."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import astuple, dataclass, field
from functools import lru_cache
from types import MappingProxyType

from luthier.errors import InvalidInputError
from luthier.submission.job import NewJob
from luthier.submission.matching.fields import Fields, fields_of
from luthier.submission.matching.similarities import (
    absolute,
    circular,
    exact,
    levenshtein,
    option_ratio,
    soft_tfidf,
    words_of_path,
)

PERIODS: Mapping[str, int] = MappingProxyType({"second": 60, "minute": 60, "hour": 24, "day": 31, "weekday": 7})
"""The periods of the fields on a circle."""

EXTRACTED: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "user": ("user",),
        "name": ("name",),
        "program": ("program",),
        "command": ("path", "options"),
        "time": ("second", "minute", "hour", "day", "weekday", "night"),
        "nodes": ("nodes",),
    }
)
"""The fields that are compared, by the original field from which they are extracted (Robert 2021, table 7.2)."""


@dataclass(frozen=True, slots=True)
class Weights:
    """The weight of each original field; by default all weigh the same, as in the thesis.

    Only ratios matter. The weight of a field is split evenly over what is extracted from it. The formula of the thesis
    leaves out `day` and `night`, which its table 7.3 lists; here they count like the other parts of the time.
    """

    user: float = 1.0
    name: float = 1.0
    program: float = 1.0
    command: float = 1.0
    time: float = 1.0
    nodes: float = 1.0

    def __post_init__(self) -> None:
        for name, weight in zip(EXTRACTED, astuple(self), strict=True):
            if not (math.isfinite(weight) and weight >= 0):
                raise InvalidInputError(f"weight {name}: {weight} is not a number of at least 0")
        if sum(astuple(self)) <= 0:
            raise InvalidInputError("weights: all are 0; at least one must be above 0")

    def shares(self) -> Mapping[str, float]:
        """The share of each compared field in the score; the sum is 1."""
        return _shares(self)


@lru_cache(maxsize=16)
def _shares(weights: Weights) -> Mapping[str, float]:
    total = sum(astuple(weights))
    originals = zip(EXTRACTED.values(), astuple(weights), strict=True)
    return MappingProxyType({name: weight / total / len(names) for names, weight in originals for name in names})


@dataclass(frozen=True, slots=True)
class Corpus:
    """What must be known of all records to compare two jobs: frequencies of words in paths, and the largest job.

    `frequencies` says how many of the `records` have a word in their path. `most_nodes` is the number of nodes of the
    cluster, or of the largest job.
    """

    records: int = 0
    frequencies: Mapping[str, int] = field(default_factory=dict)
    most_nodes: int = 1

    @classmethod
    def of(cls, jobs: Iterable[NewJob]) -> "Corpus":
        """The corpus of some jobs."""
        count, frequencies, most = 0, Counter[str](), 1
        for job in jobs:
            count, most = count + 1, max(most, job.nodes)
            frequencies.update(words_of_path(fields_of(job).path).keys())
        return cls(count, frequencies, most)

    def rarity(self, word: str) -> float:
        """The weight of a word: high if few records contain it, never 0."""
        return math.log(1 + (self.records + 1) / (self.frequencies.get(word, 0) + 1))


@dataclass(frozen=True, slots=True)
class Score:
    """How alike two jobs are: in total, and by field; all from 0 to 1."""

    total: float
    by_field: Mapping[str, float]


def similarity(
    one: NewJob | Fields, other: NewJob | Fields, weights: Weights | None = None, corpus: Corpus | None = None
) -> Score:
    """How alike two jobs are; `one` is the new job, `other` the record.

    Without a corpus, all words of paths weigh the same.
    """
    first = fields_of(one) if isinstance(one, NewJob) else one
    second = fields_of(other) if isinstance(other, NewJob) else other
    by_field = similarities(first, second, Corpus() if corpus is None else corpus)
    return Score(total(by_field, Weights() if weights is None else weights), by_field)


def total(by_field: Mapping[str, float], weights: Weights) -> float:
    """The weighted mean of the similarities of all fields."""
    return min(1.0, math.fsum(share * by_field[name] for name, share in weights.shares().items()))


def similarities(one: Fields, other: Fields, corpus: Corpus) -> dict[str, float]:
    """The similarity of each field (Robert 2021, table 7.3)."""
    largest = max(corpus.most_nodes, one.nodes, other.nodes)
    return {
        "user": exact(one.user, other.user),
        "name": levenshtein(one.name, other.name),
        "program": levenshtein(one.program, other.program),
        "path": path_similarity(one.path, other.path, corpus),
        "options": option_ratio(one.options, other.options),
        **{name: circular(getattr(one, name), getattr(other, name), period) for name, period in PERIODS.items()},
        "night": exact(one.night, other.night),
        "nodes": absolute(one.nodes, other.nodes, largest),
    }


def path_similarity(one: str, other: str, corpus: Corpus) -> float:
    """Soft TF-IDF of two paths; equal ones have 1."""
    if one == other:
        return 1.0
    words, others = words_of_path(one), words_of_path(other)
    return soft_tfidf(words, others, corpus.rarity) if words and others else 0.0
