"""A server that luthier starts, and stops at the end; it goes on if luthier is killed, and is found again."""

import os
import signal
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from luthier.errors import UnavailableError
from luthier.measures.output import tail
from luthier.online.unchanged.program_settings import ProgramSettings
from luthier.online.unchanged.written_file import replace_file
from luthier.store.ownership import is_running, start_time
from luthier.texts import visible
from luthier.trial import Config

STOP_S = 10.0
"""A server that has not ended after this time is killed."""

_LONGEST_SAID = 300


@dataclass(slots=True)
class ServerProcess:
    """The process of a command; `folder` has its number (`server.pid`) and its output (`server.log`)."""

    argv: Sequence[str]
    folder: Path
    _child: "subprocess.Popen[bytes] | None" = field(default=None, init=False)

    @property
    def pid_file(self) -> Path:
        """Number and start time of the process."""
        return self.folder / "server.pid"

    def is_running(self) -> bool:
        """Whether it runs, started by this luthier or by one that was killed."""
        if self._child is not None and self._child.poll() is not None:
            return False
        known = self._known()
        return known is not None and is_running(*known)

    def start(self) -> None:
        """Start it."""
        with (self.folder / "server.log").open("ab") as log:
            try:
                self._child = subprocess.Popen(
                    list(self.argv), stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
                )
            except (OSError, ValueError) as error:
                said = getattr(error, "strerror", None) or error
                raise UnavailableError(f"{self.argv[0]}: cannot be started ({said})") from None
        started = start_time(self._child.pid) or "ended"
        replace_file(self.pid_file, f"{self._child.pid} {started}\n".encode())

    def stop(self) -> None:
        """End it: SIGTERM, and SIGKILL if it takes too long."""
        known = self._known()
        for number in (signal.SIGTERM, signal.SIGKILL):
            if known is None or not is_running(*known):
                break
            with suppress(ProcessLookupError):
                os.kill(known[0], number)
            end = time.monotonic() + STOP_S
            while is_running(*known) and time.monotonic() < end:
                time.sleep(0.02)
        if self._child is not None:
            with suppress(subprocess.TimeoutExpired):
                self._child.wait(STOP_S)
        self.pid_file.unlink(missing_ok=True)

    def last_words(self) -> str:
        """The end of its output, for a message."""
        return " ".join(tail(self.folder / "server.log").split())[-_LONGEST_SAID:]

    def _known(self) -> tuple[int, str] | None:
        try:
            pid, started = self.pid_file.read_text(encoding="ascii").split()
            return int(pid), started
        except (OSError, ValueError):
            return None


@dataclass(frozen=True, slots=True)
class TunedProgram:
    """A running program with the means to set its parameters; `process` is None if it was not started by luthier."""

    settings: ProgramSettings
    process: ServerProcess | None = None

    def apply(self, config: Config | None) -> None:
        """Set a configuration, None for the original."""
        self.settings.apply(config)

    def ending(self) -> str | None:
        """The last output of a program that luthier started, after it has ended; None while it runs."""
        if self.process is None or self.process.is_running():
            return None
        return f"the program ended ({visible(self.process.last_words()) or 'it printed nothing'})"

    def start(self, config: Config | None) -> None:
        """Start the program with this configuration."""
        if self.process is None:
            raise UnavailableError("the program is not running; start it, then start luthier again")
        self.settings.write(config)
        self.process.start()
