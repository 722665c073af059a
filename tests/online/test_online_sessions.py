"""On-line sessions and their samples, over each kind of database."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from operator import methodcaller

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.store.samples import NASTY
from tests.store.strategies import examples, jsons, short_texts, texts

from luthier.errors import InvalidInputError, NotFoundError, StoreError
from luthier.online.records import OnlineRecord, OnlineSessions
from luthier.online.store import SqlOnlineSessions, online_sessions_in
from luthier.store.server_store import ServerStore, User
from luthier.trial import Config, Json, Sample

Reopen = Callable[[], ServerStore]

NOT_SHARED = False
SETTINGS: dict[str, Json] = {"space": {"parameters": []}, "strategy": "auto"}
_numbers = st.floats(allow_nan=False, allow_infinity=False)


@pytest.fixture
def online(server_store: ServerStore) -> OnlineSessions:
    return online_sessions_in(server_store)


def a_session(online: OnlineSessions, name: str = "stencil", author: str = "ann") -> OnlineRecord:
    return online.create(author, name, SETTINGS, 5.0)


def some_samples(numbers: Sequence[int]) -> list[Sample]:
    return [Sample(number, 1, f"node/{number}", Config({"x": number}), number / 7, 10.0) for number in numbers]


def test_new_session_is_found(online: OnlineSessions) -> None:
    made = a_session(online)
    assert made == OnlineRecord(made.id, made.uid, "stencil", "ann", NOT_SHARED, 5.0, "running", None, SETTINGS, None)
    assert not made.stop_requested
    assert online.get(made.id) == online.find("ann", "stencil") == made
    assert online.find("ann", "other") is online.find("bob", "stencil") is None


def test_session_of_the_same_name_is_the_first_one(online: OnlineSessions) -> None:
    first = a_session(online)
    assert online.create("ann", "stencil", {"other": 1}, 9.0) == first
    assert online.create("bob", "stencil", SETTINGS, 9.0).id != first.id


def test_session_created_by_several_at_once_is_one(reopen: Reopen) -> None:
    others = [online_sessions_in(reopen()) for _ in range(6)]
    for name in ("a", "b", "c", "d"):
        with ThreadPoolExecutor(len(others)) as pool:
            made = list(pool.map(a_session, others, [name] * len(others)))
        assert {one.uid for one in made} == {made[0].uid}
    assert len(others[0].all()) == 4


@examples
@given(author=short_texts, name=st.text(st.characters(exclude_categories=()), min_size=1, max_size=200), said=jsons)
def test_any_text_comes_back(online: OnlineSessions, author: str, name: str, said: Json) -> None:
    made = online.create(author, name, {"a": said}, 1.0)
    online.update(made.id, seen_at=2.0, view={"b": said})
    found = online.find(author, name)
    assert found is not None
    assert (found.author, found.name, found.view, found.seen_at) == (author, name, {"b": said}, 2.0)
    online.delete(made.id)


def test_sessions_are_listed_newest_first_and_in_pages(online: OnlineSessions) -> None:
    a, b, c = (a_session(online, name) for name in "abc")
    hers = a_session(online, "d", "bob")
    assert [one.id for one in online.all()] == [hers.id, c.id, b.id, a.id]
    assert [one.id for one in online.all(author="ann", limit=2)] == [c.id, b.id]
    assert [one.id for one in online.all(author="ann", before=b.id)] == [a.id]
    assert online.all(before=-(10**30)) == []
    online.share(hers.id, shared=True)
    assert [one.id for one in online.all(author="ann", limit=2)] == [hers.id, c.id]
    online.share(hers.id, shared=False)
    assert hers.id not in [one.id for one in online.all(author="ann")]


def test_stop_is_kept(online: OnlineSessions, reopen: Reopen) -> None:
    made, other = a_session(online), a_session(online, "other")
    online.request_stop(made.id)
    online.request_stop(made.id)
    again = online_sessions_in(reopen())
    assert again.get(made.id) == replace(made, status="stopped")
    assert again.get(made.id).stop_requested
    assert again.status() == {made.id: "stopped", other.id: "running"}


def test_heartbeat_keeps_the_view(online: OnlineSessions) -> None:
    made = a_session(online)
    online.update(made.id, seen_at=6.0, view={"phase": "baseline"})
    online.update(made.id, seen_at=7.0)
    assert online.get(made.id) == replace(made, seen_at=7.0, view={"phase": "baseline"})


def test_samples_are_appended_once(online: OnlineSessions) -> None:
    made, other = a_session(online), a_session(online, "other")
    samples = some_samples(range(1, 501))
    online.append(other.id, some_samples([3]))
    online.append(made.id, samples[:300])
    online.append(made.id, [replace(one, value=None) for one in samples[200:300]] + samples[300:])
    online.append(made.id, [])
    assert online.samples(made.id) == samples
    assert online.samples(other.id) == some_samples([3])
    assert online.samples(made.id, after=498) == samples[498:]
    assert online.samples(made.id, after=10, limit=2) == samples[10:12]
    assert online.samples(made.id, after=10**30) == []


@examples
@given(client=texts, value=st.none() | _numbers, at=_numbers, config=st.dictionaries(texts, _numbers | texts))
def test_any_sample_comes_back(
    online: OnlineSessions, client: str, value: float | None, at: float, config: dict[str, float | str]
) -> None:
    made = a_session(online, NASTY)
    sample = Sample(1, 2, client, Config(config), value, at)
    online.append(made.id, [sample])
    assert online.samples(made.id) == [sample]
    online.delete(made.id)


def test_delete_forgets_the_session_and_its_samples_only(online: OnlineSessions) -> None:
    kept, made = a_session(online, "kept"), a_session(online)
    for one in (kept, made):
        online.append(one.id, some_samples([1]))
    online.delete(made.id)
    assert [one.id for one in online.all()] == [kept.id]
    assert len(online.samples(kept.id)) == 1
    assert a_session(online).id > made.id
    with pytest.raises(NotFoundError):
        online.append(made.id, some_samples([2]))


@pytest.mark.parametrize("unknown", [0, -1, 987_654, 2**31, 10**30])
def test_unknown_session_is_not_found(online: OnlineSessions, unknown: int) -> None:
    calls: list[Callable[[], object]] = [
        lambda: online.get(unknown),
        lambda: online.append(unknown, some_samples([1])),
        lambda: online.samples(unknown),
        lambda: online.update(unknown, seen_at=1.0),
        lambda: online.update(unknown, seen_at=1.0, view={}),
        lambda: online.request_stop(unknown),
        lambda: online.share(unknown, shared=True),
        lambda: online.delete(unknown),
    ]
    for call in calls:
        with pytest.raises(NotFoundError, match=f"on-line session {unknown} is not in this store"):
            call()


def test_bad_values_are_told_and_nothing_is_written(online: OnlineSessions) -> None:
    made = a_session(online)
    good = some_samples([1])[0]
    for bad in (replace(good, value=float("nan")), replace(good, at=float("inf"))):
        with pytest.raises(StoreError, match="finite"):
            online.append(made.id, [good, bad])
    with pytest.raises(StoreError):
        online.update(made.id, seen_at=1.0, view={"x": float("nan")})
    for author, name in (("ann", ""), ("ann", "n" * 201), ("a" * 201, "n")):
        with pytest.raises(InvalidInputError):
            a_session(online, name, author)
    assert online.samples(made.id) == []
    assert online.all() == [made]


def test_sessions_of_a_removed_user_stay(server_store: ServerStore) -> None:
    online = online_sessions_in(server_store)
    numbers = []
    for name in ("x", "x", "y", "x"):
        server_store.accounts.put_user(User("ann", "user", 1.0))
        numbers.append(a_session(online, name).id)
        online.append(numbers[-1], some_samples([1]))
        server_store.accounts.remove_user("ann")
    assert [(one.author, one.name) for one in map(online.get, numbers)] == [
        ("ann/removed", "x"),
        ("ann/removed", "x (2)"),
        ("ann/removed", "y"),
        ("ann/removed", "x (3)"),
    ]
    assert a_session(online, "x").id not in numbers
    assert [len(online.samples(number)) for number in numbers] == [1] * 4


def test_damaged_session_does_not_hide_the_others(online: OnlineSessions) -> None:
    good, bad = a_session(online, "good"), a_session(online, "bad")
    assert isinstance(online, SqlOnlineSessions)
    for damage in ("'{'", "'[]'"):
        statement = f"UPDATE online_sessions SET settings = {damage} WHERE id = {bad.id}"
        online._database.write(methodcaller("exec_driver_sql", statement))
        assert online.all() == [replace(bad, settings={}), good]
