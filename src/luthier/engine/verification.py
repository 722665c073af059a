"""The comparison at the end: default and winner run in pairs until the speed-up is known."""

import random
from collections.abc import Sequence
from dataclasses import dataclass

from luthier.measures.comparison import Comparison, compare
from luthier.spec import Goal
from luthier.trial import Completed, Config, Lost, Run

PRECISE_ENOUGH = 0.01
"""An interval of the speed-up at most this far on either side of it needs no more runs."""

CONFIDENCE = 0.95
CONFIDENCE_TO_END_EARLY = 0.995
"""Looking after every pair would inflate the chance of a false claim; the stricter level keeps it below 5 % in all."""

FEWEST_PAIRS = 3
MOST_PAIRS = 15


@dataclass(frozen=True, slots=True)
class Duel:
    """The completed pairs of runs of the default and of the winner, and how often each of them failed to complete."""

    default_values: tuple[float, ...]
    winner_values: tuple[float, ...]
    default_failures: int
    winner_failures: int

    @property
    def pairs(self) -> int:
        """How many pairs are complete."""
        return min(len(self.default_values), len(self.winner_values))

    def compare(self, goal: Goal, confidence: float = CONFIDENCE) -> Comparison | None:
        """The speed-up over all complete pairs; None before the first."""
        if self.pairs == 0:
            return None
        default, winner = self.default_values[: self.pairs], self.winner_values[: self.pairs]
        return compare(default, winner, confidence=confidence, goal=goal)


def duel_of(runs: Sequence[Run], default: Config, winner: Config) -> Duel:
    """What the verification runs of these two configurations have shown so far."""
    ended = [run for run in runs if run.purpose == "verify" and run.outcome is not None]

    def side(config: Config) -> tuple[tuple[float, ...], int]:
        outcomes = [run.outcome for run in ended if run.config == config]
        values = tuple(outcome.value for outcome in outcomes if isinstance(outcome, Completed))
        return values, sum(not isinstance(outcome, Completed | Lost) for outcome in outcomes)

    (default_values, default_failures), (winner_values, winner_failures) = side(default), side(winner)
    return Duel(default_values, winner_values, default_failures, winner_failures)


def is_settled(duel: Duel, goal: Goal, most_pairs: int) -> bool:
    """Whether more pairs would tell nothing that matters: enough is known, or a configuration turned out to fail."""
    if duel.default_failures or duel.winner_failures:
        return True
    if len(duel.default_values) != len(duel.winner_values):
        return False
    usual = duel.compare(goal)
    if duel.pairs >= most_pairs:
        return True
    if usual is None or usual.low is None or usual.high is None:
        return False
    if usual.low == usual.high:
        return True  # two pairs without any difference between repeats: nothing here is random
    if duel.pairs < FEWEST_PAIRS:
        return False
    strict = duel.compare(goal, CONFIDENCE_TO_END_EARLY)
    precise = max(usual.high - usual.speedup, usual.speedup - usual.low) <= PRECISE_ENOUGH
    return precise or (strict is not None and strict.decided)


def goes_first(seed: int, pair: int) -> str:
    """Who of `default` and `winner` starts a pair: by lot, so that interference with a rhythm favours neither."""
    return "default" if random.Random(f"{seed} {pair}").random() < 0.5 else "winner"  # noqa: S311 - a lot, not a secret
