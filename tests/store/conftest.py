from collections.abc import Callable, Iterator

import pytest

from luthier.store import open_store
from luthier.store.base import Store
from luthier.store.sql import SqlStore

Opener = Callable[[str], Store]


@pytest.fixture
def opening() -> Iterator[Opener]:
    """Opens stores, and lets go of their connections in the end."""
    opened: list[SqlStore] = []

    def opener(url: str) -> Store:
        store = open_store(url)
        if isinstance(store, SqlStore):
            opened.append(store)
        return store

    yield opener
    for store in opened:
        store.dispose()


@pytest.fixture
def postgresql_url(postgresql_server: str) -> Iterator[str]:
    """An empty database of its own for one test."""
    import psycopg

    with psycopg.connect(f"{postgresql_server}/postgres", autocommit=True) as connection:
        connection.execute("CREATE DATABASE one_test")
        yield f"{postgresql_server}/one_test"
        connection.execute("DROP DATABASE one_test WITH (FORCE)")
