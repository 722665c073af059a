"""Compares the store with the trace that the tuned program left: every run of it, and every experiment."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from luthier.store.base import Record
from luthier.trial import Completed, Config, Failed, Lost, Run

Kind: TypeAlias = Literal["tuner", "worker", "server", "supervisor", "program"]
"""Which process is killed."""

Breach: TypeAlias = Literal["lost", "doubled", "invented", "mismatched", "unfinished", "left alive"]
"""What must never happen.

`lost`: an execution or an experiment without a record, a record that vanished or changed, a run that ended well and is
recorded otherwise. `doubled`: a run executed twice, a trial or a launch made twice. `invented`: recorded as completed,
but never carried out. `mismatched`: the value or configuration of another run. `unfinished`: an experiment that does
not reach its end. `left alive`: a program that runs although its run is over.
"""

BREACHES: tuple[Breach, ...] = ("lost", "doubled", "invented", "mismatched", "unfinished", "left alive")
PARAMETERS = ("A", "B", "D")


@dataclass(frozen=True, slots=True)
class Kill:
    """A process that was killed; `key` names the run whose supervisor or program it was.

    `is_fatal` is true for a supervisor that had taken on its run and died before it wrote the result: that run is lost.
    """

    kind: Kind
    key: str = ""
    is_fatal: bool = False


@dataclass(frozen=True, slots=True)
class Evidence:
    """Everything that the audit compares.

    `trace` has the lines of the program, `seen` the completed runs that were read from the store between the kills,
    `launched` the names of all experiments that were asked for, `alive` the runs that still have a process.
    """

    experiments: Sequence[tuple[Record, Sequence[Run]]]
    trace: Sequence[str]
    kills: Sequence[Kill] = ()
    seen: Mapping[str, Run] = field(default_factory=dict)
    launched: Collection[str] = ()
    alive: Collection[str] = ()


Finding: TypeAlias = tuple[Breach, str]


def audit(evidence: Evidence) -> list[Finding]:
    """Every breach, with the run or experiment that it concerns."""
    runs = {run.key(record.uid): run for record, many in evidence.experiments for run in many}
    started, finished = _lines(evidence.trace, "started"), _lines(evidence.trace, "finished")
    kills: dict[str, list[Kill]] = defaultdict(list)
    for kill in evidence.kills:
        kills[kill.key].append(kill)
    findings = list(_experiments(evidence))
    for key in started.keys() | finished.keys() | runs.keys():
        findings += _executions(key, runs.get(key), started[key], finished[key])
    for key, run in runs.items():
        findings += _outcome(key, run, kills[key], _Done(bool(started[key]), bool(finished[key])))
    findings += [("lost", f"{key}: {run.outcome} is no longer so") for key, run in evidence.seen.items()
                 if key not in runs or runs[key].outcome != run.outcome]  # fmt: skip
    findings += [("left alive", key) for key in evidence.alive]
    return findings


def expected_value(config: Config) -> float:
    """What the tuned program prints for a configuration."""
    a, b, d = (float(config[name]) for name in PARAMETERS)
    return 100.0 * a + 10.0 * b + d


def _lines(trace: Iterable[str], word: str) -> dict[str, list[str]]:
    """The configurations in the lines that begin with `word`, by the key of the run."""
    found: dict[str, list[str]] = defaultdict(list)
    for line in trace:
        first, key, config = line.split(" ", 2)
        if first == word:
            found[key].append(config)
    return found


def _executions(key: str, run: Run | None, started: Sequence[str], finished: Sequence[str]) -> Iterator[Finding]:
    """What the trace says about one run."""
    if run is None:
        yield "lost", f"{key}: it was executed, and the store does not know it"
        return
    if len(started) > 1 or len(finished) > 1:
        yield "doubled", f"{key}: started {len(started)} times, finished {len(finished)} times"
    config = " ".join(str(run.config[name]) for name in PARAMETERS)
    if any(other != config for other in (*started, *finished)):
        yield "mismatched", f"{key}: recorded with {config}, executed with {started} {finished}"


@dataclass(frozen=True, slots=True)
class _Done:
    """How far the program came."""

    started: bool
    finished: bool


def _outcome(key: str, run: Run, kills: Sequence[Kill], done: _Done) -> Iterator[Finding]:
    """Whether a run is recorded as what became of it."""
    outcome, kinds = run.outcome, {kill.kind for kill in kills}
    must_be_lost = any(kill.is_fatal for kill in kills)
    if isinstance(outcome, Completed):
        if must_be_lost or not done.finished:
            yield "invented", f"{key}: completed, but it was never carried out to its end"
        elif outcome.value != expected_value(run.config):
            yield "mismatched", f"{key}: {outcome.value} recorded for {run.config}"
    elif isinstance(outcome, Failed) and not must_be_lost:
        if "program" not in kinds or outcome.reason != "killed by SIGKILL":
            yield "lost", f"{key}: failed for no reason: {outcome.reason}"
    elif not isinstance(outcome, Lost) or not (must_be_lost or ("supervisor" in kinds and not done.started)):
        yield "lost", f"{key}: recorded as {outcome}, {done}, killed were {sorted(kinds)}"


def _experiments(evidence: Evidence) -> Iterator[Finding]:
    """Each exists once, has come to its end, and measured no configuration of its search twice."""
    counts = Counter(record.name for record, _ in evidence.experiments)
    for name in evidence.launched:
        if counts[name] == 0:
            yield "lost", f"experiment {name}"
    for record, runs in evidence.experiments:
        if counts[record.name] > 1:
            yield "doubled", f"experiment {record.name} is there {counts[record.name]} times"
        if record.status != "finished":
            yield "unfinished", f"experiment {record.name} is {record.status}"
        completed = Counter(run.trial for run in runs if run.purpose != "verify" and isinstance(run.outcome, Completed))
        yield from (("doubled", f"{record.name}: trial {one}") for one, count in completed.items() if count > 1)
