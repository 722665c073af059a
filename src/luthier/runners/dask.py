"""Makes runs on the workers of a Dask cluster, on this machine or on others."""

import logging
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from luthier.errors import InvalidInputError, LuthierError, UnavailableError
from luthier.runners.base import Runner, RunnerKind, RunnerSetup
from luthier.runners.checks import checked_key, checked_slots, checked_wait, require_free_slot
from luthier.runners.command import Command, job_file
from luthier.runners.dask_call import packed
from luthier.runners.dask_cluster import DaskPlace, SchedulerConnection, connect, place_of, require_dask
from luthier.runners.dask_folder import CALL, DaskFolder
from luthier.runners.function import Returned
from luthier.runners.polling import poll_watched
from luthier.trial import Config, Execution, Job

if TYPE_CHECKING:
    from distributed import Future

    from luthier.runners.dask_worker import FilesOfRun

logger = logging.getLogger(__name__)

_LOOK_AGAIN_S = 1.0
_FETCH_S = 10.0
_GIVE_UP_S = 60.0
_TUNER = "the tuner"
_EXECUTE = "__import__('luthier.runners.dask_worker', fromlist=['execute']).execute(*task)"
"""What a task evaluates. A function of luthier's instead would end a worker without luthier: Dask cannot read such a
task there, and closes the worker, and then the next one. So this is a failed run with a reason."""

Work: TypeAlias = Callable[[Config], tuple[Command, Mapping[str, bytes]]]
"""What a worker does for a configuration: a command, and files that it needs in its folder."""


def commands(render: Callable[[Config], Command]) -> Work:
    """Run the command that `render` makes from a configuration."""
    return lambda config: (render(config), {})


def calls(function: Callable[[Config], Returned]) -> Work:
    """Call `function(config)`, in a process of its own; what cannot be sent to another process is refused."""
    require_dask()
    import cloudpickle

    try:
        sent = cloudpickle.dumps(function)
    except Exception as error:  # whatever the objects that it refers to raise
        raise InvalidInputError(
            f"dask: the function cannot be sent to a worker: {_line(error)}; open files and connections inside it"
        ) from error
    command = Command(("python", "-m", "luthier.runners.dask_call"), is_marked=True)
    return lambda config: (command, {CALL: packed(sent, config)})


@dataclass(slots=True)
class _Watched:
    """A run under way; `ended` is how it ended, once that is known and until it is reported."""

    folder: DaskFolder
    name: str
    files: Mapping[str, bytes]
    ended: Execution | None = None
    future: "Future[FilesOfRun] | None" = None
    began_at: float | None = None
    cancel_wanted: bool = False
    missed_since: float | None = None


class DaskRunner:
    """Makes runs as tasks of a Dask cluster, one at a time on each worker.

    A worker makes a run in a temporary folder of its own, under the same small supervisor as a local run, and returns
    what it left, which is then kept in `folder/<key>/`; of stdout and stderr the last 16 MiB. So tuner and workers need
    no common file system. luthier must be installed on the workers.

    Dask executes the task of a dead worker again, and also one that has finished if its result is gone. So the first
    act of a task is to claim its name permanently with the scheduler; a second execution gives up, and the run is
    reported as lost. A worker that dies takes its run with it. A task outlives this process, as does its result, and is
    found again when its key is submitted again while the same scheduler lives; otherwise it is reported as lost.
    """

    def __init__(
        self, work: Work, place: DaskPlace, folder: str | Path, slots: int = 1, *, grace_s: float = 2.0
    ) -> None:
        self._work = work
        self._place = place
        self._folder = Path(folder).absolute()
        self._slots = checked_slots(slots)
        self._grace_s = checked_wait("grace_s", grace_s)
        self._connection: SchedulerConnection | None = None
        self._watched: dict[str, _Watched] = {}
        self._changed = threading.Event()

    def submit(self, job: Job) -> None:
        """Submit the task, or find it again if its key was submitted before, by any process."""
        if checked_key(job.key) in self._watched:
            return
        require_free_slot(self._watched, self._slots)
        folder = DaskFolder(self._folder / job.key)
        command, files = self._work(job.config)
        try:
            if not folder.run.has_job():
                folder.prepare(job_file(job, command, self._grace_s))
            run = _Watched(folder, folder.task_name(), files)
            run.ended = folder.run.foreign(job.config) or folder.ending()
            self._watched[job.key] = run  # news of it may come before all of this is over
            if run.ended is None:
                self._engage(run)
        except OSError as error:
            self._watched.pop(job.key, None)
            raise UnavailableError(f"{folder.path}: cannot submit the run: {error.strerror or error}") from error
        except LuthierError:
            self._watched.pop(job.key, None)
            raise

    def poll(self, many: Sequence[str], wait_s: float) -> Sequence[Execution]:
        """Return those of the named jobs that have ended; names that were not submitted here are ignored."""
        return poll_watched(self._watched, many, wait_s, self._endings, self._wait)

    def _endings(self, runs: Collection[_Watched]) -> Sequence[Execution]:
        self._changed.clear()
        try:
            return [execution for run in runs if (execution := self._look(run))]
        except OSError as error:
            raise UnavailableError(f"{self._folder}: cannot keep results: {error.strerror or error}") from error

    def _wait(self, _runs: Collection[_Watched], left_s: float) -> None:
        self._changed.wait(min(left_s, _LOOK_AGAIN_S))

    def cancel(self, many: Sequence[str]) -> None:
        """Stop the named jobs; one that waits for a worker will not begin."""
        for key in many:
            run = self._watched.get(key)
            if run is not None and run.ended is None:
                with suppress(OSError):
                    run.folder.run.request_cancel()
                run.cancel_wanted = True
                self._call_off(run)

    def started_at(self, key: str) -> float | None:
        """When the time of a run began to count, by its worker's clock; None while it waits for a worker."""
        run = self._watched.get(key)
        return None if run is None or run.ended is not None else run.began_at

    def close(self) -> None:
        """Disconnect; a cluster on this machine ends, tasks on others go on."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _opened(self) -> SchedulerConnection:
        """The connection, made when it is first needed."""
        if self._connection is None:
            from luthier.runners.dask_worker import NEWS

            connection = connect(self._place, self._slots)
            connection.client.subscribe_topic(NEWS, self._hear)
            self._connection = connection
            self._warn()
        return self._connection

    def _warn(self) -> None:
        """Say that there are no workers, or none with the resources that every run needs; some may still come."""
        if not self._place.address or self._connection is None:
            return
        workers = self._connection.client.scheduler_info(n_workers=-1)["workers"].values()
        if not workers:
            logger.warning("%s: the cluster has no workers; runs wait until one joins", self._place)
            return
        for name, amount in self._place.resources.items():
            if not any(worker["resources"].get(name, 0) >= amount for worker in workers):
                logger.warning("%s: no worker has %s=%g; runs wait until one joins", self._place, name, amount)

    def _engage(self, run: _Watched) -> None:
        """Submit the task; the scheduler continues one of this name that it knows, also one that has finished.

        Published, it and its result are kept when this process dies.
        """
        connection = self._opened()
        noted = run.folder.scheduler()
        if noted not in (None, connection.scheduler):
            run.folder.close("the Dask scheduler that had this run is gone")
            run.ended = run.folder.final()
            return
        run.folder.note_scheduler(connection.scheduler)
        client, name = connection.client, run.name
        try:
            run.future = client.submit(
                eval,
                _EXECUTE,
                {"task": (name, run.folder.job(), dict(run.files))},
                key=name,
                resources=dict(self._place.resources),
                retries=0,
                pure=False,
            )
            client.publish_dataset(run.future, name=name, override=True)
            if noted is not None:
                for event in client.get_events(name):
                    self._note(run, event)
        except Exception as error:
            self.close()
            raise UnavailableError(f"{self._place}: the scheduler cannot be reached: {_line(error)}") from error
        run.future.add_done_callback(lambda _: self._changed.set())

    def _hear(self, event: tuple[float, Mapping[str, object]]) -> None:
        """Called by Dask's own thread with news from all workers."""
        for run in list(self._watched.values()):
            if run.name == event[1].get("name"):
                self._note(run, event)

    def _note(self, run: _Watched, event: tuple[float, Mapping[str, object]]) -> None:
        began_at = event[1].get("began_at")
        if isinstance(began_at, float):
            run.began_at = began_at

    def _look(self, run: _Watched) -> Execution | None:
        """How the run ended; None while that is unknown."""
        if run.ended is None and run.future is not None:
            if run.future.done():
                self._fetch(run, run.future)
            elif run.cancel_wanted:
                self._call_off(run)
        return run.ended

    def _fetch(self, run: _Watched, future: "Future[FilesOfRun]") -> None:
        """Keep what a task returned, and let Dask forget it."""
        if future.cancelled():  # by somebody else, or the connection was lost
            if self._connection is not None and future.client is self._connection.client:
                self.close()
            self._engage(run)
            return
        if future.status == "error":
            self._close_failed(run, future)
        elif (report := self._result(run, future)) is None:
            return
        elif report.files is None:
            run.folder.close(f"its worker died: {report.first}")
        else:
            run.folder.keep(report.files)
        self._forget(run)

    def _result(self, run: _Watched, future: "Future[FilesOfRun]") -> "FilesOfRun | None":
        """What a task returned; None if it cannot be fetched now.

        If its worker died just now, Dask executes the task again, which gives up. If the connection broke, the future
        is cancelled a little later.
        """
        try:
            return future.result(timeout=_FETCH_S)
        except Exception as error:  # noqa: BLE001  # of any kind, as it depends on the connection
            logger.info("%s: cannot fetch run %s: %s", self._place, run.name, _line(error))
            now = time.monotonic()
            run.missed_since = run.missed_since or now
            if now - run.missed_since > _GIVE_UP_S:
                run.folder.close(f"its result cannot be fetched: {_line(error)}")
                self._forget(run)
            return None

    def _close_failed(self, run: _Watched, future: "Future[FilesOfRun]") -> None:
        """Keep why Dask gave up a task, or why a worker could not make it: a worker without luthier never can."""
        error = future.exception(timeout=_FETCH_S) or RuntimeError("unknown error")
        if isinstance(error, ImportError):
            run.folder.refuse(f"the worker cannot make this run: {_line(error)}")
        else:  # KilledWorker of Dask, a full disk of the worker
            run.folder.close(f"the worker could not make this run: {_line(error)}")

    def _call_off(self, run: _Watched) -> None:
        """Keep the task from beginning, or have its worker stop it; `poll` tries again until it has ended."""
        from luthier.runners.dask_worker import claim, stop

        try:
            client = self._opened().client
            claimed = claim(client, run.name, _TUNER)
            if claimed.by in client.nthreads():
                client.run(stop, run.name, workers=[claimed.by], on_error="ignore")
                run.cancel_wanted = False
            else:  # it never began, or its worker is dead
                run.folder.close("cancelled")
                self._forget(run)
        except Exception as error:  # noqa: BLE001  # a worker that died meanwhile, a scheduler that is away
            logger.info("%s: cannot stop run %s: %s", self._place, run.name, _line(error))

    def _forget(self, run: _Watched) -> None:
        run.ended = run.folder.final()
        future, run.future = run.future, None
        if future is not None and self._connection is not None:
            with suppress(Exception):  # what stays on the scheduler does no harm
                self._connection.client.unpublish_dataset(run.name)
                future.release()


def _line(error: BaseException) -> str:
    """An error of the libraries, in one line."""
    return (" ".join(str(error).split()) or type(error).__name__)[:200]


def _make(setup: RunnerSetup, argument: str) -> Runner:
    return DaskRunner(commands(setup.command), place_of(argument), setup.folder, setup.slots)


def _make_for_function(function: Callable[[Config], Returned], setup: RunnerSetup, argument: str) -> Runner:
    return DaskRunner(calls(function), place_of(argument), setup.folder, setup.slots)


def _check(argument: str) -> None:
    place_of(argument)
    if find_spec("distributed") is None:  # to import it takes longer than most commands
        require_dask()


def _workers(argument: str) -> int:
    """How many workers a running cluster has; a local one has as many as there are slots."""
    place = place_of(argument)
    if not place.address:
        return 1
    connection = connect(place, 1)
    try:
        return max(len(connection.client.nthreads()), 1)
    finally:
        connection.close()


DASK = RunnerKind(_make, _check, has_remote_argument=True, make_for_function=_make_for_function, usual_slots=_workers)
"""Makes runs on a Dask cluster: on this machine, or the one whose scheduler is the argument."""
