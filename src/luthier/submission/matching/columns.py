"""Records in columns: every distinct text is kept once, and compared once with a new job."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt

from luthier.arrays import FloatArray, IntArray
from luthier.submission.matching.fields import Fields, is_night
from luthier.submission.matching.growth import distinct, with_capacity
from luthier.submission.matching.score import PERIODS, Corpus
from luthier.submission.matching.similarities import CLOSE, circular, option_ratio, weights_of, words_of_path

_ROUNDING = 1e-5  # rapidfuzz may drop a similarity that is just the one asked for; bounds may be a little too high


class PathWords:
    """The words of the distinct paths of records; a path is known by its number, in the order of adding.

    `frequencies` says how many records have a path with a word.
    """

    def __init__(self) -> None:
        self.frequencies = Counter[str]()
        self._codes: dict[str, int] = {}
        self._vocabulary: list[str] = []
        self._ends = [0]  # where the words of each path end, after those of the path before it
        self._words = np.zeros(1, dtype=np.int32)
        self._counts = np.zeros(1, dtype=np.int16)

    def add(self, path: str) -> None:
        """Add the next path."""
        words, start = words_of_path(path), self._ends[-1]
        self._ends.append(end := start + len(words))
        self._words, self._counts = with_capacity(self._words, end), with_capacity(self._counts, end)
        for place, (word, count) in enumerate(words.items(), start):
            code = self._codes.setdefault(word, len(self._vocabulary))
            if code == len(self._vocabulary):
                self._vocabulary.append(word)
            self._words[place], self._counts[place] = code, count

    def count(self, path: int, change: int) -> None:
        """Count a record with this path that was added (1) or removed (-1)."""
        for code in self._words[self._ends[path] : self._ends[path + 1]].tolist():
            self.frequencies[self._vocabulary[code]] += change

    def bounds(self, path: str, paths: IntArray, records: int) -> FloatArray:
        """How similar some paths are at most to a new one; this is the similarity, except when close words tie."""
        own = words_of_path(path)
        if not own:
            return np.zeros(len(paths))
        corpus = Corpus(records, self.frequencies)
        owners, words, counts = self._of(paths)
        known, position = distinct(words, len(self._vocabulary))
        texts = [self._vocabulary[word] for word in known.tolist()]
        weights = np.log1p(counts) * np.array([corpus.rarity(text) for text in texts])[position[words]]
        weights /= np.sqrt(np.bincount(owners, weights**2, minlength=len(paths)))[owners]
        bounds = np.zeros(len(paths))
        for (word, weight), close in zip(
            weights_of(own, corpus.rarity).items(), closeness(list(own), texts), strict=True
        ):
            near = close[position[words]]
            hits = np.flatnonzero(near)
            exact = self._codes.get(word)
            best = np.zeros(len(paths))
            np.maximum.at(best, owners[hits], near[hits] * weights[hits])
            if exact is not None:  # where a path has the very word, no other counts
                same = np.flatnonzero(words == exact)
                best[owners[same]] = weights[same]
            bounds += weight * best
        return np.minimum(bounds, 1.0)

    def _of(self, paths: IntArray) -> tuple[IntArray, IntArray, FloatArray]:
        """The words of some paths in a row: the position of the path, the word, and how often it is in the path."""
        numbers = paths.tolist()
        starts = np.array([self._ends[number] for number in numbers], dtype=np.intp)
        lengths = np.array([self._ends[number + 1] for number in numbers], dtype=np.intp) - starts
        owners = np.repeat(np.arange(len(numbers)), lengths)
        places = np.arange(owners.size) + np.repeat(starts - lengths.cumsum() + lengths, lengths)
        return owners, self._words[places].astype(np.intp), self._counts[places].astype(float)


def closeness(words: Sequence[str], others: Sequence[str]) -> FloatArray:
    """How close each word is to each other word; 0 below `CLOSE`. Numbers are only close to themselves."""
    from rapidfuzz.distance import JaroWinkler
    from rapidfuzz.process import cdist

    if not others:
        return np.zeros((len(words), 0))
    near = cdist(words, others, scorer=JaroWinkler.similarity, score_cutoff=CLOSE - _ROUNDING, dtype=np.float64)
    is_number = np.array([other[0].isdigit() for other in others])
    near[:, is_number] = 0.0
    near[[word[0].isdigit() for word in words]] = 0.0
    places = {other: place for place, other in enumerate(others)}
    for row, word in enumerate(words):
        if word in places:
            near[row, places[word]] = 1.0
    return near


T = TypeVar("T")
Options = tuple[tuple[str, tuple[str, ...]], ...]

_TEXTS = ("user", "name", "program", "path")
_COLUMNS = (*_TEXTS, "options", "clock", "date", "nodes")
_CLOCK = {"minute": 60, "second": 60}  # the parts of the time that are kept in one number, and how many values each has
_DATE = {"day": 31, "weekday": 7, "hour": 24}


@dataclass(slots=True)
class _Values(Generic[T]):
    """Distinct values, each with a code."""

    codes: dict[T, int] = field(default_factory=dict)
    values: list[T] = field(default_factory=list)

    def code(self, value: T) -> int:
        """The code of a value; a new one if it is new."""
        found = self.codes.setdefault(value, len(self.values))
        if found == len(self.values):
            self.values.append(value)
        return found


class Columns:
    """The fields of all records, in columns. A record is a row; the order of rows is arbitrary."""

    def __init__(self, most_nodes: int | None) -> None:
        """`most_nodes` is that of the cluster; None for the largest job so far."""
        self._grows, self._most_nodes = most_nodes is None, 1 if most_nodes is None else most_nodes
        self._rows: dict[int, int] = {}
        self._records = np.zeros(1, dtype=np.int64)
        self._columns = {name: np.zeros(1, dtype=np.int32) for name in _COLUMNS}
        self._texts = {name: _Values[str]() for name in _TEXTS}
        self._options = _Values[Options]()
        self._words = PathWords()

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def corpus(self) -> Corpus:
        """What is known of all records, until the next change."""
        return Corpus(len(self), self._words.frequencies, self._most_nodes)

    def records(self, rows: IntArray) -> npt.NDArray[np.int64]:
        """The numbers of the records in some rows."""
        return self._records[rows]

    def fields(self, row: int) -> Fields:
        """The fields of the record in a row."""
        code = {name: int(column[row]) for name, column in self._columns.items()}
        texts = {name: values.values[code[name]] for name, values in self._texts.items()}
        minute, second = _split(code["clock"], _CLOCK)
        day, weekday, hour = _split(code["date"], _DATE)
        options = self._options.values[code["options"]]
        return Fields(
            **texts,
            options=options,
            second=second,
            minute=minute,
            hour=hour,
            day=day + 1,
            weekday=weekday,
            nodes=code["nodes"],
        )

    def append(self, record: int, fields: Fields) -> None:
        """Add a record that is not there yet."""
        row = len(self._rows)
        if row == len(self._records):
            self._records = with_capacity(self._records, row + 1)
            self._columns = {name: with_capacity(column, row + 1) for name, column in self._columns.items()}
        if fields.path not in self._texts["path"].codes:
            self._words.add(fields.path)
        code = {name: values.code(getattr(fields, name)) for name, values in self._texts.items()}
        self._words.count(code["path"], 1)
        code["options"] = self._options.code(fields.options)
        code["clock"] = _joined((fields.minute, fields.second), _CLOCK)
        code["date"] = _joined((fields.day - 1, fields.weekday, fields.hour), _DATE)
        code["nodes"] = fields.nodes
        for name, value in code.items():
            self._columns[name][row] = value
        self._records[row], self._rows[record] = record, row
        if self._grows:
            self._most_nodes = max(self._most_nodes, fields.nodes)

    def remove(self, record: int) -> None:
        """Remove a record; the last row takes its place. Its texts and the size of the largest job are kept."""
        if (row := self._rows.pop(record, None)) is None:
            return
        last = len(self._rows)
        self._words.count(int(self._columns["path"][row]), -1)
        if row != last:
            self._records[row] = self._records[last]
            for column in self._columns.values():
                column[row] = column[last]
            self._rows[int(self._records[row])] = row

    def bounds(self, fields: Fields, shares: Mapping[str, float]) -> FloatArray:
        """The highest score that each row can have: user, time and nodes as they are, other texts as if equal."""
        column = {name: values[: len(self)] for name, values in self._columns.items()}
        clock = _table(fields, _CLOCK, shares)
        date = _table(fields, _DATE, shares)
        date = date + [shares["night"] * (is_night(hour) == fields.night) for hour in range(24)]
        equal = sum(shares[name] for name in ("name", "program", "path", "options"))
        bounds = clock.ravel()[column["clock"]] + (date + equal).ravel()[column["date"]]
        user = self._texts["user"].codes.get(fields.user)
        if user is not None:
            bounds += shares["user"] * (column["user"] == user)
        nodes = column["nodes"].astype(float)
        largest = np.maximum(nodes, max(self._most_nodes, fields.nodes))
        bounds += shares["nodes"] * (1.0 - np.abs(nodes - fields.nodes) / largest)
        return bounds

    def text_losses(self, name: str, text: str, rows: IntArray, least: float) -> FloatArray:
        """How much the similarity of a text is below 1; 1 where it is below `least`."""
        from rapidfuzz.distance import Levenshtein
        from rapidfuzz.process import cdist

        codes, values = self._columns[name][rows], self._texts[name].values
        known, position = distinct(codes, len(values))
        texts = values if len(known) == len(values) else [values[code] for code in known.tolist()]
        scorer = Levenshtein.normalized_similarity
        near = cdist([text], texts, scorer=scorer, score_cutoff=max(0.0, least), dtype=np.float64)[0]
        losses: FloatArray = 1.0 - near[position[codes]]
        return losses

    def option_losses(self, options: Options, rows: IntArray) -> FloatArray:
        """How much the similarity of the options is below 1."""
        codes = self._columns["options"][rows]
        known, position = distinct(codes, len(self._options.values))
        near = [option_ratio(options, self._options.values[code]) for code in known.tolist()]
        return 1.0 - np.array(near)[position[codes]]

    def path_losses(self, path: str, rows: IntArray) -> FloatArray:
        """How much the similarity of the paths is below 1, at least."""
        codes = self._columns["path"][rows]
        known, position = distinct(codes, len(self._texts["path"].values))
        near = self._words.bounds(path, known, len(self))
        near[known == self._texts["path"].codes.get(path, -1)] = 1.0
        return 1.0 - near[position[codes]]


def _table(fields: Fields, parts: Mapping[str, int], shares: Mapping[str, float]) -> FloatArray:
    """What some parts of the time add to the score, for every value that they can have."""
    table = np.zeros(())
    for name, count in parts.items():
        first, own = int(name == "day"), getattr(fields, name)
        values = [shares[name] * circular(own, value + first, PERIODS[name]) for value in range(count)]
        table = np.add.outer(table, values)
    return table


def _joined(values: tuple[int, ...], parts: Mapping[str, int]) -> int:
    """Some values as one number."""
    code = 0
    for value, count in zip(values, parts.values(), strict=True):
        code = code * count + value
    return code


def _split(code: int, parts: Mapping[str, int]) -> tuple[int, ...]:
    """The values in one number."""
    values = list[int]()
    for count in reversed([*parts.values()]):
        code, value = divmod(code, count)
        values.append(value)
    return tuple(reversed(values))
