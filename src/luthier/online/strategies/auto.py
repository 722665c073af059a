"""The default strategy: a search by a model, which is finished by a simplex."""

from dataclasses import replace

from luthier.errors import InvalidInputError
from luthier.online.base import Standing
from luthier.online.strategies.model_strategy import ModelStrategy
from luthier.online.strategies.sampling import Sampling
from luthier.online.strategies.simplex_strategy import SimplexStrategy, parallel_rank_ordering
from luthier.space import Space
from luthier.trial import Config

# Chosen in docs/research/2026-11-18-online-strategies.md.
_HORIZON = 200.0  # steps
_SIZE = 0.1  # of the simplex, as a share of each range


def automatic_strategy(
    space: Space, *, seed: int, sampling: Sampling, centre: Config | None = None, horizon: float = _HORIZON
) -> "ModelThenSimplex":
    """Starts at the default, and tries what is expected to pay off within `horizon` further steps of the program."""
    if isinstance(horizon, bool) or not isinstance(horizon, int | float) or not 1.0 <= horizon <= 1e9:
        raise InvalidInputError(f"auto: horizon {horizon!r} is not valid; give a number of steps from 1 to 1e9")
    return ModelThenSimplex(space, seed, sampling, ModelStrategy(space, seed, sampling, centre, float(horizon)))


class ModelThenSimplex:
    """Searches with a model, then moves a small simplex from the best point until no neighbour is better.

    A model finds a good region in few steps, but noise of a kind that it does not expect can mislead it. The simplex
    compares samples only, and near the best point its steps cost little.
    """

    def __init__(self, space: Space, seed: int, sampling: Sampling, model: ModelStrategy) -> None:
        self._space, self._seed, self._sampling, self._model = space, seed, sampling, model
        self._simplex: SimplexStrategy | None = None

    @property
    def standing(self) -> Standing:
        """The best configuration so far, and whether the search has converged."""
        found = self._model.standing
        if self._simplex is None:
            return found
        later = self._simplex.standing
        return later if later.value is not None else replace(found, converged=later.converged)

    def next(self, client: str) -> Config:
        """The next configuration for a client."""
        return self._model.next(client) if self._simplex is None else self._simplex.next(client)

    def leave(self, client: str) -> None:
        """Forget what a client runs."""
        if self._simplex is None:
            self._model.leave(client)
        else:
            self._simplex.leave(client)

    def report(self, client: str, config: Config, value: float | None) -> None:
        """Learn from a sample."""
        if self._simplex is None:
            self._model.report(client, config, value)
            self._change_over()
        else:
            self._simplex.report(client, config, value)

    @property
    def deferred(self) -> bool:
        """Whether plans of the model are made by `decide` only; see `SlowStrategy`."""
        return self._model.deferred

    @deferred.setter
    def deferred(self, deferred: bool) -> None:
        self._model.deferred = deferred

    @property
    def is_due(self) -> bool:
        """Whether the model must plan a step."""
        return self._simplex is None and self._model.is_due

    def decide(self) -> None:
        """Plan a step."""
        self._model.decide()
        self._change_over()

    def _change_over(self) -> None:
        found = self._model.standing
        if found.converged and found.value is not None:
            self._simplex = parallel_rank_ordering(
                self._space, seed=self._seed, sampling=self._sampling, centre=found.best, size=_SIZE
            )
