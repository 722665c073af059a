"""What a Dask worker does for luthier: it takes a run on only once, supervises it, and returns what it left."""

import os
import secrets
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, TYPE_CHECKING

from distributed import Reschedule, get_client, get_worker

from luthier.errors import NotFoundError
from luthier.runners import supervisor
from luthier.runners.dask_folder import CALL, RETURNED
from luthier.runners.job_folder import JobFolder
from luthier.runners.output_files import end_of_file
from luthier.runners.supervisor import JobFile, decoded

if TYPE_CHECKING:
    from distributed import Client

NEWS = "luthier"
"""The topic of events for all tuners: which run has begun, and when."""

LONGEST_OUTPUT_BYTES = 16 * 1024 * 1024
"""Only so much of the end of an output is sent to the tuner; measures read no more of it either."""

_LOOK_EVERY_S = 0.1
_TURN_S = 0.5


@dataclass(frozen=True, slots=True)
class FilesOfRun:
    """The files that a run left; None if it was not made because its name was claimed before, by `first`."""

    files: Mapping[str, bytes] | None
    first: str = ""


@dataclass(frozen=True, slots=True)
class Claim:
    """Who was the first to claim a name; `is_own` if that is the claim just made."""

    by: str
    is_own: bool


def claim(client: "Client", name: str, by: str) -> Claim:
    """Claim a name permanently, unless that was done before: the scheduler keeps the order of events."""
    token = secrets.token_hex(8)
    if not (claims := _claims(client, name)):
        client.log_event(name, {"token": token, "by": by})
        claims = _claims(client, name)
    return Claim(claims[0]["by"], claims[0]["token"] == token)


def _claims(client: "Client", name: str) -> list[dict[str, str]]:
    return [message for _, message in client.get_events(name) if "token" in message]


def execute(name: str, job: bytes, files: Mapping[str, bytes]) -> FilesOfRun:
    """Make a run, by its name on the cluster, the content of its job file and further files for its folder.

    One at a time; Dask looks for another worker if this one, with several threads, is busy.

    Dask may call this again for the same run, whose claim then shows that it was made before.
    """
    if not _turn.acquire(timeout=_TURN_S):
        raise Reschedule
    try:
        return _execute(name, job, files)
    finally:
        _turn.release()


def _execute(name: str, job: bytes, files: Mapping[str, bytes]) -> FilesOfRun:
    client, worker = get_client(), get_worker()
    claimed = claim(client, name, worker.address)
    if not claimed.is_own:
        return FilesOfRun(None, claimed.by)

    def tell(began_at: float) -> None:
        client.log_event([name, NEWS], {"name": name, "began_at": began_at})

    with TemporaryDirectory(prefix="luthier-", dir=worker.local_directory) as path:
        folder = JobFolder(Path(path))
        folder.prepare(_for_this_machine(decoded(job), path, is_call=CALL in files), files)
        _supervise(name, folder, tell)
        return FilesOfRun(_left_in(folder.path))


def stop(name: str) -> None:
    """Stop a run of this worker, also one that is about to start."""
    with _lock:
        if name in _running:
            _close(_running[name])
        else:
            _stopped.add(name)


_turn = threading.Lock()
_lock = threading.Lock()
_running: dict[str, IO[bytes]] = {}
_stopped: set[str] = set()


def _for_this_machine(job: JobFile, folder: str, *, is_call: bool) -> JobFile:
    """The job with this machine's Python, in the run's own folder if the tuner's working folder does not exist here."""
    if is_call:
        job.argv = [os.fsencode(word) for word in (sys.executable, "-P", "-m", "luthier.runners.dask_call", folder)]
    if not os.path.isdir(job.cwd):  # noqa: PTH112  # bytes
        job.cwd = os.fsencode(folder)
    return job


def _supervise(name: str, folder: JobFolder, tell: Callable[[float], None]) -> None:
    """Run the job to its end under a supervisor that stops it when this worker dies, or `stop` is called."""
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", supervisor.__file__, str(folder.path), supervisor.TIED],
        env=supervisor.inherited(os.environ),
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    tie = process.stdin
    if tie is None:
        raise AssertionError("the process has no pipe")
    with _lock:
        _running[name] = tie
        if name in _stopped:
            _close(tie)
    try:
        _wait(process, folder, tell)
    finally:
        with _lock:
            del _running[name]
            _stopped.discard(name)
        _close(tie)
    folder.kill_orphan()


def _wait(process: "subprocess.Popen[bytes]", folder: JobFolder, tell: Callable[[float], None]) -> None:
    began_at = None
    while True:
        try:
            process.wait(_LOOK_EVERY_S if began_at is None else None)
        except subprocess.TimeoutExpired:
            began_at = folder.started_at()
            if began_at is not None:
                tell(began_at)
        else:
            return


def _left_in(folder: Path) -> dict[str, bytes]:
    files = {}
    for name in ("stdout", "stderr", RETURNED, "result"):
        with suppress(NotFoundError):
            files[name] = end_of_file(folder / name, LONGEST_OUTPUT_BYTES)
    return files


def _close(tie: IO[bytes]) -> None:
    with suppress(OSError):
        tie.close()
