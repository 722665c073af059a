"""Runs on a machine that is sometimes fast and sometimes slow: the value of each configuration without that effect."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from luthier.arrays import BoolArray, FloatArray, IntArray
from luthier.learn.gaussian_process import GaussianProcess, Observations
from luthier.learn.scatter import scatter_of

# The constants were chosen by experiment: docs/research/2026-11-16-two-speeds.md.
_MOST = 300  # configurations: with more of them repeats are enough, and this would be slow
_ROUNDS = 15  # of fitting the process and the speeds in turn
_HELD_ROUNDS = 4  # at first, in which only the shares of the speeds change
_FITS = 1_500  # configurations in all rounds together; in further rounds the hyper-parameters stay the same
_SETTLED = 0.02  # a round that adds less to the log evidence is the last
_PARAMETERS = 3  # of a second speed: how frequent it is, its offset, its scatter
_BEYOND_DOUBT = 8.0  # log of the odds of 3,000 to 1; skewed noise alone has reached 1,300 to 1
_FEWEST = 4  # runs that each speed must have
_RAREST = 0.1  # share of all runs that each speed must have; rarer ones are outliers
_PRIOR_RUNS = 2.0  # how many runs the scatter common to both speeds is worth
_LEAST_VARIANCE = 1e-8
_LEAST_SHARE, _LEAST_CHANCE = 1e-6, 1e-300


def expected_at_two_speeds(x: FloatArray, groups: Sequence[FloatArray], ordered: BoolArray) -> FloatArray | None:
    """What each configuration gives on average, if its runs are those of a machine with two speeds; None if not.

    `x` has a row in the unit cube for each configuration and `groups` the runs of each, on a scale where noise adds.
    The speed of a run is random and does not depend on the configuration: a mixture of two normal distributions around
    a Gaussian process, fitted alternately (variational EM; Bishop 2006, section 10.2). Two speeds are accepted only if
    they explain the runs clearly better than one does, by Schwarz' criterion, if neither is rare, and if repeats show
    both: otherwise fast configurations could be mistaken for a fast machine.
    """
    if len(groups) > _MOST or all(len(group) < 2 for group in groups):
        return None
    runs = _Runs(x, np.concatenate(groups), np.repeat(np.arange(len(groups)), [len(group) for group in groups]))
    one = _explained(GaussianProcess(ordered), runs, _one_speed(groups), np.ones((1, len(runs.y))))
    two = _two_speeds(runs, groups, ordered)
    # Schwarz 1978: half the logarithm of the number of runs for each parameter more.
    margin = 0.5 * _PARAMETERS * math.log(len(runs.y)) + _BEYOND_DOUBT
    better = two.evidence > one.evidence + margin
    return two.expected if better and _both_are_seen(runs, two.chances[1] > 0.5) else None


@dataclass(frozen=True, slots=True)
class _Runs:
    """All runs one after the other; run i is of the configuration at row `of[i]` of `x`."""

    x: FloatArray
    y: FloatArray
    of: IntArray

    @property
    def counts(self) -> FloatArray:
        """How many runs each configuration has."""
        return self.totals(np.ones(len(self.y)))

    def totals(self, each: FloatArray) -> FloatArray:
        """The sum over the runs of each configuration."""
        return np.asarray(np.bincount(self.of, each, minlength=len(self.x)), dtype=np.float64)


@dataclass(frozen=True, slots=True)
class _Misses:
    """`by` how much each run missed what was expected of its configuration, and the variance of that: its `doubt`."""

    by: FloatArray
    doubt: FloatArray

    @staticmethod
    def of(runs: _Runs, expected: FloatArray, variance: FloatArray) -> "_Misses":
        """An entry for each run from one for each configuration."""
        return _Misses(runs.y - expected[runs.of], variance[runs.of])


@dataclass(frozen=True, slots=True)
class _Speeds:
    """How a run misses what is expected of its configuration; an entry for each speed of the machine."""

    share: FloatArray
    offset: FloatArray
    variance: FloatArray

    def chances(self, misses: _Misses) -> FloatArray:
        """The chance of each speed, a row for it, of every run."""
        # E step (Bishop 2006, section 10.2.1): what is expected is uncertain, which adds its variance to each square.
        squares = (misses.by - self.offset[:, None]) ** 2 + misses.doubt
        logs = np.log(self.share / np.sqrt(self.variance))[:, None] - 0.5 * squares / self.variance[:, None]
        chances = np.exp(logs - logs.max(axis=0))
        return np.asarray(chances / chances.sum(axis=0), dtype=np.float64)

    @staticmethod
    def of(chances: FloatArray, misses: _Misses) -> "_Speeds":
        """The most probable ones; the offsets are 0 on average, as a shift of all is that of the configurations."""
        # M step: means weighted by the chances; each variance is drawn towards the one of all runs.
        counts = np.maximum(chances.sum(axis=1), _LEAST_SHARE)
        share, offset = counts / counts.sum(), chances @ misses.by / counts
        squares = np.sum(chances * ((misses.by - offset[:, None]) ** 2 + misses.doubt), axis=1)
        common = _PRIOR_RUNS * squares.sum() / counts.sum()
        variance = np.maximum((squares + common) / (counts + _PRIOR_RUNS), _LEAST_VARIANCE)
        return _Speeds(share, offset - share @ offset, variance)


@dataclass(frozen=True, slots=True)
class _Explanation:
    """What is expected of each configuration, with its variance, and how well the speeds explain the runs."""

    expected: FloatArray
    variance: FloatArray
    chances: FloatArray
    evidence: float


def _both_are_seen(runs: _Runs, slow: BoolArray) -> bool:
    """Whether both speeds are frequent enough, and as many configurations were seen at both as chance predicts.

    With a share p of slow runs, n of them are at both speeds with the chance 1 - pⁿ - (1 - p)ⁿ; half as many suffice.
    """
    share = float(np.mean(slow))
    counts, slow_runs = runs.counts, runs.totals(slow.astype(np.float64))
    seen = int(np.sum((slow_runs > 0.0) & (slow_runs < counts)))
    by_chance = float(np.sum(1.0 - share**counts - (1.0 - share) ** counts))
    rarer = min(share, 1.0 - share) * len(slow)
    return rarer >= max(_FEWEST, _RAREST * len(slow)) and seen >= max(1.0, 0.5 * by_chance)


def _one_speed(groups: Sequence[FloatArray]) -> _Speeds:
    """The scatter of repeats around their mean."""
    return _Speeds(np.ones(1), np.zeros(1), np.array([max(scatter_of(groups).common, _LEAST_VARIANCE)]))


def _two_speeds(runs: _Runs, groups: Sequence[FloatArray], ordered: BoolArray) -> _Explanation:
    """Fit the process given the speeds, then the speeds given the process, until the evidence no longer changes.

    It starts with a process that treats as noise all that neighbours do not share, and with the distance of the speeds
    taken from the repeats; in the first rounds only their shares change.
    """
    counts, apart = runs.counts, _apart(groups)
    middles = np.array([np.median(group) for group in groups])
    process = GaussianProcess(ordered)
    process.fit(Observations(runs.x, middles, 1.0 / counts, np.zeros(len(counts))))
    expected, deviation = process.predict(runs.x)
    misses = _Misses.of(runs, expected, deviation**2)
    # To begin with: equal shares, each speed half of the distance from the middle, a quarter of it as deviation.
    speeds = _Speeds(np.full(2, 0.5), np.array([-0.5, 0.5]) * apart, np.full(2, max(apart**2 / 16.0, _LEAST_VARIANCE)))
    chances, evidence, process = speeds.chances(misses), -math.inf, GaussianProcess(ordered)
    for turn in range(_ROUNDS):
        likely = _Speeds.of(chances, misses)
        speeds = likely if turn >= _HELD_ROUNDS else replace(speeds, share=likely.share)
        known = _explained(process, runs, speeds, chances, fit=turn * len(runs.x) < _FITS)
        # In the first rounds the evidence may stand still because the speeds are held.
        if turn > _HELD_ROUNDS and abs(known.evidence - evidence) < _SETTLED:
            break
        evidence = known.evidence
        misses = _Misses.of(runs, known.expected, known.variance)
        chances = speeds.chances(misses)
    return known


def _apart(groups: Sequence[FloatArray]) -> float:
    """How far two runs of a configuration are apart if they were at different speeds: the larger differences."""
    pairs = [np.abs(group[:, None] - group)[np.triu_indices(len(group), 1)] for group in groups]
    differences = np.concatenate(pairs)
    return float(np.mean(differences[differences >= 0.5 * differences.max()]))


def _explained(
    process: GaussianProcess, runs: _Runs, speeds: _Speeds, chances: FloatArray, *, fit: bool = True
) -> _Explanation:
    """Fit (or else only condition) the process on runs made at these speeds with these chances.

    To the process they are one measurement of each configuration: the mean of its runs, each moved back by the offsets
    of its speeds, weighted by their precision. The evidence is what that measurement has, plus what was left out of it:
    log π - log r - ½ log 2πv for a speed with share π, chance r and variance v, and the squares around the mean.
    """
    precision = chances / speeds.variance[:, None]
    moved = runs.y - speeds.offset[:, None]
    # A product of normal densities is one normal density: precisions add up, means are weighted by them.
    weight = runs.totals(precision.sum(axis=0))
    mean = runs.totals(np.sum(precision * moved, axis=0)) / weight
    data = Observations(runs.x, mean, np.ones(len(mean)), 1.0 / np.sqrt(weight))
    (process.fit if fit else process.condition)(data)
    expected, deviation = process.without_error(data)
    density = np.log(speeds.share / np.sqrt(2.0 * math.pi * speeds.variance))[:, None]
    logs = density - np.log(np.maximum(chances, _LEAST_CHANCE))
    squares = float(np.sum(precision * (moved - mean[runs.of]) ** 2))
    left_out = float(np.sum(chances * logs)) - 0.5 * squares + 0.5 * float(np.sum(np.log(2.0 * math.pi / weight)))
    return _Explanation(expected, deviation**2, chances, process.log_likelihood() + left_out)
