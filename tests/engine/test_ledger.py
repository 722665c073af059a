"""What happens to an experiment whose store is away, slow, or taken over by another process."""

import threading
import time
from collections.abc import Sequence
from contextlib import suppress

import psycopg
import pytest
from tests.replayed import replayed
from tests.store.samples import OTHER, a_run

from luthier.engine import ledger as ledger_module
from luthier.engine.ledger import Ledger
from luthier.errors import InUseError, StoreAwayError, StoreError
from luthier.runners.replay import ReplayedRun, ReplayRunner
from luthier.space import Integer, Space
from luthier.spec.experiment import Experiment
from luthier.spec.objectives import Objective
from luthier.store import open_store
from luthier.store.base import Owner, Store
from luthier.store.memory import MemoryStore
from luthier.store.ownership import claim
from luthier.store.sql import SqlStore
from luthier.trial import BatchJob, Config, Run

EXPERIMENT = Experiment(space=Space(Integer("x", 1, 9)), budget=8, objectives=(Objective("returned"),), verify_pairs=0)


def steady(config: Config, repeat: int, now_s: float) -> ReplayedRun:
    return ReplayedRun(1.0, float(config["x"]))


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HEARTBEAT_S", "_SILENT_S", "_FIRST_PAUSE_S"):
        monkeypatch.setattr(ledger_module, name, 0.01)


class SlowToRead(MemoryStore):
    """A store whose history takes until the heartbeat has changed."""

    def runs(self, experiment_id: int, since: int = 0) -> Sequence[Run]:
        first, give_up_at = self.experiment(experiment_id).seen_at, time.monotonic() + 60.0
        while self.experiment(experiment_id).seen_at == first:
            assert time.monotonic() < give_up_at, "no heartbeat while the history is read"
        return super().runs(experiment_id, since)


@pytest.mark.usefixtures("quick")
def test_heartbeats_go_on_while_the_history_is_read() -> None:
    store = SlowToRead()
    record = store.create("x", EXPERIMENT.to_json(), 0.0)
    finished, _ = replayed(store, record, EXPERIMENT, ReplayRunner(steady))
    assert finished.status == "finished"


@pytest.mark.usefixtures("quick")
def test_late_owner_leaves_the_experiment_alone() -> None:
    store = open_store("memory:")
    record = store.create("x", EXPERIMENT.to_json(), 0.0)

    def answers(config: Config, repeat: int, now_s: float) -> ReplayedRun:
        owner = store.experiment(record.id).owner
        if now_s > 3.0 and owner != OTHER:
            assert store.claim(record.id, OTHER, 0.0, owner)
        return steady(config, repeat, now_s)

    with pytest.raises(InUseError, match="belongs to process 1 on there"):
        replayed(store, record, EXPERIMENT, ReplayRunner(answers))
    after = store.experiment(record.id)
    assert (after.owner, after.status, after.result) == (OTHER, "running", None)
    assert sum(run.outcome is None for run in store.runs(record.id)) == 1


@pytest.mark.usefixtures("quick")
def test_thread_notices_that_the_experiment_is_lost() -> None:
    store = open_store("memory:")
    record = store.create("x", {}, 0.0)
    owner = claim(store, record)
    with Ledger(store, record, owner) as ledger:
        store.claim(record.id, OTHER, 0.0, owner)
        ledger._thread.join(60.0)
        assert not ledger._thread.is_alive()
        with pytest.raises(InUseError):
            ledger.runs()


class Away(MemoryStore):
    """A store that is away for the first calls that write."""

    failures = 3

    def append(self, experiment_id: int, run: Run, owner: Owner | None = None) -> None:
        self.failures -= 1
        if self.failures >= 0:
            raise StoreAwayError("gone")
        super().append(experiment_id, run, owner)


@pytest.mark.usefixtures("quick")
def test_store_that_is_away_is_waited_for() -> None:
    store = Away()
    record = store.create("x", EXPERIMENT.to_json(), 0.0)
    _, result = replayed(store, record, EXPERIMENT, ReplayRunner(steady))
    assert len(result.runs) == 8
    assert store.failures < 0


@pytest.mark.usefixtures("quick")
def test_user_need_not_wait_for_it() -> None:
    store = Away()
    record = store.create("x", {}, 0.0)
    with Ledger(store, record, claim(store, record), gave_up=lambda: True) as ledger, pytest.raises(StoreAwayError):
        ledger.append(a_run(0))


def test_error_that_does_not_pass_is_raised_at_once() -> None:
    store = open_store("memory:")
    record = store.create("x", {}, 0.0)
    with Ledger(store, record, claim(store, record)) as ledger:
        ledger.append(a_run(0))
        with pytest.raises(StoreError, match="number 0"):
            ledger.append(a_run(0, threads=9))


def test_tuner_outlives_a_database_that_is_gone(postgresql_server: str, postgresql_url: str) -> None:
    """Its connections are cut and new ones refused, for as long as it tries in vain; then it goes on."""
    store = open_store(postgresql_url)
    record = store.create("x", EXPERIMENT.to_json(), 0.0)
    with psycopg.connect(f"{postgresql_server}/postgres", autocommit=True) as administrator:
        tried_in_vain = threading.Event()

        def come_back() -> None:
            tried_in_vain.wait(60.0)
            administrator.execute("ALTER DATABASE one_test ALLOW_CONNECTIONS true")

        back = threading.Thread(target=come_back)

        def answers(config: Config, repeat: int, now_s: float) -> ReplayedRun:
            if now_s > 3.0 and not back.is_alive() and not tried_in_vain.is_set():
                administrator.execute("ALTER DATABASE one_test ALLOW_CONNECTIONS false")
                _cut(administrator)
                back.start()
                with suppress(StoreAwayError):
                    store.experiments()
                tried_in_vain.set()
            return steady(config, repeat, now_s)

        finished, result = replayed(store, record, EXPERIMENT, ReplayRunner(answers))
        back.join()
    assert finished.status == "finished"
    assert len(result.runs) == 8
    _dispose(store)


def _cut(administrator: "psycopg.Connection[tuple[object, ...]]") -> None:
    administrator.execute("SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = 'one_test'")


def _dispose(store: Store) -> None:
    assert isinstance(store, SqlStore)
    store.dispose()


def test_batch_jobs_that_have_ended_are_not_in_the_store() -> None:
    store = open_store("memory:")
    record = store.create("x", {}, 0.0)
    with Ledger(store, record, claim(store, record)) as ledger:
        for jobs in ({1: BatchJob("17", "RUNNING")}, {1: BatchJob("17", "RUNNING"), 2: BatchJob("", "")}, {}):
            ledger.stop_request(jobs)
            assert store.experiment(record.id).jobs == jobs


def test_a_long_pause_ends_soon_after_the_user_gave_up(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)
    answers = iter([False, False, False, True])
    store = open_store("memory:")
    record = store.create("x", {}, 0.0)
    Ledger(store, record, claim(store, record), gave_up=lambda: next(answers))._pause(30.0)
    assert len(slept) == 3
    assert sum(slept) < 1.0
