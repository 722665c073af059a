"""The simulated program of the benchmark of on-line tuning."""

import numpy as np
import pytest
from benchmarks.online_program import Program, RandomStrategy, pareto

from benchmarks import online, online_surfaces
from luthier.online.registry import make_strategy
from luthier.online.strategies.sampling import FixedSampling


def test_noise_takes_the_share_rho_of_the_machine() -> None:
    factors = pareto(0.3)(np.random.default_rng(1), (400_000,))
    assert factors.mean() == pytest.approx(1.0 / 0.7, rel=0.02)
    assert factors.min() == pytest.approx(1.0 + 0.7 * 0.3 / (0.7 * 1.7), rel=1e-4)


def test_a_surface_is_the_same_at_every_call_and_has_local_minima() -> None:
    surface, again = online_surfaces.rough(3), online_surfaces.rough(3)
    configs = surface.space.sample(50, np.random.default_rng(1))
    assert [surface.time(config) for config in configs] == [again.time(config) for config in configs]
    minima = 0
    for config in surface.space.sample(300, np.random.default_rng(2)):
        minima += all(surface.time(near) > surface.time(config) for near in surface.space.neighbours(config))
    assert minima > 2


def test_the_total_counts_the_slowest_process_of_every_step() -> None:
    surface = online_surfaces.smooth(1)
    strategy = make_strategy("pro", surface.space, seed=1, sampling=FixedSampling(1))
    total = Program(surface, pareto(0.0), clients=6, steps=1).total_time(strategy, np.random.default_rng(1))
    first = make_strategy("pro", surface.space, seed=1, sampling=FixedSampling(1))
    assert total == max(surface.time(first.next(f"client {number}")) for number in range(6))


def test_after_convergence_every_step_takes_as_long_as_the_best() -> None:
    surface = online_surfaces.smooth(1)
    random = RandomStrategy(surface.space, seed=1, reports=0)
    total = Program(surface, pareto(0.0), clients=2, steps=10).total_time(random, np.random.default_rng(1))
    assert total == pytest.approx(10 * surface.time(surface.space.default))


def test_more_samples_cost_time_without_noise_and_the_adaptive_number_does_not() -> None:
    surfaces = [online.rough(number) for number in range(4)]
    one, three, adaptive = (online.ntt(online.pro(count), surfaces, 0.0, 6, 4) for count in (1, 3, None))
    assert one < three
    assert adaptive < 1.02 * one


def test_auto_is_faster_than_rank_ordering_on_rough_surfaces() -> None:
    surfaces = [online.rough(number) for number in range(6)]
    for rho in (0.0, 0.2):
        best = min(online.ntt(online.pro(count), surfaces, rho, 6, 6) for count in (1, 2, 3))
        assert online.ntt(online.auto, surfaces, rho, 6, 6) < best
