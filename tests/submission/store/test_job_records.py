"""The jobs that were tuned, over each kind of database."""

import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.store.samples import NASTY

from luthier.errors import InvalidInputError, NotFoundError, StoreError
from luthier.store.ownership import this_process
from luthier.store.server_store import ServerStore
from luthier.submission.job import NewJob
from luthier.submission.store import job_records_in
from luthier.submission.store.tuned_jobs import TunedConfiguration

Reopen = Callable[[], ServerStore]

AT = datetime(2026, 11, 18, 23, 59, 58, 250000, timezone(timedelta(hours=5, minutes=45)))
JOB = NewJob("bob", f"angry {NASTY}", "solver", f"./solver '{NASTY}'", AT, 4)
TUNED = TunedConfiguration(
    component="sro",
    config={"size": 4, "engine": NASTY, "ratio": 0.1, "on": True},
    environment={"SRO_SIZE": "4", "ENGINE": NASTY},
    options=("--constraint=fast",),
    measure="wall",
    default_value=12.5,
    best_value=9.25,
    speedup=1.35,
)


def an_experiment(store: ServerStore, name: str = "one") -> int:
    return store.history.create(name, {}, 1.0).id


def a_finished_experiment(store: ServerStore, name: str) -> int:
    owner, number = this_process(), store.history.create(name, {"space": []}, 1.0).id
    assert store.history.claim(number, owner, 1.0, None)
    store.history.close(number, owner, "finished", {})
    return number


def test_a_record_is_read_back(server_store: ServerStore, reopen: Reopen) -> None:
    experiment = an_experiment(server_store)
    assert job_records_in(server_store).find(experiment) is None
    number = job_records_in(server_store).put(experiment, JOB, TUNED, 5.5)
    found = job_records_in(reopen()).get(number)
    assert (found.id, found.experiment_id, found.created_at, found.withdrawn) == (number, experiment, 5.5, None)
    assert found.job == JOB
    assert found.job.submitted_at.utcoffset() == AT.utcoffset()
    assert found.tuned == TUNED
    assert job_records_in(server_store).find(experiment) == found


def test_a_second_record_of_an_experiment_replaces_the_first(server_store: ServerStore) -> None:
    experiment = an_experiment(server_store)
    first = job_records_in(server_store).put(experiment, JOB, TUNED, 1.0)
    again = replace(JOB, nodes=8)
    assert job_records_in(server_store).put(experiment, again, TUNED, 2.0) == first
    assert [one.job for one in job_records_in(server_store).all()] == [again]


def test_changes_are_seen_once(server_store: ServerStore, reopen: Reopen) -> None:
    records = job_records_in(server_store)
    numbers = [records.put(an_experiment(server_store, str(i)), replace(JOB, nodes=i), TUNED, 1.0) for i in (1, 2, 3)]
    everything = job_records_in(reopen()).changed_since()
    assert [(number, job.nodes) for number, job in everything.used] == list(zip(numbers, (1, 2, 3), strict=True))
    assert not everything.unused
    records.withdraw(numbers[1], "slower")
    later = job_records_in(reopen()).changed_since(everything.mark)
    assert (list(later.used), list(later.unused)) == ([], [numbers[1]])
    assert [number for number, _ in records.changed_since().used] == [numbers[0], numbers[2]]
    records.restore(numbers[1])
    last = records.changed_since(later.mark)
    assert ([number for number, _ in last.used], list(last.unused)) == ([numbers[1]], [])
    assert records.changed_since(last.mark).mark == last.mark
    assert not records.changed_since(last.mark).used


def test_a_withdrawn_record_stays_withdrawn_when_it_is_replaced(server_store: ServerStore) -> None:
    experiment = an_experiment(server_store)
    number = job_records_in(server_store).put(experiment, JOB, TUNED, 1.0)
    job_records_in(server_store).withdraw(number, "slower on four nodes")
    job_records_in(server_store).put(experiment, JOB, TUNED, 2.0)
    assert job_records_in(server_store).get(number).withdrawn == "slower on four nodes"
    assert not job_records_in(server_store).changed_since().used


def test_a_deleted_experiment_takes_its_record_out_of_use(server_store: ServerStore) -> None:
    experiment = an_experiment(server_store)
    number = job_records_in(server_store).put(experiment, JOB, TUNED, 1.0)
    job_records_in(server_store).set_examined(experiment)
    mark = job_records_in(server_store).changed_since().mark
    assert server_store.queue.delete(experiment, None)
    assert list(job_records_in(server_store).changed_since(mark).unused) == [number]
    left = job_records_in(server_store).get(number)
    assert (left.experiment_id, left.job.command, left.tuned.environment) == (None, "", {})
    with pytest.raises(InvalidInputError, match="was deleted"):
        job_records_in(server_store).restore(number)


def test_pages_of_one_user(server_store: ServerStore) -> None:
    users = ["ann", "bob", "ann", "ann"]
    numbers = [
        job_records_in(server_store).put(an_experiment(server_store, str(i)), replace(JOB, user=user), TUNED, 1.0)
        for i, user in enumerate(users)
    ]
    first = job_records_in(server_store).all(user="ann", limit=2)
    assert [one.id for one in first] == [numbers[3], numbers[2]]
    assert [one.id for one in job_records_in(server_store).all(user="ann", before=first[-1].id)] == [numbers[0]]


def test_finished_experiments_are_examined_once(server_store: ServerStore) -> None:
    an_experiment(server_store, "still running")
    one, two = (a_finished_experiment(server_store, name) for name in ("one", "two"))
    assert [record.id for record in job_records_in(server_store).unexamined()] == [one, two]
    assert [record.id for record in job_records_in(server_store).unexamined(limit=1)] == [one]
    job_records_in(server_store).set_examined(one)
    job_records_in(server_store).set_examined(one)
    job_records_in(server_store).set_examined(2**30)  # it was deleted meanwhile
    assert [record.settings for record in job_records_in(server_store).unexamined()] == [{"space": []}]


def test_unknown_records_and_experiments(server_store: ServerStore) -> None:
    for number in (-1, 0, 7, 2**40):
        for call in (
            job_records_in(server_store).get,
            job_records_in(server_store).restore,
            lambda number: job_records_in(server_store).withdraw(number, "no"),
            lambda number: job_records_in(server_store).put(number, JOB, TUNED, 1.0),
        ):
            with pytest.raises(NotFoundError):
                call(number)
    with pytest.raises(StoreError, match="speedup"):
        job_records_in(server_store).put(an_experiment(server_store), JOB, replace(TUNED, speedup=float("nan")), 1.0)
    assert not job_records_in(server_store).changed_since().used


def test_no_change_is_missed_between_writers(server_store: ServerStore, reopen: Reopen) -> None:
    experiments = [an_experiment(server_store, str(number)) for number in range(24)]
    writers = [reopen() for _ in range(3)]

    def write(writer: int) -> None:
        for experiment in experiments[writer::3]:
            job_records_in(writers[writer]).put(experiment, JOB, TUNED, 1.0)

    threads = [threading.Thread(target=write, args=(writer,)) for writer in range(3)]
    for thread in threads:
        thread.start()
    seen, mark = list[int](), 0
    while any(thread.is_alive() for thread in threads) or len(seen) < len(experiments):
        was_over = not any(thread.is_alive() for thread in threads)
        changes = job_records_in(server_store).changed_since(mark)
        mark = changes.mark
        seen += [number for number, _ in changes.used]
        if was_over:
            break
    assert sorted(seen) == sorted(one.id for one in job_records_in(server_store).all())
    assert len(seen) == len(experiments)


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    texts=st.tuples(*[st.text(max_size=50)] * 4),
    at=st.datetimes(datetime(1971, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC)),
    nodes=st.integers(1, 2**31 - 1),
)
def test_any_job_is_read_back(
    server_store: ServerStore, texts: tuple[str, str, str, str], at: datetime, nodes: int
) -> None:
    job = NewJob(*texts, at, nodes)
    number = job_records_in(server_store).put(an_experiment(server_store), job, TUNED, 1.0)
    assert job_records_in(server_store).get(number).job == job
