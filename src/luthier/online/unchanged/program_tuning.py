"""Tuning of a running program window by window: search, verify, leave the winner in place, and watch it."""

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

from luthier.errors import InvalidInputError, LuthierError
from luthier.online.change import ChangeWatch
from luthier.online.session import OnlineSession
from luthier.online.session_view import SessionView
from luthier.online.unchanged.program_result import ProgramResult, Troubles
from luthier.online.unchanged.running_program import Clock, Ending, RunningProgram, Window
from luthier.result.verification import MOST_PAIRS, Duel, goes_first, is_settled
from luthier.spec.experiment import pairs_reserved
from luthier.statistics.estimate import median_of
from luthier.trial import Config, Sample

_LOG = logging.getLogger(__name__)

CLIENT = "luthier"
"""The only client of the session: the program itself knows nothing of it."""

NoteKind: TypeAlias = Literal["default", "winner"] | Ending


@dataclass(frozen=True, slots=True)
class Note:
    """What is kept beside the samples: a window of the verification, or why a configuration failed."""

    kind: NoteKind
    search: int
    config: Config
    value: float | None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class StopRequested:
    """A request to end: the search only, so that the best is verified, or everything `at_once`."""

    reason: str
    at_once: bool = False


@dataclass(frozen=True, slots=True)
class TuningPlan:
    """When a search ends: after `budget` windows, verification included; `verify_pairs` as for experiments."""

    budget: int
    verify_pairs: int | None = None
    keep_watching: bool = False


class KeptEvidence(Protocol):
    """Where everything that was measured is kept, so that a killed tuning can go on."""

    def keep(self, sample: Sample) -> None:
        """Keep a sample before the next window begins."""
        ...

    def note(self, note: Note) -> None:
        """Keep a note."""
        ...

    def show(self, view: SessionView, now: float) -> None:
        """Show what is known to those who look at the session."""
        ...


class _Stopped(Exception):  # noqa: N818 - not an error
    def __init__(self, stop: StopRequested) -> None:
        self.stop = stop


class ProgramTuning:
    """The course of a tuning. `stop_asked` is called at least twice a second; `watch` gets each window, and
    `found` what a search found, before the program is watched.

    `was_cut_short` tells whether a request to stop at once left out something.
    """

    def __init__(
        self,
        session: OnlineSession,
        program: RunningProgram,
        evidence: KeptEvidence,
        plan: TuningPlan,
        clock: Clock,
        stop_asked: Callable[[float], StopRequested | None],
    ) -> None:
        self._session, self._program, self._evidence, self._plan = session, program, evidence, plan
        self._clock, self._stop_asked = clock, stop_asked
        self._samples: list[Sample] = []
        self._notes: list[Note] = []
        self._ends_at_once_only = False
        self.was_cut_short = False
        self.watch: Callable[[Config, Window], None] = lambda *_: None
        self.found: Callable[[ProgramResult], None] = lambda _: None
        program.beat = self._beat

    def replay(self, samples: Sequence[Sample], notes: Sequence[Note]) -> None:
        """Continue a tuning that was killed; the session was restored already."""
        self._samples, self._notes = list(samples), list(notes)

    def run(self) -> ProgramResult:
        """Tune until everything is known; afterwards the winner, or what was there before, is in place.

        This also holds if an error or a signal ends it.
        """
        try:
            while True:
                ending = self._search()
                self._verify()
                result = self._result(ending)
                self._put_in_place(result)
                if not self._plan.keep_watching or self.was_cut_short:
                    return result
                self.found(result)
                if not self._changes():
                    return result
        except BaseException:
            try:
                self._program.set(None)
            except LuthierError as error:
                _LOG.warning("what was there before could not be put back: %s", error)
            raise

    def _search(self) -> str:
        """Search until it has converged or the budget is used up; the reason why it ended."""
        self._ends_at_once_only = False
        try:
            self._measure_default_again()
            while (ending := self._ending()) is None:
                config = self._session.fetch(CLIENT, self._clock.now())
                self._take(config, self._measured(config))
        except _Stopped as stopped:
            ending = stopped.stop.reason
            self.was_cut_short = stopped.stop.at_once
        self._session.stop()  # what is measured from now on compares; it does not steer the search
        return ending

    def _measure_default_again(self) -> None:
        """After a change of the program, the level of the default is another one."""
        default = self._session.space.default
        missing = self._session.settings.baseline - len(self._default_values())
        if self._session.search > 1:
            for _ in range(missing):
                self._take(default, self._measured(default))

    def _ending(self) -> str | None:
        if self._session.phase == "converged":
            return "the search has converged"
        kept = 2 * pairs_reserved(self._plan.budget, self._plan.verify_pairs)
        if self._windows() < self._plan.budget - kept:
            return None
        left = max(self._plan.budget - self._windows(), 0)
        said = f"the budget of {self._plan.budget} windows is spent"
        return said + (f", {left} of them kept for verification" if left else "")

    def _take(self, config: Config, window: Window) -> None:
        """Tell the session about a window, and keep it."""
        now = self._clock.now()
        sample = self._session.report(CLIENT, window.value, now, config)
        if sample is not None:
            self._samples.append(sample)
            self._evidence.keep(sample)
        if window.ending != "measured":
            self._note(Note(window.ending, self._session.search, config, window.value, window.reason))
        self._evidence.show(self._session.view(), now)
        self.watch(config, window)

    def _measured(self, config: Config) -> Window:
        """A window of a configuration; the default must work at least once."""
        default = self._session.space.default
        values = [] if config == default else self._default_values()
        window = self._program.measure(config, median_of(values) if values else None)
        if config == default and window.ending != "measured" and not self._default_values():
            raise InvalidInputError(f"the default does not work: {window.reason}; correct it, and start again")
        return window

    def _verify(self) -> None:
        """Run the default and what the search found in turns until the speed-up is known."""
        self._ends_at_once_only = True
        found = self._session.candidate
        if found == self._session.space.default or self.was_cut_short:
            return
        with self._cut_short():
            while (side := self._next_to_verify()) is not None:
                config = found if side == "winner" else self._session.space.default
                window = self._measured(config)
                self._note(Note(side, self._session.search, config, window.value, window.reason))
                self._take(config, window)

    def _next_to_verify(self) -> Literal["default", "winner"] | None:
        """Whose turn it is; None when enough is known or no windows are left."""
        duel, left = self._duel(), self._plan.budget - self._windows()
        most = MOST_PAIRS if self._plan.verify_pairs is None else self._plan.verify_pairs
        defaults, winners = len(duel.default_values), len(duel.winner_values)
        if left < (2 if defaults == winners else 1) or is_settled(duel, self._session.settings.goal, most):
            return None
        first = goes_first(self._session.settings.seed, defaults) == "default"
        return "default" if defaults < winners or (defaults == winners and first) else "winner"

    def _duel(self) -> Duel:
        """The windows of the verification so far; one in which the guard acted counts as failed."""
        found, search = self._session.candidate, self._session.search
        pairs = [note for note in self._notes if note.search == search and note.kind in ("default", "winner")]
        of_default = [note for note in pairs if note.kind == "default"]
        of_winner = [note for note in pairs if note.kind == "winner" and note.config == found]
        values = [tuple(one.value for one in side if _is_measured(one)) for side in (of_default, of_winner)]
        failures = [sum(not _is_measured(one) for one in side) for side in (of_default, of_winner)]
        searched = [one for one in self._samples if one.search == search]
        all_values = [
            {*some, *(one.value for one in searched if one.config == config)}
            for some, config in zip(values, (self._session.space.default, found), strict=True)
        ]
        return Duel(
            default_values=tuple(value for value in values[0] if value is not None),
            winner_values=tuple(value for value in values[1] if value is not None),
            default_failures=failures[0],
            winner_failures=failures[1],
            estimator=self._session.settings.estimator,
            repeatable=all(len(some) <= 1 for some in all_values),
        )

    def _result(self, ending: str) -> ProgramResult:
        counts = [note.kind for note in self._notes]
        return ProgramResult.of(
            self._session,
            self._duel(),
            ending,
            windows=len(self._samples) + counts.count("default") + counts.count("winner"),
            troubles=Troubles(
                rolled_back=counts.count("rolled back"),
                refused=counts.count("refused"),
                silent=counts.count("silent") + counts.count("ended"),
            ),
        )

    def _put_in_place(self, result: ProgramResult) -> None:
        self._session.settle(result.best)
        self._evidence.show(self._session.view(), self._clock.now())
        self._program.set(result.best if result.improved else None)
        self._program.last_good = self._program.current

    def _changes(self) -> bool:
        """Watch what is in place until the program changes; False if a request to stop came first."""
        watch, config = ChangeWatch(), self._program.current or self._session.space.default
        self._ends_at_once_only = False
        try:
            while True:
                window = self._program.watch_current()
                if window.value is None:
                    continue
                self._session.report(CLIENT, window.value, self._clock.now(), config)
                self._evidence.show(self._session.view(), self._clock.now())
                self.watch(config, window)
                factor = watch.add(window.value)
                if factor is not None:
                    self._session.search_again(factor, self._clock.now())
                    return True
        except _Stopped:
            return False

    def _windows(self) -> int:
        """The windows of the present search, verification included."""
        search = self._session.search
        noted = sum(note.search == search and note.kind in ("default", "winner") for note in self._notes)
        return noted + sum(sample.search == search for sample in self._samples)

    def _default_values(self) -> list[float]:
        """The values of the default in the present search."""
        search, default = self._session.search, self._session.space.default
        return [
            one.value
            for one in self._samples
            if one.search == search and one.config == default and one.value is not None
        ]

    def _note(self, note: Note) -> None:
        self._notes.append(note)
        self._evidence.note(note)

    @contextmanager
    def _cut_short(self) -> Iterator[None]:
        try:
            yield
        except _Stopped:
            self.was_cut_short = True

    def _beat(self, now: float) -> None:
        stop = self._stop_asked(now)
        if stop is not None and (stop.at_once or not self._ends_at_once_only):
            raise _Stopped(stop)


def _is_measured(note: Note) -> bool:
    return note.value is not None and not note.reason
