"""The periods in which processes worked on an experiment, as a JSON text."""

import json
from dataclasses import asdict, replace

from luthier.store.base import Machine, Period


def periods_from(text: str | None) -> tuple[Period, ...]:
    """The periods in a text."""
    found = [] if text is None else json.loads(text)
    return tuple(Period(one["since"], one["until"], Machine(**one["machine"])) for one in found)


def with_period(text: str | None, seen_at: float | None, now: float, machine: Machine | None) -> str | None:
    """The text with a new period, unless the machine is unknown; the last period ended at its last heartbeat."""
    if machine is None:
        return text
    periods = list(periods_from(text))
    if periods:
        periods[-1] = replace(periods[-1], until=seen_at)
    plain = [asdict(period) for period in (*periods, Period(now, None, machine))]
    return json.dumps(plain, ensure_ascii=False, separators=(",", ":"))
