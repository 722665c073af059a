"""The settings of an on-line session."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Literal, TypeAlias, TypedDict, cast

from luthier.errors import InvalidInputError
from luthier.online.strategies.sampling import ESTIMATORS, EstimatorName, FixedSampling, Sampling
from luthier.plugins import instead
from luthier.texts import shown
from luthier.trial import Json

if TYPE_CHECKING:
    from luthier.online.base import Strategy
    from luthier.space import Space
    from luthier.trial import Config

Goal: TypeAlias = Literal["minimize", "maximize"]

ADAPTIVE: Literal["adaptive"] = "adaptive"
_GOALS = ("minimize", "maximize")
_MOST = 10_000


class OnlineOptions(TypedDict, total=False):
    """The settings of an on-line session as keywords; see `OnlineSettings`."""

    strategy: str
    samples: int | Literal["adaptive"]
    estimator: EstimatorName
    goal: Goal
    baseline: int
    watch: bool
    seed: int


@dataclass(frozen=True, slots=True)
class OnlineSettings:
    """How a program is tuned while it runs.

    `samples` is the number of samples of every configuration that is measured, or "adaptive"; `estimator` makes one
    value of them. `baseline` samples of the default are taken first, by all clients, so that the gain is known. With
    `watch`, a converged session searches again when the values of its best configuration change.
    """

    strategy: str = "auto"
    samples: int | Literal["adaptive"] = ADAPTIVE
    estimator: EstimatorName = "minimum"
    goal: Goal = "minimize"
    baseline: int = 3
    watch: bool = True
    seed: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.strategy, str):
            raise InvalidInputError(f"strategy: {shown(self.strategy)} is not a name; write for example auto")
        if self.samples != ADAPTIVE:
            _check_count("samples", self.samples, 1, f" or {ADAPTIVE}")
        _check_known("estimator", self.estimator, tuple(ESTIMATORS))
        _check_known("goal", self.goal, _GOALS)
        _check_count("baseline", self.baseline, 0)
        _check_count("seed", self.seed, 0, most=2**32 - 1)
        if not isinstance(self.watch, bool):
            raise InvalidInputError(f"watch: {shown(self.watch)} is not valid; give true or false")

    def sampling(self) -> Sampling:
        """The rule for the number of samples."""
        if self.samples == ADAPTIVE:
            from luthier.online.strategies.adaptive_sampling import AdaptiveSampling

            return AdaptiveSampling(self.estimator)
        return FixedSampling(self.samples, self.estimator)

    def make_strategy(self, space: "Space", search: int, centre: "Config | None" = None) -> "Strategy":
        """The strategy for a search of a session, the first one or a later one."""
        from luthier.online.registry import make_strategy

        return make_strategy(self.strategy, space, seed=self.seed + search - 1, sampling=self.sampling(), centre=centre)

    def to_json(self) -> dict[str, Json]:
        """Write the settings as JSON."""
        return asdict(self)

    @classmethod
    def from_json(cls, mapping: Mapping[str, Json]) -> "OnlineSettings":
        """Read what `to_json` wrote; what is missing has its default, and an unknown name is an error."""
        if not isinstance(mapping, Mapping):
            raise InvalidInputError(f"settings: {shown(mapping)} is not an object of names and values")
        known = [one.name for one in fields(cls)]
        for name in mapping:
            if name not in known:
                raise InvalidInputError(f"settings: unknown name {shown(name)}; {instead(str(name), known)}")
        return cls(**cast("OnlineOptions", dict(mapping)))  # the types are checked at construction


def _check_known(name: str, given: object, known: tuple[str, ...]) -> None:
    if given not in known:
        raise InvalidInputError(f"{name}: {shown(given)} is unknown; write {' or '.join(known)}")


def _check_count(name: str, given: object, least: int, other: str = "", most: int = _MOST) -> None:
    if isinstance(given, bool) or not isinstance(given, int) or not least <= given <= most:
        raise InvalidInputError(
            f"{name}: {shown(given)} is not valid; give a whole number from {least} to {most}{other}"
        )
