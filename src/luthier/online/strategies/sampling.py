"""How many samples of a configuration are needed, and how one value is estimated from them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

from luthier.errors import InvalidInputError
from luthier.statistics.estimate import mean_of, median_of
from luthier.trial import Config

EstimatorName: TypeAlias = Literal["minimum", "median", "mean"]

ESTIMATORS: Mapping[str, Callable[[Sequence[float]], float]] = {"minimum": min, "median": median_of, "mean": mean_of}
"""Estimators of a value from samples. Under heavy-tailed noise only the minimum and the median converge."""


class Sampling(Protocol):
    """Decides when enough samples were taken. Both methods depend on their arguments only."""

    def wanted(
        self,
        samples: Mapping[Config, Sequence[float]],
        needed: Sequence[Config],
        best: Config | None,
        clients: int = 1,
    ) -> Mapping[Config, int]:
        """How many further samples configurations need before the strategy compares those that are `needed`.

        It is asked when all samples that it wanted were taken. `samples` are all samples so far and `best` is the best
        configuration known before. One step takes as many samples as there are clients. An empty answer means: compare
        them now.
        """
        ...

    def value(self, samples: Sequence[float]) -> float:
        """The estimate from one or more samples of a configuration."""
        ...


@dataclass(frozen=True, slots=True)
class FixedSampling:
    """The same number of samples for every configuration (Tabatabaee et al. 2005, section 5.2)."""

    count: int = 1
    estimator: EstimatorName = "minimum"

    def __post_init__(self) -> None:
        if isinstance(self.count, bool) or not isinstance(self.count, int) or self.count < 1:
            raise InvalidInputError(f"samples: {self.count!r} is not valid; give a whole number, 1 or more")

    def wanted(
        self,
        samples: Mapping[Config, Sequence[float]],
        needed: Sequence[Config],
        best: Config | None,  # noqa: ARG002 the number does not depend on it
        clients: int = 1,  # noqa: ARG002 nor on this
    ) -> Mapping[Config, int]:
        """How many samples are missing from the fixed number."""
        # Samples of other requests count as well: a point that comes again needs no new ones.
        missing = {config: self.count - len(samples.get(config, ())) for config in needed}
        return {config: count for config, count in missing.items() if count > 0}

    def value(self, samples: Sequence[float]) -> float:
        """The minimum, the median or the mean."""
        return ESTIMATORS[self.estimator](samples)
