"""The figure of an on-line session: what each step of the running program cost."""

from collections.abc import Sequence

from luthier.figures.figure import Axis, Figure, Panel, Trace
from luthier.figures.scales import suited
from luthier.spec.objectives import Goal


def online_steps(
    history: Sequence[tuple[float, float]],
    *,
    default: float | None,
    restarts: Sequence[float] = (),
    goal: Goal = "minimize",
) -> Figure | None:
    """The slowest value of each step, where the search began again, and the level of the default.

    `default` is one step with the default in the present search, None if it was not measured. The figure is None
    without a step.
    """
    if not history:
        return None
    steps, values = [step for step, _ in history], [value for _, value in history]
    ends = [steps[0], steps[-1]]
    drawn = [*values, default] if default is not None else values
    better = "higher" if goal == "maximize" else "lower"
    traces = [
        Trace(
            kind="line",
            role="search",
            name="slowest client of the step" if goal == "minimize" else "worst client of the step",
            x=steps,
            y=values,
            texts=[f"step {step:g}: {value:.5g}" for step, value in history],
        )
    ]
    if default is not None:
        began = max([step for step in restarts if step < ends[1]], default=ends[0])
        level = [max(began, ends[0]), ends[1]]
        traces.append(Trace(kind="line", role="default", name="default", x=level, y=[default] * 2, dashed=True))
    if shown := [step for step in restarts if ends[0] <= step <= ends[1]]:
        texts = [f"step {step:g}: the values changed, and the search began again" for step in shown]
        traces.append(
            Trace(kind="marks", role="pruned", name="search began again", x=shown, texts=texts, symbol="triangle")
        )
    panel = Panel(Axis("step"), Axis(f"value, {better} is better", suited(drawn)))
    return Figure("Value of each step", (panel,), tuple(traces))
