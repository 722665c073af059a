"""On-line sessions as users see them: only numbers that were measured, and what follows from them."""

import time
from collections.abc import Mapping

from luthier.online.records import OnlineRecord
from luthier.server.authentication import Principal
from luthier.store.server_store import shown_author
from luthier.trial import Json

SERVED_S = 10.0
"""A session whose service was last seen before this time is not served now."""


def online_summary_of(record: OnlineRecord, who: Principal) -> dict[str, Json]:
    """The fields that lists show."""
    view = record.view or {}
    goal = str(record.settings.get("goal", "minimize"))
    best, default = _value(view.get("best")), _value(_default_point(view))
    steps, compared_steps = _count(view.get("steps")), _count(view.get("compared_steps"))
    compared = {
        name: _number(view.get(name)) if compared_steps else None for name in ("compared_total", "default_total")
    }
    return {
        "id": record.id,
        "name": record.name,
        "author": shown_author(record.author),
        "shared": record.shared,
        "created_at": record.created_at,
        "seen_at": record.seen_at,
        "phase": phase_of(record, time.time()),
        "search": view.get("search", 1),
        "strategy": str(view.get("strategy", record.settings.get("strategy", ""))),
        "goal": goal,
        "client_count": _client_count(view) if is_served(record, time.time()) else 0,
        "best_value": best,
        "default_value": default,
        "gain": _ratio(best, default) if goal == "maximize" else _ratio(default, best),
        "steps": steps,
        "total": _number(view.get("total")) if steps else None,
        "compared_steps": compared_steps,
        **compared,
        "saved": _saved(compared["compared_total"], compared["default_total"], goal),
        "mine": record.author == who.name,
        "may_change": who.may_change(record),
    }


def is_served(record: OnlineRecord, now: float) -> bool:
    """Whether a service that serves this session is alive."""
    return record.seen_at is not None and now - record.seen_at <= SERVED_S


def phase_of(record: OnlineRecord, now: float) -> str:
    """What the session does: `baseline`, `searching`, `converged`, `stopped` or `not served`."""
    if record.stop_requested:
        return "stopped"
    if record.view is None or not is_served(record, now):
        return "not served"
    return str(record.view.get("phase", "searching"))


def _client_count(view: Mapping[str, Json]) -> int:
    clients, more = view.get("clients"), view.get("more_clients")
    return (len(clients) if isinstance(clients, list) else 0) + (more if isinstance(more, int) else 0)


def _default_point(view: Mapping[str, Json]) -> Json:
    """The default as it was measured in the present search; its value before a change of the program does not count."""
    known, points = view.get("default"), view.get("points")
    if view.get("search") == 1 or not isinstance(known, Mapping) or not isinstance(points, list):
        return known
    same = (one for one in points if isinstance(one, Mapping) and one.get("config") == known.get("config"))
    return next(same, None)


def _value(point: Json) -> float | None:
    """The value of a point of a view; None if it was not measured."""
    return _number(point.get("value")) if isinstance(point, Mapping) and point.get("samples") else None


def _count(value: Json) -> int:
    return value if isinstance(value, int) and value > 0 else 0


def _number(value: Json) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _ratio(over: float | None, under: float | None) -> float | None:
    return None if over is None or under is None or over <= 0.0 or under <= 0.0 else over / under


def _saved(total: float | None, default_total: float | None, goal: str) -> float | None:
    """How much better the sum over steps is than the same steps with the default."""
    if total is None or default_total is None:
        return None
    return total - default_total if goal == "maximize" else default_total - total
