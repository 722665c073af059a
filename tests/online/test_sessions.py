"""Sessions between two threads: what the store says is about the sessions that were served when it was asked."""

import math
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.online.serving import SPACE

from luthier.errors import InvalidInputError, UnavailableError
from luthier.online.service.journal import Journal
from luthier.online.service.protocol import Hello
from luthier.online.service.sessions import Sessions
from luthier.online.store import online_sessions_in
from luthier.space import Integer, Space
from luthier.store import open_server_store
from luthier.store.sql import SqlStore


@pytest.fixture
def sessions(folder: Path) -> Iterator[Sessions]:
    store = open_server_store(f"sqlite:///{folder}/x.db")
    journal = Journal(folder / "j")
    journal.open()
    yield Sessions(online_sessions_in(store), journal, lambda _decision, _done: None)
    journal.close()
    assert isinstance(store.history, SqlStore)
    store.history.dispose()


def hello(name: str) -> Hello:
    return Hello(name, "c", space=SPACE.to_json())


def test_a_session_that_was_created_after_the_store_was_asked_is_not_taken_for_a_deleted_one(
    sessions: Sessions,
) -> None:
    old, gone = sessions.open("local", hello("old")), sessions.open("local", hello("gone"))
    sessions.store.delete(gone.record.id)
    statuses = sessions.save([], 1.0)
    new = sessions.open("local", hello("new"))
    sessions.follow(statuses)
    assert [one.is_deleted for one in (old, gone, new)] == [False, True, False]


def test_sessions_of_users_are_apart(sessions: Sessions) -> None:
    ada, bob = sessions.open("ada", hello("s")), sessions.open("bob", hello("s"))
    assert ada is not bob
    assert ada.record.id != bob.record.id
    assert sessions.open("ada", hello("s")) is ada


def test_names_of_clients_are_distinct(sessions: Sessions) -> None:
    served = sessions.open("local", hello("s"))
    assert served.join("c", None) == ("c", ["c"])
    assert served.join("c", None) == ("c-2", ["c-2"])
    assert served.join("m", 2) == ("m", ["m:0", "m:1"])
    assert served.join("m", 1) == ("m-2", ["m-2:0"])
    served.leave(["c"], 1.0, lost=False)
    assert served.join("c", None) == ("c", ["c"])


def test_a_view_that_cannot_be_stored_does_not_keep_others_from_being_stored(sessions: Sessions) -> None:
    first, second = sessions.open("local", hello("first")), sessions.open("local", hello("second"))
    first.session._total.total = math.inf
    sessions.save(sessions.to_save(heartbeat=True), 1.0)
    assert sessions.store.get(first.record.id).view is None
    assert sessions.store.get(second.record.id).view is not None


def test_a_user_cannot_use_up_the_memory(sessions: Sessions, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("luthier.online.service.sessions.MOST_SESSIONS", 2)
    known = sessions.open("ada", hello("1"))
    sessions.open("ada", hello("2"))
    with pytest.raises(UnavailableError, match="has 2 sessions in use already"):
        sessions.open("ada", hello("3"))
    assert sessions.open("ada", hello("1")) is known
    assert sessions.open("bob", hello("3")).record.name == "3"


def test_a_space_of_very_many_parameters_is_refused_at_once(sessions: Sessions) -> None:
    space = Space(*(Integer(f"p{number}", 1, 9) for number in range(9000)))
    with pytest.raises(InvalidInputError, match="9000 parameters; at most 500"):
        sessions.open("local", Hello("s", "c", space=space.to_json()))
    assert sessions.store.all() == []
