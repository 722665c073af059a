"""Where a server asks for experiments, over each kind of database."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import count

import pytest
from hypothesis import given
from tests.store.samples import ME, NASTY, OTHER, a_run, ended
from tests.store.strategies import examples, short_texts

from luthier.errors import InvalidInputError, NotFoundError
from luthier.store.base import Owner, Record, RequestedBy
from luthier.store.server_store import Changes, ServerStore
from luthier.trial import BatchJob, Completed, Failed, Lost, Outcome, Pruned, TimedOut

BooksOpener = Callable[[], ServerStore]


def asked(server_store: ServerStore, name: str = "x", author: str = "ann") -> int:
    return server_store.history.create(name, {"budget": 1}, 0.0, RequestedBy(author, "source")).id


def names(records: Sequence[Record]) -> list[str]:
    return [record.name for record in records]


def test_records_are_listed_newest_first_and_in_pages(server_store: ServerStore) -> None:
    keys = [asked(server_store, str(index)) for index in range(5)]
    server_store.history.append(keys[4], a_run(0))
    first = server_store.queue.records(limit=2)
    assert names(first) == ["4", "3"]
    assert names(server_store.queue.records(limit=2, before=first[-1].id)) == ["2", "1"]
    assert names(server_store.queue.records(before=keys[1])) == ["0"]
    assert first[0] == replace(server_store.history.experiment(keys[4]), source=None)
    assert first[0].runs == 1
    assert len(server_store.queue.records()) == len(server_store.queue.records(before=10**30, limit=10**30)) == 5
    assert server_store.queue.records(before=-(10**30)) == []


def test_runs_are_counted_by_how_they_ended(server_store: ServerStore) -> None:
    endings: list[Outcome] = [
        Completed(1.0),
        Completed(2.0),
        Failed("no"),
        TimedOut("slow"),
        Pruned("late"),
        Lost("gone"),
    ]
    old, new = asked(server_store, "old"), asked(server_store, "new")
    assert set(server_store.queue.outcomes().values()) == {0}
    for number, outcome in enumerate(endings):
        server_store.history.append(new, a_run(number))
        server_store.history.finish(new, ended(a_run(number), outcome))
    server_store.history.append(new, a_run(len(endings)))
    server_store.history.append(old, a_run(0))
    counted = {"running": 1, "completed": 2, "failed": 1, "timed out": 1, "pruned": 1, "lost": 1}
    assert server_store.queue.outcomes(limit=1) == counted
    assert server_store.queue.outcomes() == server_store.queue.outcomes(limit=10**30) == {**counted, "running": 2}


def test_records_of_an_author_come_with_what_is_shared(server_store: ServerStore) -> None:
    asked(server_store, "hers")
    theirs = asked(server_store, "his", "bob")
    server_store.history.create("nobody's", {}, 0.0)
    assert names(server_store.queue.records(author="ann")) == ["hers"]
    server_store.queue.share(theirs, shared=True)
    assert server_store.history.experiment(theirs).shared
    assert names(server_store.queue.records(author="ann")) == ["his", "hers"]
    assert names(server_store.queue.records(author="ann", before=theirs)) == ["hers"]
    server_store.queue.share(theirs, shared=False)
    assert names(server_store.queue.records(author="ann")) == ["hers"]
    assert len(server_store.queue.records()) == 3


def test_records_are_searched_by_name_and_status(server_store: ServerStore) -> None:
    done = asked(server_store, "Sort 100%")
    asked(server_store, "sort 1000")
    server_store.history.request_stop(done)
    assert names(server_store.queue.records(text="SORT")) == ["sort 1000", "Sort 100%"]
    assert names(server_store.queue.records(text="100%")) == ["Sort 100%"]
    assert names(server_store.queue.records(text="s_rt")) == []
    assert names(server_store.queue.records(status="stopped")) == ["Sort 100%"]
    assert names(server_store.queue.records(status="queued", text="sort", author="ann")) == ["sort 1000"]
    assert names(server_store.queue.records(status="queued", author="bob")) == []


@examples
@given(name=short_texts, author=short_texts)
def test_any_text_can_be_listed_and_found(server_store: ServerStore, name: str, author: str) -> None:
    key = asked(server_store, name, author)
    for found in (
        server_store.queue.records(limit=1),
        server_store.queue.records(author=author, limit=1),
        server_store.queue.records(text=name, limit=1),
        server_store.queue.records(text=name[1:-1], limit=1),
    ):
        assert [(record.id, record.name, record.author) for record in found] == [(key, name, author)]


def test_nasty_text_can_be_found(server_store: ServerStore) -> None:
    asked(server_store, NASTY, NASTY)
    for start in range(len(NASTY)):
        assert names(server_store.queue.records(author=NASTY, text=NASTY[start : start + 3])) == [NASTY]


def test_what_waits_for_workers(server_store: ServerStore) -> None:
    first, second, third, stopped, over = (asked(server_store, name) for name in "abcde")
    server_store.history.create("on the command line", {}, 0.0)
    server_store.history.claim(second, ME, 1.0, None)
    server_store.history.append(second, a_run(0))
    server_store.history.request_stop(stopped)
    server_store.history.claim(over, ME, 1.0, None)
    server_store.history.close(over, ME, "finished", None)
    waiting = server_store.queue.waiting()
    assert [record.id for record in waiting] == [first, second, third]
    assert waiting[1] == replace(server_store.history.experiment(second), settings={}, source=None)
    assert (waiting[1].owner, waiting[1].seen_at, waiting[1].runs) == (ME, 1.0, 1)


def test_enqueue_hands_an_experiment_to_the_workers(server_store: ServerStore) -> None:
    key = server_store.history.create("x", {}, 0.0).id
    server_store.history.claim(key, ME, 1.0, None)
    server_store.history.request_stop(key)
    assert not server_store.queue.enqueue(key, None)
    assert not server_store.queue.enqueue(key, OTHER)
    assert server_store.history.experiment(key).status == "running"
    assert server_store.queue.enqueue(key, ME)
    record = server_store.history.experiment(key)
    assert (record.status, record.owner, record.unattended, record.stop_requested) == ("queued", None, True, None)
    assert server_store.queue.enqueue(key, None)
    assert [found.id for found in server_store.queue.waiting()] == [key]


def test_what_has_ended_is_queued_again_with_new_settings(server_store: ServerStore) -> None:
    key = asked(server_store)
    server_store.history.claim(key, ME, 1.0, None)
    running = server_store.history.experiment(key)
    server_store.history.close(key, ME, "finished", None)
    finished = server_store.history.experiment(key)
    assert not server_store.queue.enqueue_again(running, {"budget": 9})
    assert server_store.history.experiment(key) == finished
    assert server_store.queue.enqueue_again(finished, {"budget": 9})
    record = server_store.history.experiment(key)
    assert (record.status, record.settings, record.unattended) == ("queued", {"budget": 9}, True)
    assert not server_store.queue.enqueue_again(finished, {"budget": 99})
    assert server_store.history.experiment(key).settings == {"budget": 9}


@pytest.mark.parametrize("instead_of", [None, OTHER])
def test_finished_experiment_is_not_queued_again(server_store: ServerStore, instead_of: Owner | None) -> None:
    key = asked(server_store)
    server_store.history.claim(key, ME, 1.0, None)
    server_store.history.close(key, ME, "finished", None)
    with pytest.raises(InvalidInputError, match=f"experiment {key} is finished"):
        server_store.queue.enqueue(key, instead_of)
    assert server_store.history.experiment(key).status == "finished"


def test_delete_forgets_an_experiment_and_its_runs_only(server_store: ServerStore) -> None:
    kept, key = asked(server_store), asked(server_store)
    for one in (kept, key):
        server_store.history.append(one, a_run(0))
    server_store.history.claim(key, ME, 1.0, None)
    assert not server_store.queue.delete(key, None)
    assert len(server_store.history.runs(key)) == 1
    assert server_store.queue.delete(key, ME)
    with pytest.raises(NotFoundError):
        server_store.history.experiment(key)
    with pytest.raises(NotFoundError):
        server_store.history.append(key, a_run(1))
    with pytest.raises(NotFoundError):
        server_store.queue.delete(key, None)
    assert len(server_store.history.runs(kept)) == 1


def test_number_of_a_deleted_experiment_is_not_given_again(server_store: ServerStore) -> None:
    key = asked(server_store)
    assert server_store.queue.delete(key, None)
    assert asked(server_store) == key + 1


def test_key_of_a_deleted_experiment_is_free(server_store: ServerStore) -> None:
    first = server_store.history.create("x", {}, 0.0, RequestedBy("ann", None, "k"))
    server_store.queue.delete(first.id, None)
    assert server_store.history.create("x", {}, 0.0, RequestedBy("ann", None, "k")).id != first.id


def test_changes_count_events(server_store: ServerStore) -> None:
    key, other = asked(server_store), asked(server_store)
    server_store.history.append(other, a_run(7))
    assert server_store.queue.changes(key) == Changes("queued", 0, None, {})
    server_store.history.claim(key, ME, 1.0, None)
    server_store.history.append(key, a_run(0))
    assert server_store.queue.changes(key) == Changes("running", 1, None, {})
    server_store.history.finish(key, ended(a_run(0), Completed(1.0)))
    assert server_store.queue.changes(key) == Changes("running", 2, None, {})
    server_store.history.append(key, a_run(1))
    server_store.history.request_stop(key)
    job = BatchJob("77", "PENDING", "Resources")
    server_store.history.heartbeat(key, ME, 2.0, {1: job})
    assert server_store.queue.changes(key) == Changes("running", 3, "drain", {1: job})
    assert [run.number for run in server_store.history.runs(key, since=2)] == [1]


def test_bad_arguments_are_told(server_store: ServerStore) -> None:
    with pytest.raises(InvalidInputError, match="limit"):
        server_store.queue.records(limit=0)
    with pytest.raises(InvalidInputError, match="limit"):
        server_store.queue.records(limit=-(10**30))
    with pytest.raises(InvalidInputError, match="text"):
        server_store.queue.records(text="x" * 100_000)


@pytest.mark.parametrize("unknown", [0, -1, 987_654, 2**31, 10**30])
def test_unknown_experiment_is_not_found(server_store: ServerStore, unknown: int) -> None:
    calls: list[Callable[[], object]] = [
        lambda: server_store.queue.enqueue(unknown, None),
        lambda: server_store.queue.share(unknown, shared=True),
        lambda: server_store.queue.delete(unknown, None),
        lambda: server_store.queue.changes(unknown),
    ]
    for call in calls:
        with pytest.raises(NotFoundError, match="not in this store"):
            call()


def test_experiment_is_either_claimed_once_or_deleted(server_store: ServerStore, reopen: BooksOpener) -> None:
    keys = [asked(server_store) for _ in range(8)]
    rivals = [(reopen(), Owner("here", index, "1"), index % 2 == 0) for index in range(6)]
    with ThreadPoolExecutor(len(rivals)) as pool:
        won = list(pool.map(lambda rival: [taken(rival, key) for key in keys], rivals))
    left = {record.id: record.owner for record in server_store.queue.records()}
    for place, key in enumerate(keys):
        ((_, owner, deletes),) = [rival for rival, results in zip(rivals, won, strict=True) if results[place]]
        assert left.get(key) == (None if deletes else owner)
        assert (key in left) is not deletes


def taken(rival: tuple[ServerStore, Owner, bool], key: int) -> bool:
    """Delete or claim an experiment that belongs to nobody; whether that worked."""
    server_store, owner, deletes = rival
    try:
        return server_store.queue.delete(key, None) if deletes else server_store.history.claim(key, owner, 1.0, None)
    except NotFoundError:
        return False


def test_delete_while_runs_are_written_leaves_none_behind(server_store: ServerStore, reopen: BooksOpener) -> None:
    writer, eraser = reopen(), reopen()
    for _ in range(5):
        key = asked(server_store)
        with ThreadPoolExecutor(2) as pool:
            written = pool.submit(append_until_gone, writer, key)
            assert pool.submit(delete_once_begun, eraser, key).result()
            assert written.result() > 0
        with pytest.raises(NotFoundError):
            server_store.history.runs(key)


def append_until_gone(server_store: ServerStore, key: int) -> int:
    for number in count():
        try:
            server_store.history.append(key, a_run(number))
        except NotFoundError:
            return number
    raise AssertionError


def delete_once_begun(server_store: ServerStore, key: int) -> bool:
    while not server_store.history.runs(key):
        pass
    return server_store.queue.delete(key, None)


def test_workers_are_known_while_they_are_alive(server_store: ServerStore) -> None:
    queue = server_store.queue
    assert queue.workers() == []
    for worker, now in ((ME, 1.0), (OTHER, 2.0), (ME, 3.0)):
        queue.note_worker(worker, now)
    assert sorted(queue.workers(), key=lambda entry: entry[1]) == [(OTHER, 2.0), (ME, 3.0)]
    queue.forget_worker(OTHER)
    queue.forget_worker(OTHER)
    assert queue.workers() == [(ME, 3.0)]
    queue.note_worker(OTHER, 3.0 + 25 * 3600)
    assert queue.workers() == [(OTHER, 3.0 + 25 * 3600)]


def test_a_resumed_experiment_keeps_the_request_to_verify(server_store: ServerStore) -> None:
    key = asked(server_store)
    server_store.history.claim(key, ME, 1.0, None)
    server_store.history.request_stop(key, "verify")
    assert server_store.queue.changes(key) == Changes("running", 0, "verify", {})
    server_store.history.close(key, ME, "failed", None)
    assert server_store.queue.enqueue(key, None)
    server_store.history.claim(key, OTHER, 2.0, None)
    assert server_store.history.heartbeat(key, OTHER, 3.0) == "verify"
