"""On-line sessions: clients, phases, losses, changes, and what is kept."""

import json
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from luthier.errors import InvalidInputError, SpaceError
from luthier.online.session import MOST_LOSSES, OnlineSession
from luthier.online.session_settings import OnlineOptions, OnlineSettings
from luthier.online.strategies.adaptive_sampling import proven_best
from luthier.online.strategies.sampling import EstimatorName
from luthier.space import Choice, Integer, Space
from luthier.trial import Config, Sample

SPACE = Space(Integer("x", 0, 40, default=5), Choice("kind", ["slow", "fast"]))


def cost(config: Config) -> float:
    return 1.0 + abs(float(config["x"]) - 25) / 10 + (config["kind"] == "slow")


@dataclass
class Program:
    """A program of several processes with a barrier after each step, on a clock of its own."""

    session: OnlineSession
    clients: int
    measure: Callable[[Config], float] = cost
    now: float = 100.0
    kept: list[Sample] = field(default_factory=list)

    def step(self) -> list[Config]:
        ran = [self.session.fetch(f"p{i}", self.now) for i in range(self.clients)]
        self.now += 0.5
        for i, config in enumerate(ran):
            self.keep(self.session.report(f"p{i}", self.measure(config), self.now))
        return ran

    def keep(self, sample: Sample | None) -> None:
        if sample is not None:
            self.kept.append(sample)

    def run(self, steps: int) -> "Program":
        for _ in range(steps):
            self.step()
        return self


def session_of(**options: object) -> OnlineSession:
    return OnlineSession(SPACE, OnlineSettings(**cast("OnlineOptions", {"strategy": "pro", "samples": 1, **options})))


def test_all_clients_run_the_default_until_it_is_measured() -> None:
    program = Program(session_of(baseline=3), 2)
    assert [program.session.phase, *program.step(), program.session.phase] == [
        "baseline",
        SPACE.default,
        SPACE.default,
        "baseline",
    ]
    program.step()
    assert program.session.phase == "searching"
    view = program.session.view()
    assert view.default.value == cost(SPACE.default)
    assert view.default.samples == 4


def test_a_converged_session_hands_out_the_best_to_everybody() -> None:
    program = Program(session_of(), 6).run(60)
    assert program.session.phase == "converged"
    assert program.session.best.best == {"x": 25, "kind": "fast"}
    assert program.session.fetch("a newcomer", program.now) == program.session.best.best
    assert len(program.kept) < 60 * 6  # nothing is kept after convergence


def test_the_total_is_compared_with_the_default() -> None:
    program = Program(session_of(), 6).run(80)
    totals = program.session.view().totals
    assert totals.steps == totals.compared_steps == 80
    assert totals.default_step == cost(SPACE.default)
    assert totals.default_total == pytest.approx(80 * cost(SPACE.default))
    assert totals.total < 80 * cost(SPACE.default)


def test_a_client_that_always_fails_does_not_hold_up_the_total() -> None:
    program = Program(session_of(), 4)
    for _ in range(50):
        program.session.fetch("broken", program.now)
        program.step()
        program.keep(program.session.report("broken", None, program.now))
    assert 45 <= program.session.view().totals.steps <= 50


def test_without_a_baseline_nothing_is_compared() -> None:
    view = Program(session_of(baseline=0), 3).run(40).session.view()
    assert view.totals.default_total is None
    assert view.totals.compared_steps == 0


def test_higher_is_better_if_told_so() -> None:
    program = Program(session_of(goal="maximize"), 4, lambda config: 10.0 - cost(config)).run(80)
    best = program.session.best
    assert best.best == {"x": 25, "kind": "fast"}
    assert best.value == 9.0
    view = program.session.view()
    assert view.points[0].value == 9.0
    assert view.totals.total > (view.totals.default_total or math.inf)


def test_a_session_is_restored_from_what_was_kept() -> None:
    program = Program(session_of(), 3).run(9)
    restored = session_of()
    restored.replay(program.kept)
    assert (restored.phase, restored.best) == (program.session.phase, program.session.best)
    assert restored.view().points == program.session.view().points
    after = Program(restored, 3, now=program.now).run(80)
    assert after.session.best == program.run(80).session.best
    numbers = [sample.number for sample in after.kept]
    assert numbers == list(range(10 * 3 - 2, 10 * 3 - 2 + len(numbers)))


def test_the_totals_are_restored_from_the_view() -> None:
    program = Program(session_of(), 3).run(70)
    view = json.loads(json.dumps(program.session.view().to_json()))
    restored = session_of()
    restored.replay(program.kept, view)
    assert restored.view().totals == program.session.view().totals
    Program(restored, 3, now=program.now).run(10)
    assert restored.view().totals == program.run(10).session.view().totals


def test_without_a_view_the_totals_are_those_of_the_samples() -> None:
    program = Program(session_of(), 3).run(8)
    restored = session_of()
    restored.replay(program.kept)
    assert restored.view().totals == program.session.view().totals


def test_what_a_lost_client_ran_is_given_to_another() -> None:
    program = Program(session_of(baseline=0), 1)
    point = program.session.fetch("p0", 0.0)
    others = [program.session.fetch(f"other {i}", 0.0) for i in range(3)]
    assert point not in others
    program.session.leave("p0", 1.0, lost=True)
    assert program.session.fetch("late", 1.0) == point


def test_a_configuration_that_loses_its_clients_counts_as_failed() -> None:
    session = session_of(baseline=0)
    point = session.fetch("first", 0.0)
    kept = session.leave("first", 1.0, lost=True)
    assert kept is None
    for number in range(1, MOST_LOSSES):
        assert session.fetch(f"p{number}", 1.0 * number) == point
        kept = session.leave(f"p{number}", 1.0 * number + 1.0, lost=True)
    assert kept is not None
    assert (kept.config, kept.value) == (point, None)
    assert session.fetch("another", 3.0) != point


def test_a_killed_program_does_not_fail_its_configurations() -> None:
    program = Program(session_of(), 30).run(3)
    best = program.session.best.best
    for _ in range(5):
        for i in range(30):
            program.session.fetch(f"p{i}", program.now)
        program.now += 1.0
        assert {program.session.leave(f"p{i}", program.now, lost=True) for i in range(30)} == {None}
        program.now += 1.0
        program.step()
    program.run(60)
    assert program.session.phase == "converged"
    assert program.session.best.best == {"x": 25, "kind": "fast"} != best


@pytest.mark.parametrize("way", ["reports a failure", "dies"])
def test_a_best_configuration_that_no_longer_works_is_replaced(way: str) -> None:
    program = Program(session_of(), 1).run(80)
    broken = program.session.best.best
    assert program.session.phase == "converged"
    for number in range(MOST_LOSSES):
        assert program.session.search == 1
        client = f"victim {number}"
        assert program.session.fetch(client, program.now) == broken
        program.now += 1.0
        if way == "dies":
            program.keep(program.session.leave(client, program.now, lost=True))
        else:
            program.keep(program.session.report(client, None, program.now))
    assert program.session.search == 2
    program.measure = lambda config: cost(config) if config != broken else math.inf
    for _ in range(60):
        assert program.session.fetch("p0", program.now) != broken
        program.keep(program.session.report("p0", cost(program.session.fetch("p0", program.now)), program.now))
    assert program.session.phase == "converged"
    restored = session_of()
    restored.replay(program.kept)
    assert restored.best == program.session.best


def test_a_client_that_leaves_in_peace_does_no_harm() -> None:
    session = session_of(baseline=0)
    point = session.fetch("p", 0.0)
    for number in range(10):
        assert session.leave(f"p{number}" if number else "p", 1.0) is None
        assert session.fetch(f"p{number + 1}", 1.0) == point


def test_a_success_forgives_losses() -> None:
    program = Program(session_of(baseline=0, samples=50), 1)
    for number in range(40):
        point = program.session.fetch(f"lost {number}", 0.0)
        program.keep(program.session.leave(f"lost {number}", 0.0, lost=True))
        assert program.session.fetch(f"good {number}", 0.0) == point
        program.keep(program.session.report(f"good {number}", 1.0, 0.0))
    assert all(sample.value is not None for sample in program.kept)


def test_a_client_that_hangs_is_not_waited_for() -> None:
    program = Program(session_of(baseline=0), 4)
    point = program.session.fetch("hangs", program.now)
    program.run(3)
    assert program.session.view().totals.steps == 0  # the steps wait for it
    program.now += 100.0
    ran = [config for _ in range(3) for config in program.step()]
    assert point in ran
    assert program.session.view().totals.steps > 0
    program.run(60)
    assert program.session.phase == "converged"
    assert program.session.report("hangs", 1.0, program.now) is None  # it comes back: no harm


def test_it_searches_again_when_the_program_changes() -> None:
    program = Program(session_of(), 4).run(120)
    assert program.session.phase == "converged"

    def other(config: Config) -> float:
        return 3.0 + abs(float(config["x"]) - 10) / 10 + (config["kind"] == "slow")

    program.measure = other
    program.run(120)
    assert program.session.search == 2
    assert program.session.best.best == {"x": 10, "kind": "fast"}
    view = program.session.view()
    assert len(view.changes) == 1
    assert view.default.value is None  # it may have changed too
    assert view.changes[0].factor == pytest.approx(other(Config({"x": 25, "kind": "fast"})))
    assert view.totals.compared_steps < view.totals.steps == 240  # the default is not known after the change
    assert {sample.search for sample in program.kept} == {1, 2}
    restored = session_of()
    restored.replay(program.kept)
    assert restored.best == program.session.best


@pytest.mark.parametrize("seed", range(5))
def test_noise_alone_is_no_change(seed: int) -> None:
    rng = np.random.default_rng(seed)
    program = Program(session_of(), 4, lambda config: cost(config) * (1.0 + 0.1 * float(rng.pareto(1.7)))).run(1500)
    assert program.session.search == 1


def test_another_number_of_clients_is_no_change() -> None:
    rng = np.random.default_rng(1)
    program = Program(session_of(), 8, lambda config: cost(config) * (1.0 + 0.3 * float(rng.pareto(1.7)))).run(300)
    assert program.session.phase == "converged"
    for number in range(1, 8):  # all but one end
        program.session.leave(f"p{number}", program.now)
    program.clients = 1
    assert program.run(200).session.search == 1
    program.clients = 8
    assert program.run(200).session.search == 1
    program.measure = lambda config: 5.0 * cost(config)
    assert program.run(200).session.search == 2


def test_without_watch_a_change_is_ignored() -> None:
    program = Program(session_of(watch=False), 4).run(100)
    program.measure = lambda config: 5.0 * cost(config)
    assert program.run(200).session.search == 1


def test_a_stopped_session_hands_out_the_best_and_learns_no_more() -> None:
    program = Program(session_of(), 4).run(6)
    best = program.session.best.best
    program.session.stop()
    assert program.session.phase == "stopped"
    assert set(program.run(20).step()) == {best}
    assert len(program.kept) == 24


def test_bad_reports_are_refused_and_change_nothing() -> None:
    session = session_of()
    session.fetch("p", 0.0)
    before = session.view()
    for value in (math.nan, math.inf, "fast", True, [1.0]):
        with pytest.raises(InvalidInputError, match="not a finite number"):
            session.report("p", value, 1.0)  # type: ignore[arg-type]  # that is the point
    with pytest.raises(InvalidInputError, match="too large"):  # sums of such values are not finite
        session.report("p", -1.7e308, 1.0)
    with pytest.raises(InvalidInputError, match="nothing was fetched"):
        session.report("nobody", 1.0, 1.0)
    with pytest.raises(SpaceError):
        session.report("p", 1.0, 1.0, {"x": 41, "kind": "fast"})
    assert session.view() == before


def test_a_report_can_say_what_was_run() -> None:
    session = session_of(baseline=0)
    sample = session.report("after a restart", 1.5, 1.0, {"x": 25, "kind": "fast"})
    assert sample is not None
    assert sample.config == {"x": 25, "kind": "fast"}
    assert session.best.best == sample.config


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"strategy": "none"}, "unknown strategy"),
        ({"samples": 0}, "samples"),
        ({"samples": "many"}, "adaptive"),
        ({"estimator": "mode"}, "minimum or median or mean"),
        ({"goal": "up"}, "minimize or maximize"),
        ({"baseline": -1}, "baseline"),
        ({"watch": 1}, "true or false"),
        ({"seed": 1.5}, "seed"),
        ({"colour": "red"}, "unknown name"),
    ],
)
def test_wrong_settings_are_one_line(options: dict[str, str], said: str) -> None:
    with pytest.raises(InvalidInputError, match=said):
        OnlineSession(SPACE, OnlineSettings.from_json(options))


def test_settings_are_written_and_read_back() -> None:
    given = OnlineSettings(strategy="pro:size=0.3", samples=4, estimator="median", goal="maximize", seed=9)
    assert OnlineSettings.from_json(json.loads(json.dumps(given.to_json()))) == given


def test_the_view_is_plain_json() -> None:
    view = Program(session_of(), 300).run(2).session.view().to_json()
    assert json.loads(json.dumps(view)) == view
    assert len(view["clients"]) == 200  # type: ignore[arg-type]  # a list
    assert view["more_clients"] == 100


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.sampled_from("frlx"), st.integers(0, 5), st.floats(-1e6, 1e6)), max_size=120))
def test_no_order_of_calls_breaks_a_session(calls: list[tuple[str, int, float]]) -> None:
    """Whatever clients do, every answer is valid and the session can be restored."""
    session, kept = session_of(baseline=2), []
    for now, (call, number, value) in enumerate(calls):
        client = f"c{number}"
        if call == "f":
            SPACE.check(session.fetch(client, float(now)))
        elif call == "r":
            sample = session.report(client, value, float(now), SPACE.at(number))
            kept += [] if sample is None else [sample]
        else:
            sample = session.leave(client, float(now), lost=call == "x")
            kept += [] if sample is None else [sample]
    restored = session_of(baseline=2)
    restored.replay(kept)
    assert restored.best == session.best
    assert restored.phase == session.phase


def loaded(config: Config, after: int, now: float) -> float:
    """What the program takes on a machine that becomes 5 times slower while it is tuned."""
    return cost(config) * (5.0 if now > 100.0 + 0.5 * after else 1.0)


@pytest.mark.parametrize("strategy", ["pro", "auto", "nelder-mead", "sequential"])
@pytest.mark.parametrize("goal", ["minimize", "maximize"])
@pytest.mark.parametrize("clients", [1, 4])
def test_a_best_that_was_measured_worse_than_the_default_is_not_named(strategy: str, goal: str, clients: int) -> None:
    """All but the default is measured under load: nothing shows that any of it is better."""
    program = Program(session_of(strategy=strategy, goal=goal, watch=False), clients)
    program.measure = lambda config: (
        (1.0 if goal == "minimize" else -1.0) * loaded(config, 3 if clients == 1 else 1, program.now)
    )
    for _ in range(60):
        program.step()
        view, best = program.session.view(), program.session.best
        assert view.best.config == best.best
        assert best.best == SPACE.default
    assert view.default.value == view.best.value
    program.session.stop()
    assert program.session.fetch("p0", program.now) == SPACE.default


def test_a_restored_session_does_not_name_a_best_that_is_worse_than_the_default() -> None:
    program = Program(session_of(watch=False), 4)
    program.measure = lambda config: loaded(config, 1, program.now)
    program.run(60)
    restored = session_of(watch=False)
    restored.replay(program.kept, program.session.view().to_json())
    assert restored.phase == "converged"
    assert restored.best == program.session.best
    assert restored.fetch("p0", program.now) == SPACE.default


A, B, C = ({"x": x, "kind": "fast"} for x in (1, 2, 3))


@pytest.mark.parametrize(
    ("estimator", "samples", "best"),
    [
        ("minimum", {"default": [1.0, 1.0], "a": [0.9]}, "a"),
        ("minimum", {"default": [1.0, 1.2, 1.1], "a": [0.99, 1.3]}, "default"),  # less than the noise
        ("minimum", {"default": [1.0, 1.2, 1.1], "a": [0.5, 0.6]}, "a"),
        ("minimum", {"default": [1.0, 1.0], "a": [3.0], "b": [0.5], "c": [0.4]}, "c"),  # another one is better
        ("minimum", {"default": [1.0, 1.0], "a": [1.0]}, "a"),  # as good
        ("minimum", {"a": [3.0]}, "a"),  # nothing is known of the default
        ("minimum", {"default": [1.0], "b": [3.0]}, "default"),  # nothing is known of what is named
        ("median", {"default": [1.0, 1.3, 1.1], "a": [1.05]}, "default"),
        ("median", {"default": [1.0, 1.3, 1.1], "a": [0.5]}, "a"),
        ("mean", {"default": [-1.0, -1.01], "a": [-0.9]}, "default"),
        ("mean", {"default": [-1.0, -1.01], "a": [-1.2]}, "a"),
    ],
)
def test_the_samples_decide_whether_a_best_is_named(
    estimator: EstimatorName, samples: dict[str, list[float]], best: str
) -> None:
    configs = {"default": SPACE.default, **{name: SPACE.check(one) for name, one in zip("abc", (A, B, C), strict=True)}}
    known = {configs[name]: values for name, values in samples.items()}
    assert proven_best(known, configs["a"], (SPACE.default,), estimator) == configs[best]
