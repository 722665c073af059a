"""The return on a tuning: RoTI, the net gain in production, and when it has paid off.

RoTI, the return on tuning investment, is the gain over the default divided by the time spent on tuning (Rajesh et al.,
TunIO, IV). The time is that of all runs, those of the verification included, and of what was done before as part of
the same tuning.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from luthier.result.result import Result
from luthier.result.text import duration_text, seconds_text, value_text
from luthier.result.verification import duel_of
from luthier.statistics.comparison import Comparison
from luthier.statistics.estimate import estimate
from luthier.trial import Completed, Run

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
    time of the tuning; None if their number is unknown. Where the measure is not the time of a run, `whole` compares
    those times; with `is_io_time` what is saved is the time in I/O, by which runs are assumed to become shorter.
    """

    default_s: float
    saved_s: Amount | None
    viable_after: Amount | None
    runs: int | None
    net_gain_s: Amount | None
    whole: Comparison | None = None
    is_io_time: bool = False


@dataclass(frozen=True, slots=True)
class TuningReturn:
    """The return of one experiment with a single measure.

    `tuning_s` is the time of all runs and of what was done before. `per_minute` is the verified gain, in the unit of
    the measure, for each minute of that; 0 without a proven gain. `over_time` has, after each run of the search, the
    time spent so far and the gain of the best single run so far for each minute: it may be due to chance. `production`
    is None if nothing is known of the times of whole runs.
    """

    tuning_s: float
    per_minute: float
    is_proven: bool
    over_time: tuple[tuple[float, float], ...]
    production: Production | None


def tuning_return(result: Result) -> TuningReturn | None:
    """The return of an experiment; None with several measures, or without a value for the default or a time spent."""
    default = None if result.default is None else result.default.estimate
    tuning_s = result.experiment.spent_before_s + result.cost_s
    if result.experiment.has_front or default is None or not tuning_s > 0.0:
        return None
    winner = None if result.winner is None else result.winner.estimate
    sign = result.experiment.objective.sign
    # Rajesh et al. 2024, IV: the gain over the default divided by the time; here only a proven gain counts.
    gain = sign * (default.value - winner.value) if result.improved and winner is not None else 0.0
    per_minute = gain / (tuning_s / _MINUTE_S)
    if not math.isfinite(per_minute):
        return None
    origin, production = result.experiment.origin, None
    if result.experiment.objective.is_time:
        # The measure is the time of a run, so the gain is what each production run saves.
        production = _production(result, tuning_s, default.value, _saved_s(result.comparison, default.value))
    elif result.experiment.is_comparison:
        # Another measure, such as a bandwidth: the times of the verification tell what a run saves.
        production = _of_whole_runs(result, tuning_s)
    searched = None if origin is None else origin.searched
    return TuningReturn(
        tuning_s=tuning_s,
        per_minute=per_minute,
        is_proven=result.improved,
        over_time=tuple(_over_time(result, default.value)) if searched is None else searched.over_time,
        production=production,
    )


def _over_time(result: Result, default: float) -> list[tuple[float, float]]:
    """After each run of the search: the time spent, and the gain for each minute of it."""
    sign = result.experiment.objective.sign
    ended = [run for run in result.runs if run.finish_order is not None]
    spent_s, best, found = result.experiment.spent_before_s, sign * default, list[tuple[float, float]]()
    for run in sorted(ended, key=lambda run: run.finish_order or 0):
        spent_s += run.duration_s or 0.0
        # The verification costs time, but its runs are not searched.
        if run.purpose == "verify":
            continue
        if isinstance(run.outcome, Completed) and run.trial > 0:
            best = min(best, sign * run.outcome.value)
        # RoTI(t) of the paper: the best so far, in whatever unit, for each minute.
        rate = (sign * default - best) / (spent_s / _MINUTE_S) if spent_s > 0.0 else math.inf
        if math.isfinite(rate):
            found.append((spent_s, rate))
    return found


def _of_whole_runs(result: Result, tuning_s: float) -> Production | None:
    """The same where the measure is not the time of a run; None without the times of all runs of the verification.

    What is saved is the time in I/O if that was measured, unless runs became longer; otherwise that of whole runs.
    """
    default, winner = result.default, result.challenger
    timed = [_with_wall_time(run) for run in result.verification]
    known = [run for run in timed if run is not None]
    # A completed run without a time would leave a pair with one side only.
    if default is None or default.estimate is None or winner is None or len(known) < len(timed):
        return None
    duel = duel_of(known, default.config, winner.config, result.estimator)
    whole = None if duel.has_failures else duel.compare("minimize")
    if whole is None or not result.improved:
        return None
    default_s = estimate(duel.default_values[: duel.pairs], result.estimator).value
    # Less time in I/O with longer runs saves nothing in production.
    is_io_time = result.experiment.objective.is_io_time and not whole.worsened
    saved_s = _saved_s(result.comparison, default.estimate.value) if is_io_time else _saved_s(whole, default_s)
    return replace(_production(result, tuning_s, default_s, saved_s), whole=whole, is_io_time=is_io_time)


def _with_wall_time(run: Run) -> Run | None:
    """The run with its time as its value; None if it completed without a time."""
    if not isinstance(run.outcome, Completed):
        return run
    wall_s = run.metrics.get("wall_s")
    return None if wall_s is None or not wall_s > 0.0 else replace(run, outcome=Completed(wall_s))


def _production(result: Result, cost_s: float, default_s: float, saved_s: Amount | None) -> Production:
    runs = result.experiment.production_runs
    if saved_s is None:
        return Production(default_s, None, None, runs, None if runs is None else Amount(-cost_s))
    # The more a run saves, the fewer runs are needed, so the ends change places.
    ends = [None if one is None else _runs_to_pay(cost_s, one) for one in (saved_s.high, saved_s.low)]
    viable = Amount(_runs_to_pay(cost_s, saved_s.value), *ends)
    net = None
    if runs is not None:
        low, high = (None if one is None else runs * one - cost_s for one in (saved_s.low, saved_s.high))
        net = Amount(runs * saved_s.value - cost_s, low, high)
    return Production(default_s, saved_s, viable, runs, net)


def _saved_s(comparison: Comparison | None, default_s: float) -> Amount | None:
    """What the winner saves in each run, with the interval of the verification; None unless a gain is proven."""
    if comparison is None or not comparison.improved:
        return None
    if comparison.kind == "difference":
        return Amount(comparison.speedup, comparison.low, comparison.high)
    value, low, high = (
        # A speed-up r turns default_s into default_s / r.
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
    lines = [] if production.whole is None else [_whole_text(production.whole, production)]
    if production.viable_after is not None:
        count = _count(production.viable_after.value)
        span = _span([_number(one) for one in (production.viable_after.low, production.viable_after.high)])
        assumed = ", if each becomes shorter by the time saved in I/O" if production.is_io_time else ""
        lines.append(f"the tuning has paid after {count} in production{span}{assumed}")
    if production.net_gain_s is not None and production.runs is not None:
        net = production.net_gain_s
        span = _span([_signed(one) for one in (net.low, net.high)])
        lines.append(f"net gain over {_count(production.runs)} in production: {_signed(net.value)}{span}")
    return lines


def _whole_text(whole: Comparison, production: Production) -> str:
    """The times of whole runs with the default and with the best configuration."""
    best_s = production.default_s / whole.speedup if whole.speedup > 0.0 else math.inf
    span = _span([None if one is None else f"{one:.3g}x" for one in (whole.low, whole.high)])
    proven = "" if whole.decided else ", which may be due to chance"
    times = f"{seconds_text(production.default_s)} -> {seconds_text(best_s)}"
    return f"whole runs: {times}, {whole.speedup:.3g}x as fast{span}{proven}"


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
