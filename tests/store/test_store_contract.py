from collections.abc import Callable
from pathlib import Path

import pytest
from tests.store.contract import PersistentStoreContract, Reopen, StoreContract

from luthier.store import open_store
from luthier.store.base import Store

Opener = Callable[[str], Store]


class TestMemoryStore(StoreContract):
    @pytest.fixture
    def store(self) -> Store:
        return open_store("memory:")


class TestSqliteStore(PersistentStoreContract):
    @pytest.fixture
    def reopen(self, tmp_path: Path, opening: Opener) -> Reopen:
        return lambda: opening(f"sqlite:///{tmp_path}/history.db")

    @pytest.fixture
    def store(self, reopen: Reopen) -> Store:
        return reopen()


class TestPostgresqlStore(PersistentStoreContract):
    @pytest.fixture
    def reopen(self, postgresql_url: str, opening: Opener) -> Reopen:
        return lambda: opening(postgresql_url)

    @pytest.fixture
    def store(self, reopen: Reopen) -> Store:
        return reopen()
