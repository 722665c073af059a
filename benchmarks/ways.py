"""What `benchmarks.house` traces: each way from what a person does to what comes out."""

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tests.io.kernel.test_io_tune import PROGRAM
from tests.slurm.cluster import cluster
from tests.submission.submitting import SCRIPT

_LIMIT_S = 300
_LOOP = """
import sys, luthier as lt
tuner = lt.RemoteTuner(sys.argv[1], "loop", lt.Space(lt.Integer("block", 1, 9)))
for value in range(40):
    config = tuner.fetch()
    tuner.report(abs(config["block"] - 4) + 1.0)
"""
_YAML = """
experiment: {name: yaml, budget: 4, verify: 0, runner: @RUNNER@, script: "true $LEVEL"}
definitions: {knob: {parameters: {LEVEL: {env_var: true, type: int, default: 1}}}}
components: {knob: {LEVEL: {min: 1, max: 9}}}
"""


@dataclass(frozen=True, slots=True)
class Traced:
    """A folder to work in, and the environment in which processes are traced."""

    folder: Path
    environment: Mapping[str, str]

    def run(self, *words: str, **variables: str) -> str:
        """Run a command of luthier to its end; returns what it prints."""
        done = subprocess.run(
            [sys.executable, "-m", "luthier", *words],
            cwd=self.folder,
            env={**self.environment, **self._places, **variables},
            stdout=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            check=True,
            text=True,
            timeout=_LIMIT_S,
        )
        return done.stdout

    def token(self, role: str) -> str:
        """A token of a new user."""
        for name in dict.fromkeys(["admin", role]):  # the first account must be an administrator
            self.run("user", "add", name, "--role", name, "--no-password")
        return self.run("user", "token", role).strip()

    @contextmanager
    def running(self, *words: str, until: str) -> Iterator[str]:
        """Let a command run for the time of a block, which gets what it said that matches `until`."""
        said = self.folder / "said"
        with said.open("wb") as stream:
            process = subprocess.Popen(
                [sys.executable, "-m", "luthier", *words],
                cwd=self.folder,
                env={**self.environment, **self._places},
                stdout=stream,
                stderr=stream,
                stdin=subprocess.DEVNULL,
            )
        try:
            for _ in range(_LIMIT_S):
                if (found := re.search(until, said.read_text())) is not None or process.poll() is not None:
                    break
                time.sleep(1)
            if found is None:
                raise RuntimeError(f"luthier {words[0]}: {said.read_text()}")
            yield found[0]
        finally:
            process.send_signal(signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                process.wait(20)
            process.kill()
            process.wait()

    @property
    def store(self) -> str:
        """Where everything is stored."""
        return str(self.folder / "store.db")

    @property
    def _places(self) -> dict[str, str]:
        return {"LUTHIER_STORE": self.store, "XDG_DATA_HOME": str(self.folder / "data")}


def command(way: Traced) -> None:
    """A tuning of 12 runs."""
    way.run("tune", "-n", "12", "--seed", "1", "-p", "level=1..9", "--", "true", "{level}")


def yaml_on_slurm(way: Traced) -> None:
    """A file, on Slurm."""
    (way.folder / "knob.yaml").write_text(_YAML.replace("@RUNNER@", "slurm"))
    with cluster(nodes=1) as slurm:
        way.run("run", "knob.yaml", **slurm.environment)


def click_to_live_page(way: Traced) -> None:
    """What the page of a launched experiment asks for."""
    token = way.token("admin")
    with way.running("serve", "--port", "0", until=r"http://[\w.:]+") as url:
        opener = urllib.request.build_opener()
        opener.addheaders = [("Authorization", f"Bearer {token}")]
        body = json.dumps({"yaml": _YAML.replace("@RUNNER@", "local")}).encode()
        launch = urllib.request.Request(f"{url}/api/v1/experiments", body, {"Content-Type": "application/json"})
        launched = opener.open(launch)
        page = f"/experiments/{json.load(launched)['id']}"
        for _ in range(_LIMIT_S):
            if json.load(opener.open(f"{url}/api/v1{page}"))["status"] == "finished":
                break
            time.sleep(1)
        for path in (page, f"/api/v1{page}", f"/api/v1{page}/runs"):
            opener.open(f"{url}{path}").read()
        with opener.open(f"{url}/api/v1{page}/events") as events:
            events.readline()


def online_report(way: Traced) -> None:
    """A Python loop with the on-line service."""
    address = f"unix:{way.folder}/o.sock"
    with way.running("online", "--listen", address, until="on-line sessions at"):
        subprocess.run([sys.executable, "-c", _LOOP, address], env=way.environment, check=True, timeout=_LIMIT_S)


def job_at_submission(way: Traced) -> None:
    """`luthier submit`, and the server that it asks."""
    token = way.token("submitter")
    with way.running("serve", "--port", "0", until=r"http://[\w.:]+") as url:
        (way.folder / "job.sh").write_text(SCRIPT)
        (way.folder / "sbatch").write_text("#!/bin/sh\nexit 0\n")
        (way.folder / "sbatch").chmod(0o755)
        variables = {"LUTHIER_URL": url, "LUTHIER_TOKEN": token}
        way.run("submit", "job.sh", PATH=f"{way.folder}:{os.environ['PATH']}", **variables)


def kernel(way: Traced) -> None:
    """An I/O kernel, verified."""
    (way.folder / "program.c").write_text(PROGRAM)
    data = way.folder / "data-of-runs"
    data.mkdir()
    (data / "size.txt").write_text("20\n")
    way.run(
        "io", "discover", "program.c", "--output", "kernel", "--folder", str(data), "--run", "{program} 10", "--", "-lm"
    )


WAYS: Mapping[str, Callable[[Traced], None]] = {
    "a tuning of 12 runs": command,
    "YAML on Slurm": yaml_on_slurm,
    "click to live page": click_to_live_page,
    "on-line report": online_report,
    "job at submission": job_at_submission,
    "kernel": kernel,
}
