import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from luthier.errors import InvalidInputError, NotFoundError
from luthier.trial import Config
from testbeds.noise import (
    NOISES,
    HeavyTail,
    Interference,
    Noise,
    Quiet,
    RandomInterference,
    SharedCluster,
    SharedStorage,
    TwoSpeeds,
    find_noise,
)

CONFIG = Config({"x": 1})
times = st.floats(0.0, 2000.0)
lengthening = st.one_of(
    st.builds(Interference, st.floats(46.0, 400.0), st.floats(0.0, 45.0), st.floats(1.0, 5.0)),
    st.builds(
        RandomInterference, st.floats(20.0, 500.0), st.floats(0.0, 90.0), st.floats(1.0, 5.0), seed=st.integers(0, 9)
    ),
)


def elapsed_s(noise: Noise, clean_s: float, started_s: float = 0.0, seed: int = 0) -> float:
    return noise.elapsed_s(clean_s, started_s, CONFIG, np.random.default_rng(seed))


def back_to_back_s(noise: Noise, clean_s: float, runs: int) -> list[float]:
    now_s, taken = 0.0, []
    for _ in range(runs):
        taken.append(elapsed_s(noise, clean_s, now_s))
        now_s += taken[-1]
    return taken


@pytest.mark.parametrize("name", NOISES)
def test_the_same_run_takes_the_same_time(name: str) -> None:
    noise = find_noise(name)
    assert elapsed_s(noise, 36.0, 50.0, seed=3) == elapsed_s(noise, 36.0, 50.0, seed=3) > 0.0


@given(lengthening, times, times)
def test_interference_only_lengthens(noise: Interference | RandomInterference, clean_s: float, start_s: float) -> None:
    taken_s = elapsed_s(noise, clean_s, start_s)
    assert clean_s - 1e-6 <= taken_s <= clean_s * noise.slowdown + 1e-6


@given(lengthening, times, times, times)
def test_two_runs_in_a_row_take_as_long_as_one_of_both(
    noise: Noise, first_s: float, second_s: float, start_s: float
) -> None:
    first_end_s = start_s + elapsed_s(noise, first_s, start_s)
    second_end_s = first_end_s + elapsed_s(noise, second_s, first_end_s)
    assert second_end_s == pytest.approx(start_s + elapsed_s(noise, first_s + second_s, start_s))


def test_a_run_through_interference_by_hand() -> None:
    noise = Interference(100.0, busy_s=20.0, slowdown=2.0)
    assert elapsed_s(noise, 30.0, 30.0) == 30.0  # between two of them
    assert elapsed_s(noise, 30.0, 90.0) == 10.0 + 20.0 + 10.0  # into one and out of it
    assert elapsed_s(noise, 5.0, 105.0) == 10.0  # within one
    assert elapsed_s(Interference(50.0, busy_s=50.0, slowdown=3.0), 40.0, 7.0) == pytest.approx(120.0)


@pytest.mark.parametrize(
    ("period_s", "deviation_s", "disturbed"),
    [(60.0, 2.04, (1.0, 1.0)), (120.0, 5.65, (0.4, 0.8)), (300.0, 4.56, (0.1, 0.3))],
)
def test_interference_is_constant_unstable_or_an_impulse(
    period_s: float, deviation_s: float, disturbed: tuple[float, float]
) -> None:
    # Robert's thesis, table 5.5, for the default's runs of 36 s
    taken = np.array(back_to_back_s(Interference(period_s), 36.0, 300))
    assert taken.std() == pytest.approx(deviation_s, rel=0.1)
    assert disturbed[0] <= np.mean(taken > 36.5) <= disturbed[1]


def test_random_interference_comes_as_often_as_told() -> None:
    # with arrivals 120 s apart and 1 s each, a run of a day loses nearly 1 s of progress in 120 s of time
    noise = RandomInterference(120.0, busy_s=1.0, slowdown=1e9, seed=1)
    assert elapsed_s(noise, 10 * 86400.0) / (10 * 86400.0) == pytest.approx(120.0 / 119.0, rel=0.002)


def test_random_interference_goes_on_beyond_the_hour() -> None:
    # arrivals are drawn by the hour; with one every 3 s, somebody has come in the last 90 s and is still there
    noise = RandomInterference(3.0, busy_s=90.0, slowdown=2.0, seed=1)
    assert elapsed_s(noise, 1e-3, 3600.0) == pytest.approx(2e-3)


def test_random_interference_follows_its_seed_alone() -> None:
    taken = [back_to_back_s(RandomInterference(120.0, seed=seed), 20.0, 50) for seed in (1, 1, 2)]
    assert taken[0] == taken[1] != taken[2]
    assert elapsed_s(RandomInterference(120.0, seed=1), 20.0, seed=5) == taken[0][0]


def shared_runs_s(noise: Noise, configs: list[Config], runs: int) -> npt.NDArray[np.float64]:
    rng = np.random.default_rng(7)
    return np.array([[noise.elapsed_s(100.0, 0.0, config, rng) for _ in range(runs)] for config in configs])


def test_a_shared_cluster_varies_by_a_quarter_and_unequally() -> None:
    configs = [Config({"x": number}) for number in range(200)]
    runs = shared_runs_s(SharedCluster(), configs, 400)
    variations = runs.std(axis=1) / runs.mean(axis=1)
    assert runs.mean() == pytest.approx(100.0, rel=0.01)
    assert variations.mean() == pytest.approx(0.25, abs=0.01)
    expected = [SharedCluster().variation_of(config) for config in configs]
    assert np.corrcoef(variations, expected)[0, 1] > 0.9
    assert min(expected) < 0.17
    assert max(expected) > 0.33


def test_one_run_of_sixteen_is_stretched() -> None:
    far = SharedCluster(variation=5.6, stretch=100.0)
    steady = min((Config({"x": number}) for number in range(200)), key=far.variation_of)
    rng = np.random.default_rng(3)
    runs = np.array([far.elapsed_s(1.0, 0.0, steady, rng) for _ in range(20000)])
    assert np.mean(runs > 10 * np.median(runs)) == pytest.approx(1 / 16, rel=0.1)


def test_tukey_finds_about_one_outlier_in_sixteen_runs() -> None:
    # Robert's thesis, section 5.5.2
    runs = shared_runs_s(SharedCluster(), [Config({"x": number}) for number in range(1000)], 16)
    low, high = np.quantile(runs, [0.25, 0.75], axis=1, keepdims=True)
    outside = (runs > high + 1.5 * (high - low)) | (runs < low - 1.5 * (high - low))
    assert 0.6 < outside.sum(axis=1).mean() < 1.4


def test_shared_storage_delays_unequally_and_hardly_ever_helps() -> None:
    runs = shared_runs_s(SharedStorage(0.2), [Config({"x": number}) for number in range(200)], 400)
    variations = runs.std(axis=1) / runs.mean(axis=1)
    assert runs.mean() == pytest.approx(100.0, rel=0.01)
    assert variations.mean() == pytest.approx(0.2, abs=0.01)
    assert variations.min() < 0.14
    assert variations.max() > 0.26
    assert runs.min() > 100.0 * (1.0 - 1.4 * 0.2 / math.sqrt(2.0)) - 1e-9
    assert np.median(runs) < 95.0


def test_a_machine_of_two_speeds_has_nothing_in_between() -> None:
    runs = shared_runs_s(TwoSpeeds(slowdown=2.0, often=0.3, scatter=0.02), [CONFIG], 5000)
    slow = runs > 150.0
    assert np.mean(slow) == pytest.approx(0.3, abs=0.03)
    assert np.median(runs[slow]) == pytest.approx(200.0, rel=0.01)
    assert np.std(np.log(runs[~slow])) == pytest.approx(0.02, rel=0.1)
    assert not np.any((runs > 115.0) & (runs < 180.0))


def test_a_heavy_tail_has_its_mean_and_its_quantiles() -> None:
    rng = np.random.default_rng(0)
    mild = np.array([HeavyTail(0.3, shape=6.0).elapsed_s(10.0, 0.0, CONFIG, rng) for _ in range(20000)])
    assert mild.mean() == pytest.approx(10.0 / (1.0 - 0.3), rel=0.01)
    heavy = np.array([HeavyTail(0.2).elapsed_s(10.0, 0.0, CONFIG, rng) for _ in range(20000)]) - 10.0
    least_s = 0.7 * 0.2 / (0.8 * 1.7) * 10.0
    assert heavy.min() == pytest.approx(least_s, rel=0.01)
    for share in (0.5, 0.9, 0.99):
        assert np.quantile(heavy, share) == pytest.approx(least_s * (1 - share) ** (-1 / 1.7), rel=0.1)


def test_without_others_a_run_takes_its_own_time() -> None:
    assert elapsed_s(Quiet(), 12.5, 3.0) == 12.5
    assert elapsed_s(HeavyTail(0.0), 12.5) == 12.5
    assert elapsed_s(SharedCluster(variation=0.0, outliers=0.0), 12.5) == 12.5
    assert elapsed_s(SharedStorage(0.0), 12.5) == 12.5
    assert elapsed_s(TwoSpeeds(often=0.0, scatter=0.0), 12.5) == 12.5


@pytest.mark.parametrize(
    "build",
    [
        lambda: Interference(30.0),
        lambda: Interference(60.0, busy_s=-1.0),
        lambda: Interference(60.0, slowdown=0.5),
        lambda: Interference(math.nan),
        lambda: RandomInterference(0.0, seed=1),
        lambda: TwoSpeeds(slowdown=0.9),
        lambda: TwoSpeeds(often=1.1),
        lambda: TwoSpeeds(scatter=math.nan),
        lambda: SharedCluster(variation=0.1),
        lambda: SharedCluster(outliers=2.0),
        lambda: SharedStorage(1.1),
        lambda: SharedStorage(math.nan),
        lambda: HeavyTail(1.0),
        lambda: HeavyTail(0.2, shape=1.0),
        lambda: elapsed_s(Interference(60.0), math.inf),
        lambda: elapsed_s(Interference(60.0), 1.0, -1.0),
    ],
)
def test_impossible_noise_is_refused(build: Callable[[], object]) -> None:
    with pytest.raises(InvalidInputError):
        build()


def test_unknown_names_are_refused_with_the_known_ones() -> None:
    with pytest.raises(NotFoundError, match="every-60"):
        find_noise("loud")
