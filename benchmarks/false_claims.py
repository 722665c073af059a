"""How often luthier claims an improvement where there is none: experiments on noisy machines, in virtual time.

    python -m benchmarks.false_claims --experiments 1000

Every configuration takes 20 s alone on the machine, so an improvement that is stated is false.
"""

import argparse
import sys
from collections.abc import Sequence

import numpy as np

from luthier.engine.session import carry_on
from luthier.runners.replay import Answers, ReplayedRun, ReplayRunner
from luthier.space import Choice, Integer, Space
from luthier.spec.experiment import Experiment
from luthier.spec.objectives import Objective
from luthier.store import open_store
from luthier.trial import Config
from testbeds.noise import NOISES, fingerprint

CLEAN_S = 20.0
SPACE = Space(Integer("threads", 1, 16), Choice("mode", ["a", "b", "c"]), Integer("depth", 1, 64, step=2, scale="log"))


def machine(noise: str, seed: int) -> Answers:
    """A machine on which all configurations are equal; the experiment starts at a random time."""
    began_s = float(np.random.default_rng([seed, 1]).uniform(0.0, 3600.0))

    def answer(config: Config, repeat: int, now_s: float) -> ReplayedRun:
        rng = np.random.default_rng([seed, fingerprint(config), repeat])
        elapsed_s = NOISES[noise].elapsed_s(CLEAN_S, began_s + now_s, config, rng)
        return ReplayedRun(elapsed_s, elapsed_s)

    return answer


def states_an_improvement(noise: str, seed: int, optimizer: str, budget: int) -> bool:
    """Tune the machine once."""
    experiment = Experiment(
        space=SPACE, objectives=(Objective("returned"),), optimizer=optimizer, seed=seed, budget=budget
    )
    store = open_store("memory:")
    record = store.create(noise, experiment.to_json(), 0.0)
    runner = ReplayRunner(machine(noise, seed))
    _, result = carry_on(store, record, experiment, runner, virtual_clock=runner.clock)
    return result.improved


def main(words: Sequence[str] | None = None) -> int:
    """Print the share of false claims under each noise; the exit code is 1 if one of them is above 5 %."""
    parser = argparse.ArgumentParser(prog="benchmarks.false_claims", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--experiments", type=int, default=1000, help="under each noise (default 1000)")
    parser.add_argument("--optimizer", default="random", help="the search (default random, the fastest)")
    parser.add_argument("--budget", type=int, default=40, help="runs of an experiment (default 40)")
    parser.add_argument("--noises", nargs="+", default=list(NOISES), choices=list(NOISES), help="default: all")
    chosen = parser.parse_args(words)
    worst = 0.0
    print("| noise | experiments | false improvements |\n| --- | --- | --- |")
    for noise in chosen.noises:
        claims = [
            states_an_improvement(noise, seed, chosen.optimizer, chosen.budget) for seed in range(chosen.experiments)
        ]
        share = sum(claims) / len(claims)
        worst = max(worst, share)
        print(f"| {noise} | {len(claims)} | {share:.1%} |", flush=True)
    return int(worst >= 0.05)


if __name__ == "__main__":
    sys.exit(main())
