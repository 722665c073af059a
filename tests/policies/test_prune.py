"""When a run under way is not worth finishing."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from luthier.errors import InvalidInputError
from luthier.policies import PRUNES, Progress
from luthier.policies.prune import BeyondChance, BeyondDefault, BeyondSeconds, Never, beyond_mean, beyond_quantile
from luthier.statistics.estimate import estimate
from luthier.trial import Completed, Config, Failed, Outcome, Pruned, TimedOut, Trial


def trial(*outcomes: Outcome | float) -> Trial:
    ended = tuple(Completed(outcome) if isinstance(outcome, float) else outcome for outcome in outcomes)
    values = [outcome.value for outcome in ended if isinstance(outcome, Completed)]
    return Trial(Config({"a": 1}), ended, estimate(values, "median") if values else None)


def after(*trials: Trial, initial: int = 0) -> Progress:
    guesses = [(one.estimate.value, number) for number, one in enumerate(trials) if one.estimate is not None]
    repeats = [[past.value for past in one.outcomes if isinstance(past, Completed)] for one in trials]
    best = min(guesses)[1] if guesses else None
    return Progress(trials, best, [values for values in repeats if len(values) > 1], [], initial, 100, 0.0)


def test_never_and_beyond_seconds() -> None:
    assert Never()(1, 1e9, after()) is None
    assert BeyondSeconds(5)(1, 5.0, after()) is None
    assert BeyondSeconds(5)(1, 5.1, after()) is not None


def test_beyond_default_waits_for_the_default() -> None:
    assert BeyondDefault()(1, 1e9, after()) is None
    assert BeyondDefault()(1, 1e9, after(trial(Failed("exit 1")))) is None
    assert BeyondDefault()(1, 10.1, after(trial(10.0))) == "longer than 1 times the default's 10 s"
    assert BeyondDefault()(1, 10.0, after(trial(10.0))) is None
    assert BeyondDefault(2.0)(1, 19.9, after(trial(10.0))) is None


def test_beyond_the_median_mean_or_a_quantile_of_past_runs() -> None:
    past = [trial(value) for value in (1.0, 2.0, 3.0, 10.0)]
    for rule, limit_s in ((beyond_quantile(0.5), 2.0), (beyond_quantile(0.75), 3.0), (beyond_mean(), 4.0)):
        assert rule(4, limit_s, after(*past)) is None
        assert rule(4, limit_s + 0.1, after(*past)) is not None
        assert rule(4, 1e9, after(*past, initial=5)) is None, "an initial draw"
        assert rule(0, 1e9, after(trial(Failed("exit 1")))) is None, "nothing to compare with"
    assert "median of past runs, 2 s" in str(beyond_quantile(0.5)(4, 9.0, after(*past)))


def test_pruned_runs_do_not_lower_the_limit() -> None:
    """Of six runs three were longer than 3 s; without them the median would be 2 s and go on falling."""
    cut = [trial(Pruned("slow", 3.5)), trial(Pruned("slow", 3.5)), trial(TimedOut("limit"))]
    progress = after(trial(1.0), trial(2.0), trial(3.0), *cut)
    assert beyond_quantile(0.5)(6, 3.0, progress) is None
    assert beyond_quantile(0.5)(6, 3.1, progress) is not None
    assert beyond_quantile(0.9)(6, 1e9, progress) is None, "it is not known how long that is"


def test_chance_needs_to_know_the_noise() -> None:
    assert BeyondChance()(2, 1e9, after(trial(10.0), trial(9.0))) is None
    assert BeyondChance()(2, 1e9, after(trial(Failed("exit 1")))) is None


def test_chance_lets_a_run_be_as_long_as_noise_may_make_it() -> None:
    """A run's logarithm deviates by 0.1 in 8 degrees of freedom; 2.5 % of t are above 2.31, the error is 0.105."""
    noisy = trial(*(10.0 * math.exp(0.1 * step) for step in (-1, -1, -1, -1, 0, 1, 1, 1, 1)))
    limit_s = 10.0 * math.exp(2.306 * 0.1 * math.sqrt(1.0 + 1.0 / 9.0))
    assert BeyondChance()(1, 0.999 * limit_s, after(noisy)) is None
    assert BeyondChance()(1, 1.001 * limit_s, after(noisy)) is not None
    assert BeyondChance()(1, 1e9, after(noisy, initial=2)) is None
    assert BeyondChance(0.001)(1, 1.001 * limit_s, after(noisy)) is None


def test_chance_leaves_a_margin_where_runs_are_all_alike() -> None:
    """As if they deviated by 10 % in 4 degrees of freedom; 2.5 % of t are above 2.776."""
    alike = after(trial(*[10.0] * 5))
    limit_s = 10.0 * math.exp(2.776 * 0.1 * math.sqrt(1.2))
    assert BeyondChance()(1, 0.999 * limit_s, alike) is None
    assert BeyondChance()(1, 1.001 * limit_s, alike) is not None
    assert BeyondChance(margin=0.0)(1, 10.0, alike) is None
    assert BeyondChance(margin=0.0)(1, 10.1, alike) is not None


def test_chance_seldom_stops_a_configuration_as_good_as_the_best() -> None:
    import random

    luck = random.Random(3)
    stopped = 0
    for _ in range(2000):
        known = trial(*(10.0 * math.exp(luck.gauss(0.0, 0.2)) for _ in range(6)))
        stopped += BeyondChance()(1, 10.0 * math.exp(luck.gauss(0.0, 0.2)), after(known)) is not None
    assert stopped < 0.05 * 2000


@given(
    st.sampled_from(sorted(PRUNES.names())),
    st.lists(st.lists(st.floats(0.0, 1e300), min_size=1, max_size=4), max_size=4),
    st.floats(0.0, 1e9),
)
def test_every_rule_answers_for_any_times(name: str, values: list[list[float]], elapsed_s: float) -> None:
    progress = after(*(trial(*each) for each in values))
    reason = PRUNES.get(name)()(len(values), elapsed_s, progress)
    assert reason is None or reason.strip()
    if not values:
        assert reason is None


def test_senseless_rules_are_refused() -> None:
    for make in (
        lambda: BeyondSeconds(0.0),
        lambda: BeyondDefault(0.0),
        lambda: beyond_quantile(1.0),
        lambda: BeyondChance(0.5),
        lambda: BeyondChance(0.0),
        lambda: BeyondChance(margin=-0.1),
    ):
        with pytest.raises(InvalidInputError, match="; "):
            make()
