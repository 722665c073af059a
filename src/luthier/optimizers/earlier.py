"""What is known from earlier experiments, as a value that is stored with the new one."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np

from luthier.arrays import FloatArray
from luthier.errors import InvalidInputError
from luthier.space import Space
from luthier.texts import shown
from luthier.trial import Config, Json, Value

TransferKind: TypeAlias = Literal["best", "density", "vae", "model"]
TRANSFER_KINDS: tuple[TransferKind, ...] = get_args(TransferKind)

HANDED_ON = 3
"""How many of the best configurations of each earlier experiment are tried first."""

AUTO: TransferKind = "model"
DEFAULT_SHARE = 0.1
"""Chosen by experiment: docs/research/2026-11-18-transfer.md."""

_NOTATION = re.compile(r"([a-z]+)(?::([0-9]{1,3}(?:\.[0-9]{1,6})?)%)?")
_FOREIGN = "the store was written by another program"


@dataclass(frozen=True, slots=True)
class EarlierTrial:
    """A trial of an earlier experiment, with the values that the new space has for it.

    `values` lacks the parameters that the earlier space did not have and the values that the new space does not have.
    `score` compares the trial with the others of its experiment (lower is better; mean 0, deviation 1); None if it
    failed. The score of a run that was cut short `is_bound`: a lower bound. `source` counts the experiments from 0.
    """

    values: Mapping[str, Value]
    score: float | None
    is_bound: bool = False
    source: int = 0


@dataclass(frozen=True, slots=True)
class Earlier:
    """What a new search learns from earlier experiments; it never changes after the new experiment is created.

    `kind` is the way to learn, `share` the part of the trials, the best ones, that `density` and `vae` learn from.
    `notes` tell people what each source is.
    """

    trials: tuple[EarlierTrial, ...]
    kind: TransferKind = "model"
    share: float = 0.1
    notes: tuple[str, ...] = ()

    @property
    def sources(self) -> int:
        """How many earlier experiments there are."""
        return 1 + max((trial.source for trial in self.trials), default=-1)

    def of_source(self, source: int) -> list[EarlierTrial]:
        """The trials of one earlier experiment."""
        return [trial for trial in self.trials if trial.source == source]

    def best(self, source: int, count: int) -> list[EarlierTrial]:
        """The best measured trials of one earlier experiment, best first."""
        measured = [trial for trial in self.of_source(source) if trial.score is not None and not trial.is_bound]
        return sorted(measured, key=lambda trial: trial.score or 0.0)[:count]

    def first(self, space: Space) -> list[Config]:
        """The best configurations of each source that are valid; missing parameters have their default."""
        found: dict[Config, None] = {}
        for source in range(self.sources):
            for trial in self.best(source, HANDED_ON):
                values = {**space.default, **trial.values}
                if space.contains(values):
                    found[space.check(values)] = None
        found.pop(space.default, None)
        return list(found)

    def to_json(self) -> dict[str, Json]:
        """The value as JSON, one short row for each trial."""
        names = sorted({name for trial in self.trials for name in trial.values})
        rows: list[Json] = [
            [trial.source, trial.score, trial.is_bound, *(trial.values.get(name) for name in names)]
            for trial in self.trials
        ]
        return {"kind": self.kind, "share": self.share, "notes": list(self.notes), "names": list(names), "rows": rows}

    @classmethod
    def from_json(cls, plain: Mapping[str, Json]) -> "Earlier":
        """Read what `to_json` wrote."""
        kind, share, notes, names, rows = (plain.get(key) for key in ("kind", "share", "notes", "names", "rows"))
        if kind not in TRANSFER_KINDS or not isinstance(share, float | int) or not all(map(_is_list, (notes, names))):
            raise InvalidInputError(f"earlier: invalid; {_FOREIGN}")
        width = 3 + len(_listed(names))
        if not _is_list(rows) or not all(_is_list(row) and len(_listed(row)) == width for row in _listed(rows)):
            raise InvalidInputError(f"earlier: invalid rows; {_FOREIGN}")
        trials = tuple(_trial([str(name) for name in _listed(names)], _listed(row)) for row in _listed(rows))
        return cls(trials, kind, float(share), tuple(map(str, _listed(notes))))


def read_transfer(text: str) -> tuple[TransferKind, float]:
    """The kind and the share in a text such as `auto`, `model` or `vae:20%`."""
    match = _NOTATION.fullmatch(text)
    name, percent = match.groups() if match else ("", None)
    kind = AUTO if name == "auto" else next((each for each in TRANSFER_KINDS if each == name), None)
    if kind is None:
        known = ", ".join(("auto", *TRANSFER_KINDS))
        raise InvalidInputError(f"{shown(text)} is unknown; use {known}, or with a share vae:20%, density:20%")
    if percent is None:
        return kind, DEFAULT_SHARE
    if kind not in ("density", "vae") or not 0.0 < float(percent) <= 100.0:
        raise InvalidInputError(
            f"{shown(text)}: only density and vae take a share; it must be above 0% and at most 100%"
        )
    return kind, float(percent) / 100.0


def units_of(space: Space, trials: Sequence[EarlierTrial]) -> FloatArray:
    """The coordinates of trials in the unit cube, a row for each; NaN where a trial has no value."""
    rows = np.full((len(trials), len(space.parameters)), np.nan)
    for column, parameter in enumerate(space.parameters):
        known = [row for row, trial in enumerate(trials) if parameter.name in trial.values]
        codes = [parameter.code(trials[row].values[parameter.name]) for row in known]
        if known:
            rows[known, column] = parameter.to_unit(np.array(codes, dtype=np.float64))
    return rows


def _trial(names: Sequence[str], row: Sequence[Json]) -> EarlierTrial:
    source, score, is_bound, *values = row
    if not isinstance(source, int) or not (score is None or isinstance(score, float | int)):
        raise InvalidInputError(f"earlier: invalid row; {_FOREIGN}")
    known = {n: v for n, v in zip(names, values, strict=True) if isinstance(v, bool | int | float | str)}
    return EarlierTrial(known, None if score is None else float(score), is_bound is True, source)


def _is_list(plain: Json) -> bool:
    return isinstance(plain, Sequence) and not isinstance(plain, str)


def _listed(plain: Json) -> Sequence[Json]:
    return plain if isinstance(plain, Sequence) and not isinstance(plain, str) else ()
