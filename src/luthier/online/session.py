"""An on-line session: one program that is tuned while it runs, on any number of clients."""

import heapq
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from luthier.errors import InvalidInputError
from luthier.online.base import SlowStrategy, Standing, Strategy
from luthier.online.change import ChangeWatch
from luthier.online.service.protocol import check_value
from luthier.online.session_settings import OnlineSettings
from luthier.online.session_view import (
    MOST_POINTS_SHOWN,
    ChangeView,
    ClientView,
    PointView,
    RestoredView,
    SessionView,
    Totals,
)
from luthier.online.strategies.adaptive_sampling import proven_best
from luthier.online.strategies.sampling import ESTIMATORS
from luthier.online.total_time import ClosedStep, Ran, TotalTime
from luthier.space import Space
from luthier.trial import Config, Json, Sample, Value

Phase: TypeAlias = Literal["baseline", "searching", "converged", "stopped"]

MOST_LOSSES = 3
"""A configuration counts as failed when it was lost with this many clients in a row."""

_PATIENCE = 4.0  # a client is waited for as many times as long as the longest iteration
_SHORTEST_WAIT_S = 1.0
_LOOK_EVERY_S = 0.25
_MOST_CHANGES = 50


@dataclass(slots=True)
class _Client:
    """A process that takes part; `config` is what it runs now, since when, or None after it has reported."""

    config: Config | None
    since: float
    reports: int = 0
    last: float | None = None
    is_late: bool = False
    is_waiting: bool = False  # it runs the best configuration while the strategy decides


@dataclass(slots=True)
class _Losses:
    """How often a configuration was lost in a row, and when it was for the last time."""

    count: int = 0
    last_at: float = 0.0


class OnlineSession:
    """Hands out configurations to clients and learns from what they report.

    First all clients run the default, until `baseline` samples of it are there. Then the strategy searches; clients
    that it does not need run the best known configuration. After convergence all run the best one, and the search
    starts again there when the program's behaviour changes or the best configuration fails several times in a row. The
    best configuration is the one that the strategy names, provided that the samples say that it is at least as good as
    the default. Times are arguments: nothing here reads a clock or a file.
    """

    def __init__(self, space: Space, settings: OnlineSettings | None = None) -> None:
        self.space = space
        self.settings = settings or OnlineSettings()
        self.search = 1
        self.phase: Phase = "baseline"
        self._sign = -1.0 if self.settings.goal == "maximize" else 1.0
        self._default = space.default
        self._strategy = self.settings.make_strategy(space, self.search)
        self._clients: dict[str, _Client] = {}
        self._losses: dict[Config, _Losses] = {}
        self._defaults_run = 0
        self._start = self._default  # of the present search
        self._points: dict[Config, list[float]] = {}  # the samples of the present search
        self._failed: set[Config] = set()  # in the present search
        self._settled: Config | None = None
        self._named: tuple[int, Standing, Standing] | None = None  # the best after so many samples
        self._total, self._watch = TotalTime(), ChangeWatch()
        self._changes: list[ChangeView] = []
        self._numbers, self._longest_s, self._looked_at = 0, 0.0, 0.0
        self._stopped = False
        self._deferred = False
        self._before: Standing | None = None  # what the strategy had found before the decision that it is making now
        self._unlearned: list[tuple[str, Config, float | None]] = []  # what was reported meanwhile
        self._left: list[str] = []  # who has left meanwhile
        self._note_phase()

    @property
    def best(self) -> Standing:
        """The best configuration so far and its value, in the sign of the reports; never worse than the default."""
        found = self._best
        value = None if found.value is None else self._sign * found.value
        return Standing(found.best, value, found.samples, found.converged)

    @property
    def candidate(self) -> Config:
        """What the strategy found: the best, if a verification proves that it is better than the default."""
        return self._standing.best

    @property
    def longest_s(self) -> float:
        """The longest time from a fetch to its report so far; 0 before the first report."""
        return self._longest_s

    def fetch(self, client: str, now: float) -> Config:
        """What a client runs next; a new client joins by this."""
        known = self._clients.get(client)
        if known is None:
            known = self._join(client, now)
        if now - self._looked_at >= _LOOK_EVERY_S:
            self._release_late_clients(now)
        known.is_waiting = self.phase == "searching" and self._before is not None
        if self.phase == "searching" and not known.is_waiting:
            config = self._strategy.next(client)
        else:
            config = self._default if self.phase == "baseline" else self._best.best
        known.config, known.since, known.is_late = config, now, False
        return config

    def report(
        self, client: str, value: float | None, now: float, config: Mapping[str, Value] | None = None
    ) -> Sample | None:
        """Learn what an iteration of a client gave, None if it failed; the sample to be kept, or None.

        `config` is what the client ran, if that is not what it fetched last. After convergence nothing needs to be
        kept.
        """
        number = check_value(value)
        known = self._clients.get(client)
        ran = self.space.check(config) if config is not None else None if known is None else known.config
        if ran is None:
            raise InvalidInputError("report: nothing was fetched before; fetch first, or report what was run")
        if known is None:
            known = self._join(client, now)
        elif known.config is not None and not known.is_late:
            self._longest_s = max(self._longest_s, now - known.since)
        is_sample = not (known.is_waiting and ran == known.config)
        began, known.config, known.since, known.is_late = known.since, None, now, False
        known.reports += 1
        known.last = number
        if number is None:
            self._watch_steps(self._total.skip(client), now)
        if number is None and self.phase == "converged" and not self._is_lost_too_often(ran, began, now):
            return None
        if number is not None and self._losses:
            self._losses.pop(ran, None)
        if is_sample:
            return self._take(client, ran, number, now)
        if number is not None:
            self._watch_steps(self._total.add(client, self._sign * number, self._kind_of(ran)), now)
        return None

    def leave(self, client: str, now: float, *, lost: bool = False) -> Sample | None:
        """Forget a client; what it ran is given to another one.

        `lost` means that it ended without leaving. A configuration that was lost several times in a row counts as
        failed; then there is a sample to be kept.
        """
        known = self._clients.pop(client, None)
        self._leave_strategy(client)
        self._watch_steps(self._total.leave(client), now)
        if not lost or known is None or known.config is None or self.phase not in ("searching", "converged"):
            return None
        if not self._is_lost_too_often(known.config, known.since, now):
            return None
        return self._take(client, known.config, None, now)

    def stop(self) -> None:
        """End the search: from now on all clients run the best configuration."""
        self._stopped = True
        self._note_phase()

    def defer_decisions(self) -> None:
        """From now on decisions of the strategy that take long are made by the caller: see `decision`."""
        self._deferred = True
        _defer(self._strategy)

    @property
    def decision(self) -> Callable[[], None] | None:
        """What must be called now, in any thread, and then `decided` in this one; None if there is nothing to decide.

        Meanwhile clients get the best configuration; what they report for it counts in the totals only.
        """
        return self._strategy.decide if self._before is not None and isinstance(self._strategy, SlowStrategy) else None

    def decided(self) -> None:
        """Go on after a decision, with what was reported meanwhile."""
        self._before = None
        for client in self._left:
            self._strategy.leave(client)
        self._left.clear()
        self._note_phase()
        while self._unlearned and self._before is None and self.phase in ("baseline", "searching"):
            self._learn(*self._unlearned.pop(0))
        if self._before is None:
            self._unlearned.clear()  # the search is over

    def settle(self, best: Config) -> None:
        """Name this configuration as the best of the present search: a verification has decided."""
        self._settled = best
        self._named = None

    def search_again(self, factor: float, now: float) -> None:
        """Start another search at the best configuration: the values of the program have changed by this factor."""
        self._stopped = False
        self._note_change(factor, self._total.steps, now)

    def replay(self, samples: Iterable[Sample], view: Mapping[str, Json] | None = None) -> None:
        """Restore a new session from the samples that were kept, and its counts from the last view if there is one.

        Without a view the steps are counted as if all clients had joined at the beginning.
        """
        samples = list(samples)
        for sample in samples:
            self._total.join(sample.client)
        for sample in samples:
            while self.search < sample.search:
                self._search_again()
            self._numbers = sample.number - 1
            if sample.value is not None or self.phase != "converged":  # else it failed while the last decision was made
                self._take(sample.client, sample.config, sample.value, sample.at)
            self._numbers = sample.number
        self._total.forget_clients()
        if view is not None:
            seen = RestoredView.of(view)
            self._total = seen.total_time(self._sign)
            self._watch = ChangeWatch([self._sign * value for value in seen.reference])
            self._changes = list(seen.changes)

    def view(self) -> SessionView:
        """What people see of the session."""
        best, estimator = self.best, ESTIMATORS[self.settings.estimator]
        measured = [(estimator(values), number) for number, values in enumerate(self._points.values())]
        configs, counts = list(self._points), [len(values) for values in self._points.values()]
        points = tuple(
            PointView(configs[number], self._sign * value, counts[number])
            for value, number in heapq.nsmallest(MOST_POINTS_SHOWN, measured)
        )
        defaults = self._points.get(self._default, ())  # of the present search: a change may have changed it too
        default = self._sign * estimator(defaults) if defaults else None
        return SessionView(
            phase=self.phase,
            search=self.search,
            strategy=self.settings.strategy,
            goal=self.settings.goal,
            best=PointView(best.best, best.value, best.samples),
            default=PointView(self._default, default, len(defaults)),
            clients=tuple(
                ClientView(name, one.config, one.since, one.reports, one.last) for name, one in self._clients.items()
            ),
            totals=Totals.of(self._total, self._sign),
            points=points,
            changes=tuple(self._changes),
            reference=tuple(self._sign * value for value in self._watch.reference),
        )

    def _join(self, client: str, now: float) -> _Client:
        known = self._clients[client] = _Client(None, now)
        self._total.join(client)
        return known

    def _take(self, client: str, ran: Config, value: float | None, now: float) -> Sample | None:
        """Count a value, and learn from it unless the search is over."""
        signed = None if value is None else self._sign * value
        is_over = self.phase in ("converged", "stopped")
        if signed is not None:
            self._watch_steps(self._total.add(client, signed, self._kind_of(ran)), now)
        elif self.phase == "converged" and ran == self._best.best:
            self._search_again()
            is_over = False
        if is_over:
            return None
        self._numbers += 1
        sample = Sample(self._numbers, self.search, client, ran, value, now)
        if ran == self._default:
            self._defaults_run += 1
        if signed is not None:
            self._points.setdefault(ran, []).append(signed)
        else:
            self._failed.add(ran)
        if self._before is None:
            self._learn(client, ran, signed)
        else:
            self._unlearned.append((client, ran, signed))
            self._note_phase()
        return sample

    def _learn(self, client: str, ran: Config, signed: float | None) -> None:
        self._strategy.report(client, ran, signed)
        if self._deferred and isinstance(self._strategy, SlowStrategy) and self._strategy.is_due:
            self._before = self._strategy.standing
        self._note_phase()

    def _leave_strategy(self, client: str) -> None:
        if self._before is None:
            self._strategy.leave(client)
        else:
            self._left.append(client)

    @property
    def _standing(self) -> Standing:
        return self._strategy.standing if self._before is None else self._before

    @property
    def _best(self) -> Standing:
        """What the strategy names as the best, or what the samples of this search say instead."""
        found = self._standing
        numbers = self._numbers if self._before is None else 0  # while the strategy decides, it is found once
        if self._named is None or self._named[:2] != (numbers, found):
            working = {config: values for config, values in self._points.items() if config not in self._failed}
            known = (self._default, self._start)
            best = self._settled or proven_best(working, found.best, known, self.settings.estimator)
            if best in self._points:
                values = self._points[best]
                named = replace(
                    found, best=best, value=ESTIMATORS[self.settings.estimator](values), samples=len(values)
                )
            else:
                named = found
            self._named = numbers, found, named
        return self._named[2]

    def _is_lost_too_often(self, config: Config, began: float, now: float) -> bool:
        """Count a loss of a configuration; those that ran beside a lost one say nothing more, such as a killed job."""
        losses = self._losses.setdefault(config, _Losses())
        if losses.count == 0 or began >= losses.last_at:
            losses.count += 1
            losses.last_at = now
        if losses.count < MOST_LOSSES:
            return False
        del self._losses[config]
        return True

    def _kind_of(self, ran: Config) -> Ran:
        if self.phase == "converged" and ran == self._best.best:
            return "best"
        return "default" if ran == self._default else "other"

    def _note_phase(self) -> None:
        if self._stopped:
            self.phase = "stopped"
        elif self.search == 1 and self._defaults_run < self.settings.baseline:
            self.phase = "baseline"
        else:
            self.phase = "converged" if self._standing.converged else "searching"

    def _watch_steps(self, closed: Sequence[ClosedStep], now: float) -> None:
        """Search again if the steps with the best configuration show that the program has changed."""
        if not self.settings.watch:
            return
        for step in closed:
            if step.ran == "best" and self.phase == "converged":
                factor = self._watch.add(step.worst, step.clients)
                if factor is not None:
                    self._note_change(factor, step.number, now)

    def _note_change(self, factor: float, step: int, now: float) -> None:
        self._changes = [*self._changes[-_MOST_CHANGES:], ChangeView(now, step, factor)]
        self._search_again()

    def _search_again(self) -> None:
        """Start another search from the best configuration of the last one."""
        self.search += 1
        self._start = self._best.best
        self._strategy = self.settings.make_strategy(self.space, self.search, self._start)
        self._before = None
        self._unlearned.clear()
        self._left.clear()
        if self._deferred:
            _defer(self._strategy)
        self._points, self._watch = {}, ChangeWatch()
        self._settled = self._named = None
        self._failed.clear()
        self._losses.clear()
        self._total.begin_search()
        self._note_phase()

    def _release_late_clients(self, now: float) -> None:
        """Do not wait any longer for clients that take much longer than any iteration so far."""
        self._looked_at = now
        limit_s = max(_SHORTEST_WAIT_S, _PATIENCE * self._longest_s) if self._longest_s else math.inf
        for name, client in self._clients.items():
            if not client.is_late and now - client.since > limit_s:
                client.is_late = True
                self._leave_strategy(name)
                self._watch_steps(self._total.leave(name), now)


def _defer(strategy: Strategy) -> None:
    if isinstance(strategy, SlowStrategy):
        strategy.deferred = True
