"""Kills processes of one site at random moments until enough are dead, lets the rest end, and audits the store."""

import random
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from tests.kill import processes
from tests.kill.audit import Breach, Evidence, Finding, Kill, Kind, audit
from tests.kill.launches import Launches
from tests.kill.processes import Victim
from tests.kill.site import Site, Started

from luthier.runners.job_folder import JobFolder
from luthier.trial import Completed, Run

KINDS: tuple[Kind, ...] = get_args(Kind)
_BRIEF: tuple[Kind, ...] = ("supervisor", "program")
_BRIEF_S = 0.6  # how long to wait at most before a process of a run is killed
_BESIDE_START_S = 1.5  # and before the others, beyond twice the time that luthier takes to start
_LONGEST_S = 10.0  # however slow the machine is
_LAUNCHED = 1  # experiments that wait or run on the server all the time
_LOOK_EVERY_S = 0.1
_GLANCE_S = 0.004
_PATIENCE_S = 300.0


@dataclass(frozen=True, slots=True)
class Report:
    """What became of the runs.

    `repeated` counts launches that were repeated although they had been stored, because the answer was lost; `given_up`
    experiments that the workers gave up and that were resumed on the command line.
    """

    kills: Mapping[Kind, int]
    experiments: int
    executions: int
    repeated: int
    given_up: int
    findings: Sequence[Finding]
    took_s: float

    def count(self, breach: Breach) -> int:
        """How often something happened that must not."""
        return sum(found == breach for found, _ in self.findings)


class Torture:
    """Kills processes of the named kinds."""

    def __init__(self, folder: Path, kinds: Sequence[Kind], *, seed: int, store: str | None = None) -> None:
        self._kinds = kinds
        self._luck = random.Random(seed)
        self._site = Site(folder, store)
        self._launches = Launches(self._site, lambda: None if self._server is None else self._server.address())
        self._server: Started | None = None
        self._worker: Started | None = None
        self._tuner: Started | None = None
        self._longest_s = 0.0
        self._asked = 0
        self._kills: list[Kill] = []
        self._seen: dict[str, Run] = {}
        self._given_up: set[int] = set()

    def run(self, kills: int) -> Report:
        """Kill so many processes."""
        began = time.monotonic()
        try:
            self._launches.start()
            self._longest_s = min(2.0 * (time.monotonic() - began) + _BESIDE_START_S, _LONGEST_S)
            for kind in self._in_random_order(kills):
                longest_s = _BRIEF_S if kind in _BRIEF else self._longest_s / len(self._kinds)
                self._work_for(self._luck.uniform(0.0, longest_s))
                self._kill_one_of(kind)
                self._remember()
            self._settle()
            return self._report(time.monotonic() - began)
        finally:
            self._launches.end()
            self._site.end()

    def _in_random_order(self, kills: int) -> Iterator[Kind]:
        """So many kinds of processes, each as often as the others."""
        for begin in range(0, kills, len(self._kinds)):
            yield from self._luck.sample(self._kinds, min(len(self._kinds), kills - begin))

    def _work_for(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while True:
            self._tend(begin=True)
            if time.monotonic() >= until:
                return
            time.sleep(min(_LOOK_EVERY_S, seconds))

    def _tend(self, *, begin: bool) -> bool:
        """Start what was killed, and new experiments if wanted; return whether everything has been finished."""
        if self._server is None or self._server.has_ended():
            self._server = self._site.start("serve", "--port", "0", "--local", "2")
        if self._worker is None or self._worker.has_ended():
            self._worker = self._site.start("worker", "--local", "2")
        unfinished = [record for record in self._site.records() if record.status != "finished"]
        if begin and self._launches.open + sum(record.unattended for record in unfinished) < _LAUNCHED:
            self._launch()
        if self._tuner is None or self._tuner.has_ended():
            mine = [record.id for record in unfinished if record.status == "failed" or not record.unattended]
            self._given_up |= {record.id for record in unfinished if record.status == "failed"}
            self._tuner = self._site.start("resume", "--quiet", str(mine[0])) if mine else None
            if not mine and begin:
                self._asked += 1
                self._tuner = self._site.tune(f"tuned-{self._asked}", self._asked)
        return not unfinished and not self._launches.open and self._tuner is None

    def _launch(self) -> None:
        self._asked += 1
        self._launches.ask(f"launched-{self._asked}", self._asked)

    def _wait_for_a_launch(self) -> None:
        """Launch an experiment and return while the server is at it: at random, or as soon as it is in the store."""
        known = len(self._site.records())
        self._launch()
        if self._luck.random() < 0.5:
            time.sleep(self._luck.uniform(0.0, 1.5 * self._launches.takes_s))
            return
        give_up_at = time.monotonic() + self._longest_s
        while len(self._site.records()) == known and time.monotonic() < give_up_at:
            time.sleep(_GLANCE_S)

    def _kill_one_of(self, kind: Kind) -> None:
        """Kill one as soon as there is one."""
        give_up_at = time.monotonic() + _PATIENCE_S
        while time.monotonic() < give_up_at:
            victims = self._victims(kind)
            if kind == "server":
                self._wait_for_a_launch()
            dead = processes.kill(self._luck.choice(victims)) if victims else None
            if dead is not None:
                self._kills.append(dead)
                return
            self._tend(begin=True)
            time.sleep(_LOOK_EVERY_S)
        raise RuntimeError(f"no {kind} to kill: luthier makes no progress")

    def _victims(self, kind: Kind) -> Sequence[Victim]:
        if kind == "tuner":
            return processes.tuners(self._site.folder)
        if kind == "supervisor":
            return processes.supervisors(self._site.folder)
        if kind == "program":
            return processes.programs(self._site.runs)
        started = self._server if kind == "server" else self._worker
        return [] if started is None else [Victim(kind, started.process.pid)]

    def _remember(self) -> None:
        """What the store says at this moment must still be so in the end."""
        for record in self._site.records():
            if record.status != "finished":
                runs = self._site.store.runs(record.id)
                self._seen |= {run.key(record.uid): run for run in runs if isinstance(run.outcome, Completed)}

    def _settle(self) -> None:
        """Let everything end, however long that takes as long as there is progress."""
        progress, since = -1, time.monotonic()
        while not self._tend(begin=False) and time.monotonic() - since < _PATIENCE_S:
            runs = sum(record.runs for record in self._site.records())
            if runs > progress:
                progress, since = runs, time.monotonic()
            time.sleep(_LOOK_EVERY_S)

    def _report(self, took_s: float) -> Report:
        experiments = [(record, self._site.store.runs(record.id)) for record in self._site.records()]
        trace = self._site.trace.read_text().splitlines() if self._site.trace.exists() else []
        folders = self._site.runs.iterdir() if self._site.runs.exists() else ()
        alive = [one.name for one in folders if any(process.is_alive() for process in JobFolder(one).processes()[1:])]
        evidence = Evidence(experiments, trace, self._kills, self._seen, self._launches.names, alive)
        return Report(
            kills=Counter(kill.kind for kill in self._kills),
            experiments=len(experiments),
            executions=sum(line.startswith("started ") for line in trace),
            repeated=self._launches.repeated,
            given_up=len(self._given_up),
            findings=audit(evidence),
            took_s=took_s,
        )
