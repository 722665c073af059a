"""The place of an experiment in a tuning of several steps, such as `luthier io tune`: what was done before it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from luthier.errors import InvalidInputError
from luthier.spec.script import JobScript
from luthier.texts import shown
from luthier.trial import Json

_FOREIGN = "the store was written by another program"


@dataclass(frozen=True, slots=True)
class Step:
    """Something done earlier in the same tuning: what it brought, in sentences, and the seconds that it took."""

    name: str
    lines: tuple[str, ...]
    seconds: float


@dataclass(frozen=True, slots=True)
class Searched:
    """The search behind a comparison, as it was when the comparison began.

    `uid` and `number` name its experiment, `runs` is how many runs it had made. `over_time` is its RoTI after each of
    them: the seconds spent since the beginning of the tuning, and the gain for each minute of that. `program` is what
    it ran: `the I/O kernel` or `the application`.
    """

    uid: str
    number: int
    runs: int
    program: str
    over_time: tuple[tuple[float, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Pipeline:
    """What was done before an experiment as part of the same tuning.

    A search has the `application`: the command with which its best configuration is compared with the default, in at
    most so many `pairs` of runs; 0 leaves the comparison out. A comparison has what was `searched` instead. `kernel`
    describes the I/O kernel for programs.
    """

    steps: tuple[Step, ...]
    kernel: Mapping[str, Json] = field(default_factory=lambda: MappingProxyType({}))
    application: JobScript | None = None
    pairs: int = 0
    searched: Searched | None = None

    @property
    def seconds(self) -> float:
        """The time of all steps."""
        return sum(step.seconds for step in self.steps)

    def to_json(self) -> dict[str, Json]:
        """The value as JSON."""
        found = self.searched
        searched: dict[str, Json] | None = None
        if found is not None:
            searched = {"uid": found.uid, "number": found.number, "runs": found.runs, "program": found.program}
            searched["over_time"] = [list(point) for point in found.over_time]
        return {
            "steps": [{"name": one.name, "lines": list(one.lines), "seconds": one.seconds} for one in self.steps],
            "kernel": dict(self.kernel),
            "application": None if self.application is None else self.application.to_json(),
            "pairs": self.pairs,
            "searched": searched,
        }

    @classmethod
    def from_json(cls, plain: Mapping[str, Json]) -> "Pipeline":
        """Read what `to_json` wrote."""
        try:
            return cls(
                tuple(_step(one) for one in _listed(plain["steps"])),
                _mapped(plain["kernel"]),
                None if plain["application"] is None else JobScript.from_json(_mapped(plain["application"])),
                int(str(plain["pairs"])),
                None if plain["searched"] is None else _searched(_mapped(plain["searched"])),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidInputError(f"pipeline: {shown(str(error))} is invalid; {_FOREIGN}") from None


def _step(plain: Json) -> Step:
    known = _mapped(plain)
    return Step(str(known["name"]), tuple(map(str, _listed(known["lines"]))), float(str(known["seconds"])))


def _searched(plain: Mapping[str, Json]) -> Searched:
    points = [_listed(point) for point in _listed(plain["over_time"])]
    return Searched(
        str(plain["uid"]),
        int(str(plain["number"])),
        int(str(plain["runs"])),
        str(plain["program"]),
        tuple((float(str(spent)), float(str(gain))) for spent, gain in points),
    )


def _listed(plain: Json) -> Sequence[Json]:
    if isinstance(plain, str) or not isinstance(plain, Sequence):
        raise TypeError(str(plain))
    return plain


def _mapped(plain: Json) -> Mapping[str, Json]:
    if not isinstance(plain, Mapping):
        raise TypeError(str(plain))
    return plain
