"""The adaptive number of samples: samples are taken where they can change a decision."""

from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from luthier.errors import InvalidInputError
from luthier.online.strategies.adaptive_sampling import AdaptiveSampling, typical_drop
from luthier.online.strategies.sampling import FixedSampling
from luthier.trial import Config

A, B, C = (Config({"x": number}) for number in range(3))


def wanted(samples: Mapping[Config, Sequence[float]], best: Config | None = None) -> Mapping[Config, int]:
    return AdaptiveSampling().wanted(samples, [A, B, C], best)


def test_everything_is_sampled_once_first() -> None:
    assert wanted({}) == {A: 1, B: 1, C: 1}
    assert wanted({A: [1.0]}) == {B: 1, C: 1}


def test_the_best_is_sampled_twice_to_see_whether_there_is_noise() -> None:
    assert wanted({A: [1.1], B: [1.0], C: [2.0]}) == {B: 1}


def test_without_noise_nothing_is_sampled_again() -> None:
    assert wanted({A: [1.001], B: [1.0, 1.0], C: [2.0]}) == {}


def test_only_what_may_be_the_best_is_sampled_again() -> None:
    # Samples differ by about 10 %: A may be better than B, C is certainly worse.
    assert wanted({A: [1.1], B: [1.0, 1.1], C: [3.0]}) == {A: 1, B: 1}


def test_the_best_known_before_takes_part_in_the_comparison() -> None:
    best = Config({"x": 9})
    samples = {A: [1.5], B: [1.4], C: [1.6], best: [0.99, 1.0]}
    assert wanted(samples, best) == {}
    assert best in wanted({**samples, B: [1.0], best: [0.99, 1.1]}, best)


def test_a_configuration_has_five_samples_at_most() -> None:
    noisy = [1.0, 1.3, 1.7, 1.2, 1.9]
    assert wanted({A: noisy, B: noisy, C: noisy}) == {}


def test_clients_without_other_work_take_further_samples_in_the_same_step() -> None:
    sampling = AdaptiveSampling()
    assert sampling.wanted({}, [A, B, C], None, clients=6) == {A: 2, B: 2, C: 2}
    assert sampling.wanted({}, [A, B, C], None, clients=5) == {A: 2, B: 2, C: 1}
    assert sampling.wanted({}, [A, B, C], None, clients=2) == {A: 2, B: 1, C: 1}
    assert sampling.wanted({}, [A, B, C], None, clients=3) == {A: 1, B: 1, C: 1}
    assert sampling.wanted({}, [A], None, clients=64) == {A: 5}
    assert sampling.wanted({A: [1.1], B: [1.0, 1.1], C: [3.0]}, [A, B, C], None, clients=16) == {A: 4, B: 3}


def test_each_sample_more_halves_how_many_have_it() -> None:
    ties = [Config({"x": number}) for number in range(16)]
    samples = {config: [1.0 + 0.001 * number, 1.3] for number, config in enumerate(ties)}
    sampling = AdaptiveSampling()
    assert list(sampling.wanted(samples, ties, None)) == ties[:4]
    once = {config: values[:1] for config, values in samples.items()} | {A: [1.0, 1.3]}
    assert set(sampling.wanted(once, ties, None)) == set(ties[:8])
    thrice = {config: [*values, 1.4] for config, values in samples.items()}
    assert sampling.wanted(thrice, ties, None) == {}


def test_differences_of_one_percent_are_not_worth_a_sample() -> None:
    assert wanted({A: [1.001], B: [1.0, 1.003], C: [1.002]}) == {}


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_the_rule_does_not_depend_on_the_unit_or_on_the_sign(sign: float) -> None:
    samples = {A: [1.1], B: [1.0, 1.1], C: [3.0]}
    larger = {config: [4.0 + sign * 1e6 * value for value in values] for config, values in samples.items()}
    assert set(wanted(larger)) <= {A, B, C}
    scaled = {config: [1e6 * value for value in values] for config, values in samples.items()}
    assert wanted(scaled) == wanted(samples)


@pytest.mark.parametrize(
    "draw",
    [
        lambda rng: 1.0 + 0.1 * rng.exponential(),
        lambda rng: 1.0 + 0.1 * rng.pareto(1.7),
        lambda rng: 1.0 + 0.1 * rng.standard_normal(),
    ],
    ids=["exponential", "heavy-tailed", "normal"],
)
def test_the_size_of_any_noise_is_estimated(draw: object) -> None:
    rng = np.random.default_rng(3)
    assert callable(draw)
    drop = typical_drop([[draw(rng), draw(rng)] for _ in range(200)])
    assert drop is not None
    assert 0.04 < drop < 0.2


def test_without_repeated_samples_the_noise_is_unknown() -> None:
    assert typical_drop([[1.0], [2.0]]) is None
    assert typical_drop([[1.0, 1.0], [2.0]]) == 0.0


@pytest.mark.parametrize("count", [0, -1, True, 1.5, None])
def test_a_fixed_number_of_samples_is_a_whole_number_above_0(count: object) -> None:
    with pytest.raises(InvalidInputError, match="samples"):
        FixedSampling(count)  # type: ignore[arg-type]  # what is tested
    assert FixedSampling(3).wanted({A: [1.0], B: [1.0] * 3, C: [1.0] * 5}, [A, B, C], A) == {A: 2}
