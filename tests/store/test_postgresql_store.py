import socket
from collections.abc import Callable, Iterator
from urllib.parse import urlsplit

import psycopg
import pytest
from sqlalchemy import Connection, event
from tests.store.samples import ME, a_run, ended

from luthier.errors import InvalidInputError, LuthierError, StoreError
from luthier.store import open_store
from luthier.store.base import Store
from luthier.store.sql import SqlStore
from luthier.trial import Completed

Opener = Callable[[str], Store]


@pytest.fixture
def store(postgresql_url: str, opening: Opener) -> SqlStore:
    store = opening(postgresql_url)
    assert isinstance(store, SqlStore)
    return store


@pytest.fixture
def administrator(postgresql_url: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(postgresql_url, autocommit=True) as connection:
        yield connection


def refusal(url: str) -> LuthierError:
    """What opening a store says: one line that shows the place and no password."""
    with pytest.raises(LuthierError) as caught:
        open_store(url, lock_timeout_s=0.1)
    message = str(caught.value)
    password = urlsplit(url).password
    assert "\n" not in message
    assert password is None or password not in message
    assert message.startswith("postgresql://")
    return caught.value


def test_server_that_is_away() -> None:
    with socket.socket() as silent:  # bound but not listening: nobody answers, and nobody else can take the port
        silent.bind(("127.0.0.1", 0))
        error = refusal(f"postgresql://ann:sesame@127.0.0.1:{silent.getsockname()[1]}/history")
    assert isinstance(error, StoreError)
    assert "the server does not answer" in str(error)
    assert "refused" in str(error)


def test_host_that_is_unknown() -> None:
    assert isinstance(refusal("postgresql://ann:sesame@nowhere.invalid/history"), StoreError)


def test_wrong_password(postgresql_server: str) -> None:
    place = postgresql_server.rpartition("@")[2]
    error = refusal(f"postgresql://luthier:sesame@{place}/postgres")
    assert isinstance(error, InvalidInputError)
    assert "password authentication failed" in str(error)


def test_missing_database(postgresql_server: str) -> None:
    error = refusal(f"{postgresql_server}/nothing_here")
    assert isinstance(error, InvalidInputError)
    assert "the database does not exist; create it" in str(error)


def test_database_of_another_program(postgresql_url: str, administrator: psycopg.Connection) -> None:
    administrator.execute("CREATE TABLE cookies (x int)")
    administrator.execute("CREATE TABLE runs (x int)")
    error = refusal(postgresql_url)
    assert isinstance(error, InvalidInputError)
    assert "another program (runs)" in str(error)


def test_shared_database(postgresql_url: str, administrator: psycopg.Connection, opening: Opener) -> None:
    administrator.execute("CREATE TABLE alembic_version (version_num text)")
    administrator.execute("INSERT INTO alembic_version VALUES ('theirs')")
    opening(postgresql_url).create("x", {}, 0.0)
    assert administrator.execute("SELECT * FROM alembic_version").fetchall() == [("theirs",)]


def test_database_that_cannot_hold_every_text(postgresql_server: str) -> None:
    with psycopg.connect(f"{postgresql_server}/postgres", autocommit=True) as connection:
        connection.execute("CREATE DATABASE old ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
        try:
            error = refusal(f"{postgresql_server}/old")
        finally:
            connection.execute("DROP DATABASE old WITH (FORCE)")
    assert isinstance(error, InvalidInputError)
    assert "LATIN1" in str(error)


def test_newer_schema(store: SqlStore, postgresql_url: str, administrator: psycopg.Connection) -> None:
    administrator.execute("UPDATE luthier_version SET version_num = '0999'")
    error = refusal(postgresql_url)
    assert isinstance(error, InvalidInputError)
    assert "upgrade luthier" in str(error)


def test_user_without_rights(postgresql_url: str, administrator: psycopg.Connection) -> None:
    administrator.execute("CREATE USER guest PASSWORD 'sesame'")
    try:
        error = refusal(f"postgresql://guest:sesame@{postgresql_url.rpartition('@')[2]}")
    finally:
        administrator.execute("DROP USER guest")
    assert isinstance(error, StoreError)
    assert "permission denied" in str(error)


def test_read_only_server(store: SqlStore, administrator: psycopg.Connection) -> None:
    administrator.execute("ALTER DATABASE one_test SET default_transaction_read_only = on")
    store.dispose()
    with pytest.raises(StoreError, match=r"read-only .* use the server that accepts writes"):
        store.create("x", {}, 0.0)


def test_locked_beyond_the_timeout(store: SqlStore, postgresql_url: str, administrator: psycopg.Connection) -> None:
    key = store.create("x", {}, 0.0).id
    hasty = open_store(postgresql_url, lock_timeout_s=0.05)
    with administrator.transaction():
        administrator.execute("LOCK TABLE runs")
        with pytest.raises(StoreError, match=r"locked by another process for more than 0\.05 s"):
            hasty.append(key, a_run(0))
    hasty.append(key, a_run(0))
    assert list(store.runs(key)) == [a_run(0)]
    assert isinstance(hasty, SqlStore)
    hasty.dispose()


def cut_all(administrator: psycopg.Connection) -> None:
    """End every connection to this database but one's own, and see to it that they are gone."""
    administrator.execute(
        "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity "
        "WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )


def test_lost_connection_is_replaced(store: SqlStore, administrator: psycopg.Connection) -> None:
    run, last = a_run(0), ended(a_run(0), Completed(1.0))
    key = store.create("x", {}, 0.0).id
    calls: list[Callable[[], object]] = [
        store.experiments,
        lambda: store.experiment(key),
        lambda: store.runs(key),
        lambda: store.create("y", {}, 0.0),
        lambda: store.claim(key, ME, 1.0, None),
        lambda: store.heartbeat(key, ME, 2.0),
        lambda: store.request_stop(key),
        lambda: store.append(key, run),
        lambda: store.finish(key, last),
        lambda: store.close(key, ME, "stopped", None),
    ]
    for call in calls:
        cut_all(administrator)
        call()
    assert list(store.runs(key)) == [last]
    assert [record.name for record in store.experiments()] == ["x", "y"]


def cut_next_commit(store: SqlStore, administrator: psycopg.Connection) -> None:
    """The next commit finds its connection cut."""
    cuts = iter([True])

    def cut(_connection: Connection) -> None:
        if next(cuts, False):
            cut_all(administrator)

    event.listen(store._database.backend.engine, "commit", cut)


def test_commit_that_may_have_happened_is_repeated_where_that_does_no_harm(
    store: SqlStore, administrator: psycopg.Connection
) -> None:
    key = store.create("x", {}, 0.0).id
    cut_next_commit(store, administrator)
    store.append(key, a_run(0))
    assert list(store.runs(key)) == [a_run(0)]
    cut_next_commit(store, administrator)
    with pytest.raises(StoreError, match="terminating connection"):
        store.create("y", {}, 0.0)
    cut_next_commit(store, administrator)
    with pytest.raises(StoreError, match="terminating connection"):
        store.claim(key, ME, 1.0, None)
    assert [(record.name, record.owner) for record in store.experiments()] == [("x", None)]
