"""What people see of an on-line session, as plain values: for pages, programs and the store."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import cast

from luthier.online.total_time import TotalTime
from luthier.trial import Config, Json

MOST_POINTS_SHOWN = 20
MOST_CLIENTS_SHOWN = 200


@dataclass(frozen=True, slots=True)
class PointView:
    """A configuration, the estimate of its value (None if it was not measured) and the samples behind it."""

    config: Config
    value: float | None
    samples: int

    def to_json(self) -> dict[str, Json]:
        """As JSON."""
        return {"config": dict(self.config), "value": self.value, "samples": self.samples}


@dataclass(frozen=True, slots=True)
class ClientView:
    """A client: what it runs and since when (None between two iterations), its reports and the last value."""

    name: str
    config: Config | None
    since: float
    reports: int
    last: float | None

    def to_json(self) -> dict[str, Json]:
        """As JSON."""
        return {
            "name": self.name,
            "config": None if self.config is None else dict(self.config),
            "since": self.since,
            "reports": self.reports,
            "last": self.last,
        }


@dataclass(frozen=True, slots=True)
class ChangeView:
    """A change of the program's behaviour after which it was searched again."""

    at: float
    step: int
    factor: float


@dataclass(frozen=True, slots=True)
class Totals:
    """The sum over steps of the slowest client's value.

    Of all steps, `compared_steps` can be compared with the default: their total is `compared_total`, with the default
    it would have been `default_total`. `default_step` is one step with the default and the present number of clients,
    `defaults` the same by number of clients. `history` holds steps and their slowest values.
    """

    steps: int
    total: float
    compared_steps: int
    compared_total: float
    default_total: float | None
    default_step: float | None
    defaults: tuple[tuple[int, float], ...]
    history: tuple[tuple[int, float], ...]

    @classmethod
    def of(cls, total: TotalTime, sign: float) -> "Totals":
        """The totals in the sign of the reports."""
        steps, compared, default = total.compared
        default_step = total.default_step
        return cls(
            total.steps,
            sign * total.total,
            steps,
            sign * compared,
            sign * default if steps else None,
            None if default_step is None else sign * default_step,
            tuple((clients, sign * value) for clients, value in total.default_steps.items()),
            tuple((step, sign * value) for step, value in total.history),
        )


@dataclass(frozen=True, slots=True)
class SessionView:
    """A session at a moment; `reference` are the steps with which those after convergence are compared."""

    phase: str
    search: int
    strategy: str
    goal: str
    best: PointView
    default: PointView
    clients: tuple[ClientView, ...]
    totals: Totals
    points: tuple[PointView, ...]
    changes: tuple[ChangeView, ...]
    reference: tuple[float, ...]

    def to_json(self) -> dict[str, Json]:
        """As JSON; of many clients only the first ones."""
        totals = asdict(self.totals)
        for name in ("defaults", "history"):
            totals[name] = [list(pair) for pair in totals[name]]
        return {
            "phase": self.phase,
            "search": self.search,
            "strategy": self.strategy,
            "goal": self.goal,
            "best": self.best.to_json(),
            "default": self.default.to_json(),
            "clients": [client.to_json() for client in self.clients[:MOST_CLIENTS_SHOWN]],
            "more_clients": max(0, len(self.clients) - MOST_CLIENTS_SHOWN),
            **totals,
            "points": [point.to_json() for point in self.points],
            "changes": [asdict(change) for change in self.changes],
            "reference": list(self.reference),
        }


@dataclass(frozen=True, slots=True)
class RestoredView:
    """The parts of a stored view with which a session is continued."""

    totals: Totals
    changes: tuple[ChangeView, ...]
    reference: tuple[float, ...]

    @classmethod
    def of(cls, view: Mapping[str, Json]) -> "RestoredView":
        """Read what `SessionView.to_json` wrote."""
        history = cast("Sequence[Sequence[float]]", view["history"])
        defaults = cast("Sequence[Sequence[float]]", view.get("defaults", ()))
        default_total = cast("float | None", view["default_total"])
        return cls(
            Totals(
                cast("int", view["steps"]),
                cast("float", view["total"]),
                cast("int", view["compared_steps"]),
                cast("float", view["compared_total"]),
                default_total,
                cast("float | None", view["default_step"]),
                tuple((int(clients), float(value)) for clients, value in defaults),
                tuple((int(step), float(value)) for step, value in history),
            ),
            tuple(ChangeView(**change) for change in cast("Sequence[dict[str, float]]", view["changes"])),  # type: ignore[arg-type]  # as it was written
            tuple(cast("Sequence[float]", view["reference"])),
        )

    def total_time(self, sign: float) -> TotalTime:
        """The totals to go on with."""
        known = self.totals
        return TotalTime(
            steps=known.steps,
            total=sign * known.total,
            compared_steps=known.compared_steps,
            compared_total=sign * known.compared_total,
            default_total=sign * (known.default_total or 0.0),
            defaults={clients: sign * value for clients, value in known.defaults},
            history=[(step, sign * value) for step, value in known.history],
        )
