"""The total time of a program: the sum over steps of the slowest client's value (Tabatabaee et al. 2005, eq. 2)."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from luthier.statistics.estimate import median_of

MOST_POINTS = 400
"""The largest number of points of the history; when it is exceeded, every second one is dropped."""

_MOST_OPEN = 1000
_MOST_DEFAULTS = 20
_MOST_VALUES = 256  # of a step with the default: with more clients only the slowest one is kept
_MOST_GROUPS = 32
_LEAST_SHARE = 0.75

Ran: TypeAlias = Literal["default", "best", "other"]


@dataclass(slots=True)
class _OpenStep:
    """A step that not all clients have finished: the slowest value so far, and what all of them ran, if the same."""

    worst: float
    ran: Ran
    clients: int
    values: list[float]  # of all clients, if they ran the default


@dataclass(frozen=True, slots=True)
class ClosedStep:
    """A step that all clients have finished; `ran` is "default" or "best" if all of them ran that."""

    number: int
    worst: float
    ran: Ran
    clients: int


@dataclass(slots=True)
class _Group:
    """The steps of the present search in which the same number of clients took part."""

    steps: int = 0
    total: float = 0.0
    default: list[list[float]] = field(default_factory=list)  # the values of each step with the default, sorted


@dataclass(slots=True)
class TotalTime:
    """Aligns the iterations of the clients to steps: the first report of each, the second, and so on.

    A client that joins later starts at the newest step. A client that is far behind the others no longer counts in the
    steps that they have finished.

    The steps of a search are compared with those in which all clients ran the default. The slowest of more clients is
    slower. So for a step of fewer clients the default is what the slowest of a part of them took, on average. For a
    step of more clients it is taken as it was, which makes the default look better, if they are at most a third more;
    other steps are not compared.
    """

    steps: int = 0
    total: float = 0.0
    compared_steps: int = 0  # of earlier searches that know their default
    compared_total: float = 0.0
    default_total: float = 0.0  # the same steps with the default
    defaults: Mapping[int, float] = field(default_factory=dict)  # known already: one default step by number of clients
    history: list[tuple[int, float]] = field(default_factory=list)  # steps and their slowest values, thinned out
    _groups: dict[int, _Group] = field(default_factory=dict)  # by number of clients
    _last_clients: int = 0  # of the last step
    _known: dict[int, float | None] = field(default_factory=dict)  # one step with the default by number of clients
    _open: dict[int, _OpenStep] = field(default_factory=dict)
    _at: dict[str, int] = field(default_factory=dict)  # the steps that a client has finished
    _clients_at: Counter[int] = field(default_factory=Counter)
    _newest: int = 0
    _stride: int = 1

    def __post_init__(self) -> None:
        self._newest = self.steps
        if len(self.history) > 1:
            self._stride = max(1, self.history[-1][0] - self.history[-2][0])
        for clients, value in self.defaults.items():
            self._groups[clients] = _Group(default=[[value]])
            self._last_clients = clients

    def join(self, client: str) -> None:
        """Wait for a client from the newest step on."""
        if client not in self._at:
            self._at[client] = self._newest
            self._clients_at[self._newest] += 1

    def add(self, client: str, value: float, ran: Ran) -> list[ClosedStep]:
        """Count an iteration of a client; the steps that are complete with it."""
        self.join(client)
        at = self._at[client]
        step = at + 1
        self._at[client] = step
        self._clients_at[step] += 1
        self._clients_at[at] -= 1
        self._newest = max(self._newest, step)
        found = self._open.get(step)
        if found is None:
            self._open[step] = _OpenStep(value, ran, 1, [value] if ran == "default" else [])
        else:
            found.worst = max(found.worst, value)
            found.clients += 1
            found.ran = ran if ran == found.ran else "other"
            if found.ran != "default":
                found.values.clear()
            elif len(found.values) <= _MOST_VALUES:
                found.values.append(value)
        return self._close(at) if self._clients_at[at] == 0 else []

    def skip(self, client: str) -> list[ClosedStep]:
        """Do not wait in its present step for a client whose iteration failed; the steps that are complete then."""
        if client not in self._at:
            return []
        closed = self.leave(client)
        self.join(client)
        return closed

    def leave(self, client: str) -> list[ClosedStep]:
        """Do not wait for a client any longer; the steps that are complete without it."""
        at = self._at.pop(client, None)
        if at is None:
            return []
        self._clients_at[at] -= 1
        return self._close(at) if self._clients_at[at] == 0 else []

    def begin_search(self) -> None:
        """Compare later steps with a default that is measured anew."""
        self.compared_steps, self.compared_total, self.default_total = self.compared
        self._groups.clear()
        self._known.clear()

    @property
    def compared(self) -> tuple[int, float, float]:
        """The number of steps that can be compared with the default, their total, and that of the default."""
        steps, total, default_total = self.compared_steps, self.compared_total, self.default_total
        for clients, group in self._groups.items():
            default = self._default_of(clients)
            if default is not None:
                steps += group.steps
                total += group.total
                default_total += default * group.steps
        return steps, total, default_total

    @property
    def default_step(self) -> float | None:
        """One step with the default and the present number of clients; None if it is not known."""
        return self._default_of(self._last_clients)

    @property
    def default_steps(self) -> dict[int, float]:
        """One step with the default by number of clients, that of the last step at the end."""
        ordered = sorted(self._groups, key=lambda clients: clients == self._last_clients)
        known = ((clients, self._default_of(clients)) for clients in ordered)
        return {clients: value for clients, value in known if value is not None}

    def _default_of(self, clients: int) -> float | None:
        if clients not in self._known:
            self._known[clients] = self._estimated_default(clients)
        return self._known[clients]

    def _estimated_default(self, clients: int) -> float | None:
        measured = {number: one.default for number, one in self._groups.items() if one.default}
        exact = measured.get(clients)
        if exact is not None:
            return median_of([values[-1] for values in exact])
        for number in sorted(measured):
            if number > clients and len(measured[number][0]) == number:
                return median_of([slowest_of_part(values, clients) for values in measured[number]])
        fewer = [number for number in measured if _LEAST_SHARE * clients <= number <= clients]
        return median_of([values[-1] for values in measured[max(fewer)]]) if fewer else None

    def forget_clients(self) -> None:
        """Let all clients leave."""
        for client in list(self._at):
            self.leave(client)

    def _close(self, left: int) -> list[ClosedStep]:
        """Close the steps that every client has finished now that no client is at `left` any more."""
        del self._clients_at[left]
        if any(at < left for at in self._clients_at):  # few distinct steps: all clients are near each other
            if len(self._open) > _MOST_OPEN:
                self._drop_slowest()
            return []
        last = min(self._clients_at, default=self._newest)
        closed = []
        for number in sorted(number for number in self._open if number <= last):
            step = self._open.pop(number)
            closed.append(ClosedStep(number, step.worst, step.ran, step.clients))
            self._count(number, step)
        return closed

    def _drop_slowest(self) -> None:
        slowest = min(self._clients_at)
        for client in [client for client, at in self._at.items() if at == slowest]:
            del self._at[client]
        del self._clients_at[slowest]

    def _count(self, number: int, step: _OpenStep) -> None:
        self.steps += 1
        self.total += step.worst
        self._last_clients = step.clients
        group = self._groups.get(step.clients)
        if group is None and len(self._groups) < _MOST_GROUPS:
            group = self._groups[step.clients] = _Group()
        if group is not None:
            group.steps += 1
            group.total += step.worst
            if step.ran == "default" and len(group.default) < _MOST_DEFAULTS:
                group.default.append(sorted(step.values) if len(step.values) == step.clients else [step.worst])
                self._known.clear()
        if number % self._stride == 0:
            self.history.append((number, step.worst))
            if len(self.history) > MOST_POINTS:
                self._stride *= 2
                self.history = [point for point in self.history if point[0] % self._stride == 0]


def slowest_of_part(values: Sequence[float], count: int) -> float:
    """The mean, over all ways to choose `count` of the sorted values, of the largest one chosen."""
    mean, weight = 0.0, count / len(values)  # of the largest value: the share of choices that contain it
    for rank in range(len(values), count - 1, -1):
        mean += weight * values[rank - 1]
        weight *= (rank - count) / (rank - 1) if rank > 1 else 0.0
    return mean
