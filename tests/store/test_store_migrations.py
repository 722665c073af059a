from collections.abc import Callable
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection

from luthier.store.base import Store
from luthier.store.schema import MIGRATIONS, NEWEST, version
from luthier.store.sql import SqlStore
from luthier.store.tables import VERSION_TABLE, metadata

Opener = Callable[[str], Store]


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/x.db"
    return str(request.getfixturevalue("postgresql_url"))


def in_database(store: Store, work: Callable[[Connection], object]) -> object:
    assert isinstance(store, SqlStore)
    return store._database.write(work)


def test_fresh_store_is_migrated_to_what_the_tables_say(url: str, opening: Opener) -> None:
    def differences(connection: Connection) -> object:
        context = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE, "compare_type": True})
        return compare_metadata(context, metadata)

    store = opening(url)
    assert in_database(store, version) == NEWEST
    assert in_database(store, differences) == []


def test_newest_is_the_head_of_the_migrations() -> None:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    assert ScriptDirectory.from_config(config).get_heads() == [NEWEST]


def test_migration_that_fails_leaves_nothing(url: str, opening: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
    import luthier.store.schema as schema

    upgrade = schema.upgrade

    def die(connection: Connection) -> None:
        upgrade(connection)
        raise RuntimeError("killed")

    monkeypatch.setattr(schema, "upgrade", die)
    with pytest.raises(RuntimeError, match="killed"):
        opening(url)
    monkeypatch.undo()
    assert opening(url).create("x", {}, 0.0).id == 1
