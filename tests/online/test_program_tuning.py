"""The course of a tuning with a scripted program: search, verification, what is left in place, change."""

import random
from collections.abc import Callable
from dataclasses import replace

import pytest
from tests.online.scripted_program import FakeClock, KeptEvidence, ScriptedProgram

from luthier.errors import InvalidInputError, UnavailableError
from luthier.online.session import OnlineSession
from luthier.online.session_settings import OnlineSettings
from luthier.online.unchanged.guard import Guard
from luthier.online.unchanged.program_result import ProgramResult, Troubles
from luthier.online.unchanged.program_tuning import ProgramTuning, StopRequested, TuningPlan
from luthier.online.unchanged.running_program import RunningProgram, WindowRules
from luthier.space import Integer, Space
from luthier.trial import Config

SPACE = Space(Integer("x", 0, 20, default=10))
DEFAULT = SPACE.default
SETTINGS = OnlineSettings(strategy="pro", samples=3, estimator="median", watch=False)


class Bench:
    """A tuning of a scripted program whose number depends on x, with a little noise."""

    def __init__(
        self,
        value: Callable[[int], float | None],
        *,
        plan: TuningPlan | None = None,
        settings: OnlineSettings = SETTINGS,
        guard: Guard | None = None,
        spread: float = 0.01,
    ) -> None:
        noise = random.Random(3)

        def number(config: Config | None) -> float | None:
            found = value(int((DEFAULT if config is None else config)["x"]))
            return None if found is None else found * noise.uniform(1.0 - spread, 1.0 + spread)

        self.clock = FakeClock()
        self.program = ScriptedProgram(number)
        self.evidence = KeptEvidence()
        self.stop: Callable[[float], StopRequested | None] = lambda _: None
        self.session = OnlineSession(SPACE, settings)
        running = RunningProgram(self.program, self.program, WindowRules(10.0, 2.0, guard=guard), self.clock)
        plan = plan or TuningPlan(budget=60)
        self.tuning = ProgramTuning(self.session, running, self.evidence, plan, self.clock, self._stop_asked)

    def _stop_asked(self, now: float) -> StopRequested | None:
        return self.stop(now)

    def run(self) -> ProgramResult:
        return self.tuning.run()


def bowl(x: int) -> float:
    return 1.0 + abs(x - 4) / 4


def test_the_winner_is_verified_and_left_in_place() -> None:
    bench = Bench(bowl)
    result = bench.run()
    assert result.improved
    assert result.comparison is not None
    assert result.comparison.low is not None
    assert result.comparison.low <= bowl(10) / bowl(int(result.best["x"])) * 1.02
    assert bowl(int(result.best["x"])) < bowl(10)
    assert bench.program.in_place == result.best
    assert "x better than the default" in result.verdict
    assert result.to_json()["in_place"] == dict(result.best)
    assert bench.evidence.views[-1].phase == "stopped"


def test_values_without_any_noise_are_proven_by_few_pairs() -> None:
    bench = Bench(bowl, plan=TuningPlan(budget=30), spread=0.0)  # 3 pairs are reserved
    result = bench.run()
    assert result.comparison is not None
    assert result.comparison.pairs < 6
    assert result.improved
    assert bench.program.in_place == result.best


def test_equal_pairs_prove_nothing_if_the_search_saw_other_values() -> None:
    slow = iter([2.0] * 15)  # readings: the first window of the default

    def value(x: int) -> float:
        return bowl(x) + (next(slow, 0.0) if x == 10 else 0.0)

    result = Bench(value, plan=TuningPlan(budget=30), spread=0.0).run()
    assert result.comparison is not None
    assert result.comparison.pairs < 6
    assert not result.improved


def test_the_default_is_measured_first() -> None:
    bench = Bench(bowl)
    bench.run()
    assert [sample.config for sample in bench.evidence.samples[:3]] == [DEFAULT] * 3


def test_without_an_improvement_the_original_is_put_back() -> None:
    bench = Bench(lambda _: 5.0)
    result = bench.run()
    assert not result.improved
    assert bench.program.in_place is None
    assert bench.program.applied[-1] is None


def test_a_winner_that_the_verification_did_not_prove_is_not_named_as_the_best() -> None:
    """The search sees low values of others than the default by chance; when they are run again they are worse."""
    bench = Bench(bowl, spread=0.0)
    lucky = bench.program.value

    def value(config: Config | None) -> float | None:
        is_verified = any(note.kind == "default" for note in bench.evidence.notes)
        return 9.0 if is_verified and config not in (None, DEFAULT) else lucky(config)

    bench.program.value = value
    result = bench.run()
    assert result.comparison is not None
    assert result.comparison.pairs > 2
    assert not result.improved
    assert (result.best, result.found != DEFAULT) == (DEFAULT, True)
    assert [label for label, _, _ in result.rows()] == ["default", "tried"]
    assert result.to_json()["best"] == result.to_json()["default"]
    assert bench.session.best.best == DEFAULT
    assert bench.evidence.views[-1].best.config == DEFAULT
    assert bench.session.fetch("another", 0.0) == DEFAULT


def test_the_budget_counts_windows_of_the_verification_too() -> None:
    bench = Bench(bowl, plan=TuningPlan(budget=14))
    result = bench.run()
    assert result.windows <= 14
    assert "the budget of 14 windows is spent, 6 of them kept for verification" in result.ending


def test_a_verification_without_an_end_stays_within_the_budget() -> None:
    noise = random.Random(1)
    bench = Bench(lambda x: (5.0 if x == 10 else 4.5) * noise.uniform(0.5, 1.5), plan=TuningPlan(budget=20))
    result = bench.run()
    assert {note.kind for note in bench.evidence.notes} == {"default", "winner"}
    assert 19 <= result.windows <= 20


def test_without_verification_nothing_is_proven() -> None:
    result = Bench(bowl, plan=TuningPlan(budget=12, verify_pairs=0)).run()
    assert result.comparison is None
    assert "not verified" in result.verdict


def test_higher_is_better_if_asked_for() -> None:
    settings = replace(SETTINGS, goal="maximize")
    result = Bench(lambda x: 100 / bowl(x), settings=settings).run()
    assert result.improved
    assert bowl(int(result.best["x"])) < bowl(10)


def test_what_the_guard_rolled_back_is_counted_and_never_wins() -> None:
    bench = Bench(lambda x: 50.0 if x < 6 else float(x), guard=Guard(1.5), plan=TuningPlan(budget=40))
    result = bench.run()
    assert result.troubles.rolled_back > 0
    assert "the guard acted" in result.troubles.sentence
    assert Troubles(1, 2).sentence == "the guard acted once; the program refused a configuration 2 times"
    assert int(result.best["x"]) >= 6
    bad = [note for note in bench.evidence.notes if note.kind == "rolled back"]
    assert all(note.value is not None and note.value > 40 for note in bad)


def test_refused_configurations_are_failed_samples() -> None:
    bench = Bench(bowl)
    bench.program.refuses = lambda config: config is not None and int(config["x"]) > 10
    result = bench.run()
    assert result.improved
    assert result.troubles.refused > 0
    assert [sample.value for sample in bench.evidence.samples if int(sample.config["x"]) > 10] == [
        None
    ] * result.troubles.refused


def test_a_default_that_is_refused_is_an_error_and_nothing_is_changed() -> None:
    bench = Bench(bowl)
    bench.program.refuses = lambda config: config is not None
    with pytest.raises(InvalidInputError, match="the default does not work: syntax error"):
        bench.run()
    assert bench.program.in_place is None


def test_an_error_puts_the_original_back() -> None:
    bench = Bench(bowl)
    searched = iter(range(200))
    bench.program.value = lambda _: 1.0 if next(searched, 100) < 100 else None
    with pytest.raises(UnavailableError):
        bench.run()
    assert bench.program.in_place is None


def test_a_request_to_stop_ends_the_search_and_verifies() -> None:
    bench = Bench(bowl)
    bench.stop = lambda _: StopRequested("interrupted") if len(bench.evidence.samples) >= 12 else None
    result = bench.run()
    assert result.ending == "interrupted"
    assert len(bench.evidence.samples) == 12
    assert result.comparison is not None
    assert not bench.tuning.was_cut_short


def test_a_request_to_stop_at_once_puts_the_original_back_and_sets_nothing_else() -> None:
    bench = Bench(bowl)
    applied: list[int] = []

    def stop(_: float) -> StopRequested | None:
        if len(bench.evidence.samples) < 12:
            return None
        applied.append(len(bench.program.applied))
        return StopRequested("interrupted", at_once=True)

    bench.stop = stop
    result = bench.run()
    assert bench.tuning.was_cut_short
    assert result.comparison is None
    assert bench.program.in_place is None
    assert len(bench.program.applied) == applied[0] + 1


@pytest.mark.parametrize("killed_after", [1, 4, 13, 20])
def test_a_killed_tuning_continues_where_it_was(killed_after: int) -> None:
    whole, first = Bench(bowl), Bench(bowl)
    expected = whole.run()

    class Killed(BaseException):
        pass

    def kill(_: float) -> StopRequested | None:
        if len(first.evidence.samples) + len(first.evidence.notes) >= killed_after:
            raise Killed
        return None

    first.stop = kill
    with pytest.raises(Killed):
        first.run()
    second = Bench(bowl)
    second.session.replay(first.evidence.samples)
    second.tuning.replay(first.evidence.samples, first.evidence.notes)
    second.evidence.samples, second.evidence.notes = list(first.evidence.samples), list(first.evidence.notes)
    result = second.run()
    assert result.improved
    assert [sample.number for sample in second.evidence.samples] == list(range(1, len(second.evidence.samples) + 1))
    assert result.windows <= expected.windows + 40
    assert second.evidence.samples[: len(first.evidence.samples)] == first.evidence.samples


def test_a_kill_in_the_verification_loses_no_pair() -> None:
    first = Bench(bowl)

    class Killed(BaseException):
        pass

    def kill(_: float) -> StopRequested | None:
        if len(first.evidence.notes) >= 4:
            raise Killed
        return None

    first.stop = kill
    with pytest.raises(Killed):
        first.run()
    assert len(first.evidence.notes) == 4
    second = Bench(bowl)
    second.session.replay(first.evidence.samples)
    second.tuning.replay(first.evidence.samples, first.evidence.notes)
    result = second.run()
    assert second.evidence.samples == [], "the search had ended"
    assert result.comparison is not None
    assert result.comparison.pairs == (4 + len(second.evidence.notes)) // 2


def test_it_searches_again_when_the_program_changes() -> None:
    bench = Bench(bowl, plan=TuningPlan(budget=60, keep_watching=True))
    windows: list[Config] = []
    bench.tuning.watch = lambda config, _: windows.append(config)
    best_before: list[Config] = []

    def value(config: Config | None) -> float:
        x = int((DEFAULT if config is None else config)["x"])
        if bench.session.phase == "stopped" and not best_before and len(windows) > 120:
            best_before.append(bench.session.best.best)
        return bowl(x) if not best_before else 3.0 + abs(x - 16)

    noise = random.Random(5)
    bench.program.value = lambda config: value(config) * noise.uniform(0.99, 1.01)
    bench.stop = lambda _: StopRequested("interrupted") if bench.session.search == 2 and len(windows) > 400 else None
    result = bench.run()
    assert result.searches == 2
    assert abs(int(best_before[0]["x"]) - 4) <= 2
    assert abs(int(result.best["x"]) - 16) < 6, result.best
    assert bench.session.view().changes
    of_second = [sample for sample in bench.evidence.samples if sample.search == 2]
    assert [sample.config for sample in of_second[:3]] == [DEFAULT] * 3, "the default has a new level"


def test_without_a_verification_the_values_are_those_of_the_search() -> None:
    result = Bench(bowl, plan=TuningPlan(budget=30, verify_pairs=0), spread=0.0).run()
    assert result.default_estimate is not None
    assert result.default_estimate.value == bowl(10)
    assert result.found_estimate is not None
    assert result.found_estimate.value == bowl(int(result.found["x"])) < bowl(10)
    assert result.found_estimate.count >= 3
