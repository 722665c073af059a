"""Figures of results: gain over the default, Pareto front, noise, comparison of experiments."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, pairwise

from luthier.figures.figure import SERIES, Axis, Figure, Panel, Trace
from luthier.figures.scales import (
    ValueScale,
    gain,
    gain_axis,
    gain_text,
    measured,
    records,
    steps,
    thinned,
    time_scale,
    trial_of,
    value_scale,
)
from luthier.optimizers.front import values_of
from luthier.result.result import Result
from luthier.result.text import config_text, estimates_text
from luthier.result.verification import duel_of
from luthier.statistics.estimate import deviation_of, mean_of
from luthier.trial import Estimate, Trial

NOT_VERIFIED = "not verified: estimated from the search, may be due to chance"


@dataclass(frozen=True, slots=True)
class _Row:
    """One gain with its interval."""

    label: str
    value: float
    low: float | None
    high: float | None


def gains(result: Result, points: int) -> Figure | None:
    """The gain over the default: estimated from the search, for each pair of the verification, and verified."""
    challenger = result.challenger
    if challenger is None or result.experiment.has_front or not result.trials:
        return None
    comparison = result.comparison
    found = trial_of(result, challenger.config)
    default, best = result.trials[0].estimate, None if found is None else found.estimate
    if default is None or best is None or found is result.trials[0]:
        return None
    ratio = comparison.kind == "ratio" if comparison else min(default.value, best.value) > 0.0
    rows = [_estimated(result, default, best, ratio=ratio)]
    pairs: list[float] = []
    if comparison is not None:
        duel = duel_of(result.verification, result.trials[0].config, challenger.config, result.estimator)
        sides = zip(duel.default_values, duel.winner_values, strict=False)
        pairs = [gain(before, after, result.experiment.objective.goal, ratio=ratio) for before, after in sides]
        rows.append(_Row("verified", comparison.speedup, comparison.low, comparison.high))
    shown = [pairs[at] for at in thinned(pairs, points)]
    traces = [
        Trace(kind="line", role="default", name="default", x=[-0.5, 1.5], y=[1.0 if ratio else 0.0] * 2, dashed=True),
        Trace(kind="points", role="verify", name="pair of the verification", x=[0.75] * len(shown), y=shown)
        if shown
        else None,
        *(_interval(row, float(place), ratio=ratio) for place, row in enumerate(rows)),
    ]
    ticks = tuple((float(place), row.label) for place, row in enumerate(rows))
    panel = Panel(Axis(ticks=ticks), gain_axis(ratio=ratio))
    note = "" if comparison is not None else NOT_VERIFIED
    return Figure("Gain over the default", (panel,), tuple(trace for trace in traces if trace is not None), note)


def _estimated(result: Result, default: Estimate, winner: Estimate, *, ratio: bool) -> _Row:
    """The gain computed from the estimates; its interval combines the extreme ends of both intervals."""

    def to(one: float, other: float) -> float:
        return gain(one, other, result.experiment.objective.goal, ratio=ratio)

    corners = [
        to(one, other)
        for one in (default.low, default.high)
        for other in (winner.low, winner.high)
        if one is not None and other is not None and (not ratio or min(one, other) > 0.0)
    ]
    whole = len(corners) == 4
    value = to(default.value, winner.value)
    return _Row("estimated", value, min(corners) if whole else None, max(corners) if whole else None)


def _interval(row: _Row, place: float, *, ratio: bool) -> Trace:
    span = "no interval"
    if row.low is not None and row.high is not None:
        span = f"{gain_text(row.low, ratio=ratio)} to {gain_text(row.high, ratio=ratio)}"
    return Trace(
        kind="points",
        role="best" if row.label == "verified" else "search",
        name="verified, with its 95 % interval" if row.label == "verified" else "estimated",
        x=[place],
        y=[row.value],
        low=[row.low],
        high=[row.high],
        texts=[f"{gain_text(row.value, ratio=ratio)} ({span})"],
        symbol="diamond",
    )


def front(result: Result, points: int) -> Figure | None:
    """All configurations in every pair of objectives, with the Pareto front."""
    count = len(result.experiment.objectives)
    if count < 2:
        return None
    known = [(trial, values) for trial in result.trials if (values := values_of(trial)) is not None]
    if not known:
        return None
    scales = [value_scale(result.experiment, [values[at] for _, values in known], at) for at in range(count)]
    pairs = list(combinations(range(count), 2))
    shown = {at for column in range(count) for at in thinned([values[column] for _, values in known], points)}
    rest = [known[at][0] for at in sorted(shown)]
    looks = (
        (Trace(kind="points", role="search", name="configuration", faint=True, x=()), rest),
        (Trace(kind="points", role="best", name="on the Pareto front", symbol="diamond", x=()), result.front),
        (Trace(kind="points", role="default", name="default", symbol="triangle", x=()), result.trials[:1]),
    )
    traces = [
        _placed(result, trace, trials, (scales[pair[0]], scales[pair[1]]), pair, panel)
        for panel, pair in enumerate(pairs)
        for trace, trials in looks
    ]
    if count == 2:
        traces.insert(1, _edge(result, scales[0], scales[1]))
    panels = tuple(Panel(scales[first].axis, scales[second].axis) for first, second in pairs)
    return Figure("Pareto front", panels, tuple(traces))


def _placed(
    result: Result,
    look: Trace,
    trials: Sequence[Trial],
    ends: tuple[ValueScale, ValueScale],
    pair: tuple[int, int],
    panel: int,
) -> Trace:
    """A trace in the style of `look` with the values of these trials in two objectives."""
    inside = [(trial, values) for trial in trials if (values := values_of(trial)) is not None]
    return replace(
        look,
        name=look.name if panel == 0 else "",
        x=[ends[0].place(values[pair[0]]) for _, values in inside],
        y=[ends[1].place(values[pair[1]]) for _, values in inside],
        texts=[_trial_text(result, trial) for trial, _ in inside],
        panel=panel,
    )


def _edge(result: Result, across: ValueScale, upwards: ValueScale) -> Trace:
    """The border of the region that the front dominates: between two members, the worse value in each objective."""
    members = sorted(values for trial in result.front if (values := values_of(trial)) is not None)
    corners = list(members[:1])
    for before, after in pairwise(members):
        corners += [(before[0], after[1]) if across.goal == "maximize" else (after[0], before[1]), after]
    x, y = [across.place(corner[0]) for corner in corners], [upwards.place(corner[1]) for corner in corners]
    return Trace(kind="line", role="best", x=x, y=y)


def _trial_text(result: Result, trial: Trial) -> str:
    said = ", ".join(estimates_text(trial, result.experiment))
    return f"{said}\n{config_text(trial.config, result.experiment.space)}"


def noise(result: Result, points: int) -> Figure | None:
    """How much the runs of each configuration differ, against its value."""
    groups: dict[int, list[float]] = {}
    for run, value in measured(result.runs):
        groups.setdefault(run.trial, []).append(value)
    repeated = [(trial, mean_of(values), values) for trial, values in groups.items() if len(values) > 1]
    if len(repeated) < 2:
        return None
    pooled = result.noise
    scale = value_scale(result.experiment, [mean for _, mean, _ in repeated])
    unit = f" [{scale.unit}]" * bool(scale.unit)
    upwards = Axis(
        "standard deviation between runs [%]" if pooled.relative else f"standard deviation between runs{unit}"
    )

    def height(mean: float, deviation: float) -> float:
        return 100.0 * deviation / abs(mean) if pooled.relative else scale.place(deviation)

    heights = [height(mean, deviation_of(values) or 0.0) for _, mean, values in repeated]
    shown = thinned(heights, points)
    x = [scale.place(repeated[at][1]) for at in shown]
    level = 100.0 * pooled.deviation if pooled.relative else scale.place(pooled.deviation)
    texts = [
        f"trial {repeated[at][0]}: {heights[at]:.3g}{' %' * pooled.relative}, {len(repeated[at][2])} runs\n"
        f"{config_text(result.trials[repeated[at][0]].config, result.experiment.space)}"
        for at in shown
    ]
    y = [heights[at] for at in shown]
    traces = (
        Trace(kind="line", role="default", name="pooled", x=[min(x), max(x)], y=[level] * 2, dashed=True),
        Trace(kind="points", role="search", name="configuration with several runs", x=x, y=y, texts=texts),
    )
    return Figure("Noise", (Panel(scale.axis, upwards),), traces)


def compared(results: Mapping[str, Result]) -> Figure | None:
    """The best gain so far of several named experiments, each relative to its own default, by runs and by time.

    Experiments without a value for the default are left out.
    """
    useful = {name: result for name, result in results.items() if _has_gain(result)}
    if not useful:
        return None
    ratio = all(min(value for _, value in measured(result.runs)) > 0.0 for result in useful.values())
    traces: list[Trace] = []
    for number, (name, result) in enumerate(useful.items()):
        role, dashed = SERIES[number % len(SERIES)], number >= len(SERIES)
        by_runs, by_time, heights = _gains_so_far(result, ratio=ratio)
        for panel, places in enumerate((by_runs, by_time)):
            x, y = steps(places[:-1], heights, places[-1])
            shown = name if panel == 0 else ""
            traces.append(Trace(kind="line", role=role, name=shown, x=x, y=y, dashed=dashed, panel=panel))
    upwards = gain_axis(ratio=ratio)
    panels = (Panel(Axis("runs"), upwards), Panel(Axis("time since the start of the first run [s]"), upwards))
    return Figure("Best so far", panels, tuple(traces), "from single runs, not verified: may be due to chance")


def _has_gain(result: Result) -> bool:
    return result.default is not None and result.default.estimate is not None and any(measured(result.runs))


def _gains_so_far(result: Result, *, ratio: bool) -> tuple[list[float], list[float], Sequence[float]]:
    """The positions at which the best gain so far changes, by runs and by time, with the end; and the gains there."""
    done = list(measured(result.runs))
    values = [value for _, value in done]
    scale = value_scale(result.experiment, values)
    estimate = None if result.default is None else result.default.estimate
    level = math.nan if estimate is None else estimate.value
    best = records(values, scale.is_better)
    began = time_scale(result.runs).began_s
    ends = [run.began_at + (run.duration_s or 0.0) - began for run, _ in done]
    by_runs = [*(float(done[at][0].number + 1) for at in best), float(len(result.runs))]
    by_time = [*(ends[at] for at in best), max(ends)]
    return by_runs, by_time, [gain(level, values[at], scale.goal, ratio=ratio) for at in best]
