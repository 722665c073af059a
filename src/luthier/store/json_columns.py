"""Columns of JSON, and the checksums of what an experiment has found: SQLite reads a damaged number like any other.

A result is stored together with checksums of itself, of the experiment and of the runs that existed then. Runs are
only ever appended, and the ending of a run is never changed, so their checksum stays valid when the experiment is
continued. Its settings may be changed then; they are checked again when it has ended.
"""

import json
import math
from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import TYPE_CHECKING, TypeAlias, cast

from luthier.store.base import ENDED
from luthier.trial import Json

if TYPE_CHECKING:
    from sqlalchemy import RowMapping

DAMAGE = (ValueError, TypeError, LookupError, AttributeError, OverflowError, RecursionError)
"""What is raised where a text or a number is not what luthier wrote."""

_KEY = "checksum"
_SUBMITTED = frozenset({"number", "trial", "purpose", "config", "submitted_at", "submit_order", "uid"})
_BYTES = 8
_Seal: TypeAlias = tuple[int, int, str, str, str]  # runs, events, checksums of runs, result and experiment


def numbers(found: Iterable[object]) -> tuple[float, ...]:
    """The numbers in a list; `TypeError` if one of them is not a number."""
    kept = tuple(one for one in found if isinstance(one, float | int) and math.isfinite(one))
    if isinstance(found, str | dict) or len(kept) != len(list(found)):
        raise TypeError("not a list of numbers")
    return kept


def mapping(text: str) -> Mapping[str, Json]:
    """The mapping in a text; `ValueError` or `TypeError` if it is damaged."""
    found = json.loads(text)
    if not isinstance(found, dict):
        raise TypeError(f"not a mapping but a {type(found).__name__}")
    return found


def sealed(result: str, experiment: Mapping[str, object], runs: "Iterable[RowMapping]") -> str:
    """The text of a result with its checksum and those of the experiment and the runs, which are rows of tables."""
    known = list(runs)
    events = 1 + max((order for row in known for order in _orders(row)), default=-1)
    seal = json.dumps(
        {_KEY: [len(known), events, _of_runs(known, events), _of(json.loads(result)), _of_experiment(experiment)]}
    )
    return seal if result == "{}" else f"{result[:-1]},{seal[1:]}"


def result_from(experiment: Mapping[str, object], runs: int) -> Mapping[str, Json] | None:
    """The result of an experiment with this many runs, without its checksums; raises what `mapping` raises."""
    if experiment["result"] is None:
        return None
    result = dict(mapping(cast("str", experiment["result"])))
    seal = cast("_Seal | None", result.pop(_KEY, None))
    if seal is not None:
        count, _, _, of_result, of_experiment = seal
        is_same = experiment["status"] not in ENDED or (count, of_experiment) == (runs, _of_experiment(experiment))
        if of_result != _of(result) or not is_same:
            raise ValueError("a checksum of the experiment is wrong")
    return result


def check_runs(result: str | None, runs: "Iterable[RowMapping]") -> None:
    """Raise `ValueError` or `TypeError` if the runs are not those of the result."""
    seal = None if result is None else json.loads(result).get(_KEY)
    if seal is None:
        return  # it has not ended yet, or an earlier luthier wrote it
    _, events, checksum, _, _ = cast("_Seal", seal)
    if _of_runs(runs, events) != checksum:
        raise ValueError("the checksum of the runs of this experiment is wrong")


def _orders(row: "RowMapping") -> list[int]:
    return [cast("int", row[name]) for name in ("submit_order", "finish_order") if row[name] is not None]


def _of_runs(runs: "Iterable[RowMapping]", events: int) -> str:
    """The checksum of what had happened before an event; NULL does not count, because columns may be added."""
    lines = []
    for row in runs:
        submitted, *finished = _orders(row)
        if submitted >= events:
            continue
        had_ended = bool(finished) and finished[0] < events
        known = {name: row[name] for name in row if row[name] is not None and (had_ended or name in _SUBMITTED)}
        known.pop("experiment_id", None)
        lines.append((submitted, known))
    return _of(sorted(lines, key=lambda line: line[0]))


def _of_experiment(row: Mapping[str, object]) -> str:
    return _of([row[name] for name in ("id", "uid", "name", "created_at", "settings")])


def _of(plain: object) -> str:
    return blake2b(json.dumps(plain, sort_keys=True).encode(), digest_size=_BYTES).hexdigest()
