"""Searches with many workers in virtual time: the CPU time of the search is real and charged to the virtual clock."""

import heapq
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

from luthier.optimizers.base import Optimizer
from luthier.runners.replay import ReplayedRun
from luthier.trial import Completed, Config, Estimate, Execution, Job, Outcome, Trial, Value

Evaluate = Callable[[Config], ReplayedRun]
"""How long a configuration occupies its worker, and the value or the problem it ends with."""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """One configuration on one worker, in virtual seconds since the search began."""

    config: Config
    result: float | Outcome
    started_s: float
    ended_s: float

    @property
    def value(self) -> float | None:
        """The value; None if the evaluation gave none."""
        return self.result if isinstance(self.result, float) else None


class Player(Protocol):
    """A search that suggests several configurations at once; `spent_s` returns the CPU seconds since the last call."""

    def ask(self, count: int) -> Sequence[Mapping[str, Value]]:
        """Suggest `count` configurations."""
        ...

    def tell(self, finished: Sequence[Evaluation]) -> None:
        """Learn how configurations ended."""
        ...

    def spent_s(self) -> float:
        """CPU seconds of the search since the last call."""
        ...


class OptimizerPlayer:
    """An optimizer of luthier in this process."""

    def __init__(self, optimizer: Optimizer) -> None:
        self._optimizer, self._spent_s = optimizer, 0.0
        self._running: dict[Config, None] = {}

    def ask(self, count: int) -> Sequence[Config]:
        """Suggest up to `count` configurations."""
        with self._charged():
            asked = self._optimizer.ask(count, list(self._running))
            self._running.update(dict.fromkeys(asked))
        return asked

    def tell(self, finished: Sequence[Evaluation]) -> None:
        """Learn how configurations ended."""
        with self._charged():
            for one in finished:
                del self._running[one.config]
            self._optimizer.tell([trial_of(one) for one in finished])

    def spent_s(self) -> float:
        """CPU seconds of the search since the last call."""
        spent_s, self._spent_s = self._spent_s, 0.0
        return spent_s

    @contextmanager
    def _charged(self) -> Iterator[None]:
        start = time.process_time()
        yield
        self._spent_s += time.process_time() - start


def trial_of(one: Evaluation) -> Trial:
    """What an optimizer is told of an evaluation."""
    if isinstance(one.result, float):
        return Trial(one.config, (Completed(one.result),), Estimate(one.result, 1))
    return Trial(one.config, (one.result,), None)


def simulate(
    player: Player, evaluate: Evaluate, workers: int, *, horizon_s: float, most: int | None = None
) -> list[Evaluation]:
    """Keep `workers` busy until `horizon_s`, or until `most` evaluations were started; return all, ordered by end.

    One process tells and asks: what ends while it is busy waits until it is ready.
    """
    now, started = 0.0, 0
    heap: list[tuple[float, int, Evaluation]] = []
    done: list[Evaluation] = []
    while now < horizon_s and (most is None or started < most):
        ended = []
        while heap and heap[0][0] <= now:
            ended.append(heapq.heappop(heap)[2])
        if ended:
            player.tell(ended)
            done += ended
        asked = player.ask(workers - len(heap))
        now += player.spent_s()
        for raw in asked:
            config = Config(raw)
            answer = evaluate(config)
            one = Evaluation(config, answer.result, now, now + answer.duration_s)
            heapq.heappush(heap, (one.ended_s, started, one))
            started += 1
        if not heap:
            break
        if len(heap) == workers:
            now = max(now, heap[0][0])
    return done + [one for _, _, one in sorted(heap, key=lambda entry: entry[:2])]


def utilisation(evaluations: Sequence[Evaluation], workers: int, until_s: float) -> float:
    """The share of `workers` that was busy up to `until_s`."""
    busy = sum(max(min(one.ended_s, until_s) - min(one.started_s, until_s), 0.0) for one in evaluations)
    return busy / (workers * until_s)


class CpuClock:
    """Virtual time that passes with the CPU time of this process, and that can be moved forward."""

    def __init__(self) -> None:
        self._skipped_s = -time.process_time()

    def __call__(self) -> float:
        return time.process_time() + self._skipped_s

    def wait_until(self, moment_s: float) -> None:
        """Move the time forward to `moment_s`, if that is not over."""
        self._skipped_s += max(moment_s - self(), 0.0)


class ChargedRunner:
    """A runner in virtual time for the whole engine, whose CPU time makes the clock go on."""

    def __init__(self, evaluate: Evaluate, clock: CpuClock) -> None:
        self.evaluations: list[Evaluation] = []
        self._evaluate, self._clock = evaluate, clock
        self._running: dict[str, Evaluation] = {}
        self._ends: list[tuple[float, str]] = []

    def submit(self, job: Job) -> None:
        """Start the job now."""
        answer, now = self._evaluate(job.config), self._clock()
        one = Evaluation(job.config, answer.result, now, now + answer.duration_s)
        self.evaluations.append(one)
        self._running[job.key] = one
        heapq.heappush(self._ends, (one.ended_s, job.key))

    def poll(self, many: Sequence[str], wait_s: float) -> Sequence[Execution]:
        """Return what has ended; if nothing has, move on to the next end."""
        del many, wait_s
        self._clock.wait_until(self._ends[0][0])
        now, ended = self._clock(), []
        while self._ends and self._ends[0][0] <= now:
            ended.append(heapq.heappop(self._ends)[1])
        return [_execution(key, self._running.pop(key)) for key in ended]

    def cancel(self, many: Sequence[str]) -> None:
        """Nothing is cancelled in a benchmark."""

    def started_at(self, key: str) -> float | None:
        """When the job began."""
        return self._running[key].started_s if key in self._running else None


def _execution(key: str, one: Evaluation) -> Execution:
    duration_s = one.ended_s - one.started_s
    if isinstance(one.result, float):
        return Execution(key, one.started_s, duration_s, value=one.result)
    if isinstance(one.result, Completed):
        return Execution(key, one.started_s, duration_s, value=one.result.value)
    return Execution(key, one.started_s, duration_s, one.result)
