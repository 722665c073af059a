from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from luthier.store import open_books, open_store
from luthier.store.base import Store
from luthier.store.server_store import Books
from luthier.store.sql import SqlStore

Opener = Callable[[str], Store]
BooksOpener = Callable[[], Books]


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
    """Opens the same books again, as another process would, and lets go of their connections in the end."""
    opened: list[Books] = []

    def opener() -> Books:
        opened.append(open_books(url))
        return opened[-1]

    yield opener
    for books in opened:
        assert isinstance(books.history, SqlStore)
        books.history.dispose()


@pytest.fixture
def books(reopen: BooksOpener) -> Books:
    """New books."""
    return reopen()
