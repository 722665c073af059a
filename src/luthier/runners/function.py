"""Runs a Python function in this process."""

import logging
import math
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import TypeAlias

from luthier.runners.checks import checked_slots, not_adopted, require_free_slot
from luthier.trial import Config, Execution, Failed, Job, Problem, Pruned, TimedOut

logger = logging.getLogger(__name__)

Returned: TypeAlias = float | Sequence[float]
"""What a function under test may return: its value, or one for each objective."""


@dataclass(frozen=True, slots=True, eq=False)
class _Call:
    job: Job
    started_at: float
    began: float

    def left_s(self) -> float:
        """How long the call may still take."""
        if self.job.timeout_s is None:
            return math.inf
        return self.began + self.job.timeout_s - time.monotonic()


class FunctionRunner:
    """Calls `function(config)` and takes the number or numbers that it returns; every call has a thread of its own.

    A thread cannot be killed. A call that is cancelled or out of time is reported immediately and its slot is free
    again, but the function goes on in the background until it returns; that late result is ignored. If it must be
    possible to stop a function, tune a command that calls it. Nothing survives the end of this process. A
    `KeyboardInterrupt` that the function raises is raised by `poll`, and its call is not reported.
    """

    def __init__(
        self, function: Callable[[Config], Returned], slots: int = 1, *, clock: Callable[[], float] = time.time
    ) -> None:
        self._function = function
        self._slots = checked_slots(slots)
        self._clock = clock
        self._changed = threading.Condition()
        self._calls: dict[str, _Call] = {}
        self._ended: dict[str, Execution] = {}
        self._reported: dict[str, tuple[Config, Execution]] = {}
        self._interrupt: KeyboardInterrupt | None = None

    def submit(self, job: Job) -> None:
        """Start the call; a key that was called before is reported again, not called again.

        For another configuration it is reported as lost.
        """
        with self._changed:
            if job.key in self._calls or job.key in self._ended:
                return
            require_free_slot(self._calls.keys() | self._ended.keys(), self._slots)
            if job.key in self._reported:
                config, execution = self._reported[job.key]
                lost = Execution(job.key, self._clock(), 0.0, not_adopted(job.key))
                self._ended[job.key] = execution if config == job.config else lost
                return
            call = _Call(job, self._clock(), time.monotonic())
            self._calls[job.key] = call
        threading.Thread(target=self._run, args=(call,), name=f"luthier-{job.key}", daemon=True).start()

    def poll(self, many: Sequence[str], wait_s: float) -> Sequence[Execution]:
        """Return those of the named calls that have ended; unknown names are ignored."""
        give_up_at = time.monotonic() + wait_s
        with self._changed:
            while True:
                if self._interrupt is not None:
                    raise self._interrupt
                calls = [self._calls[key] for key in many if key in self._calls]
                for call in calls:
                    if call.left_s() <= 0:
                        self._end(call, _timed_out(call.job))
                ended = [self._ended.pop(key) for key in many if key in self._ended]
                left_s = give_up_at - time.monotonic()
                if ended or not calls or left_s <= 0:
                    return ended
                pause_s = min(left_s, *(call.left_s() for call in calls), threading.TIMEOUT_MAX)
                self._changed.wait(max(0.0, pause_s))

    def cancel(self, many: Sequence[str]) -> None:
        """Give up the named calls: they are reported as pruned, and what they return later is ignored."""
        with self._changed:
            for call in [self._calls[key] for key in many if key in self._calls]:
                self._end(call, Pruned("cancelled"))

    def started_at(self, key: str) -> float | None:
        """When the call began; None if it is over, or was never made."""
        with self._changed:
            return self._calls[key].started_at if key in self._calls else None

    def _run(self, call: _Call) -> None:
        result: tuple[float, ...] | Problem
        try:
            result = numbers_of(self._function(Config(call.job.config)))
        except KeyboardInterrupt as interrupt:
            with self._changed:
                self._interrupt = interrupt
                self._changed.notify_all()
            return
        except BaseException as error:  # whatever the user's function raises, also SystemExit, is its failure
            logger.debug("run %s raised", call.job.key, exc_info=True)
            result = Failed(f"{type(error).__name__}: {error}")
        with self._changed:
            if self._calls.get(call.job.key) is call:
                self._end(call, _timed_out(call.job) if call.left_s() <= 0 else result)

    def _end(self, call: _Call, result: tuple[float, ...] | Problem) -> None:
        duration_s = time.monotonic() - call.began
        value, *others = result if isinstance(result, tuple) else (None,)
        self._ended[call.job.key] = Execution(
            key=call.job.key,
            started_at=call.started_at,
            duration_s=duration_s,
            problem=None if isinstance(result, tuple) else result,
            metrics={"wall_s": duration_s},
            value=value,
            others=tuple(others),
        )
        self._reported[call.job.key] = (call.job.config, self._ended[call.job.key])
        del self._calls[call.job.key]
        logger.debug(
            "run %s ended after %.3f s%s",
            call.job.key,
            duration_s,
            "" if isinstance(result, tuple) else f": {result.reason}",
        )
        self._changed.notify_all()


def _timed_out(job: Job) -> TimedOut:
    return TimedOut(f"took longer than {job.timeout_s:g} s")


def numbers_of(result: object) -> tuple[float, ...] | Problem:
    """Accept a number, or a few in a sequence: finite real ones, numpy's too.

    A bool is refused: it is probably a comparison that was returned by mistake.
    """
    plain = result if isinstance(result, Real) else getattr(result, "tolist", lambda: result)()
    parts = list(plain) if isinstance(plain, list | tuple) and len(plain) > 1 else [plain]
    numbers = [_number(part) for part in parts]
    if any(number is None for number in numbers):
        return Failed(f"returned {_short(result)}, expected a number")
    if not all(number is not None and math.isfinite(number) for number in numbers):
        return Failed(f"returned {_short(result)}, expected a finite number")
    return tuple(number for number in numbers if number is not None)


def _number(part: object) -> float | None:
    if isinstance(part, bool) or not isinstance(part, Real):
        return None
    try:
        return float(part)
    except OverflowError:
        return math.inf


def _short(result: object) -> str:
    text = repr(result)
    return f"{text if len(text) <= 60 else text[:57] + '...'} ({type(result).__name__})"
