"""An experiment of many Slurm jobs while Slurm and the tuner are restarted and killed: each is accounted for once.

While the experiment runs, the controller is restarted twice, a node is killed with all that runs on it, and the tuner
is killed with -9. Every job writes a line when it begins and one when it has done its work, so its log is the truth
that the store is held against.
"""

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.slurm.cluster import Cluster

from luthier.engine.session import carry_on
from luthier.runners.slurm import Batch, SlurmRunner
from luthier.space import Integer, Space
from luthier.spec.experiment import Experiment
from luthier.store import open_store
from luthier.trial import Completed, Config, Lost

SLOTS = 16
OUTAGE_S = 2.0
PATIENCE_S = 900.0
WORK = """#!/bin/sh
#SBATCH --ntasks=1
key=$(basename "$(dirname "$0")")
echo "begin $key" >>"$LOG"
sleep 1.$((WORK % 10))
echo "end $key" >>"$LOG"
"""


@dataclass(frozen=True, slots=True)
class Report:
    """What became of the jobs.

    `unaccounted`: runs without an outcome, or executions without a run; `repeated`: runs executed more than once;
    `invented`: completed runs that never ended; `forgotten`: executions that ended and are neither completed nor lost;
    `left`: jobs still in the queue. All of these must be 0.
    """

    runs: int
    completed: int
    lost: int
    other: int
    unaccounted: int
    repeated: int
    invented: int
    forgotten: int
    left: int

    @property
    def is_flawless(self) -> bool:
        return not (self.unaccounted or self.repeated or self.invented or self.forgotten or self.left)


def tune(folder: Path, jobs: int) -> None:
    """Work on the one experiment of the folder, from wherever it is."""
    store = open_store(str(folder / "luthier.db"))
    space = Space(Integer("work", 1, 10 * jobs))
    experiment = Experiment(
        space=space, optimizer="random", budget=jobs, slots=SLOTS, resample="once", verify_pairs=0, timeout_s=60.0
    )
    records = store.experiments()
    record = records[0] if records else store.create("survival", experiment.to_json(), time.time())

    def render(config: Config) -> Batch:
        return Batch(WORK, {"LOG": str(folder / "log"), "WORK": str(config["work"])})

    runner = SlurmRunner(render, folder / "runs", experiment.slots, ask_every_s=0.5, settle_s=2.0)
    carry_on(store, record, experiment, runner)


class Survival:
    """The experiment as a process of its own, and what is done to it."""

    def __init__(self, folder: Path, slurm: Cluster, jobs: int) -> None:
        self._folder = folder
        self._slurm = slurm
        self._jobs = jobs
        self._tuner = self._start()

    def run(self) -> Report:
        """Do everything that may happen to an experiment in a bad week, then count."""
        for share, misfortune in (
            (0.1, self._restart_controller),
            (0.3, self._kill_tuner),
            (0.5, self._kill_node),
            (0.7, self._restart_controller),
        ):
            self._wait_for_jobs(share)
            misfortune()
        self._wait(lambda: self._tuner.poll() is not None)
        return self._count()

    def stop(self) -> None:
        """Leave nothing behind."""
        self._tuner.kill()
        self._tuner.wait()

    def _start(self) -> "subprocess.Popen[bytes]":
        argv = [sys.executable, "-m", "tests.slurm.survival", str(self._folder), str(self._jobs)]
        environment = {**os.environ, **self._slurm.environment}
        return subprocess.Popen(argv, cwd=Path(__file__).parents[2], env=environment, stdin=subprocess.DEVNULL)

    def _restart_controller(self) -> None:
        self._slurm.order("stop slurmctld")
        time.sleep(OUTAGE_S)
        self._slurm.order("start slurmctld")

    def _kill_tuner(self) -> None:
        self._tuner.send_signal(signal.SIGKILL)
        self._tuner.wait()
        self._tuner = self._start()

    def _kill_node(self) -> None:
        self._slurm.lose(self._slurm.nodes[-1])

    def _wait_for_jobs(self, share: float) -> None:
        self._wait(lambda: self._ended() >= share * self._jobs)

    def _wait(self, true: Callable[[], bool]) -> None:
        give_up_at = time.monotonic() + PATIENCE_S
        while not true():
            if self._tuner.poll():
                raise RuntimeError(f"the tuner failed with exit code {self._tuner.returncode}")
            if time.monotonic() > give_up_at:
                raise TimeoutError(f"{self._ended()} of {self._jobs} jobs ended in {PATIENCE_S:g} s")
            time.sleep(0.05)

    def _log(self) -> list[list[str]]:
        log = self._folder / "log"
        return [line.split() for line in log.read_text().splitlines()] if log.exists() else []

    def _ended(self) -> int:
        return sum(what == "end" for what, _ in self._log())

    def _count(self) -> Report:
        store = open_store(str(self._folder / "luthier.db"))
        [record] = store.experiments()
        outcomes = {run.key(record.uid): run.outcome for run in store.runs(record.id)}
        begun = Counter(key for what, key in self._log() if what == "begin")
        ended = {key for what, key in self._log() if what == "end"}
        completed = {key for key, outcome in outcomes.items() if isinstance(outcome, Completed)}
        lost = {key for key, outcome in outcomes.items() if isinstance(outcome, Lost)}
        return Report(
            runs=len(outcomes),
            completed=len(completed),
            lost=len(lost),
            other=len(outcomes) - len(completed) - len(lost),
            unaccounted=sum(outcome is None for outcome in outcomes.values()) + len(begun.keys() - outcomes.keys()),
            repeated=sum(count > 1 for count in begun.values()),
            invented=len(completed - ended),
            forgotten=len(ended - completed - lost),
            left=len(self._slurm.run("squeue", "--noheader", "--format=%A").split()),
        )


if __name__ == "__main__":
    tune(Path(sys.argv[1]), int(sys.argv[2]))
