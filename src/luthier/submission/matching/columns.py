"""Records in columns: every distinct text is kept once, and compared once with a new job."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt

from luthier.arrays import FloatArray, IntArray
from luthier.submission.matching.fields import Fields, is_night
from luthier.submission.matching.growth import distinct, with_capacity
from luthier.submission.matching.score import PERIODS, Corpus
from luthier.submission.matching.similarities import circular, option_ratio
from luthier.submission.matching.words import PathWords

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
