"""One window after the other of a program that runs: set a configuration, wait, read its number, guard it.

Clock, program and number source are passed in, so that decisions can be tested without waiting.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

from luthier.errors import InvalidInputError, RefusedError, UnavailableError
from luthier.online.unchanged.guard import READINGS_TO_ACT, Guard
from luthier.online.unchanged.number_sources import NumberSource
from luthier.statistics.estimate import mean_of, median_of
from luthier.trial import Config

EMPTY_WINDOWS = 3
"""After this many windows without a number, a configuration is suspected to be the reason."""

LONGEST_SILENCE = 60
"""After this many windows without a number the tuning ends."""

READINGS = 10
"""How often the guard reads the number in a window."""

_LONGEST_SLEEP_S = 0.5

Ending: TypeAlias = Literal["measured", "rolled back", "refused", "silent", "ended"]
"""Of a window: a number, the guard acted, the program refused the configuration, gave no number, or ended."""


class Clock(Protocol):
    """The time; tests have one that does not wait."""

    def now(self) -> float:
        """Seconds since the epoch."""
        ...

    def sleep(self, seconds: float) -> None:
        """Wait."""
        ...


class RunningTarget(Protocol):
    """A running program, as tuning sees it."""

    def apply(self, config: Config | None) -> None:
        """Set a configuration, None for what was there before; `RefusedError` if the program does not accept it."""
        ...

    def ending(self) -> str | None:
        """What is known about the end of the program; None while it may be running."""
        ...

    def start(self, config: Config | None) -> None:
        """Start it again with this configuration; `UnavailableError` if it was not started here."""
        ...


@dataclass(frozen=True, slots=True)
class WindowRules:
    """How long a window is, and how its numbers become one."""

    every_s: float
    settle_s: float
    statistic: str = "mean"
    guard: Guard | None = None

    def __post_init__(self) -> None:
        if self.statistic not in STATISTICS:
            raise InvalidInputError(f"--statistic {self.statistic}: not supported; give one of {', '.join(STATISTICS)}")


@dataclass(frozen=True, slots=True)
class Window:
    """What a window of a configuration gave: a value, the bad value at which the guard acted, or neither."""

    ending: Ending
    value: float | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class _Seen:
    """The numbers of some readings; `bad` are the last ones, if the guard must act because of them."""

    numbers: tuple[float, ...]
    problem: str
    bad: tuple[float | None, ...] = ()


class RunningProgram:
    """Measures one configuration after the other on a program that runs.

    `beat` is called at least twice a second while it waits; what it raises ends the wait. `current` is the
    configuration in place, None for the original or an unknown one; `last_good` is the one to go back to.
    """

    def __init__(
        self,
        program: RunningTarget,
        source: NumberSource,
        rules: WindowRules,
        clock: Clock,
    ) -> None:
        self._program = program
        self._source = source
        self._rules = rules
        self._clock = clock
        self.beat: Callable[[float], None] = lambda _: None
        self._statistic = STATISTICS[rules.statistic]
        self._has_numbers = False
        self.current: Config | None = None
        self.last_good: Config | None = None

    def measure(self, config: Config, level: float | None) -> Window:
        """Set a configuration and measure it; `level` is that of the default, None while it need not be guarded.

        Unless it was measured, the last good configuration is in place afterwards.
        """
        while True:
            window = self._tried(config, level)
            if window is not None:
                return window

    def set(self, config: Config | None) -> None:
        """Put a configuration in place without measuring it, None for the original files."""
        if self._program.ending() is not None:
            self._program.start(config)
        else:
            self._program.apply(config)
        self.current = config

    def watch_current(self) -> Window:
        """A window of what is in place."""
        seen = self._watch(self._rules.every_s, None)
        if (ending := self._program.ending()) is not None:
            return self._failed("ended", None, ending)
        return Window("measured", self._statistic(seen.numbers)) if seen.numbers else Window("silent")

    def put_back(self) -> None:
        """Put the last good configuration in place, immediately."""
        try:
            self.set(self.last_good)
        except RefusedError as error:
            raise UnavailableError(
                f"the last good configuration was refused as well ({error}); check the program"
            ) from error
        self._watch(self._rules.settle_s, None)

    def _tried(self, config: Config, level: float | None) -> Window | None:
        """The window of a configuration; None if it must be tried again, as nothing was heard of any configuration."""
        if config != self.current:
            try:
                self._program.apply(config)
            except RefusedError as error:
                return self._failed("refused", None, str(error))
            self.current = config
            self._source.read(self._clock.now())  # what came before does not count
            settling = self._watch(self._rules.settle_s, level)
            if settling.bad:
                return self._rolled_back(settling)
        problem = ""
        for _ in range(EMPTY_WINDOWS):
            seen = self._watch(self._rules.every_s, level)
            if seen.bad:
                return self._rolled_back(seen)
            if (ending := self._program.ending()) is not None:
                return self._failed("ended", None, ending)
            if seen.numbers:
                self.last_good, self._has_numbers = config, True
                return Window("measured", self._statistic(seen.numbers))
            problem = seen.problem
        return self._silence(config, problem)

    def _silence(self, config: Config, problem: str) -> Window | None:
        """Whether a configuration is the reason why there was no number: the last good one has one at once then."""
        if not self._has_numbers:
            raise UnavailableError(f"no number in {EMPTY_WINDOWS} windows: {problem}; check --read and the program")
        if config != self.last_good:
            self.put_back()
            if self._watch(self._rules.every_s, None).numbers:
                return Window("silent", None, problem)
        for _ in range(LONGEST_SILENCE):  # nobody uses the program at the moment
            if self._watch(self._rules.every_s, None).numbers:
                return None
        raise UnavailableError(f"no number in {LONGEST_SILENCE} windows; start again when the program is in use")

    def _rolled_back(self, seen: _Seen) -> Window:
        values = [value for value in seen.bad if value is not None]
        if not values:
            return self._failed("rolled back", None, seen.problem)
        return self._failed("rolled back", self._statistic(values), "worse than the bound")

    def _failed(self, ending: Ending, value: float | None, reason: str) -> Window:
        self.put_back()
        return Window(ending, value, reason)

    def _watch(self, seconds: float, level: float | None) -> _Seen:
        """Read the number several times; end early if the guard acts."""
        numbers: list[float] = []
        bad: list[float | None] = []
        problem = "it was not read"
        step = self._rules.every_s / READINGS
        end = self._clock.now() + seconds
        while (left := end - self._clock.now()) > 0:
            self._wait(min(step, left))
            reading = self._source.read(self._clock.now())
            numbers += reading.numbers
            problem = reading.problem or problem
            if not reading.numbers and not reading.is_failure:
                continue
            value = self._statistic(reading.numbers) if reading.numbers else None
            bad = [*bad, value] if self._is_bad(value, level) else []
            if len(bad) >= READINGS_TO_ACT:
                return _Seen(tuple(numbers), problem, tuple(bad))
        return _Seen(tuple(numbers), problem)

    def _is_bad(self, value: float | None, level: float | None) -> bool:
        """Whether a reading is worse than the bound; None means that nobody answered."""
        guard = self._rules.guard
        return guard is not None and level is not None and (value is None or guard.is_worse(value, level))

    def _wait(self, seconds: float) -> None:
        end = self._clock.now() + seconds
        self.beat(self._clock.now())
        while (left := end - self._clock.now()) > 0:
            self._clock.sleep(min(left, _LONGEST_SLEEP_S))
            self.beat(self._clock.now())


def percentile_95(values: Sequence[float]) -> float:
    """The smallest value that at least 95 % of the values do not exceed."""
    ordered = sorted(values)
    return ordered[-(-95 * len(ordered) // 100) - 1]


STATISTICS: Mapping[str, Callable[[Sequence[float]], float]] = {
    "mean": mean_of,
    "median": median_of,
    "p95": percentile_95,
}
"""How the numbers of a window become one."""
