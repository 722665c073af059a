"""A program, its number and a clock that a test controls: nothing waits."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from luthier.errors import RefusedError
from luthier.online.session_view import SessionView
from luthier.online.unchanged.number_sources import NumbersRead
from luthier.online.unchanged.program_tuning import Note
from luthier.trial import Config, Sample


@dataclass
class FakeClock:
    time: float = 1_000_000.0

    def now(self) -> float:
        return self.time

    def sleep(self, seconds: float) -> None:
        assert 0 < seconds <= 0.5, "waits must be short, so that requests to stop are seen"
        self.time += seconds


@dataclass
class ScriptedProgram:
    """`value` gives the number of a configuration, None for none; `refuses` those that it does not accept.

    With those of `fails` nobody answers.
    """

    value: Callable[[Config | None], float | None]
    refuses: Callable[[Config | None], bool] = lambda _: False
    fails: Callable[[Config | None], bool] = lambda _: False
    applied: list[Config | None] = field(default_factory=list)
    in_place: Config | None = None
    readings: list[Config | None] = field(default_factory=list)
    ended: bool = False

    def apply(self, config: Config | None) -> None:
        self.applied.append(config)
        if self.refuses(config):
            raise RefusedError("syntax error")
        self.in_place = config

    def ending(self) -> str | None:
        return "killed" if self.ended else None

    def start(self, config: Config | None) -> None:
        self.ended = False
        self.apply(config)

    def read(self, now: float) -> NumbersRead:
        self.readings.append(self.in_place)
        if self.fails(self.in_place):
            return NumbersRead((), "connection refused", is_failure=True)
        value = self.value(self.in_place)
        return NumbersRead((), "nobody is there") if value is None else NumbersRead((value,))


@dataclass
class KeptEvidence:
    samples: list[Sample] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    views: list[SessionView] = field(default_factory=list)

    def keep(self, sample: Sample) -> None:
        self.samples.append(sample)

    def note(self, note: Note) -> None:
        self.notes.append(note)

    def show(self, view: SessionView, now: float) -> None:
        self.views.append(view)


def counts(items: Sequence[Config | None], config: Config | None) -> int:
    return sum(item == config for item in items)
