"""One window after the other, with a scripted program and a clock that does not wait."""

import pytest
from tests.online.scripted_program import FakeClock, ScriptedProgram, counts

from luthier.errors import InvalidInputError, UnavailableError
from luthier.online.unchanged.guard import READINGS_TO_ACT, Guard
from luthier.online.unchanged.running_program import (
    EMPTY_WINDOWS,
    LONGEST_SILENCE,
    READINGS,
    RunningProgram,
    WindowRules,
    percentile_95,
)
from luthier.trial import Config

GOOD, OTHER, BAD = Config({"x": 1}), Config({"x": 2}), Config({"x": 9})


def on(program: ScriptedProgram, guard: Guard | None = None) -> RunningProgram:
    return RunningProgram(program, program, WindowRules(10.0, 2.0, guard=guard), FakeClock())


def by_x(config: Config | None) -> float:
    return 1.0 if config is None else float(config["x"])


def test_a_window_is_the_mean_of_what_was_read_after_the_settle_time() -> None:
    program = ScriptedProgram(by_x)
    later = iter(range(1000))
    program.value = lambda _: float(next(later))
    window = on(program).measure(OTHER, None)
    # 0: what came before; 1 and 2: settling; then ten readings
    assert (window.ending, window.value) == ("measured", sum(range(3, 13)) / 10)
    assert program.applied == [OTHER]


def test_a_configuration_that_is_in_place_is_not_set_again() -> None:
    program = ScriptedProgram(by_x)
    running = on(program)
    assert [running.measure(OTHER, None).value for _ in range(3)] == [2.0, 2.0, 2.0]
    assert program.applied == [OTHER]


def test_the_guard_puts_the_last_good_configuration_back_after_two_readings() -> None:
    program = ScriptedProgram(by_x)
    running = on(program, Guard(1.5))
    running.measure(GOOD, None)
    program.readings.clear()
    window = running.measure(BAD, 1.0)
    assert (window.ending, window.value) == ("rolled back", 9.0)
    assert program.applied == [GOOD, BAD, GOOD]
    assert running.current == GOOD
    assert counts(program.readings, BAD) == 1 + READINGS_TO_ACT  # the first only drops what came before
    assert counts(program.readings, GOOD) == 2, "the next configuration must not see what is left of the bad one"


def test_the_guard_acts_when_nobody_answers_but_not_when_nothing_is_logged() -> None:
    program = ScriptedProgram(by_x)
    running = on(program, Guard(1.5))
    running.measure(GOOD, None)
    program.fails = lambda config: config == BAD
    window = running.measure(BAD, 1.0)
    assert (window.ending, window.value, window.reason) == ("rolled back", None, "connection refused")
    quiet = iter([None] * 2 * READINGS)
    program.value = lambda config: next(quiet, by_x(config))
    assert running.measure(OTHER, 3.0).value == 2.0


def test_the_guard_ignores_a_single_bad_reading_and_what_is_within_the_bound() -> None:
    program = ScriptedProgram(by_x)
    values = iter([1.0, 1.0, 9.0, 1.4, 9.0, *[1.4] * 30])
    running = on(program, Guard(1.5))
    program.value = lambda _: next(values)
    assert running.measure(OTHER, 1.0).ending == "measured"


def test_the_guard_does_not_act_without_a_level_of_the_default() -> None:
    program = ScriptedProgram(by_x)
    assert on(program, Guard(1.5)).measure(BAD, None).ending == "measured"


@pytest.mark.parametrize(
    ("goal", "level", "value", "worse"),
    [
        ("minimize", 10.0, 15.1, True),
        ("minimize", 10.0, 14.9, False),
        ("maximize", 15.0, 9.9, True),
        ("maximize", 15.0, 10.1, False),
        ("minimize", -10.0, -4.9, True),
        ("minimize", -10.0, -5.1, False),
        ("minimize", 0.0, 0.1, True),
        ("maximize", -10.0, -13.5, True),
        ("maximize", -10.0, -13.0, False),
    ],
)
def test_the_bound_of_the_guard(goal: str, level: float, value: float, worse: bool) -> None:
    assert Guard(1.5, goal).is_worse(value, level) is worse  # type: ignore[arg-type]


@pytest.mark.parametrize("factor", [1.0, 0.5, -2.0, float("nan"), float("inf")])
def test_a_guard_needs_a_factor_above_one(factor: float) -> None:
    with pytest.raises(InvalidInputError, match="above 1"):
        Guard(factor)


def test_a_refused_configuration_is_put_back_at_once() -> None:
    program = ScriptedProgram(by_x, refuses=lambda config: config == BAD)
    running = on(program)
    running.measure(GOOD, None)
    window = running.measure(BAD, None)
    assert (window.ending, window.value, window.reason) == ("refused", None, "syntax error")
    assert program.applied == [GOOD, BAD, GOOD]


def test_before_anything_was_measured_the_original_is_put_back() -> None:
    program = ScriptedProgram(by_x, refuses=lambda config: config == BAD)
    on(program).measure(BAD, None)
    assert program.applied == [BAD, None]


def test_if_the_last_good_one_is_refused_too_somebody_must_look() -> None:
    program = ScriptedProgram(by_x)
    running = on(program)
    running.measure(GOOD, None)
    program.refuses = lambda _: True
    with pytest.raises(UnavailableError, match="refused as well"):
        running.measure(BAD, None)


def test_windows_without_a_number_are_no_sample() -> None:
    program = ScriptedProgram(by_x)
    quiet = iter([None] * 2 * READINGS)
    program.value = lambda _: next(quiet, 5.0)
    assert on(program).measure(GOOD, None).value == 5.0


def test_a_source_that_never_has_a_number_is_an_error() -> None:
    program = ScriptedProgram(lambda _: None)
    with pytest.raises(UnavailableError, match="nobody is there; check --read"):
        on(program).measure(GOOD, None)
    assert len(program.readings) <= 3 + EMPTY_WINDOWS * READINGS


def test_a_configuration_with_which_there_is_no_number_has_failed() -> None:
    program = ScriptedProgram(lambda config: None if config == BAD else 1.0)
    running = on(program)
    running.measure(GOOD, None)
    window = running.measure(BAD, None)
    assert (window.ending, window.value) == ("silent", None)
    assert running.current == GOOD


def test_a_configuration_is_tried_again_if_nobody_used_the_program() -> None:
    program = ScriptedProgram(by_x)
    running = on(program)
    running.measure(GOOD, None)
    quiet = iter([None] * READINGS * (EMPTY_WINDOWS + 5))
    program.value = lambda config: next(quiet, by_x(config))
    assert running.measure(OTHER, None).value == 2.0
    assert program.applied == [GOOD, OTHER, GOOD, OTHER]


def test_a_program_that_nobody_uses_for_long_ends_the_tuning() -> None:
    program = ScriptedProgram(by_x)
    running = on(program)
    running.measure(GOOD, None)
    program.value = lambda _: None
    with pytest.raises(UnavailableError, match=f"no number in {LONGEST_SILENCE} windows"):
        running.measure(OTHER, None)
    assert running.current == GOOD


def test_a_program_that_ended_is_started_again_with_the_last_good_one() -> None:
    program = ScriptedProgram(by_x)
    running = on(program)
    running.measure(GOOD, None)

    def dies(config: Config | None) -> float:
        program.ended = config == BAD
        return 1.0

    program.value = dies
    assert running.measure(BAD, None).ending == "ended"
    assert not program.ended
    assert program.in_place == GOOD


def test_percentile() -> None:
    assert percentile_95([3.0]) == 3.0
    assert percentile_95([float(number) for number in range(1, 101)]) == 95.0
    assert percentile_95([float(number) for number in range(20, 0, -1)]) == 19.0


def test_an_unknown_statistic() -> None:
    with pytest.raises(InvalidInputError, match="mean, median, p95"):
        WindowRules(1.0, 0.0, "p99")
