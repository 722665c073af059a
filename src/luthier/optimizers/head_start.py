"""How a search uses what is known from earlier experiments: points drawn from it, and how far to trust it."""

import math
from collections.abc import Sequence, Set
from functools import cached_property
from typing import Protocol

import numpy as np

from luthier.arrays import FloatArray
from luthier.designs import latin_hypercube
from luthier.learn.density import KernelDensity
from luthier.learn.tabular_vae import TabularVae
from luthier.optimizers.earlier import Earlier, EarlierTrial, units_of
from luthier.optimizers.history import History
from luthier.optimizers.informed import earlier_successes, earlier_values
from luthier.space import Space
from luthier.trial import Config, Trial

# The constants were chosen by experiment: docs/research/2026-11-18-transfer.md.
_FEWEST = 5  # trials that a density is learned from
_BELIEF = 3.0  # the trust that a search begins with is halved by so many comparisons that show no difference
_ROUNDS = 8  # of drawing, until enough of what was drawn is valid
_DRAWS = 4  # for each configuration that is wanted, because some are taken already


class Density(Protocol):
    """A distribution over the unit cube."""

    def sample(self, count: int, rng: np.random.Generator) -> FloatArray:
        """Draw points."""
        ...


class InformedSampler:
    """Draws configurations that resemble the best ones of earlier experiments."""

    def __init__(self, space: Space, earlier: Earlier, *, seed: int) -> None:
        self._space = space
        # Dorier et al. 2022, algorithm 1: the best q % of the earlier history; a VAE is one way to learn their density.
        rows = units_of(space, best_share(earlier))
        sizes = np.array([float(parameter.size or 0) for parameter in space.parameters])
        ordered = np.asarray(space.ordered, dtype=np.bool_)
        self._near = KernelDensity(ordered, sizes, rows)
        self._density: Density = self._near
        if earlier.kind == "vae":
            self._density = TabularVae(ordered, sizes, rows, seed=seed)

    def codes(self, count: int, rng: np.random.Generator) -> FloatArray:
        """Codes of `count` valid configurations; drawn uniformly as far as constraints exclude the informed ones."""
        found = np.empty((0, len(self._space.parameters)))
        for _ in range(_ROUNDS):
            codes = self._space.from_unit(self._density.sample(count, rng))
            # What breaks a constraint is dropped, not repaired: repairs would move the density to the borders.
            found = np.concatenate((found, codes[self._space.feasible(codes)]))
            if len(found) >= count:
                return found[:count]
        return np.concatenate((found, self._space.sample_codes(count - len(found), rng)))

    def trust(self, units: FloatArray, trials: Sequence[Trial]) -> float:
        """How far informed points have turned out to be better than others, from 1 (at the start) down to 0.

        Told trials at `units` count as informed where the earlier density is above the uniform one. The chance that an
        informed one is better than another (Mann & Whitney 1947) is 1/2 if the earlier experiments say nothing.
        """
        values = np.array([np.inf if t.estimate is None else t.estimate.value for t in trials])
        if len(values) == 0:
            return 1.0
        informed = self._near.log_density(units) > 0.0
        ours, others = values[informed], np.sort(values[~informed])
        compared, pairs = min(len(ours), len(others)), len(ours) * len(others)
        not_above, below = (np.searchsorted(others, ours, side) for side in ("right", "left"))
        won, drawn = pairs - int(not_above.sum()), int((not_above - below).sum())
        # Mann & Whitney's U over the number of pairs; a tie counts as half.
        better = won / pairs + 0.5 * drawn / pairs if compared else 0.5
        # The belief counts as `_BELIEF` comparisons that were all won. A chance of 1/2 gives no trust.
        chance = (_BELIEF + compared * better) / (_BELIEF + compared)
        return float(np.clip(2.0 * chance - 1.0, 0.0, 1.0))


class HeadStart:
    """What one search takes from earlier experiments; models are fitted when they are first needed.

    `first` are configurations to begin with. `sampler` draws informed configurations, or is None. `values` and
    `successes` predict, and are None if the kind of transfer does not use them.
    """

    def __init__(self, space: Space, earlier: Earlier, *, seed: int) -> None:
        self._space, self._earlier, self._seed = space, earlier, seed
        self.first = earlier.first(space)
        learns = earlier.kind != "best"
        self.values = earlier_values(space, earlier) if earlier.kind == "model" else None
        self.successes = earlier_successes(space, earlier, seed=seed) if learns else None
        self.draws_candidates = earlier.kind in ("density", "vae")

    @cached_property
    def sampler(self) -> InformedSampler | None:
        """Draws configurations like the best earlier ones; None without any."""
        if self._earlier.kind == "best" or not best_share(self._earlier):
            return None
        return InformedSampler(self._space, self._earlier, seed=self._seed)

    def is_helpful(self, history: History) -> bool:
        """Whether the configurations in `first` are better than the default, by the median of those that were told."""
        values = {each.config: math.inf if each.estimate is None else each.estimate.value for each in history.trials}
        told = [values[config] for config in self.first if config in values]
        return not told or float(np.median(told)) < values.get(self._space.default, math.inf)

    def trust(self, history: History) -> float:
        """How far to trust informed configurations, from 0 to 1."""
        if self.sampler is None or not self.is_helpful(history):
            return 0.0
        return self.sampler.trust(history.units(), history.trials)

    def draw(self, count: int, taken: Set[Config], rng: np.random.Generator) -> list[Config]:
        """Up to `count` distinct informed configurations that are not taken; fewer if few are found."""
        if count <= 0 or self.sampler is None:
            return []
        drawn = self._space.configs(self.sampler.codes(_DRAWS * count, rng))
        return [config for config in dict.fromkeys(drawn) if config not in taken][:count]

    def design(self, space: Space, count: int, rng: np.random.Generator) -> list[Config]:
        """A design of informed configurations (`luthier.designs.Design`)."""
        return self.draw(count, frozenset(), rng) or latin_hypercube(space, count, rng)


def head_start(space: Space, earlier: Earlier | None, *, seed: int) -> HeadStart | None:
    """What a search takes from earlier experiments; None if nothing is known."""
    return HeadStart(space, earlier, seed=seed) if earlier is not None and earlier.trials else None


def best_share(earlier: Earlier) -> list[EarlierTrial]:
    """The best trials of each source, in the share that is learned from."""
    chosen: list[EarlierTrial] = []
    for source in range(earlier.sources):
        measured = sum(trial.score is not None for trial in earlier.of_source(source))
        # By source, because values of different systems cannot be compared.
        chosen += earlier.best(source, max(_FEWEST, round(earlier.share * measured)))
    return chosen
