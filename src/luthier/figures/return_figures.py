"""Figures of the return on a tuning: the return over time, and when it has paid off."""

from luthier.figures.figure import Axis, Figure, Panel, Trace
from luthier.figures.scales import span_scale, thinned, value_scale
from luthier.result.result import Result
from luthier.result.text import value_text
from luthier.result.tuning_return import Production, TuningReturn, tuning_return

_RUNS_SHOWN = 2.0  # times the number of runs after which the tuning has paid


def returns(result: Result, points: int) -> Figure | None:
    """RoTI over time, and the total time with and without tuning by the number of production runs."""
    found = tuning_return(result)
    if found is None or not found.over_time:
        return None
    panels, traces = [_over_time_panel(found, result)], _over_time(found, result, points)
    production = found.production
    if production is not None:
        last = _last(production, found)
        total_s = found.tuning_s + last * production.default_s
        unit = span_scale(0.0, total_s)
        panels.append(Panel(Axis("runs in production"), Axis(f"total time [{unit.unit}]"), "Tuned against not tuned"))
        traces += _viability(production, found.tuning_s, last, unit.size_s)
    note = "" if found.is_proven else "no gain proven: the best single runs may be due to chance"
    return Figure("Return on tuning", tuple(panels), tuple(traces), note)


def _over_time_panel(found: TuningReturn, result: Result) -> Panel:
    scale = value_scale(result.experiment, [rate for _, rate in found.over_time])
    unit = f"{scale.unit} per minute" if scale.unit else "per minute"
    time = span_scale(0.0, found.tuning_s)
    return Panel(Axis(f"run time spent [{time.unit}]"), Axis(f"gain for the time spent [{unit}]"), "RoTI")


def _over_time(found: TuningReturn, result: Result, points: int) -> list[Trace]:
    rates = [rate for _, rate in found.over_time]
    scale, time = value_scale(result.experiment, rates), span_scale(0.0, found.tuning_s)
    measure = result.experiment.objective.measure
    origin = result.experiment.origin
    searched = None if origin is None else origin.searched
    shown = thinned(rates, points)
    line = Trace(
        kind="line",
        role="search",
        name="best single run so far" if searched is None else f"best single run of the search on {searched.program}",
        x=[time.place(found.over_time[at][0]) for at in shown],
        y=[scale.place(rates[at]) for at in shown],
        texts=[f"{value_text(rates[at], measure)} per minute" for at in shown],
    )
    if not found.is_proven:
        return [line]
    verified = Trace(
        kind="points",
        role="best",
        name="verified, with the time of the verification",
        x=[time.place(found.tuning_s)],
        y=[scale.place(found.per_minute)],
        texts=[f"{value_text(found.per_minute, measure)} per minute"],
        symbol="diamond",
    )
    return [line, verified]


def _last(production: Production, found: TuningReturn) -> float:
    """The last number of production runs on the axis."""
    paid = production.viable_after
    usual = 2.0 * found.tuning_s / production.default_s if production.default_s > 0.0 else 1.0
    shown = _RUNS_SHOWN * (paid.high or paid.value) if paid is not None else usual
    return max(shown, float(production.runs or 0), 1.0)


def _viability(production: Production, tuning_s: float, last: float, size_s: float) -> list[Trace]:
    """The lines of the total time; that with tuning begins at the time of the tuning."""
    untuned = [0.0, last * production.default_s / size_s]
    traces = [Trace(kind="line", role="default", name="default, not tuned", x=[0.0, last], y=untuned, panel=1)]
    saved = production.saved_s
    if saved is None:
        whole = [tuning_s / size_s, (tuning_s + last * production.default_s) / size_s]
        kept = "tuned, no gain proven: the default is kept"
        return [*traces, Trace(kind="line", role="best", name=kept, x=[0.0, last], y=whole, dashed=True, panel=1)]

    def total(saved_s: float) -> list[float]:
        return [tuning_s / size_s, (tuning_s + last * (production.default_s - saved_s)) / size_s]

    if saved.low is not None and saved.high is not None:
        ends = {"low": total(saved.high), "high": total(saved.low)}
        traces.append(Trace(kind="band", role="best", x=[0.0, last], low=ends["low"], high=ends["high"], panel=1))
    traces.append(Trace(kind="line", role="best", name="tuned", x=[0.0, last], y=total(saved.value), panel=1))
    paid = production.viable_after
    if paid is not None:
        height = (tuning_s + paid.value * (production.default_s - saved.value)) / size_s
        traces.append(
            Trace(
                kind="points",
                role="verify",
                name="the tuning has paid",
                x=[paid.value],
                y=[height],
                texts=[f"after {paid.value:.0f} runs"],
                symbol="diamond",
                panel=1,
            )
        )
    return traces
