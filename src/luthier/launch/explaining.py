"""Runs the default and the best configuration of an experiment once more, under the counters."""

import os
import secrets
import shutil
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from luthier.errors import InvalidInputError, LuthierError, UnavailableError
from luthier.folders import data_directory
from luthier.launch import stored
from luthier.launch.runners import closed_at_end, runner_of
from luthier.measures.instruments import INSTRUMENTS, Instrument
from luthier.result.explanation import Explanation, Observation, perf_counts, quantities_of
from luthier.result.result import Result
from luthier.runners.base import Runner
from luthier.runners.job_folder import JobFolder
from luthier.spec.experiment import Experiment
from luthier.spec.script import JobScript
from luthier.store import open_server_store
from luthier.store.base import Record
from luthier.store.ownership import status_text
from luthier.trial import Config, Execution, Job

_PERF_EVENTS = (
    "duration_time,raw_syscalls:sys_enter,instructions,cache-misses",
    "duration_time,instructions,cache-misses",
)
_POLL_S = 1.0
_PROBE_S = 10.0


@dataclass(frozen=True, slots=True)
class _Counting:
    """What can be counted here: `perf` is the command `perf stat` without its file, empty where it does not work.

    `notes` tell what is missing, and why.
    """

    perf: tuple[str, ...]
    instruments: tuple[Instrument, ...]
    notes: tuple[str, ...]


def explain(number: int, store: str | None = None, say: Callable[[str], None] = lambda _: None) -> Explanation:
    """Run the default and the best configuration of an experiment once more, and store what they did.

    `say` is told what is going on.
    """
    explanations = open_server_store(store).explanations
    record, result = stored.open(number, store)
    default, best = _both(record, result)
    counting = _counting(result.experiment)
    say("running the default under the counters")
    first = _observed(result.experiment, record.uid, default, counting, "default")
    say("running the best configuration under the counters")
    second = _observed(result.experiment, record.uid, best, counting, "best configuration")
    notes = list(counting.notes)
    silent = (one for one in counting.instruments if not any(name in first.quantities for name in one.quantities))
    notes += [one.if_nothing for one in silent]
    explanation = Explanation(time.time(), first, second, tuple(notes))
    explanations.put(number, explanation.to_json())
    return explanation


def _both(record: Record, result: Result) -> tuple[Config, Config]:
    """The two configurations; raise if there is nothing to explain."""
    if result.experiment.command is None:
        raise InvalidInputError(f"experiment {record.id} tunes a Python function; only commands can be explained")
    if status_text(record) in ("running", "queued"):
        raise InvalidInputError(f"experiment {record.id} is {status_text(record)}; wait until it has ended")
    if result.default is None or result.winner is None:
        raise InvalidInputError(f"experiment {record.id} has no result to explain: {result.verdict}")
    if result.winner.config == result.default.config:
        raise InvalidInputError(f"experiment {record.id}: its default is the best; there is no difference to explain")
    return result.default.config, result.winner.config


def _observed(experiment: Experiment, uid: str, config: Config, counting: _Counting, label: str) -> Observation:
    """What one run did; its files are removed."""
    key = f"{uid}-explain-{secrets.token_hex(6)}"
    folder = data_directory() / "runs" / key
    prefix = (*counting.perf, "-o", str(folder / "perf"), "--") if counting.perf else ()
    try:
        with closed_at_end(runner_of(experiment, instruments=counting.instruments, prefix=prefix)) as runner:
            execution = _ended(runner, Job(key, config, experiment.timeout_s, f"explain {label}"))
        if execution.problem is not None:
            reason = execution.problem.reason
            raise UnavailableError(f"the run of the {label} gave nothing to explain: {reason}; try again")
        logs = folder if execution.logs is None else Path(execution.logs)
        usage = dict(JobFolder(logs).usage() or execution.metrics)
        counted = _perf_of(folder / "perf")
        if isinstance(experiment.command, JobScript) and experiment.command.is_timed_apart:
            counted.pop("wall_s", None)  # the script tells when its time begins
        return Observation(dict(config), quantities_of(usage, _counted(logs, counting.instruments), counted))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _ended(runner: Runner, job: Job) -> Execution:
    """Run a job to its end; an interrupt cancels it."""
    runner.submit(job)
    try:
        while True:
            for execution in runner.poll([job.key], _POLL_S):
                return execution
    except KeyboardInterrupt:
        runner.cancel([job.key])
        runner.poll([job.key], 30.0)
        raise


def _counted(folder: Path, instruments: Sequence[Instrument]) -> dict[str, float]:
    found: dict[str, float] = {}
    for one in instruments:
        try:
            found.update(one.read(folder))
        except (OSError, ValueError) as error:
            raise UnavailableError(f"the counters of {one.what} are damaged: {error}; try again") from None
    return found


def _counting(experiment: Experiment) -> _Counting:
    notes, usable = [], []
    for one in map(INSTRUMENTS.get, INSTRUMENTS.own()):
        try:
            one.libraries()
            usable.append(one)
        except LuthierError as error:
            notes.append(f"{one.what} was not counted: {error}.")
    is_local = experiment.command is not None and experiment.command.where == "local"
    perf = _perf() if is_local else ()
    if not any("raw_syscalls" in word for word in perf):
        why = "perf counts on this machine only" if not is_local else "perf is not installed, or not allowed to do so"
        notes.append(f"System calls were not counted: {why}.")
    return _Counting(perf, tuple(usable), tuple(notes))


def _perf() -> tuple[str, ...]:
    """How perf is called here; what it counts depends on the kernel and on rights."""
    for events in _PERF_EVENTS:
        words = ("perf", "stat", "-x,", "-e", events)
        try:
            probe = [*words, "-o", os.devnull, "--", "true"]
            ended = subprocess.run(probe, capture_output=True, timeout=_PROBE_S, check=False)
        except (OSError, subprocess.TimeoutExpired):
            continue
        if ended.returncode == 0:
            return words
    return ()


def _perf_of(path: Path) -> dict[str, float]:
    try:
        return perf_counts(path.read_text(errors="replace"))
    except OSError:
        return {}
