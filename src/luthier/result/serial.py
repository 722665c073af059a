"""Experiments, trials and runs as JSON values: the only form in which programs get them."""

import json
import math
import re
from collections.abc import Mapping
from dataclasses import asdict

from luthier.result.importance import Importances
from luthier.store.base import Record
from luthier.store.ownership import status_text
from luthier.trial import Completed, Estimate, Json, Run, Trial, outcome_name

_SURROGATE = re.compile("[\ud800-\udfff]")
"""Half a character, such as a byte of a program's output that is not UTF-8."""


def record_json(record: Record) -> dict[str, Json]:
    """One experiment of a list."""
    return {
        "number": record.id,
        "name": record.name,
        "created_at": record.created_at,
        "status": status_text(record),
        "runs": record.runs,
        "budget": record.settings.get("budget"),
    }


def ending_of(record: Record) -> str | None:
    """Why the search of an experiment ended; None while it has not."""
    ending = (record.result or {}).get("ending")
    return None if ending is None else str(ending)


def importance_json(importances: Importances) -> dict[str, Json]:
    """The importance of each parameter, or why it is unknown."""
    return {
        "parameters": [asdict(one) for one in importances.parameters],
        "unexplained": importances.unexplained,
        "note": importances.note,
    }


def trial_json(trial: Trial) -> dict[str, Json]:
    """One trial."""
    others: dict[str, Json] = {"others": [_estimate_json(other) for other in trial.others]} if trial.others else {}
    first = _estimate_json(trial.estimate)
    return {"config": dict(trial.config), "estimate": first, **others, "runs": len(trial.outcomes)}


def run_json(run: Run) -> dict[str, Json]:
    """One run."""
    outcome = run.outcome
    return {
        "run": run.number,
        "trial": run.trial,
        "purpose": run.purpose,
        "outcome": outcome_name(outcome),
        "value": outcome.value if isinstance(outcome, Completed) else None,
        "others": list(outcome.others) if isinstance(outcome, Completed) else [],
        "at_least": getattr(outcome, "at_least", None),
        "reason": getattr(outcome, "reason", None),
        "submitted_at": run.submitted_at,
        "started_at": run.started_at,
        "duration_s": run.duration_s,
        "batch_job": run.batch_job,
        "config": dict(run.config),
        "metrics": dict(run.metrics),
        "logs": run.logs,
    }


def _estimate_json(estimate: Estimate | None) -> Json:
    if estimate is None:
        return None
    bounds: dict[str, Json] = {"low": estimate.low, "high": estimate.high}
    return {"value": estimate.value, **bounds, "count": estimate.count, "deviation": estimate.deviation}


def plain(value: object) -> object:
    """The value as JSON can represent it: a number that is not finite becomes null, half a character U+FFFD."""
    if isinstance(value, str):
        return value if value.isascii() else _SURROGATE.sub("\ufffd", value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {plain(name): plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    return value


def json_text(value: object) -> str:
    """The value as JSON on one line."""
    return json.dumps(plain(value), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
