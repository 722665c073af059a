"""`luthier tune --online`: from its options to the loop, and the result on the terminal."""

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table

from luthier.cli.arguments import default_note, space_from
from luthier.cli.setting_options import read_settings
from luthier.cli.terminal import cell, print_json, print_view, say
from luthier.cli.tune_modes import TuneRequest
from luthier.engine.interrupts import Interrupts
from luthier.errors import InvalidInputError
from luthier.online.commands.tune_options import OnlineChoices
from luthier.online.session import OnlineSession
from luthier.online.session_settings import Goal, OnlineSettings
from luthier.online.store import online_sessions_in
from luthier.online.strategies.sampling import ESTIMATORS
from luthier.online.unchanged.guard import Guard
from luthier.online.unchanged.number_sources import HOW, NumberSource, number_source
from luthier.online.unchanged.program_record import ProgramRecord, open_record
from luthier.online.unchanged.program_result import ProgramResult
from luthier.online.unchanged.program_settings import ProgramSettings, Reload, check_used, reload_command, reload_signal
from luthier.online.unchanged.program_tuning import ProgramTuning, StopRequested, TuningPlan
from luthier.online.unchanged.running_program import RunningProgram, Window, WindowRules
from luthier.online.unchanged.server_process import ServerProcess, TunedProgram
from luthier.online.unchanged.written_file import WrittenFile, written_file
from luthier.result.text import config_text, value_text
from luthier.space import Space
from luthier.spec.durations import parse_duration
from luthier.spec.settings import Settings
from luthier.spec.template import placeholders
from luthier.store import open_server_store
from luthier.texts import LONGEST_NAME, check_name, shown, visible
from luthier.trial import Config

_TIMEOUT_S = 30.0
_EVERY = "5s"
_SHORTEST_WINDOW_S = 0.1
_SHORTEST_READING_S = 2.0  # a command needs some time to start on a busy machine
_SETTLE = 0.2  # of a window
_GUARD = 2.0
_AGAIN = "the search ends, and its best is compared with the default; press Ctrl-C again to stop at once"


@dataclass(frozen=True, slots=True)
class OnlineRequest:
    """What was asked for."""

    chosen: OnlineChoices
    space: Space
    command: Sequence[str]
    settings: Mapping[str, Any]
    maximize: bool
    shell: bool

    @property
    def goal(self) -> Goal:
        """Whether higher or lower is better."""
        return "maximize" if self.maximize else "minimize"


def tune_online(chosen: OnlineChoices, asked: TuneRequest) -> int:
    """Tune a running program; the exit code is 130 if it was stopped immediately."""
    name = check_name(asked.name, "--name")
    space = space_from(asked.parameters, asked.constraints)
    request = OnlineRequest(chosen, space, asked.command, asked.settings, maximize=asked.maximize, shell=asked.shell)
    note = "" if asked.quiet else default_note(asked.parameters, space)
    return _tuned(request, name, asked.store, note=note, as_json=asked.as_json)


def _tuned(request: OnlineRequest, name: str, store: str | None, *, note: str, as_json: bool) -> int:
    """Tune as requested. Without a `note`, show no progress."""
    values = Settings(**read_settings(request.settings))
    timeout_s = values.timeout_s or _TIMEOUT_S
    rules = window_rules(request)
    source = _source(request, timeout_s, rules.every_s)
    files = [written_file(text) for text in request.chosen.write or []]
    _check(request, files)
    session = OnlineSession(request.space, _online_settings(request, values))
    plan = TuningPlan(values.budget, values.verify_pairs, request.chosen.keep_watching)
    record = open_record(
        online_sessions_in(open_server_store(store)), name, _usual_name(request, files), session, time.time()
    )
    process = _process(request, record.folder)
    reload = _reload(request, process, timeout_s)
    program = TunedProgram(ProgramSettings(request.space, files, reload, record.folder), process)
    running = RunningProgram(program, source, rules, _SystemClock())
    interrupts = Interrupts(hangup=True)
    stop_asked = _stop_asked(interrupts, record, values.time_limit_s, speaks=bool(note))
    tuning = ProgramTuning(session, running, record, plan, _SystemClock(), stop_asked)
    if note:
        say(note, sys.stderr)
        tuning.watch = _Lines(record.record.name, session)
        tuning.found = lambda found: say(f"search {found.searches}: {found.verdict}; watching for a change", sys.stderr)
    with interrupts, _working(record, session, tuning, running, program):
        result = tuning.run()
    show(result, record.record.name, as_json=as_json)
    return 130 if tuning.was_cut_short else 0


@contextmanager
def _working(
    record: ProgramRecord, session: OnlineSession, tuning: ProgramTuning, running: RunningProgram, program: TunedProgram
) -> Iterator[None]:
    """Continue what was kept, start the program if it must be started, and stop it at the end."""
    has_ended = False
    try:
        samples = record.samples()
        session.replay(samples, record.record.view)
        tuning.replay(samples, record.notes())
        program.settings.keep_originals()
        if program.ending() is not None:
            program.start(session.space.default)
            running.current = session.space.default
        yield
        has_ended = not tuning.was_cut_short
    finally:
        if program.process is not None:
            program.process.stop()
        program.settings.forget_restored()
        record.finish(session.view(), time.time(), has_ended=has_ended)


def window_rules(request: OnlineRequest) -> WindowRules:
    """How long windows are, and what is guarded."""
    chosen = request.chosen
    every_s = _seconds(chosen.every or _EVERY, "--every")
    if every_s < _SHORTEST_WINDOW_S:
        raise InvalidInputError(f"--every {chosen.every}: too short; give at least {_SHORTEST_WINDOW_S:g} s")
    settle_s = _SETTLE * every_s if chosen.settle is None else _seconds(chosen.settle, "--settle")
    factor = _GUARD if chosen.guard is None else chosen.guard
    guard = Guard(factor, request.goal) if factor != 0 else None
    return WindowRules(every_s, settle_s, chosen.statistic or "mean", guard)


def _source(request: OnlineRequest, timeout_s: float, every_s: float) -> NumberSource:
    """The number to improve; a reading takes at most a window, so that the guard is not kept waiting."""
    if request.chosen.read is None:
        raise InvalidInputError(f"--online needs a number to improve; add --read: {HOW}")
    timeout_s = min(timeout_s, max(_SHORTEST_READING_S, every_s))
    return number_source(request.chosen.read, timeout_s=timeout_s, shell=request.shell, rate=request.chosen.rate)


def _check(request: OnlineRequest, files: Sequence[WrittenFile]) -> None:
    chosen = request.chosen
    if (chosen.reload is None) == (chosen.signal is None):
        raise InvalidInputError("--online: give either --reload COMMAND or --signal NAME, so that values take effect")
    if chosen.pid_file is not None and chosen.signal is None:
        raise InvalidInputError("--pid-file is for --signal; add it, or leave out --pid-file")
    if len({file.target for file in files}) < len(files):
        raise InvalidInputError("--write: two templates have the same file; give each its own")
    check_used(request.space, [*(file.text for file in files), chosen.reload or ""])
    used = sorted(placeholders(" ".join(request.command)) & set(request.space.names))
    if used:
        raise InvalidInputError(
            f"the command contains {{{used[0]}}}, but it is started once; use {{{used[0]}}} in --write or --reload"
        )
    _reload(request, _process(request, Path()), _TIMEOUT_S)


def _process(request: OnlineRequest, folder: Path) -> ServerProcess | None:
    return ServerProcess(request.command, folder) if request.command else None


def _reload(request: OnlineRequest, process: ServerProcess | None, timeout_s: float) -> Reload:
    chosen = request.chosen
    if chosen.reload is not None:
        return reload_command(chosen.reload, request.space, timeout_s, shell=request.shell)
    pid_file = process.pid_file if process is not None and chosen.pid_file is None else chosen.pid_file
    return reload_signal(chosen.signal or "", pid_file)


def _online_settings(request: OnlineRequest, values: Settings) -> OnlineSettings:
    estimator = "median" if values.estimator == "auto" else values.estimator
    if estimator not in ESTIMATORS:
        raise InvalidInputError(
            f"--estimator {shown(estimator)}: not supported with --online; give one of {', '.join(ESTIMATORS)}"
        )
    return OnlineSettings(
        strategy=values.optimizer,
        estimator=estimator,  # type: ignore[arg-type]  # it was checked
        goal=request.goal,
        watch=False,  # what is in place may be the default, which a session does not watch
        seed=values.seed,
    )


def _usual_name(request: OnlineRequest, files: Sequence[WrittenFile]) -> str:
    words = (request.chosen.reload or "").split()
    first = files[0].target.name if files else Path(words[0]).name if words else "program"
    return visible(first)[: LONGEST_NAME - 5]


def _seconds(text: str, flag: str) -> float:
    try:
        return parse_duration(text)
    except InvalidInputError as error:
        raise InvalidInputError(f"{flag}: {error}") from None


def _stop_asked(
    interrupts: Interrupts, record: ProgramRecord, time_limit_s: float | None, *, speaks: bool
) -> Callable[[float], StopRequested | None]:
    """Whether the user, the page or the time limit ends the search."""
    end = None if time_limit_s is None else time.time() + time_limit_s
    said: list[str] = []

    def asked(now: float) -> StopRequested | None:
        is_stopped = record.is_stop_requested(now)
        if interrupts.terminated or interrupts.count > 1:
            return StopRequested("interrupted", at_once=True)
        if interrupts.count:
            if speaks and not said:
                said.append(_AGAIN)
                say(_AGAIN, sys.stderr)
            return StopRequested("interrupted")
        if is_stopped:
            return StopRequested("it was stopped")
        return StopRequested("the time limit is reached") if end is not None and now > end else None

    return asked


class _SystemClock:
    """The clock of this machine."""

    def now(self) -> float:
        """Seconds since the epoch."""
        return time.time()

    def sleep(self, seconds: float) -> None:
        """Wait."""
        time.sleep(seconds)


class _Lines:
    """One line on the terminal for each window."""

    def __init__(self, name: str, session: OnlineSession) -> None:
        self._session = session
        self._count = 0
        say(f"on-line session {name}", sys.stderr)

    def __call__(self, config: Config, window: Window) -> None:
        """Print a window."""
        self._count += 1
        value = "" if window.value is None else value_text(window.value, "")
        said = value if window.ending == "measured" else f"{window.ending}: {value or window.reason}"
        best = self._session.best
        known = "" if best.value is None else f"  [best: {value_text(best.value, '')}]"
        say(f"window {self._count:>3}  {said}  {config_text(config, self._session.space)}{known}", sys.stderr)


def show(result: ProgramResult, name: str, *, as_json: bool) -> None:
    """Print the result."""
    if as_json:
        print_json({"name": name, **result.to_json()})
        return
    table = Table(box=None, pad_edge=False, header_style="dim")
    for heading in ("", "value", "configuration"):
        table.add_column(cell(heading))
    for row in result.rows():
        table.add_row(*map(cell, row))
    place = "the best configuration is in place" if result.improved else "what was there before is in place"
    lines: list[RenderableType] = [table, cell(result.verdict, style="bold")]
    lines += [cell(f"{result.windows} windows; the search ended: {result.ending}")]
    lines += [cell(result.troubles.sentence)] if result.troubles.sentence else []
    lines += [cell(place)]
    print_view(Group(*lines))
