"""A genetic search: two parents, one offspring at a time."""

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, TypeAlias

import numpy as np

from luthier.arrays import FloatArray
from luthier.errors import InvalidInputError
from luthier.optimizers.history import History
from luthier.optimizers.option_checks import check_count, check_known, check_share
from luthier.optimizers.start import Start, start_size
from luthier.optimizers.vicinity import nearest_free, step
from luthier.space import Space
from luthier.trial import Config, Trial

Selection: TypeAlias = Literal["tournament", "roulette"]
Crossover: TypeAlias = Literal["one-point", "two-point"]

_TRIES = 10  # offspring, before the nearest free configuration is taken


class GeneticSearch:
    """Breeds new configurations from good ones (Robert 2022, algorithm 2).

    The first `population` configurations are a Latin hypercube. From then on the population holds the `elite` best of
    all that was measured, suggested or not, and the latest of the rest. Each step selects two parents (the best of
    `tournament` drawn ones, or by roulette over the ranks), crosses them, and with the chance `mutation` moves the
    offspring one step. If the offspring is taken or breaks a constraint, this is repeated a few times; then the nearest
    free configuration replaces it.
    """

    def __init__(  # noqa: PLR0913 - options are explicit keywords
        self,
        space: Space,
        *,
        seed: int,
        budget: int | None = None,
        population: int = 10,
        elite: int = 5,
        selection: Selection = "tournament",
        tournament: int = 3,
        crossover: Crossover = "one-point",
        mutation: float = 0.5,
    ) -> None:
        check_count("genetic", "population", population, 2)
        check_count("genetic", "elite", elite, 0)
        if elite > population:
            raise InvalidInputError(f"optimizer genetic: elite {elite} is above population {population}; lower it")
        check_count("genetic", "tournament", tournament, 1)
        check_known("genetic", "selection", selection, ("tournament", "roulette"))
        check_known("genetic", "crossover", crossover, CROSSOVERS)
        check_share("genetic", "mutation", mutation)
        self._history, self._seed = History(space), seed
        self._start = Start(space, start_size(population, budget, least=2), seed=seed)
        self._population, self._elite = population, elite
        self._tournament = tournament if selection == "tournament" else None
        self._cross, self._mutation = CROSSOVERS[crossover], mutation

    def ask(self, count: int, running: Sequence[Config]) -> list[Config]:
        """Suggest up to `count` configurations; an empty answer while nothing runs means that none is left."""
        rng = self._history.generator(self._seed, running)
        taken = self._history.taken(running)
        chosen = self._start.next(count, taken)
        taken.update(chosen)
        parents = self._ranked_population()
        while len(chosen) < count and (offspring := self._offspring(parents, taken, rng)) is not None:
            chosen.append(offspring)
            taken.add(offspring)
        return chosen

    def tell(self, finished: Sequence[Trial]) -> None:
        """Learn from trials; those without a number have no offspring."""
        self._history.tell(finished)

    def _ranked_population(self) -> tuple[FloatArray, FloatArray]:
        """The codes and values of the population, the fittest first; of equals, the earlier."""
        trials = enumerate(self._history.trials)
        measured = [(trial.estimate.value, row) for row, trial in trials if trial.estimate is not None]
        ranked = sorted(measured)
        # The elite are the best of all time; the others are the latest, so that the population moves on.
        latest = sorted(ranked[self._elite :], key=lambda pair: -pair[1])
        chosen = sorted([*ranked[: self._elite], *latest[: self._population - self._elite]])
        rows = [row for _, row in chosen]
        return self._history.codes()[rows], np.array([value for value, _ in chosen])

    def _offspring(
        self, ranked: tuple[FloatArray, FloatArray], taken: set[Config], rng: np.random.Generator
    ) -> Config | None:
        space, (codes, values) = self._history.space, ranked
        if len(codes) == 0:
            return next(iter(space.sample(1, rng, exclude=taken)), None)
        for _ in range(_TRIES):
            child = self._child(codes, values, rng)
            if space.feasible(child)[0] and (config := space.decode(child[0])) not in taken:
                return config
        return nearest_free(space, child[0], taken, rng)

    def _child(self, codes: FloatArray, values: FloatArray, rng: np.random.Generator) -> FloatArray:
        if self._tournament is None:
            # Robert 2022, algorithm 2: selection, crossover, mutation.
            first, second = roulette(values, rng)
        else:
            first, second = tournament(len(values), self._tournament, rng)
        child = self._history.space.within(self._cross(codes[first], codes[second], rng)[None, :])
        if rng.random() < self._mutation:
            # Robert 2022, definition 12 and below: a step to a neighbouring point of the grid.
            moved = np.zeros(child.shape, dtype=np.bool_)
            moved[0, _movable_column(self._history.space, rng)] = True
            child = step(self._history.space, child, moved, rng)
        return child


def _movable_column(space: Space, rng: np.random.Generator) -> int:
    columns = np.flatnonzero(space.movable)
    return int(rng.choice(columns)) if len(columns) else 0


def tournament(count: int, size: int, rng: np.random.Generator) -> tuple[int, int]:
    """Two different winners (if `count` is above 1), each the fittest of up to `size` drawn; 0 is the fittest."""
    first = int(rng.choice(count, min(size, count), replace=False).min())
    others = np.delete(np.arange(count), first)
    if len(others) == 0:
        return first, first
    return first, int(rng.choice(others, min(size, len(others)), replace=False).min())


def roulette(values: FloatArray, rng: np.random.Generator) -> tuple[int, int]:
    """Two different parents (if there are two), drawn in proportion to the number of values they are no worse than.

    By ranks, as values may be negative and of any size. Equal values have equal chances.
    """
    # Robert 2022 draws in proportion to the fitness itself, which needs positive values that are to be maximised.
    beaten = np.sum(values[:, None] <= values[None, :], axis=1).astype(np.float64)
    drawn = rng.choice(len(values), min(2, len(values)), replace=False, p=beaten / beaten.sum())
    return int(drawn[0]), int(drawn[-1])


def one_point(first: FloatArray, second: FloatArray, rng: np.random.Generator) -> FloatArray:
    """The first parent up to a cut between any two genes, the second from there on."""
    if len(first) == 1:
        return first.copy()
    cut = int(rng.integers(1, len(first)))
    return np.concatenate((first[:cut], second[cut:]))


def two_point(first: FloatArray, second: FloatArray, rng: np.random.Generator) -> FloatArray:
    """The first parent with a stretch of the second, which never replaces the whole of it."""
    count = len(first)
    if count == 1:
        return first.copy()
    start, end = sorted(int(cut) for cut in rng.choice(count + 1, 2, replace=False))
    if (start, end) == (0, count):
        # The whole of the second parent would be a copy; the first gene stays.
        start = 1
    return np.concatenate((first[:start], second[start:end], first[end:]))


CROSSOVERS: Mapping[str, Callable[[FloatArray, FloatArray, np.random.Generator], FloatArray]] = {
    "one-point": one_point,
    "two-point": two_point,
}
