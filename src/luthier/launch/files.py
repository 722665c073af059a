"""The files of runs on this machine."""

import os
import shutil
import signal
from collections.abc import Iterable
from contextlib import suppress

from luthier.folders import data_directory
from luthier.runners.job_folder import JobFolder
from luthier.trial import Run


def discard_files(uid: str, runs: Iterable[Run]) -> None:
    """Remove the files of the runs of a deleted experiment; a command that is still running is killed first."""
    for run in runs:
        folder = JobFolder(data_directory() / "runs" / run.key(uid))
        with suppress(OSError):
            _kill(folder)
        shutil.rmtree(folder.path, ignore_errors=True)
    (data_directory() / "workers" / f"{uid}.log").unlink(missing_ok=True)


def _kill(folder: JobFolder) -> None:
    if folder.is_supervised():
        for supervisor in folder.processes()[:1]:
            if supervisor.is_alive():
                os.kill(supervisor.pid, signal.SIGKILL)
    folder.kill_orphan()
