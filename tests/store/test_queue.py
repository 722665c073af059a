"""Where a server asks for experiments, over each kind of database."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import count

import pytest
from hypothesis import given

from luthier.errors import InvalidInputError, NotFoundError
from luthier.store.base import Origin, Owner, Record
from luthier.store.samples import ME, NASTY, OTHER, a_run, ended
from luthier.store.server_store import Books
from luthier.store.strategies import examples, short_texts
from luthier.trial import Completed, Failed, Lost, Outcome, Pruned, TimedOut

BooksOpener = Callable[[], Books]


def asked(books: Books, name: str = "x", author: str = "ann") -> int:
    return books.history.create(name, {"budget": 1}, 0.0, Origin(author, "source")).id


def names(records: Sequence[Record]) -> list[str]:
    return [record.name for record in records]


def test_records_are_listed_newest_first_and_in_pages(books: Books) -> None:
    keys = [asked(books, str(index)) for index in range(5)]
    books.history.append(keys[4], a_run(0))
    first = books.desk.records(limit=2)
    assert names(first) == ["4", "3"]
    assert names(books.desk.records(limit=2, before=first[-1].id)) == ["2", "1"]
    assert names(books.desk.records(before=keys[1])) == ["0"]
    assert first[0] == replace(books.history.experiment(keys[4]), source=None)
    assert first[0].runs == 1
    assert len(books.desk.records()) == len(books.desk.records(before=10**30, limit=10**30)) == 5
    assert books.desk.records(before=-(10**30)) == []


def test_runs_are_counted_by_how_they_ended(books: Books) -> None:
    endings: list[Outcome] = [
        Completed(1.0),
        Completed(2.0),
        Failed("no"),
        TimedOut("slow"),
        Pruned("late"),
        Lost("gone"),
    ]
    old, new = asked(books, "old"), asked(books, "new")
    assert set(books.desk.outcomes().values()) == {0}
    for number, outcome in enumerate(endings):
        books.history.append(new, a_run(number))
        books.history.finish(new, ended(a_run(number), outcome))
    books.history.append(new, a_run(len(endings)))
    books.history.append(old, a_run(0))
    counted = {"running": 1, "completed": 2, "failed": 1, "timed out": 1, "pruned": 1, "lost": 1}
    assert books.desk.outcomes(limit=1) == counted
    assert books.desk.outcomes() == books.desk.outcomes(limit=10**30) == {**counted, "running": 2}


def test_records_of_an_author_come_with_what_is_shared(books: Books) -> None:
    asked(books, "hers")
    theirs = asked(books, "his", "bob")
    books.history.create("nobody's", {}, 0.0)
    assert names(books.desk.records(author="ann")) == ["hers"]
    books.desk.share(theirs, shared=True)
    assert books.history.experiment(theirs).shared
    assert names(books.desk.records(author="ann")) == ["his", "hers"]
    assert names(books.desk.records(author="ann", before=theirs)) == ["hers"]
    books.desk.share(theirs, shared=False)
    assert names(books.desk.records(author="ann")) == ["hers"]
    assert len(books.desk.records()) == 3


def test_records_are_searched_by_name_and_status(books: Books) -> None:
    done = asked(books, "Sort 100%")
    asked(books, "sort 1000")
    books.history.request_stop(done)
    assert names(books.desk.records(text="SORT")) == ["sort 1000", "Sort 100%"]
    assert names(books.desk.records(text="100%")) == ["Sort 100%"]
    assert names(books.desk.records(text="s_rt")) == []
    assert names(books.desk.records(status="stopped")) == ["Sort 100%"]
    assert names(books.desk.records(status="queued", text="sort", author="ann")) == ["sort 1000"]
    assert names(books.desk.records(status="queued", author="bob")) == []


@examples
@given(name=short_texts, author=short_texts)
def test_any_text_can_be_listed_and_found(books: Books, name: str, author: str) -> None:
    key = asked(books, name, author)
    for found in (
        books.desk.records(limit=1),
        books.desk.records(author=author, limit=1),
        books.desk.records(text=name, limit=1),
        books.desk.records(text=name[1:-1], limit=1),
    ):
        assert [(record.id, record.name, record.author) for record in found] == [(key, name, author)]


def test_nasty_text_can_be_found(books: Books) -> None:
    asked(books, NASTY, NASTY)
    for start in range(len(NASTY)):
        assert names(books.desk.records(author=NASTY, text=NASTY[start : start + 3])) == [NASTY]


def test_what_waits_for_workers(books: Books) -> None:
    first, second, third, stopped, over = (asked(books, name) for name in "abcde")
    books.history.create("on the command line", {}, 0.0)
    books.history.claim(second, ME, 1.0, None)
    books.history.append(second, a_run(0))
    books.history.request_stop(stopped)
    books.history.claim(over, ME, 1.0, None)
    books.history.close(over, ME, "finished", None)
    waiting = books.desk.waiting()
    assert [record.id for record in waiting] == [first, second, third]
    assert waiting[1] == replace(books.history.experiment(second), settings={}, source=None)
    assert (waiting[1].owner, waiting[1].seen_at, waiting[1].runs) == (ME, 1.0, 1)


def test_enqueue_hands_an_experiment_to_the_workers(books: Books) -> None:
    key = books.history.create("x", {}, 0.0).id
    books.history.claim(key, ME, 1.0, None)
    books.history.request_stop(key)
    assert not books.desk.enqueue(key, None)
    assert not books.desk.enqueue(key, OTHER)
    assert books.history.experiment(key).status == "running"
    assert books.desk.enqueue(key, ME)
    record = books.history.experiment(key)
    assert (record.status, record.owner, record.unattended, record.stop_requested) == ("queued", None, True, None)
    assert books.desk.enqueue(key, None)
    assert [found.id for found in books.desk.waiting()] == [key]


@pytest.mark.parametrize("instead_of", [None, OTHER])
def test_finished_experiment_is_not_queued_again(books: Books, instead_of: Owner | None) -> None:
    key = asked(books)
    books.history.claim(key, ME, 1.0, None)
    books.history.close(key, ME, "finished", None)
    with pytest.raises(InvalidInputError, match=f"experiment {key} is finished"):
        books.desk.enqueue(key, instead_of)
    assert books.history.experiment(key).status == "finished"


def test_delete_forgets_an_experiment_and_its_runs_only(books: Books) -> None:
    kept, key = asked(books), asked(books)
    for one in (kept, key):
        books.history.append(one, a_run(0))
    books.history.claim(key, ME, 1.0, None)
    assert not books.desk.delete(key, None)
    assert len(books.history.runs(key)) == 1
    assert books.desk.delete(key, ME)
    with pytest.raises(NotFoundError):
        books.history.experiment(key)
    with pytest.raises(NotFoundError):
        books.history.append(key, a_run(1))
    with pytest.raises(NotFoundError):
        books.desk.delete(key, None)
    assert len(books.history.runs(kept)) == 1


def test_number_of_a_deleted_experiment_is_not_given_again(books: Books) -> None:
    key = asked(books)
    assert books.desk.delete(key, None)
    assert asked(books) == key + 1


def test_key_of_a_deleted_experiment_is_free(books: Books) -> None:
    first = books.history.create("x", {}, 0.0, Origin("ann", None, "k"))
    books.desk.delete(first.id, None)
    assert books.history.create("x", {}, 0.0, Origin("ann", None, "k")).id != first.id


def test_changes_count_events(books: Books) -> None:
    key, other = asked(books), asked(books)
    books.history.append(other, a_run(7))
    assert books.desk.changes(key) == ("queued", 0, False)
    books.history.claim(key, ME, 1.0, None)
    books.history.append(key, a_run(0))
    assert books.desk.changes(key) == ("running", 1, False)
    books.history.finish(key, ended(a_run(0), Completed(1.0)))
    assert books.desk.changes(key) == ("running", 2, False)
    books.history.append(key, a_run(1))
    books.history.request_stop(key)
    assert books.desk.changes(key) == ("running", 3, True)
    assert [run.number for run in books.history.runs(key, since=2)] == [1]


def test_bad_arguments_are_told(books: Books) -> None:
    with pytest.raises(InvalidInputError, match="limit"):
        books.desk.records(limit=0)
    with pytest.raises(InvalidInputError, match="limit"):
        books.desk.records(limit=-(10**30))
    with pytest.raises(InvalidInputError, match="text"):
        books.desk.records(text="x" * 100_000)


@pytest.mark.parametrize("unknown", [0, -1, 987_654, 2**31, 10**30])
def test_unknown_experiment_is_not_found(books: Books, unknown: int) -> None:
    calls: list[Callable[[], object]] = [
        lambda: books.desk.enqueue(unknown, None),
        lambda: books.desk.share(unknown, shared=True),
        lambda: books.desk.delete(unknown, None),
        lambda: books.desk.changes(unknown),
    ]
    for call in calls:
        with pytest.raises(NotFoundError, match="not in this store"):
            call()


def test_experiment_is_either_claimed_once_or_deleted(books: Books, reopen: BooksOpener) -> None:
    keys = [asked(books) for _ in range(8)]
    rivals = [(reopen(), Owner("here", index, "1"), index % 2 == 0) for index in range(6)]
    with ThreadPoolExecutor(len(rivals)) as pool:
        won = list(pool.map(lambda rival: [taken(rival, key) for key in keys], rivals))
    left = {record.id: record.owner for record in books.desk.records()}
    for place, key in enumerate(keys):
        ((_, owner, deletes),) = [rival for rival, results in zip(rivals, won, strict=True) if results[place]]
        assert left.get(key) == (None if deletes else owner)
        assert (key in left) is not deletes


def taken(rival: tuple[Books, Owner, bool], key: int) -> bool:
    """Delete or claim an experiment that belongs to nobody; whether that worked."""
    books, owner, deletes = rival
    try:
        return books.desk.delete(key, None) if deletes else books.history.claim(key, owner, 1.0, None)
    except NotFoundError:
        return False


def test_delete_while_runs_are_written_leaves_none_behind(books: Books, reopen: BooksOpener) -> None:
    writer, eraser = reopen(), reopen()
    for _ in range(5):
        key = asked(books)
        with ThreadPoolExecutor(2) as pool:
            written = pool.submit(append_until_gone, writer, key)
            assert pool.submit(delete_once_begun, eraser, key).result()
            assert written.result() > 0
        with pytest.raises(NotFoundError):
            books.history.runs(key)


def append_until_gone(books: Books, key: int) -> int:
    for number in count():
        try:
            books.history.append(key, a_run(number))
        except NotFoundError:
            return number
    raise AssertionError


def delete_once_begun(books: Books, key: int) -> bool:
    while not books.history.runs(key):
        pass
    return books.desk.delete(key, None)
