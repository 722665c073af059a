"""One store with a server, a worker and a tuner: started, started again when they were killed, and kept busy."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tests.kill.processes import MARK, commands

from luthier.store import open_store
from luthier.store.base import Record, Store

PROGRAM = Path(__file__).with_name("program.sh")
BUDGET = 8
_ENDING_S = 30.0
_MEASURE = "regex:value: ([0-9]+)$"
_DOCUMENT = """
experiment:
  name: {name}
  budget: {budget}
  workers: {workers}
  seed: {seed}
  verify: 1
  resample: once
  measure: "{measure}"
  script: "exec sh {program} {trace} $A $B $D"
definitions:
  target:
    parameters:
      A: {{env_var: true, type: int, default: 1}}
      B: {{env_var: true, type: int, default: 1}}
      D: {{env_var: true, type: int, default: 1}}
components:
  target: {{A: {{min: 1, max: 40}}, B: {{min: 1, max: 3}}, D: {{min: 1, max: 5}}}}
"""


@dataclass(slots=True)
class Started:
    """A process of luthier, and the file that its messages go to."""

    process: "subprocess.Popen[bytes]"
    messages: Path

    def has_ended(self) -> bool:
        """Whether it is gone; an error unless it ended well or was killed by this benchmark."""
        code = self.process.poll()
        if code is not None and code not in (0, -signal.SIGKILL):
            raise RuntimeError(f"{self.process.args!r} ended with {code}: {self.messages.read_text()}")
        return code is not None

    def address(self) -> str | None:
        """Where a server is reached, once it says so."""
        found = re.search(r"http://[^/\s]+", self.messages.read_text())
        return None if found is None or self.process.poll() is not None else found[0]


class Site:
    """A folder with everything: the store unless it is elsewhere, the run folders, and the program's trace."""

    def __init__(self, folder: Path, store: str | None = None) -> None:
        self.folder = folder
        self.trace = folder / "trace"
        self.runs = folder / "luthier" / "runs"
        self._url = store or str(folder / "luthier.db")
        self._environment = {**os.environ, "LUTHIER_STORE": self._url, "XDG_DATA_HOME": str(folder), MARK: str(folder)}
        self._started: list[Started] = []
        self.store: Store = open_store(self._url)

    def run(self, *words: str, text: str = "") -> None:
        """Let a command of luthier run to its end."""
        command = [sys.executable, "-m", "luthier", *words]
        subprocess.run(command, env=self._environment, input=text.encode(), stdout=subprocess.DEVNULL, check=True)

    def start(self, *words: str) -> Started:
        """Start a command of luthier."""
        messages = self.folder / f"messages-{len(self._started)}"
        with messages.open("wb") as stderr:
            process = subprocess.Popen(
                [sys.executable, "-m", "luthier", *words],
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=stderr,
            )
        self._started.append(Started(process, messages))
        return self._started[-1]

    def tune(self, name: str, seed: int) -> Started:
        """Start an experiment on the command line."""
        knobs = ["-p", "A=1..40", "-p", "B=1..3", "-p", "D=1..5", "--workers", str(1 + seed % 2)]
        options = ["--name", name, "-n", str(BUDGET), "--verify", "1", "--resample", "once", "--seed", str(seed)]
        program = ["sh", str(PROGRAM), str(self.trace), "{A}", "{B}", "{D}"]
        return self.start("tune", "--quiet", *knobs, *options, "-m", _MEASURE, "--", *program)

    def document(self, name: str, seed: int) -> str:
        """The same experiment as a text for the server."""
        return _DOCUMENT.format(
            name=name,
            budget=BUDGET,
            workers=1 + seed % 2,
            seed=seed,
            measure=_MEASURE,
            program=PROGRAM,
            trace=self.trace,
        )

    def records(self) -> Sequence[Record]:
        """All experiments."""
        return self.store.experiments()

    def end(self) -> None:
        """Leave no process behind."""
        for started in self._started:
            if started.process.poll() is None:
                started.process.terminate()
        for started in self._started:
            with suppress(subprocess.TimeoutExpired):
                started.process.wait(_ENDING_S)
        while left := [pid for pid, _, _ in commands(self.folder)]:
            for pid in left:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            for started in self._started:
                started.process.poll()
            time.sleep(0.05)
