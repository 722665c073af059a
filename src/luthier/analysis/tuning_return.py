"""What a tuning brought for the time it took: RoTI, the net gain in production, and when it has paid.

RoTI, the return on tuning investment, is the gain over the default divided by the time spent on tuning (Rajesh et al.,
TunIO, IV). The time is that of all runs, those of the verification included.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from luthier.analysis.result import Result
from luthier.analysis.text import duration_text, value_text
from luthier.trial import Completed

_MINUTE_S = 60.0


@dataclass(frozen=True, slots=True)
class Amount:
    """A number with its interval of 95 % confidence, where it has one."""

    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Production:
    """Run times in production. `default_s` and `saved_s` are of one run, with the default and by the recommendation.

    `viable_after` is the number of production runs that save as much time as the tuning took; `saved_s` and
    `viable_after` are None without a proven gain. `net_gain_s` is the time saved in `runs` production runs minus the
    time of the tuning; None if their number is unknown.
    """

    default_s: float
    saved_s: Amount | None
    viable_after: Amount | None
    runs: int | None
    net_gain_s: Amount | None


@dataclass(frozen=True, slots=True)
class TuningReturn:
    """The return of one experiment with a single measure.

    `tuning_s` is the time of all runs, and of those of another experiment that belongs to the same tuning. `per_minute`
    is the verified gain, in the unit of the measure, for each minute of that; 0 without a proven gain. `over_time` has,
    after each run of the search, the time spent so far and the gain of the best single run so far for each minute: it
    may be due to chance. `production` is None if the measure is not the time of a run.
    """

    tuning_s: float
    per_minute: float
    is_proven: bool
    over_time: tuple[tuple[float, float], ...]
    production: Production | None


def tuning_return(result: Result) -> TuningReturn | None:
    """The return of an experiment; None with several measures, or without a value for the default or a time spent."""
    default = None if result.default is None else result.default.estimate
    spent_s = result.experiment.spent_before_s + result.cost_s
    if result.experiment.has_front or default is None or not spent_s > 0.0:
        return None
    winner = None if result.winner is None else result.winner.estimate
    sign = result.experiment.objective.sign
    gain = sign * (default.value - winner.value) if result.improved and winner is not None else 0.0
    per_minute = gain / (spent_s / _MINUTE_S)
    if not math.isfinite(per_minute):
        return None
    return TuningReturn(
        tuning_s=spent_s,
        per_minute=per_minute,
        is_proven=result.improved,
        over_time=tuple(_over_time(result, default.value)),
        production=_production(result, default.value, spent_s) if result.experiment.objective.is_time else None,
    )


def _over_time(result: Result, default: float) -> list[tuple[float, float]]:
    """After each run of the search: the time spent, and the gain for each minute of it."""
    sign = result.experiment.objective.sign
    ended = [run for run in result.runs if run.finish_order is not None]
    spent_s, best, found = result.experiment.spent_before_s, sign * default, []
    for run in sorted(ended, key=lambda run: run.finish_order or 0):
        spent_s += run.duration_s or 0.0
        if run.purpose == "verify":
            continue
        if isinstance(run.outcome, Completed) and run.trial > 0:
            best = min(best, sign * run.outcome.value)
        rate = (sign * default - best) / (spent_s / _MINUTE_S) if spent_s > 0.0 else math.inf
        if math.isfinite(rate):
            found.append((spent_s, rate))
    return found


def _production(result: Result, default_s: float, spent_s: float) -> Production:
    runs = result.experiment.production_runs
    saved_s = _saved_s(result, default_s)
    if saved_s is None:
        return Production(default_s, None, None, runs, None if runs is None else Amount(-spent_s))
    ends = [None if one is None else _runs_to_pay(spent_s, one) for one in (saved_s.high, saved_s.low)]
    viable = Amount(_runs_to_pay(spent_s, saved_s.value), *ends)
    net = None
    if runs is not None:
        low, high = (None if one is None else runs * one - spent_s for one in (saved_s.low, saved_s.high))
        net = Amount(runs * saved_s.value - spent_s, low, high)
    return Production(default_s, saved_s, viable, runs, net)


def _saved_s(result: Result, default_s: float) -> Amount | None:
    """What the winner saves in each run, with the interval of the verification; None unless a gain is proven."""
    comparison = result.comparison
    if comparison is None or not comparison.improved:
        return None
    if comparison.kind == "difference":
        return Amount(comparison.speedup, comparison.low, comparison.high)
    value, low, high = (
        None if ratio is None else default_s * (1.0 - 1.0 / ratio)
        for ratio in (comparison.speedup, comparison.low, comparison.high)
    )
    return None if value is None or not value > 0.0 else Amount(value, low, high)


def _runs_to_pay(cost_s: float, saved_s: float) -> float:
    """How many production runs save this much."""
    return float(math.ceil(cost_s / saved_s))


def return_lines(result: Result) -> list[str]:
    """The return on tuning, as sentences for terminal, page and report; none if nothing can be said."""
    found = tuning_return(result)
    if found is None or not any(run.purpose == "verify" for run in result.runs):
        return []
    spent = f"{duration_text(found.tuning_s)} of tuning"
    if not found.is_proven:
        lines = [f"return on tuning (RoTI): no gain proven for {spent}"]
    else:
        gain = value_text(found.per_minute, result.experiment.objective.measure)
        lines = [f"return on tuning (RoTI): {gain} gained for each minute of the {spent}"]
    return lines if found.production is None else [*lines, *_production_lines(found.production)]


def _production_lines(production: Production) -> list[str]:
    lines = []
    if production.viable_after is not None:
        count = _count(production.viable_after.value)
        span = _span([_number(one) for one in (production.viable_after.low, production.viable_after.high)])
        lines.append(f"the tuning has paid after {count} in production{span}")
    if production.net_gain_s is not None and production.runs is not None:
        net = production.net_gain_s
        span = _span([_signed(one) for one in (net.low, net.high)])
        lines.append(f"net gain over {_count(production.runs)} in production: {_signed(net.value)}{span}")
    return lines


def _count(runs: float) -> str:
    return f"{runs:.0f} run{'' if runs == 1 else 's'}"


def _number(runs: float | None) -> str | None:
    return None if runs is None else f"{runs:.0f}"


def _signed(seconds: float | None) -> str | None:
    if seconds is None:
        return None
    return f"{'-' if seconds < 0.0 else ''}{duration_text(abs(seconds))}"


def _span(ends: Sequence[str | None]) -> str:
    """`(140 to 170 with 95 % confidence)`; empty without both ends, or if they are equal."""
    low, high = ends
    return "" if low is None or high is None or low == high else f" ({low} to {high} with 95 % confidence)"
