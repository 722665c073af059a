"""What can be done with stored experiments without running them: open, compare, verify, delete their files."""

import os
import shutil
import signal
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace

from luthier.folders import data_directory
from luthier.result.explanation import Explanation
from luthier.result.result import Result, conclude
from luthier.result.search_speedup import beside_random
from luthier.result.verification import check_verifiable
from luthier.result.working_time import pauses_of
from luthier.runners.job_folder import JobFolder
from luthier.spec.experiment import Experiment
from luthier.store import open_server_store, open_store
from luthier.store.base import Record, Store
from luthier.store.server_store import ServerStore
from luthier.trial import Run


def open(number: int, store: str | Store | None = None) -> tuple[Record, Result]:  # noqa: A001 - read as launch.open
    """A stored experiment and its result; `store` is a URL, or a store that is open."""
    history = _history(store)
    record = history.experiment(number)
    result = conclude(Experiment.from_json(record.settings), history.runs(number))
    return record, beside_random(history, record, replace(result, pauses=pauses_of(record)))


def compare(numbers: Iterable[int], store: str | Store | None = None) -> Sequence[tuple[Record, Result]]:
    """Several experiments with their results, each once, for `luthier.figures.compared` or a table."""
    history = _history(store)
    return [open(number, history) for number in dict.fromkeys(numbers)]


def verify(number: int, store: str | Store | None = None) -> None:
    """End the search of a running experiment as soon as its current runs have finished, and verify its best."""
    history = _history(store)
    check_verifiable(history.experiment(number))
    history.request_stop(number, "verify")


def explained(number: int, store: str | ServerStore | None = None) -> Explanation | None:
    """What `explain` found out last about an experiment; None if it was never explained."""
    opened = store if isinstance(store, ServerStore) else open_server_store(store)
    found = opened.explanations.get(number)
    return None if found is None else Explanation.from_json(found)


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


def _history(store: str | Store | None) -> Store:
    return open_store(store) if store is None or isinstance(store, str) else store
