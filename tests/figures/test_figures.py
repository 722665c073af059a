"""Figures: right values, right direction, safe texts, and no longer than they need to be."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from luthier.errors import InvalidInputError
from luthier.figures import DARK, FIGURES, LIGHT, Figure, compared, draw, to_plotly
from luthier.figures.figure import Role, Trace
from luthier.figures.scales import thinned
from luthier.result.result import Result, conclude
from luthier.result.tuning_return import tuning_return
from luthier.space import Choice, Integer, Real, Space
from luthier.spec.experiment import Experiment
from luthier.spec.objectives import Goal, Objective
from luthier.trial import Completed, Config, Failed, Json, Lost, Outcome, Pruned, Purpose, Run, TimedOut

HOSTILE = "</script><img src=x onerror=alert(1)> & $x$ 'q' \"p\" 100%{y}"
SPACE = Space(
    Integer("threads", 1, 1000),
    Real("rate", 0.001, 10.0, scale="log", default=0.1),
    Choice("engine", ["plain", HOSTILE]),
)
GOALS: tuple[Goal, ...] = ("minimize", "maximize")
NUMBERS = st.floats(0.01, 1e6)


def config(number: int) -> Config:
    return Config({"threads": number % 1000 + 1, "rate": 0.1, "engine": ("plain", HOSTILE)[number % 2]})


def run(number: int, trial: int, outcome: Outcome | None, purpose: Purpose = "search") -> Run:
    return Run(
        number=number,
        trial=trial,
        purpose="default" if number == 0 else purpose,
        config=config(trial),
        submitted_at=100.0 + number,
        submit_order=2 * number,
        finish_order=None if outcome is None else 2 * number + 1,
        started_at=100.0 + number,
        duration_s=None if outcome is None else 0.5,
        outcome=outcome,
    )


def searched(outcomes: Sequence[Outcome | None], goal: Goal = "minimize", measure: str = "json:x") -> Result:
    """A search in which every run is of another configuration; the first is the default."""
    experiment = Experiment(space=SPACE, objectives=(Objective(measure, goal),), budget=20_000)
    return conclude(experiment, [run(number, number, outcome) for number, outcome in enumerate(outcomes)])


def verified(goal: Goal = "minimize", measure: str = "json:x") -> Result:
    """Trial 1 is twice as good as the default, in six pairs of runs; both ran twice in the search as well."""
    default, best = (10.0, 5.0) if goal == "minimize" else (5.0, 10.0)
    plan: list[tuple[int, float, Purpose]] = [(0, default, "default"), (1, best, "search")]
    plan += [(0, default * 1.01, "search"), (1, best * 1.01, "search"), (2, 7.0, "search")]
    for pair in range(6):
        plan += [(0, default * (1.0 + 0.01 * pair), "verify"), (1, best * (1.02 - 0.01 * pair), "verify")]
    runs = [run(number, trial, Completed(value), purpose) for number, (trial, value, purpose) in enumerate(plan)]
    return conclude(Experiment(space=SPACE, objectives=(Objective(measure, goal),)), runs)


def several(goals: Sequence[Goal], values: Sequence[tuple[float, ...]]) -> Result:
    first, *others = goals
    further = tuple(Objective(f"json:{number}", goal) for number, goal in enumerate(others))
    experiment = Experiment(space=SPACE, objectives=(Objective("json:x", first), *further))
    return conclude(experiment, [run(at, at, Completed(one, tuple(rest))) for at, (one, *rest) in enumerate(values)])


def built(name: str, result: Result, points: int = 1000) -> Figure:
    figure = FIGURES[name](result, points)
    assert figure is not None
    return figure


def named(figure: Figure, name: str) -> Trace:
    return next(trace for trace in figure.traces if trace.name == name)


def height_at(line: Trace, place: float) -> float | None:
    """The height of a line of steps at a place: that of the last corner there or before."""
    return [y for x, y in zip(line.x, line.y, strict=True) if x <= place][-1]


PROBLEMS: list[Outcome | None] = [Failed(HOSTILE), Completed(2.0), TimedOut("slow", 9.0), Pruned("late"), Lost("gone")]
MIXED = searched([Completed(3.0), *PROBLEMS, None, *(Completed(1.0 + number / 7.0) for number in range(12))])
RESULTS = {
    "mixed": MIXED,
    "verified": verified(),
    "two": several(("minimize", "maximize"), [(3.0, 1.0), (2.0, 5.0), (1.0, 0.5), (4.0, 9.0)]),
    "three": several(("minimize", "minimize", "maximize"), [(3.0, 1.0, 2.0), (2.0, 5.0, 2.0), (1.0, 9.0, 7.0)]),
    "unreliable": conclude(
        Experiment(space=SPACE, objectives=(Objective("json:x"),)),
        [run(0, 0, Failed("no")), run(1, 1, Completed(2.0)), run(2, 1, Failed("no")), run(3, 0, Completed(1.0))],
    ),
    "nothing": searched([]),
    "only failures": searched([Failed("no"), Failed("never")]),
    "one run": searched([Completed(0.0)]),
    "below nothing": searched([Completed(-1.0), Completed(0.0), Completed(-3.0)], "maximize"),
    "extreme": searched([Completed(1e-300), Completed(1e300), Completed(5e-324)]),
    "seconds verified": verified(measure="wall"),
    "seconds": searched([Completed(0.2), Completed(0.1)], measure="wall"),
}


def test_the_return_over_time_and_when_the_tuning_has_paid() -> None:
    result = RESULTS["seconds verified"]
    figure = built("return", result)
    found = tuning_return(result)
    assert found is not None
    assert found.production is not None
    assert found.production.viable_after is not None
    assert len(figure.panels) == 2
    paid, tuned, untuned = (named(figure, name) for name in ("the tuning has paid", "tuned", "default, not tuned"))

    def total(line: Trace, runs: float) -> float:
        first, last = (float(y or 0.0) for y in line.y)
        return first + runs / line.x[-1] * (last - first)

    assert paid.y[0] == pytest.approx(total(tuned, paid.x[0]))
    assert total(tuned, paid.x[0]) <= total(untuned, paid.x[0])
    assert total(tuned, paid.x[0] - 1.0) > total(untuned, paid.x[0] - 1.0)
    assert len(built("return", MIXED).panels) == 1, "values of an unknown unit are no time"


@cache
def figure_of(name: str, kind: str) -> Figure | None:
    return FIGURES[name](RESULTS[kind])


def walk(value: Json, key: str = "") -> Iterator[tuple[str, Json]]:
    yield key, value
    if isinstance(value, dict):
        for name, one in value.items():
            yield from walk(one, name)
    elif isinstance(value, list):
        for one in value:
            yield from walk(one, key)


@pytest.mark.parametrize("name", FIGURES)
@pytest.mark.parametrize("kind", RESULTS)
def test_every_figure_of_every_result_is_json_with_safe_texts_and_known_colours(name: str, kind: str) -> None:
    figure = figure_of(name, kind)
    if figure is None:
        return
    assert figure.title == FIGURES[name].title
    assert all(trace.kind == "band" or len(trace.x) in (len(trace.y), len(trace.texts)) for trace in figure.traces)
    plain = to_plotly(figure)
    json.dumps(plain, allow_nan=False)
    for key, value in walk(plain):
        if isinstance(value, str) and key.endswith("color"):
            role = value.removeprefix("role:").partition("/")[0]
            assert role in LIGHT or value == "rgba(0,0,0,0)"
        elif isinstance(value, str):
            assert "<" not in value.replace("<br>", "")


def test_palettes_know_every_role() -> None:
    assert set(LIGHT) == set(DARK) == set(get_args(Role))


def test_results_without_a_number_have_no_figures() -> None:
    for kind in ("nothing", "only failures"):
        assert {name for name in FIGURES if figure_of(name, kind)} <= {"utilisation"}


def test_every_figure_has_a_title_and_says_how_to_read_it() -> None:
    for drawing in FIGURES.values():
        assert drawing.title
        assert drawing.explanation.endswith(".")
    assert all(any(figure_of(name, kind) for kind in RESULTS) for name in FIGURES)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.one_of(NUMBERS.map(Completed), st.just(Failed("no"))), min_size=1, max_size=120),
    st.sampled_from(GOALS),
    st.integers(6, 40),
)
def test_best_so_far_is_exact_however_few_points_are_drawn(outcomes: list[Outcome], goal: Goal, points: int) -> None:
    result = searched(outcomes, goal)
    if not any(isinstance(outcome, Completed) for outcome in outcomes):
        assert FIGURES["trajectory"](result, points) is None
        return
    figure = built("trajectory", result, points)
    line = named(figure, "best so far")
    best = None
    for number, outcome in enumerate(outcomes):
        if isinstance(outcome, Completed):
            better = max if goal == "maximize" else min
            best = outcome.value if best is None else better(best, outcome.value)
        if best is not None:
            assert height_at(line, number) == best
    dots = [y for trace in figure.traces if trace.kind == "points" for y in trace.y if y is not None]
    values = [outcome.value for outcome in outcomes if isinstance(outcome, Completed)]
    assert {max(values), min(values), *(y for y in line.y if y is not None)} <= set(dots)


@settings(deadline=None)
@given(st.lists(NUMBERS, max_size=300), st.integers(4, 60))
def test_thinning_keeps_extremes_and_the_order(values: list[float], points: int) -> None:
    kept = thinned(values, points)
    assert kept == sorted(set(kept))
    assert len(kept) <= points
    if len(values) <= points:
        assert kept == list(range(len(values)))
    else:
        assert {min(values), max(values)} <= {values[at] for at in kept}
        gaps = [after - before for before, after in pairwise(kept)]
        assert max(gaps) <= 2 * len(values) / (points // 4) + 1


def test_runs_without_a_number_are_marked_and_never_given_one() -> None:
    figure = built("trajectory", MIXED)
    failed, pruned = named(figure, "failed"), named(figure, "pruned")
    assert (failed.kind, list(failed.x), list(failed.y)) == ("marks", [1.0], [])
    assert HOSTILE in failed.texts[0]
    assert (pruned.kind, list(pruned.x)) == ("marks", [4.0])
    bounded = named(figure, "timed out, at least this")
    assert (bounded.kind, list(bounded.x), list(bounded.y), bounded.symbol) == ("points", [3.0], [9.0], "triangle")
    higher = searched([Completed(1.0), TimedOut("slow", 9.0)], "maximize")
    assert named(built("trajectory", higher), "timed out").kind == "marks"


def test_a_long_history_stays_short_and_loses_no_failure() -> None:
    bad = set(range(50, 9_950, 3))
    result = searched([Failed("no") if at in bad else Completed(1.0 + at % 97) for at in range(10_000)])
    for name, drawing in FIGURES.items():
        figure = None if drawing.slow else drawing(result)
        assert figure is None or all(len(trace.x) <= 2000 for trace in figure.traces), name
    marks = named(built("trajectory", result), "failed")
    assert len(marks.x) <= 200
    counted = [int(text.partition(": ")[2].partition(" like")[0]) for text in marks.texts]
    assert sum(counted) == len(bad)


@pytest.mark.parametrize("goal", GOALS)
def test_the_gain_is_above_one_when_the_best_is_better(goal: Goal) -> None:
    result = verified(goal)
    assert result.improved
    figure = built("gain", result)
    row = named(figure, "verified, with its 95 % interval")
    assert result.comparison is not None
    assert (list(row.y), list(row.low)) == ([result.comparison.speedup], [result.comparison.low])
    pairs = [y for y in named(figure, "pair of the verification").y if y is not None]
    assert len(pairs) == 6
    assert min(pairs) > 1.5
    assert result.speedup is not None
    assert min(pairs) <= result.speedup <= max(pairs)
    assert list(named(figure, "estimated").y) == [pytest.approx(2.0)]
    assert figure.note == ""


@pytest.mark.parametrize("goal", GOALS)
def test_a_gain_before_the_verification_says_so(goal: Goal) -> None:
    values = (4.0, 2.0) if goal == "minimize" else (2.0, 4.0)
    figure = built("gain", searched([Completed(value) for value in values], goal))
    assert "not verified" in figure.note
    assert list(named(figure, "estimated").y) == [2.0]
    assert list(named(figure, "estimated").low) == [None]


def test_a_gain_over_what_is_not_positive_is_a_difference() -> None:
    figure = built("gain", searched([Completed(-2.0), Completed(1.0)], "maximize"))
    assert list(named(figure, "estimated").y) == [3.0]
    assert list(named(figure, "default").y) == [0.0, 0.0]


@settings(max_examples=60, deadline=None)
@given(
    st.tuples(st.sampled_from(GOALS), st.sampled_from(GOALS)),
    st.lists(st.tuples(NUMBERS, NUMBERS), min_size=2, max_size=12, unique=True),
)
def test_the_edge_of_a_front_goes_through_its_members_and_nothing_lies_beyond(
    goals: tuple[Goal, Goal], values: list[tuple[float, float]]
) -> None:
    result = several(goals, values)
    figure = built("front", result)
    edge = next(trace for trace in figure.traces if trace.kind == "line")
    signs = [-1.0 if goal == "maximize" else 1.0 for goal in goals]
    corners = [(signs[0] * x, signs[1] * y) for x, y in zip(edge.x, edge.y, strict=True) if y is not None]
    front = named(figure, "on the Pareto front")
    members = {(signs[0] * x, signs[1] * y) for x, y in zip(front.x, front.y, strict=True) if y is not None}
    assert members <= set(corners)
    for x, y in set(corners) - members:  # every other corner is as bad as two members
        assert sum(a <= x and b <= y for a, b in members) >= 2
    for x, y in values:
        assert any(a <= signs[0] * x and b <= signs[1] * y for a, b in members)


def test_three_objectives_are_shown_two_at_a_time() -> None:
    figure = built("front", RESULTS["three"])
    assert len(figure.panels) == 3
    assert "higher is better" in figure.panels[1].y.title
    assert [trace.panel for trace in figure.traces if trace.role == "best"] == [0, 1, 2]


@pytest.mark.parametrize("goal", GOALS)
def test_parallel_lines_end_with_the_best_on_top(goal: Goal) -> None:
    values = [float(value) for value in range(1, 11)]
    figure = built("parallel", searched([Completed(value) for value in values], goal))
    best, worst = named(figure, "best fifth"), named(figure, "worst fifth")
    assert next(y for x, y in zip(best.x, best.y, strict=True) if x == 3.0 and y is not None) == 1.0
    assert [y for x, y in zip(worst.x, worst.y, strict=True) if x == 3.0 and y is not None][-1] == 0.0
    assert best.texts[0].startswith("10\n" if goal == "maximize" else "1\n")
    labels = next(trace for trace in figure.traces if trace.kind == "labels")
    assert HOSTILE in labels.texts
    assert [text for _, text in figure.panels[0].x.ticks] == ["threads", "rate", "engine", "json"]


def test_parameters_keep_their_scale_and_the_names_of_their_values() -> None:
    panels = built("scatter", MIXED).panels
    assert [panel.x.scale for panel in panels] == ["linear", "log", "linear"]
    assert [text for _, text in panels[2].x.ticks] == ["plain", HOSTILE]
    star = [trace for trace in built("scatter", verified()).traces if trace.role == "best"]
    assert list(star[0].x) == [2.0]


def test_values_are_drawn_in_the_unit_they_are_told_in() -> None:
    figure = built("trajectory", RESULTS["seconds"])
    assert figure.panels[0].y.title == "wall [ms], lower is better"
    assert list(named(figure, "best so far").y)[-1] == 100.0
    assert "100 ms" in named(figure, "search").texts[0]


def test_a_single_parameter_needs_no_figure_of_what_matters() -> None:
    space = Space(Integer("threads", 1, 1000))
    runs = [replace(one, config=Config({"threads": one.number + 1})) for one in MIXED.runs]
    result = conclude(Experiment(space=space, objectives=(Objective("json:x"),)), runs)
    assert FIGURES["importance"](result) is None
    assert FIGURES["parallel"](result) is None


def test_importance_is_of_the_parameters() -> None:
    figure = figure_of("importance", "mixed")
    assert figure is not None
    assert {text for _, text in figure.panels[0].y.ticks} == {*SPACE.names, "noise"}
    bars = figure.traces[0]
    for value, low, high in zip(bars.x, bars.low, bars.high, strict=True):
        assert low is not None
        assert high is not None
        assert 0.0 <= low <= value <= high <= 100.0


def test_noise_is_the_deviation_of_repeats() -> None:
    dots = named(built("noise", verified()), "configuration with several runs")
    assert len(dots.x) == 2
    assert all(y is not None and 0.0 < y < 5.0 for y in dots.y)
    assert FIGURES["noise"](MIXED) is None


def test_a_machine_that_grew_slower_shows_as_a_step() -> None:
    levels = [1.0] * 10 + [2.0] * 10
    runs = [run(at, 0, Completed(level * (1.0 + 0.001 * (at % 3)))) for at, level in enumerate(levels)]
    figure = built("machine", conclude(Experiment(space=SPACE, objectives=(Objective("json:x"),)), runs))
    line = named(figure, "level")
    assert [round(y or 0.0, 1) for y in line.y] == [1.0, 1.0, 2.0, 2.0]
    assert 9.0 < line.x[1] < 10.0
    assert "jumped to 2x" in figure.note


def test_runs_at_once_add_up_to_the_time_spent() -> None:
    figure = built("utilisation", MIXED)
    line = named(figure, "parallel runs")
    corners = list(zip(line.x, line.y, strict=True))
    area = sum((after[0] - before[0]) * (before[1] or 0.0) for before, after in pairwise(corners))
    assert area == pytest.approx(MIXED.cost_s)
    assert "busy for" in figure.note


def test_experiments_are_compared_by_their_gain_over_their_own_default() -> None:
    lower = searched([Completed(8.0), Completed(4.0), Completed(6.0), Completed(2.0)])
    higher = searched([Completed(1.0), Completed(3.0)], "maximize")
    figure = compared({"low": lower, "<high>": higher, "none": RESULTS["nothing"]})
    assert figure is not None
    by_runs, by_time, other, _ = figure.traces
    assert [height_at(by_runs, runs) for runs in (1.0, 2.0, 3.0, 4.0)] == [1.0, 2.0, 2.0, 4.0]
    assert height_at(other, 2.0) == 3.0
    assert by_time.x[-1] == 3.5
    assert (other.name, to_plotly(figure)["data"][2]["name"]) == ("<high>", "&lt;high&gt;")  # type: ignore[index, call-overload]  # JSON
    assert compared({"none": RESULTS["only failures"]}) is None


@pytest.mark.parametrize(
    ("kind", "suffix"),
    [("mixed", ".png"), ("verified", ".svg"), ("three", ".png"), ("extreme", ".svg"), ("unreliable", ".svg")],
)
def test_figures_are_written_as_pictures(kind: str, suffix: str, tmp_path: Path) -> None:
    for name in ("trajectory", "trials", "gain", "front", "parallel", "scatter", "noise", "utilisation"):
        if (figure := figure_of(name, kind)) is not None:
            draw(figure, tmp_path / f"{name}{suffix}")
    starts = {path.read_bytes()[:4] for path in tmp_path.iterdir()}
    assert starts == ({b"\x89PNG"} if suffix == ".png" else {b"<?xm"})


def test_bars_and_bands_are_written_and_the_same_figure_gives_the_same_file(tmp_path: Path) -> None:
    bars, bands = figure_of("importance", "mixed"), figure_of("dependence", "mixed")
    assert bars is not None
    assert bands is not None
    draw(bars, tmp_path / "a.svg")
    draw(bars, tmp_path / "b.svg")
    draw(bands, tmp_path / "c.svg")
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


def test_a_picture_that_cannot_be_made_leaves_nothing_behind(tmp_path: Path) -> None:
    figure = built("trajectory", MIXED)
    with pytest.raises(InvalidInputError, match="png or"):
        draw(figure, tmp_path / "a.gif")
    broken = replace(figure, traces=(Trace(kind="line", role="best", x=[1.0], y=[1.0, 2.0]),))
    with pytest.raises(ValueError, match="same first dimension"):
        draw(broken, tmp_path / "a.png")
    assert list(tmp_path.iterdir()) == []
