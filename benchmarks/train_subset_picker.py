"""Trains the networks of the learned subset picker, and writes the file that the package ships.

    python -m benchmarks.train_subset_picker src/luthier/policies/subset_picker.json

The same seed gives the same bytes. The searches are genetic ones on generated and simulated systems
(`benchmarks/picker_systems.py`); measured tables are never used here, so that they can judge the result.
"""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.picker_systems import System, generated, principal_impact, simulated
from luthier.learn.adam import Adam
from luthier.optimizers import make_optimizer
from luthier.policies.base import SearchSoFar, SubsetPicker, TunedStep
from luthier.policies.learned_subset import Recorder, View
from luthier.policies.picker_networks import Decision, Networks, learn, new_networks
from luthier.trial import Completed, Estimate, Trial

RUNS = 90
"""Configurations that each search tries."""

_SWEEP, _FIRST = 200, 12


def search(system: System, picker: SubsetPicker | None, *, seed: int, runs: int = RUNS) -> list[float]:
    """The best true value after each run of a genetic search."""
    rng = np.random.default_rng([seed, 31])
    optimizer = make_optimizer("genetic", system.space, seed=seed, picker=picker)
    curve: list[float] = []
    config = system.space.default
    for _ in range(runs):
        value = system.measure(config, rng)
        optimizer.tell([Trial(config, (Completed(value),), Estimate(value, 1))])
        curve.append(min([system.true(config), *curve[-1:]]))
        suggested = optimizer.ask(1, [])
        if not suggested:
            break
        config = suggested[0]
    return curve


def start_by_sweeps(networks: Networks, systems: Sequence[System], *, steps: int, seed: int) -> None:
    """Teach the observer, before any search, what a principal component analysis says of whole sweeps."""
    inputs, impacts = [], []
    for at, system in enumerate(systems):
        rng = np.random.default_rng([seed, at, 37])
        first = [system.space.default, *system.space.sample(_FIRST, rng)]
        values = [system.measure(config, rng) for config in first]
        trials = [Trial(c, (Completed(v),), Estimate(v, 1)) for c, v in zip(first, values, strict=True)]
        whole = TunedStep(system.space.names, 0, None)
        inputs.append(View.of(SearchSoFar(system.space, trials, [whole], len(trials), min(values))).parameters)
        impacts.append(principal_impact(system, _SWEEP, rng))
    x, wanted = np.concatenate(inputs), np.concatenate(impacts)[:, None]
    rng, adam = np.random.default_rng([seed, 41]), Adam(networks.observer.weights, 3e-3)
    for _ in range(steps):
        rows = rng.integers(len(x), size=256)
        adam.step(networks.observer.squared_error(x[rows], wanted[rows])[1])


def train(*, seed: int, rounds: int, searches: int, steps: int, with_simulated: bool = True) -> Networks:
    """Networks after `rounds` of so many searches each; the first ones explore most."""
    networks = new_networks(np.random.default_rng([seed, 43]))
    kept = simulated() if with_simulated else []
    fresh = [generated(1_000_000 * (seed + 1) + at) for at in range(rounds * searches)]
    start_by_sweeps(networks, [*kept, *fresh[: 10 * searches]], steps=steps, seed=seed)
    episodes: list[list[Decision]] = []
    for turn in range(rounds):
        systems = [*fresh[turn * searches : (turn + 1) * searches], *kept]
        for at, system in enumerate(systems):
            rng = np.random.default_rng([seed, turn, at, 47])
            recorder = Recorder(networks, explore=max(0.15, 0.9 * (1.0 - turn / max(rounds - 1, 1))), rng=rng)
            search(system, recorder, seed=int(rng.integers(1 << 30)))
            episodes.append(recorder.decisions(system.best))
        learn(networks, episodes, steps=steps, rate=1e-3, seed=seed + turn)
        print(f"round {turn + 1} of {rounds}: {len(episodes)} searches", flush=True)
    return networks


def main() -> None:
    """Train, and write the weights."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--searches", type=int, default=40)
    parser.add_argument("--steps", type=int, default=1500)
    given = parser.parse_args()
    networks = train(seed=given.seed, rounds=given.rounds, searches=given.searches, steps=given.steps)
    given.file.write_text(json.dumps(networks.to_json()) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
