"""Which parameters matter, and how, from results made of runs."""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np
import pytest

from luthier.errors import InvalidInputError
from luthier.result.importance import NOTHING, Importance, importances, partial_dependence
from luthier.result.result import Result, conclude
from luthier.space import Choice, Integer, Real, Space
from luthier.spec.experiment import Experiment
from luthier.spec.objectives import Goal, Objective
from luthier.trial import Completed, Config, Failed, Outcome, Run

SPACE = Space(
    Integer("threads", 1, 32),
    Integer("block", 4096, 1 << 20, step=2, scale="log"),
    Choice("engine", ["sync", "aio", "mmap"]),
    Real("ratio", 0.0, 1.0),
)


def seconds(config: Mapping[str, object]) -> float:
    threads, engine = int(str(config["threads"])), str(config["engine"])
    return 40.0 / math.sqrt(threads) * {"sync": 2.0, "aio": 1.0, "mmap": 1.1}[engine]


def result_of(
    answer: Callable[[Config], Outcome], count: int, space: Space = SPACE, goal: Goal = "minimize", seed: int = 0
) -> Result:
    configs = [space.default, *space.sample(count - 1, np.random.default_rng(seed), exclude={space.default})]
    runs = [
        Run(i, i, "search" if i else "default", c, 0.0, 2 * i, 2 * i + 1, 0.0, 1.0, answer(c))
        for i, c in enumerate(configs)
    ]
    return conclude(Experiment(space=space, objectives=(Objective("wall", goal),)), runs)


def ranking(result: Result) -> tuple[Importance, ...]:
    return importances(result).parameters


def known(values: Sequence[float | None]) -> list[float]:
    assert None not in values
    return [value for value in values if value is not None]


def timed(config: Config) -> Outcome:
    return Completed(seconds(config))


def test_what_matters_comes_first_and_what_does_not_has_nothing() -> None:
    found = ranking(result_of(timed, 40))
    assert [one.parameter for one in found][:2] == ["threads", "engine"]
    # Var[log] of -log(t)/2 over 1..32 is 0.164, of log(2), log(1), log(1.1) is 0.092.
    assert found[0].share == pytest.approx(0.64, abs=0.06)
    assert found[1].share == pytest.approx(0.36, abs=0.06)
    assert found[0].alone == pytest.approx(found[0].share, abs=0.06), "on a logarithmic scale nothing interacts"
    assert all(one.share < 0.05 for one in found[2:])
    assert all(0.0 <= one.low <= one.share <= one.high <= 1.0 for one in found)


def test_a_maximised_rate_says_the_same_as_the_time() -> None:
    rate = result_of(lambda config: Completed(100.0 / seconds(config)), 40, goal="maximize")
    time = result_of(timed, 40)
    for one, other in zip(ranking(rate), ranking(time), strict=True):
        assert one.parameter == other.parameter
        assert one.share == pytest.approx(other.share, abs=1e-3)


def test_failures_are_ignored_and_noise_widens() -> None:
    rng = np.random.default_rng(1)

    def noisy(config: Config) -> Outcome:
        if config["engine"] == "mmap":
            return Failed("exit 1")
        return Completed(seconds(config) * float(np.exp(0.2 * rng.standard_normal())))

    found, calm = ranking(result_of(noisy, 60)), ranking(result_of(timed, 40))
    assert {one.parameter for one in found[:2]} == {"threads", "engine"}
    assert found[0].high - found[0].low > calm[0].high - calm[0].low


def test_values_of_both_signs_are_taken_as_they_are() -> None:
    found = ranking(result_of(lambda config: Completed(float(config["ratio"]) - 0.5), 30))
    assert (found[0].parameter, round(found[0].share, 1)) == ("ratio", 1.0)


def test_the_same_result_gives_the_same_answer() -> None:
    assert ranking(result_of(timed, 20)) == ranking(result_of(timed, 20))


def test_too_little_or_nothing_to_tell() -> None:
    assert ranking(conclude(Experiment(space=SPACE), [])) == ()
    assert ranking(result_of(timed, 7)) == ()
    assert ranking(result_of(timed, 8)) != ()
    assert ranking(result_of(lambda config: Completed(3.0), 30)) == ()
    assert ranking(result_of(lambda config: Failed("no"), 30)) == ()
    with pytest.raises(InvalidInputError, match="fewer than 8 configurations gave a number"):
        partial_dependence(result_of(timed, 7), "threads")


def test_constraints_are_kept() -> None:
    space = Space(Integer("a", 1, 12), Integer("b", 1, 12), constraints=["a <= b"])
    result = result_of(lambda config: Completed(float(config["a"]) + 0.1), 40, space)
    assert [one.parameter for one in ranking(result)] == ["a", "b"]
    tied = Space(Integer("a", 1, 12), Integer("b", 1, 12), constraints=["a == b"])
    assert all(one.share < 1e-9 for one in ranking(result_of(lambda c: Completed(float(c["a"])), 12, tied)))
    curve = partial_dependence(result, "b")
    assert curve.values == tuple(range(1, 13))
    assert known(curve.mean)[0] == pytest.approx(1.1, rel=0.1), "b = 1 leaves only a = 1"
    assert known(curve.mean)[-1] > 2.0


@pytest.mark.parametrize("count", [15, 40])
def test_noise_is_called_noise(count: int) -> None:
    """Of 40 experiments in which nothing has an effect, 5 % may claim that something has."""
    claims = bounds = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        values = iter(np.exp(0.1 * rng.standard_normal(count)).tolist())
        result = result_of(partial(lambda values, _: Completed(next(values)), values), count)
        found = importances(result)
        claims += bool(found.parameters)
        bounds += sum(one.low > 0.0 for one in found.parameters)
        if not found.parameters:
            assert (found.unexplained, found.note) == (1.0, NOTHING)
            with pytest.raises(InvalidInputError, match="can be told from noise"):
                partial_dependence(result, "threads")
    assert claims <= 4
    assert bounds <= 0.05 * 40 * len(SPACE.names)


def test_noise_is_a_share_of_its_own() -> None:
    rng = np.random.default_rng(5)
    result = result_of(lambda config: Completed(seconds(config) * float(np.exp(0.5 * rng.standard_normal()))), 100)
    found = importances(result)
    # The variance of the logarithms is 0.26 by the parameters and 0.25 by noise.
    assert found.unexplained == pytest.approx(0.5, abs=0.2)
    assert {one.parameter for one in found.parameters if one.low > 0.0} >= {"threads", "engine"}
    calm = importances(result_of(timed, 60)).unexplained
    assert calm is not None
    assert calm < 0.1


def test_a_curve_has_no_value_where_nothing_was_measured() -> None:
    def partly(config: Config) -> Outcome:
        fails = config["engine"] == "mmap" or 10 < int(str(config["threads"])) <= 20 or float(config["ratio"]) > 0.8
        return Failed("exit 1") if fails else timed(config)

    result = result_of(partly, 120)
    engines = partial_dependence(result, "engine")
    assert engines.values == ("sync", "aio", "mmap")
    assert [mean is None for mean in engines.mean] == [False, False, True]
    assert engines.low[2] is None
    threads = partial_dependence(result, "threads", points=32)
    unknown = [value for value, mean in zip(threads.values, threads.mean, strict=True) if mean is None]
    assert set(range(12, 20)) <= set(unknown)
    assert not {1, 8, 9, 22, 30} & set(unknown)
    ratio = partial_dependence(result, "ratio")
    assert [mean is None for mean in ratio.mean][-3:] == [True] * 3


def test_a_curve_is_in_the_users_units_and_follows_the_value() -> None:
    result = result_of(lambda config: Completed(100.0 / seconds(config)), 60, goal="maximize")
    curve = partial_dependence(result, "threads", points=8)
    assert curve.values[0] == 1
    assert curve.values[-1] == 32
    assert len(curve.values) == 8
    typical = (2.0 * 1.0 * 1.1) ** (1.0 / 3.0)
    truth = [100.0 / (40.0 * typical) * math.sqrt(int(str(value))) for value in curve.values]
    np.testing.assert_allclose(known(curve.mean), truth, rtol=0.1)
    assert all(
        low <= mean <= high for low, mean, high in zip(*map(known, (curve.low, curve.mean, curve.high)), strict=True)
    )


def test_a_curve_over_choices_and_over_a_log_scale() -> None:
    result = result_of(timed, 60)
    curve = partial_dependence(result, "engine")
    assert curve.values == ("sync", "aio", "mmap")
    assert known(curve.mean)[0] / known(curve.mean)[1] == pytest.approx(2.0, rel=0.1)
    assert partial_dependence(result, "block").values == tuple(4096 << i for i in range(9))


@pytest.mark.parametrize(
    ("parameter", "points", "told"), [("thread", 9, "unknown parameter"), ("threads", 1, "points")]
)
def test_bad_arguments(parameter: str, points: int, told: str) -> None:
    with pytest.raises(InvalidInputError, match=told):
        partial_dependence(result_of(timed, 9), parameter, points)
