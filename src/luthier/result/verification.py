"""The final comparison: default and winner run in pairs until the speed-up is known."""

import random
from collections.abc import Sequence
from dataclasses import dataclass

from luthier.errors import InvalidInputError
from luthier.spec.experiment import Experiment
from luthier.spec.objectives import Goal
from luthier.statistics.comparison import Comparison, compare
from luthier.store.base import Record
from luthier.trial import Completed, Config, Lost, Run

PRECISE_ENOUGH = 0.01
"""No more runs are needed when both ends of the interval are this close to the speed-up, as a part of it."""

CONFIDENCE = 0.95
CONFIDENCE_TO_END_EARLY = 0.995
"""Testing after every pair increases the chance of a false claim; this stricter level keeps it below 5 % in total."""

FEWEST_PAIRS = 3
MOST_PAIRS = 15


@dataclass(frozen=True, slots=True)
class Duel:
    """The completed pairs of runs of the default and the winner, and how many runs of each did not complete.

    `estimator` is the one for the values of each side. `repeatable` tells whether all runs of each configuration,
    including the search, gave exactly the same value.
    """

    default_values: tuple[float, ...]
    winner_values: tuple[float, ...]
    default_failures: int
    winner_failures: int
    estimator: str
    repeatable: bool

    @property
    def pairs(self) -> int:
        """How many pairs are complete."""
        return min(len(self.default_values), len(self.winner_values))

    @property
    def has_failures(self) -> bool:
        """Whether a run of either configuration failed."""
        return bool(self.default_failures or self.winner_failures)

    def compare(self, goal: Goal, confidence: float = CONFIDENCE) -> Comparison | None:
        """The speed-up over all complete pairs; None before the first."""
        if self.pairs == 0:
            return None
        default, winner = self.default_values[: self.pairs], self.winner_values[: self.pairs]
        return compare(
            default,
            winner,
            estimator=self.estimator,
            confidence=confidence,
            goal=goal,
            repeatable=self.repeatable,
        )


def check_verifiable(record: Record) -> None:
    """Raise if a running experiment cannot be asked to stop the search and verify what it found."""
    if record.status == "queued":
        raise InvalidInputError(f"experiment {record.id} is queued; the search can be stopped while it runs")
    experiment = Experiment.from_json(record.settings)
    if experiment.has_front:
        raise InvalidInputError(
            f"experiment {record.id} has several measures, and a Pareto front is not verified; stop it instead"
        )
    if experiment.verify_pairs == 0:
        raise InvalidInputError(
            f"experiment {record.id} has verify: 0, which disables the verification; stop it instead"
        )


def duel_of(runs: Sequence[Run], default: Config, winner: Config, estimator: str) -> Duel:
    """The verification runs of these two configurations so far."""
    sides = [[run for run in runs if run.config == config] for config in (default, winner)]
    of_default, of_winner = ([run for run in side if run.purpose == "verify"] for side in sides)
    return Duel(
        default_values=_values(of_default),
        winner_values=_values(of_winner),
        default_failures=_failures(of_default),
        winner_failures=_failures(of_winner),
        estimator=estimator,
        repeatable=all(len(set(_values(side))) <= 1 for side in sides),
    )


def with_verification(experiment: Experiment, runs: Sequence[Run], number: int) -> list[Run]:
    """The runs of the search, and those of one verification: the first one has the number 0.

    There are several if the search was continued with a larger budget. Each counts for itself.
    """
    return [run for run in runs if run.purpose != "verify" or experiment.round_of(run.submit_order) == number]


def _values(runs: Sequence[Run]) -> tuple[float, ...]:
    return tuple(run.outcome.value for run in runs if isinstance(run.outcome, Completed))


def _failures(runs: Sequence[Run]) -> int:
    return sum(run.outcome is not None and not isinstance(run.outcome, Completed | Lost) for run in runs)


def is_settled(duel: Duel, goal: Goal, most_pairs: int) -> bool:
    """Whether no more pairs are needed: the speed-up is known well enough, or a configuration failed."""
    if duel.has_failures:
        return True
    if len(duel.default_values) != len(duel.winner_values):
        return False
    if duel.pairs >= most_pairs:
        return True
    usual, strict = duel.compare(goal), duel.compare(goal, CONFIDENCE_TO_END_EARLY)
    if duel.pairs < FEWEST_PAIRS or usual is None or usual.low is None or usual.high is None:
        return False
    farthest = max(usual.high - usual.speedup, usual.speedup - usual.low)
    values = (*duel.default_values, *duel.winner_values)
    unit = max(1.0, usual.speedup) if usual.kind == "ratio" else max(map(abs, values))
    return farthest <= PRECISE_ENOUGH * unit or (strict is not None and strict.decided)


def goes_first(seed: int, pair: int) -> str:
    """Which of `default` and `winner` runs first in a pair: at random, because interference may be periodic."""
    return "default" if random.Random(f"{seed} {pair}").random() < 0.5 else "winner"  # noqa: S311 - not a secret
