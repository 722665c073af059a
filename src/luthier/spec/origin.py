"""The place of an experiment in a tuning of several steps, such as `luthier io tune`: what was done before it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from luthier.errors import InvalidInputError
from luthier.texts import shown
from luthier.trial import Json

FORMER_KEY = "pipeline"
"""The key of an origin in settings that an earlier version wrote."""

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
class Origin:
    """Where an experiment came from, if it is a step of a larger tuning, and what was done before it.

    `program` is what it runs. A comparison has what was `searched`. `data` belongs to the wing that made the steps.
    """

    steps: tuple[Step, ...]
    program: str
    searched: Searched | None = None
    data: Mapping[str, Json] = field(default_factory=lambda: MappingProxyType({}))

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
            "program": self.program,
            "searched": searched,
            "data": dict(self.data),
        }

    @classmethod
    def from_json(cls, plain: Mapping[str, Json]) -> "Origin":
        """Read what `to_json` wrote, or an earlier version."""
        try:
            if "data" not in plain:
                plain = _of_version_1(plain)
            return cls(
                tuple(_step(one) for one in _listed(plain["steps"])),
                str(plain["program"]),
                None if plain["searched"] is None else _searched(_mapped(plain["searched"])),
                _mapped(plain["data"]),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidInputError(f"origin: {shown(str(error))} is invalid; {_FOREIGN}") from None


def _of_version_1(plain: Mapping[str, Json]) -> Mapping[str, Json]:
    """What an earlier version wrote under the key `pipeline`, which knew kernels only."""
    data = {name: plain[name] for name in ("kernel", "application", "pairs")}
    runs_kernel = plain["searched"] is None and _mapped(data["kernel"]).get("is_used")
    program = "the I/O kernel" if runs_kernel else "the application"
    return {"steps": plain["steps"], "program": program, "searched": plain["searched"], "data": data}


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


def origin_in(settings: Mapping[str, Json]) -> Origin | None:
    """The origin in the stored settings of an experiment, whatever else is in them."""
    plain = settings.get("origin", settings.get(FORMER_KEY))
    return Origin.from_json(plain) if isinstance(plain, Mapping) else None
