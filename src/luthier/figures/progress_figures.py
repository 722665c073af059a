"""Figures of the progress of an experiment: its runs, its trials, and the drift of the machine."""

import math
from collections.abc import Sequence

import numpy as np

from luthier.arrays import FloatArray
from luthier.figures.figure import Axis, Figure, Panel, Role, Trace
from luthier.figures.scales import (
    ValueScale,
    measured,
    records,
    span_scale,
    steps,
    thinned,
    time_scale,
    value_scale,
)
from luthier.result.machine_drift import level_of
from luthier.result.recommendation import is_reliable
from luthier.result.result import Result
from luthier.result.text import config_text, estimate_text, outcome_text
from luthier.result.working_time import worked_spans
from luthier.statistics.drift import FEWEST_READINGS
from luthier.statistics.estimate import median_of
from luthier.trial import Completed, Run, outcome_name

_GROUPS: dict[str, Role] = {"search": "search", "default": "default", "verification of the best": "verify"}
_PROBLEMS: dict[str, Role] = {"failed": "failed", "timed out": "failed", "pruned": "pruned", "lost": "default"}
_MOST_SLICES = 100
_MOST_MARKS = 200


def trajectory(result: Result, points: int) -> Figure | None:
    """All runs in order of submission, and the best value so far."""
    done = list(measured(result.runs))
    if not done:
        return None
    values = [value for _, value in done]
    scale = value_scale(result.experiment, values)
    last = float(result.runs[-1].number)
    best = records(values, scale.is_better)
    line = steps([float(done[at][0].number) for at in best], [scale.place(values[at]) for at in best], last)
    traces = [
        *_default_level(result, scale, float(result.runs[0].number), last),
        Trace(kind="line", role="best", name="best so far", x=line[0], y=line[1]),
        *_completed_runs(result, scale, done, {done[at][0].number for at in best}, points),
        *_problems(result, scale, points),
    ]
    return Figure("All runs", (Panel(Axis("run"), scale.axis),), tuple(traces))


def trials(result: Result, points: int) -> Figure | None:
    """The estimates of all configurations with intervals, and the best so far among those that never failed."""
    known = [
        (number, trial, trial.estimate) for number, trial in enumerate(result.trials) if trial.estimate is not None
    ]
    if not known:
        return None
    values = [guess.value for _, _, guess in known]
    scale, space = value_scale(result.experiment, values), result.experiment.space
    sure = [at for at, (_, trial, _) in enumerate(known) if is_reliable(trial)]
    leading = [sure[at] for at in records([values[at] for at in sure], scale.is_better)]
    best = [known[at] for at in leading]
    last = float(len(result.trials) - 1)
    leaders = [float(number) for number, _, _ in best]
    line, low, high = (
        steps(leaders, [scale.place(value) for value in heights], last)
        for heights in (
            [guess.value for _, _, guess in best],
            [guess.value if guess.low is None else guess.low for _, _, guess in best],
            [guess.value if guess.high is None else guess.high for _, _, guess in best],
        )
    )
    dots = [known[at] for at in sorted({*thinned(values, points), *leading})]
    traces = [
        *_default_level(result, scale, 0.0, last),
        Trace(kind="band", role="best", x=low[0], low=low[1], high=high[1]),
        Trace(kind="line", role="best", name="best so far", x=line[0], y=line[1]),
        Trace(
            kind="points",
            role="search",
            name="estimate, with a 95 % interval if there were enough runs",
            x=[float(number) for number, _, _ in dots],
            y=[scale.place(guess.value) for _, _, guess in dots],
            low=scale.places([guess.low for _, _, guess in dots]),
            high=scale.places([guess.high for _, _, guess in dots]),
            texts=[
                f"trial {number}: {estimate_text(guess, scale.measure)}, {guess.count} runs\n"
                f"{config_text(trial.config, space)}"
                for number, trial, guess in dots
            ],
        ),
    ]
    return Figure("All configurations", (Panel(Axis("trial"), scale.axis),), tuple(traces))


def utilisation(result: Result, points: int) -> Figure | None:
    """The number of active runs over time."""
    timed = [run for run in result.runs if run.started_at is not None and run.duration_s is not None]
    if len(timed) < 2:
        return None
    spans = worked_spans(timed, result.pauses)
    scale = span_scale(min(begin for begin, _ in spans), max(end for _, end in spans))
    first = np.array([scale.place(begin) for begin, _ in spans])
    last = np.array([scale.place(end) for _, end in spans])
    end = float(last.max())
    if not end > 0.0:
        return None
    slices = min(points, _MOST_SLICES, max(len(timed) // 2, 2))
    heights = _mean_active(first, last, np.linspace(0.0, end, slices + 1))
    workers = result.experiment.slots
    busy = min(math.fsum(heights) / slices / workers, 1.0)
    x, y = steps([number * end / slices for number in range(slices)], heights, end)
    traces = (
        Trace(kind="line", role="default", name="slots", x=[0.0, end], y=[float(workers)] * 2, dashed=True),
        Trace(kind="band", role="search", x=x, low=[0.0] * len(x), high=y),
        Trace(kind="line", role="search", name="parallel runs", x=x, y=y),
    )
    note = f"busy for {busy:.0%} of the time".replace("%", " %")
    return Figure(
        "Parallel runs",
        (Panel(scale.axis_without("pauses" if result.pauses else ""), Axis("active runs, on average")),),
        traces,
        note,
    )


def _mean_active(first: FloatArray, last: FloatArray, edges: FloatArray) -> list[float]:
    """The mean number of active time spans, from `first` to `last`, between neighbouring edges."""
    past = np.clip(edges[:, None], first, last).sum(axis=1)  # the total length of all spans before each edge
    return [float(height) for height in np.diff(past) / np.diff(edges)]


def machine(result: Result, points: int) -> Figure | None:
    """The values of the default over time, relative to the beginning."""
    own = list(measured(run for run in result.runs if run.trial == 0))
    values = [value for _, value in own]
    if len(own) < FEWEST_READINGS or min(values) <= 0.0:
        return None
    times, level = time_scale(result.runs), level_of(result.runs)
    drift = level.drift
    usual = median_of([value / drift.factor(run.began_at - level.began_s) for run, value in own])
    first, last = min(run.began_at for run, _ in own), max(run.began_at for run, _ in own)
    turns = [first, *(level.began_s + at_s for at_s in drift.moments if level.began_s + at_s > first)]
    heights = [drift.factor(at_s - level.began_s) for at_s in turns]
    line = (
        ([times.place(at_s) for at_s in turns], heights)
        if drift.kind == "slope"
        else steps([times.place(at_s) for at_s in turns], heights, times.place(last))
    )
    shown = [own[at] for at in thinned(values, points)]
    scale = value_scale(result.experiment, values)
    traces = (
        Trace(kind="line", role="best", name="level", x=line[0], y=line[1]),
        Trace(
            kind="points",
            role="default",
            name="run of the default",
            x=[times.place(run.began_at) for run, _ in shown],
            y=[value / usual for _, value in shown],
            texts=[f"run {run.number}: {scale.text(value)}" for run, value in shown],
        ),
    )
    title = Axis(f"{scale.name} of the default, 1 at the beginning")
    return Figure("Drift of the machine", (Panel(times.axis, title),), traces, drift.sentence())


def _default_level(result: Result, scale: ValueScale, first: float, last: float) -> list[Trace]:
    if result.default is None or result.default.estimate is None:
        return []
    height = scale.place(result.default.estimate.value)
    return [
        Trace(kind="line", role="default", name="estimate of the default", x=[first, last], y=[height] * 2, dashed=True)
    ]


def _completed_runs(
    result: Result, scale: ValueScale, done: Sequence[tuple[Run, float]], always: set[int], points: int
) -> list[Trace]:
    """A trace for each group of completed runs; runs with numbers in `always` are never left out."""
    groups: dict[str, list[tuple[Run, float]]] = {name: [] for name in _GROUPS}
    for run, value in done:
        name = "default" if run.trial == 0 else "search" if run.purpose != "verify" else "verification of the best"
        groups[name].append((run, value))
    traces = []
    for name, group in groups.items():
        kept = set(thinned([value for _, value in group], points // len(groups)))
        shown = [entry for at, entry in enumerate(group) if at in kept or entry[0].number in always]
        if shown:
            traces.append(
                Trace(
                    kind="points",
                    role=_GROUPS[name],
                    name=name,
                    x=[float(run.number) for run, _ in shown],
                    y=[scale.place(value) for _, value in shown],
                    texts=[_run_text(result, run) for run, _ in shown],
                    symbol="diamond" if name != "search" else "dot",
                )
            )
    return traces


def _problems(result: Result, scale: ValueScale, points: int) -> list[Trace]:
    """The runs without a value: at their lower bound if it is known, else as marks at the edge."""
    groups: dict[tuple[str, bool], list[Run]] = {}
    for run in result.runs:
        if run.outcome is not None and not isinstance(run.outcome, Completed):
            kind = outcome_name(run.outcome)
            groups.setdefault((kind, _bound(result, run) is not None), []).append(run)
    traces = []
    for (kind, bounded), runs in groups.items():
        sections = _sections(runs, min(points, _MOST_MARKS))
        first = [section[0] for section in sections]
        traces.append(
            Trace(
                kind="points" if bounded else "marks",
                role=_PROBLEMS[kind],
                name=f"{kind}, at least this" if bounded else kind,
                x=[float(run.number) for run in first],
                y=scale.places([_bound(result, run) for run in first]) if bounded else (),
                texts=[_run_text(result, *section) for section in sections],
                symbol="triangle" if bounded else "cross",
            )
        )
    return traces


def _bound(result: Result, run: Run) -> float | None:
    """The lower bound of a run without a value; None if higher is better, where it would not be a bound."""
    return None if result.experiment.objective.maximizes else getattr(run.outcome, "at_least", None)


def _sections(runs: Sequence[Run], points: int) -> list[list[Run]]:
    """The runs one by one; if there are more than `points`, in that many sections of equal length."""
    if len(runs) <= points:
        return [[run] for run in runs]
    first, span = runs[0].number, runs[-1].number - runs[0].number + 1
    sections: dict[int, list[Run]] = {}
    for run in runs:
        sections.setdefault((run.number - first) * points // span, []).append(run)
    return list(sections.values())


def _run_text(result: Result, run: Run, *more: Run) -> str:
    said = outcome_text(run.outcome, *(objective.measure for objective in result.experiment.objectives))
    if more:
        return f"runs {run.number} to {more[-1].number}: {1 + len(more)} like this\nrun {run.number}: {said}"
    return f"run {run.number}: {said}\n{config_text(run.config, result.experiment.space)}"
