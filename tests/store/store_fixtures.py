from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from luthier.store import open_server_store, open_store
from luthier.store.base import Store
from luthier.store.server_store import ServerStore
from luthier.store.sql import SqlStore

Opener = Callable[[str], Store]
BooksOpener = Callable[[], ServerStore]


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


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The name of a store that does not exist yet, in each kind of database."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/x.db"
    return str(request.getfixturevalue("postgresql_url"))


@pytest.fixture
def reopen(url: str) -> Iterator[BooksOpener]:
    """Opens the same server_store again, as another process would, and lets go of their connections in the end."""
    opened: list[ServerStore] = []

    def opener() -> ServerStore:
        opened.append(open_server_store(url))
        return opened[-1]

    yield opener
    for server_store in opened:
        assert isinstance(server_store.history, SqlStore)
        server_store.history.dispose()


@pytest.fixture
def server_store(reopen: BooksOpener) -> ServerStore:
    """New server_store."""
    return reopen()
