"""Tuning of a running program: from what was asked for to the loop."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Unpack

from luthier.engine.interrupts import Interrupts
from luthier.errors import InvalidInputError
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
from luthier.spec.settings import GivenSettings, Settings, all_settings
from luthier.spec.template import placeholders
from luthier.store import open_server_store
from luthier.texts import LONGEST_NAME, check_name, shown, visible
from luthier.trial import Config

SETTINGS = frozenset({"budget", "optimizer", "seed", "estimator", "verify_pairs", "timeout_s", "time_limit_s"})
"""The settings of experiments that a running program has too."""

_TIMEOUT_S = 30.0
_EVERY = "5s"
_SHORTEST_WINDOW_S = 0.1
_SHORTEST_READING_S = 2.0  # a command needs some time to start on a busy machine
_SETTLE = 0.2  # of a window
_GUARD = 2.0
_AGAIN = "the search ends, and its best is compared with the default; press Ctrl-C again to stop at once"


@dataclass(frozen=True, slots=True)
class ProgramRequest:
    """What was asked for: the parameters, the number to improve, how values take effect, and how long windows are."""

    space: Space
    read: str | None
    write: Sequence[str]
    reload: str | None
    signal: str | None
    pid_file: Path | None
    command: Sequence[str]
    statistic: str
    rate: bool
    every: str
    settle: str | None
    guard: float
    keep_watching: bool
    goal: Goal
    shell: bool


@dataclass(frozen=True, slots=True)
class TunedProgramResult:
    """The result of tuning a running program, and the name of its on-line session.

    `was_cut_short` tells whether it was stopped at once, so that something was left out.
    """

    name: str
    result: ProgramResult
    was_cut_short: bool


def tune(  # noqa: PLR0913 - keywords, as the options of `luthier tune --online`
    space: Space,
    *,
    read: str | None = None,
    write: Sequence[str] = (),
    reload: str | None = None,
    signal: str | None = None,
    pid_file: Path | None = None,
    command: Sequence[str] = (),
    statistic: str = "mean",
    rate: bool = False,
    every: str = _EVERY,
    settle: str | None = None,
    guard: float = _GUARD,
    keep_watching: bool = False,
    goal: Goal = "minimize",
    shell: bool = False,
    name: str = "",
    store: str | None = None,
    say: Callable[[str], None] | None = None,
    **settings: Unpack[GivenSettings],
) -> TunedProgramResult:
    """Tune a program that is running, such as a server, without restarts: search, verify, leave the winner in place.

    `read` is the number to improve. Values get into files by `write`, each TEMPLATE:FILE, and take effect by the
    command `reload`, or by a `signal` to the process of `pid_file` or of the `command`, which is then started first.
    A `guard` of 0 disables it. `say` gets a line for each window. A tuning that did not end goes on under the same
    `name`. `luthier tune --help` explains more. Of the settings, a running program has `SETTINGS`.
    """
    windows = (statistic, rate, every, settle, guard)
    request = ProgramRequest(
        space, read, write, reload, signal, pid_file, command, *windows, keep_watching, goal, shell
    )
    return _tuned(request, check_name(name, "--name"), store, _read(settings), say)


def _read(given: Mapping[str, Any]) -> Settings:
    """The settings, checked."""
    if unfit := [name for name in given if name not in SETTINGS]:
        raise InvalidInputError(f"{unfit[0]} is not for a running program; it has {', '.join(sorted(SETTINGS))}")
    kinds = {setting.field: setting.kind for setting in all_settings()}
    values: dict[str, Any] = {name: kinds[name].read(value) for name, value in given.items()}
    return Settings(**values)


def _tuned(
    request: ProgramRequest, name: str, store: str | None, values: Settings, say: Callable[[str], None] | None
) -> TunedProgramResult:
    """Tune as requested. Without `say`, no progress is shown."""
    timeout_s = values.timeout_s or _TIMEOUT_S
    rules = window_rules(request)
    source = _source(request, timeout_s, rules.every_s)
    files = [written_file(text) for text in request.write]
    _check(request, files)
    session = OnlineSession(request.space, _online_settings(request, values))
    plan = TuningPlan(values.budget, values.verify_pairs, request.keep_watching)
    record = open_record(
        online_sessions_in(open_server_store(store)), name, _usual_name(request, files), session, time.time()
    )
    process = _process(request, record.folder)
    reload = _reload(request, process, timeout_s)
    program = TunedProgram(ProgramSettings(request.space, files, reload, record.folder), process)
    running = RunningProgram(program, source, rules, _SystemClock())
    interrupts = Interrupts(hangup=True)
    stop_asked = _stop_asked(interrupts, record, values.time_limit_s, say or (lambda _: None))
    tuning = ProgramTuning(session, running, record, plan, _SystemClock(), stop_asked)
    if say is not None:
        _report(tuning, record.record.name, session, say)
    with interrupts, _working(record, session, tuning, running, program):
        result = tuning.run()
    return TunedProgramResult(record.record.name, result, tuning.was_cut_short)


def _report(tuning: ProgramTuning, name: str, session: OnlineSession, say: Callable[[str], None]) -> None:
    tuning.watch = _Lines(name, session, say)
    tuning.found = lambda found: say(f"search {found.searches}: {found.verdict}; watching for a change")


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


def window_rules(request: ProgramRequest) -> WindowRules:
    """How long windows are, and what is guarded."""
    every_s = _seconds(request.every, "--every")
    if every_s < _SHORTEST_WINDOW_S:
        raise InvalidInputError(f"--every {request.every}: too short; give at least {_SHORTEST_WINDOW_S:g} s")
    settle_s = _SETTLE * every_s if request.settle is None else _seconds(request.settle, "--settle")
    guard = Guard(request.guard, request.goal) if request.guard != 0 else None
    return WindowRules(every_s, settle_s, request.statistic, guard)


def _source(request: ProgramRequest, timeout_s: float, every_s: float) -> NumberSource:
    """The number to improve; a reading takes at most a window, so that the guard is not kept waiting."""
    if request.read is None:
        raise InvalidInputError(f"--online needs a number to improve; add --read: {HOW}")
    timeout_s = min(timeout_s, max(_SHORTEST_READING_S, every_s))
    return number_source(request.read, timeout_s=timeout_s, shell=request.shell, rate=request.rate)


def _check(request: ProgramRequest, files: Sequence[WrittenFile]) -> None:
    if (request.reload is None) == (request.signal is None):
        raise InvalidInputError("--online: give either --reload COMMAND or --signal NAME, so that values take effect")
    if request.pid_file is not None and request.signal is None:
        raise InvalidInputError("--pid-file is for --signal; add it, or leave out --pid-file")
    if len({file.target for file in files}) < len(files):
        raise InvalidInputError("--write: two templates have the same file; give each its own")
    check_used(request.space, [*(file.text for file in files), request.reload or ""])
    used = sorted(placeholders(" ".join(request.command)) & set(request.space.names))
    if used:
        raise InvalidInputError(
            f"the command contains {{{used[0]}}}, but it is started once; use {{{used[0]}}} in --write or --reload"
        )
    _reload(request, _process(request, Path()), _TIMEOUT_S)


def _process(request: ProgramRequest, folder: Path) -> ServerProcess | None:
    return ServerProcess(request.command, folder) if request.command else None


def _reload(request: ProgramRequest, process: ServerProcess | None, timeout_s: float) -> Reload:
    if request.reload is not None:
        return reload_command(request.reload, request.space, timeout_s, shell=request.shell)
    pid_file = process.pid_file if process is not None and request.pid_file is None else request.pid_file
    return reload_signal(request.signal or "", pid_file)


def _online_settings(request: ProgramRequest, values: Settings) -> OnlineSettings:
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


def _usual_name(request: ProgramRequest, files: Sequence[WrittenFile]) -> str:
    words = (request.reload or "").split()
    first = files[0].target.name if files else Path(words[0]).name if words else "program"
    return visible(first)[: LONGEST_NAME - 5]


def _seconds(text: str, flag: str) -> float:
    try:
        return parse_duration(text)
    except InvalidInputError as error:
        raise InvalidInputError(f"{flag}: {error}") from None


def _stop_asked(
    interrupts: Interrupts, record: ProgramRecord, time_limit_s: float | None, say: Callable[[str], None]
) -> Callable[[float], StopRequested | None]:
    """Whether the user, the page or the time limit ends the search."""
    end = None if time_limit_s is None else time.time() + time_limit_s
    said: list[str] = []

    def asked(now: float) -> StopRequested | None:
        is_stopped = record.is_stop_requested(now)
        if interrupts.terminated or interrupts.count > 1:
            return StopRequested("interrupted", at_once=True)
        if interrupts.count:
            if not said:
                said.append(_AGAIN)
                say(_AGAIN)
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
    """One line for each window."""

    def __init__(self, name: str, session: OnlineSession, say: Callable[[str], None]) -> None:
        self._session, self._say = session, say
        self._count = 0
        say(f"on-line session {name}")

    def __call__(self, config: Config, window: Window) -> None:
        """Say what came out of a window."""
        self._count += 1
        value = "" if window.value is None else value_text(window.value, "")
        said = value if window.ending == "measured" else f"{window.ending}: {value or window.reason}"
        best = self._session.best
        known = "" if best.value is None else f"  [best: {value_text(best.value, '')}]"
        self._say(f"window {self._count:>3}  {said}  {config_text(config, self._session.space)}{known}")
