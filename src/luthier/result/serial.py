"""Experiments, results, trials and runs as JSON values: the only form in which programs get them."""

from dataclasses import asdict

from luthier.result.activity import activity_of
from luthier.result.importance import Importances
from luthier.result.result import Result
from luthier.result.sentences import command_line
from luthier.result.story import story_json
from luthier.result.tuning_return import tuning_return
from luthier.store.base import Record
from luthier.store.ownership import status_text
from luthier.trial import Completed, Estimate, Json, Run, Trial, outcome_name


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


def result_json(record: Record, result: Result) -> dict[str, Json]:
    """The result of an experiment."""
    comparison = result.comparison
    return {
        **record_json(record),
        "ending": ending_of(record),
        "verdict": result.verdict,
        "improved": result.improved,
        "speedup": None
        if comparison is None
        else {
            "value": comparison.speedup,
            "low": comparison.low,
            "high": comparison.high,
            "kind": comparison.kind,
            "pairs": comparison.pairs,
        },
        "default": None if result.default is None else trial_json(result.default),
        "best": None if result.winner is None else trial_json(result.winner),
        "compared": None if result.challenger is None else trial_json(result.challenger),
        "method": result.method or None,
        "front": [trial_json(trial) for trial in result.front],
        "recommended": None if result.recommended is None else dict(result.recommended),
        "command": command_line(result),
        "cost_s": result.cost_s,
        "noise": {"deviation": result.noise.deviation, "relative": result.noise.relative}
        if result.noise.freedom
        else None,
        "return": _return_json(result),
        "steps": story_json(result),
        "repeats": result.repeats,
        "lost": result.lost,
        "activity": asdict(activity_of(result)),
        "search_speedup": None if result.over_random is None else asdict(result.over_random),
        "machine": {"kind": result.drift.kind, "sentence": result.drift.sentence()},
        "outliers": [asdict(outlier) for outlier in result.outliers],
        "estimator": result.estimator,
    }


def _return_json(result: Result) -> dict[str, Json] | None:
    """What the tuning brought for its time."""
    found = tuning_return(result)
    if found is None:
        return None
    return {**asdict(found), "over_time": [list(point) for point in found.over_time]}


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
