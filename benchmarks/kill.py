"""Kill luthier with -9 at random moments, resume it, and count: nothing that completed may be lost or run again.

    python -m benchmarks.kill [--kills 200] [--seed 0]

The tuned program writes one line when it has done its work, so its log is the truth that the store is held against.
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LUTHIER = [sys.executable, "-m", "luthier"]
WORK = "sleep 0.0{d}; echo {a} {b} {d} >> {{log}}"


@dataclass(frozen=True, slots=True)
class Report:
    """What the torture showed.

    `lost`: records that were in the store before a kill and not after it; `unrecorded`: executions beyond those in
    the store, so lost or run again; `invented`: records of what was never executed.
    """

    kills: int
    experiments: int
    executed: int
    lost: int
    unrecorded: int
    invented: int


class Torture:
    """Experiments in one store, killed and resumed until `kills` kills have been dealt out."""

    def __init__(self, folder: Path, seed: int, budget: int = 25) -> None:
        self._folder = folder
        self._luck = random.Random(seed)
        self._budget = budget
        self._environment = {**os.environ, "LUTHIER_STORE": str(folder / "luthier.db"), "XDG_DATA_HOME": str(folder)}
        began = time.monotonic()
        self._ask("list", "--json")
        self._start_s = time.monotonic() - began
        self._kills = self._experiments = self._executed = self._lost = self._unrecorded = self._invented = 0

    def run(self, kills: int) -> Report:
        """Deal out the kills, then let the last experiment end in peace."""
        while self._kills < kills:
            self._experiment(kills)
        return Report(self._kills, self._experiments, self._executed, self._lost, self._unrecorded, self._invented)

    def _experiment(self, kills: int) -> None:
        number = self._experiments + 1
        log = self._folder / f"log{number}"
        command = WORK.replace("{{log}}", str(log))
        knobs = ["-p", "a=1..40", "-p", "b=x,y,z", "-p", "d=1..5", "--workers", str(self._luck.choice([1, 2]))]
        options = ["--seed", str(number), "-n", str(self._budget), "--verify", "2", "--shell"]
        start = ["tune", "--quiet", *knobs, *options, "--", command]
        known: Counter[str] = Counter()
        ended = False
        while not ended:
            begun = self._status(number) is not None
            arguments = ["resume", "--quiet", str(number)] if begun else start
            ended = self._sitting(arguments, peaceful=self._kills >= kills) or self._status(number) == "finished"
            stored = self._completed(number)
            self._lost += sum((known - stored).values())
            known = stored
        self._experiments += 1
        done = Counter(log.read_text(encoding="utf-8").split("\n"))
        del done[""]
        self._executed += sum(done.values())
        self._unrecorded += sum((done - known).values())
        self._invented += sum((known - done).values())

    def _sitting(self, arguments: list[str], *, peaceful: bool) -> bool:
        """Start luthier; kill it after a while unless it ends before; return whether it ended by itself."""
        process = subprocess.Popen(
            [*LUTHIER, *arguments], env=self._environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
        try:
            patience_s = None if peaceful else self._luck.uniform(0.0, 2 * self._start_s + 1.5)
            _, problems = process.communicate(timeout=patience_s)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.communicate()
            self._kills += 1
            return False
        if process.returncode != 0:
            raise RuntimeError(f"luthier {' '.join(arguments)} failed: {problems.decode()}")
        return True

    def _status(self, number: int) -> str | None:
        return next((str(entry["status"]) for entry in self._ask("list", "--json") if entry["number"] == number), None)

    def _completed(self, number: int) -> Counter[str]:
        """The configurations of completed runs, each as the line that the program wrote."""
        if self._status(number) is None:
            return Counter()
        runs = self._ask("export", str(number), "--format", "json")
        configs = [run["config"] for run in runs if run["outcome"] == "completed"]
        return Counter(f"{config['a']} {config['b']} {config['d']}" for config in configs)

    def _ask(self, *arguments: str) -> list[dict[str, Any]]:
        answer = subprocess.run([*LUTHIER, *arguments], env=self._environment, capture_output=True, check=True)
        entries: list[dict[str, Any]] = json.loads(answer.stdout)
        return entries


def main() -> None:
    """Torture, and print the report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        began = time.monotonic()
        report = Torture(Path(folder), options.seed).run(options.kills)
        print(f"{report} in {time.monotonic() - began:.0f} s")
        sys.exit(1 if report.lost or report.unrecorded or report.invented else 0)


if __name__ == "__main__":
    main()
