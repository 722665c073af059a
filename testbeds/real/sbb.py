"""A real burst buffer to tune: an application that writes checkpoints, with libsbb.so preloaded (see `docs/sbb.md`)."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import luthier as lt
from luthier.compiled import library
from luthier.errors import UnavailableError
from testbeds.real.slow_storage import SlowStorage

# The eight parameters of Robert's thesis, table 2.3, with its defaults. The caches, which have none there, are scaled
# to the checkpoints below, and the largest sizes are the defaults as in section 2.3.3.
SPACE = lt.Space(
    lt.Integer("SBB_RDMA_POLLERS", 1, 8, default=2),
    lt.Integer("SBB_WORKERS", 1, 16, default=10),
    lt.Integer("SBB_RAM_DESTAGERS", 1, 16, default=10),
    lt.Integer("SBB_FLASH_DESTAGERS", 1, 16, default=10),
    lt.Integer("SBB_RAM_CACHE", 16 << 20, 64 << 20, step=16 << 20, default=64 << 20),
    lt.Integer("SBB_RAM_THRESHOLD_PERCENT", 10, 90, step=10, default=80),
    lt.Integer("SBB_FLASH_CACHE", 32 << 20, 128 << 20, step=32 << 20, default=128 << 20),
    lt.Integer("SBB_FLASH_THRESHOLD_PERCENT", 10, 90, step=10, default=80),
)

STORAGE = {"size_bytes": 1 << 30, "write_iops": 2000, "write_bytes_s": 24 << 20}
# Options of burst, after table 4.2: large blocks from a few processes, small ones from many.
APPLICATIONS: dict[str, tuple[str, ...]] = {
    "bandwidth": ("--processes", "4", "--bursts", "3", "--bytes", "12M", "--block", "1M", "--compute-ms", "500"),
    "latency": ("--processes", "16", "--bursts", "3", "--bytes", "1M", "--block", "4k", "--compute-ms", "500"),
}
START_S, STOP_S = 60, 300  # how long a daemon may take to start (recovery included) and to drain
READY = "sbbd: ready"


@dataclass(frozen=True, slots=True)
class Programs:
    """Where the built programs are."""

    sbbd: Path
    libsbb: Path
    burst: Path


def build() -> Programs:
    """Build the programs, unless that was done before."""
    return Programs(library("sbbd"), library("sbb"), library("burst"))


class Daemon:
    """A running sbbd; `stop` drains it, `kill` is kill -9."""

    def __init__(
        self,
        sbbd: Path,
        folder: Path,
        target: Path,
        settings: Mapping[str, object] | None = None,
        *,
        storage: SlowStorage | None = None,
    ) -> None:
        self.sbbd, self.folder, self.target = sbbd, folder, target
        command = [str(sbbd), "--folder", str(folder), "--target", str(target)]
        variables = {name: value for name, value in os.environ.items() if not name.startswith("SBB_")}
        variables.update({name: str(value) for name, value in (settings or {}).items()})
        self.process = subprocess.Popen(
            command if storage is None else storage.inside(command),
            stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            env=variables,
            text=True,
        )
        self.messages: list[str] = []
        self._wait_until_ready()

    def _wait_until_ready(self) -> None:
        stderr = self.process.stderr
        assert stderr is not None  # noqa: S101 - said with PIPE above
        timer = threading.Timer(START_S, self.process.kill)
        timer.start()
        try:
            for line in stderr:
                self.messages.append(line.rstrip("\n"))
                if line.startswith(READY):
                    return
        finally:
            timer.cancel()
        self.process.communicate()
        raise UnavailableError(f"sbbd did not start: {'; '.join(self.messages) or 'it said nothing'}")

    def preload(self, libsbb: Path) -> dict[str, str]:
        """The variables that send the writes of a program here."""
        return {"LD_PRELOAD": str(libsbb), "SBB_FOLDER": str(self.folder), "SBB_TARGET": str(self.target)}

    def counter(self, name: str) -> int:
        """One of its counters (see `docs/sbb.md`)."""
        return int(json.loads(self._ask("--status"))[name])

    def drain(self) -> None:
        """Wait until everything is in the target."""
        self._ask("--drain")

    def stop(self) -> int:
        """Let it drain and end; its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self._ended()

    def kill(self) -> None:
        """End it as a crash would."""
        self.process.kill()
        self._ended()

    def _ended(self) -> int:
        try:
            self.messages += self.process.communicate(timeout=STOP_S)[1].splitlines()
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.communicate()
            raise
        return self.process.returncode

    def _ask(self, action: str) -> str:
        command = [str(self.sbbd), "--folder", str(self.folder), action]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=STOP_S).stdout


@contextlib.contextmanager
def daemon(
    sbbd: Path,
    folder: Path,
    target: Path,
    settings: Mapping[str, object] | None = None,
    *,
    storage: SlowStorage | None = None,
) -> Iterator[Daemon]:
    """A daemon that has drained and ended after the `with` block, or was killed if that was left by an error."""
    running = Daemon(sbbd, folder, target, settings, storage=storage)
    try:
        yield running
    except BaseException:
        if running.process.poll() is None:
            running.kill()
        raise
    running.stop()


@dataclass(frozen=True, slots=True)
class Checkpoints:
    """An application that writes checkpoints to slow storage; a call with a configuration measures it in seconds."""

    programs: Programs
    storage: SlowStorage
    application: Sequence[str]
    mode: str = "flash"

    def __call__(self, config: lt.Config) -> float:
        """Seconds that the application spent in its bursts, with a daemon set up as the configuration says."""
        folder = Path(tempfile.mkdtemp(prefix="luthier-sbb-", dir="/var/tmp"))
        try:
            settings = {**config, "SBB_MODE": self.mode}
            with daemon(self.programs.sbbd, folder, self.storage.folder, settings, storage=self.storage) as running:
                return self._run(running.preload(self.programs.libsbb))
        finally:
            shutil.rmtree(folder, ignore_errors=True)
            self._clean()

    def plain(self) -> float:
        """The same without a burst buffer."""
        try:
            return self._run({})
        finally:
            self._clean()

    def _run(self, variables: Mapping[str, str]) -> float:
        # With env, so that the library is not preloaded into the shell that enters the group.
        command = ["env", *(f"{name}={value}" for name, value in variables.items()), str(self.programs.burst)]
        command = self.storage.inside([*command, *self.application, str(self.storage.folder)])
        ended = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        return float(json.loads(ended.stdout)["seconds"])

    def _clean(self) -> None:
        for path in self.storage.folder.glob("checkpoint-*"):
            path.unlink()
