import gc
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import cast

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, MetaData, insert, text
from sqlalchemy.exc import IntegrityError
from tests.store.answers import called
from tests.store.samples import ME, NASTY, a_run, ended

from luthier.errors import InvalidInputError, StoreError
from luthier.store import _backend, open_server_store, rows
from luthier.store.base import Record, Store
from luthier.store.components import SqlComponents
from luthier.store.database import Database
from luthier.store.schema import MIGRATIONS, NEWEST, version
from luthier.store.sql import SqlStore
from luthier.store.tables import VERSION_TABLE, escape, metadata
from luthier.trial import Completed, Run

Opener = Callable[[str], Store]


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


def test_old_store_keeps_everything(url: str, opening: Opener) -> None:
    backend = _backend(url, 10)
    assert backend is not None
    old = Database(backend)
    old.write(make_version_1)
    old.dispose()
    store = opening(url)
    assert store.experiments() == [
        Record(1, "u1", NASTY, 1.5, {"a": [1, 2.5]}, "finished", result={"best": None}, runs=1),
        Record(4, "u4", "x", 2.5, {}, "running", stop_requested="drain", owner=ME, seen_at=9.0, runs=2),
    ]
    assert store.runs(1) == [ended(a_run(0), Completed(2.0))]
    assert store.runs(4) == [a_run(0), a_run(1)]
    store.append(4, a_run(2))
    assert store.create("new", {}, 3.0).id == 5
    with pytest.raises(IntegrityError):  # runs still refer to their experiment
        in_database(store, lambda connection: connection.execute(text("DELETE FROM experiments WHERE id = 4")))


def make_version_1(connection: Connection) -> None:
    """A store as the first luthier left it."""
    _upgraded(connection, "0001")
    tables = MetaData()
    tables.reflect(connection)
    connection.execute(insert(tables.tables["experiments"]), [FINISHED, RUNNING])
    submitted = [_without_uid(a_run(number)) for number in range(2)]
    connection.execute(
        insert(tables.tables["runs"]),
        [
            {"experiment_id": 1, **submitted[0], **rows.ending_row(ended(a_run(0), Completed(2.0)))},
            {"experiment_id": 4, **submitted[0], **rows.NOT_ENDED},
            {"experiment_id": 4, **submitted[1], **rows.NOT_ENDED},
        ],
    )
    if connection.dialect.name == "postgresql":  # where numbers that were given by hand do not count
        connection.execute(text("SELECT setval('experiments_id_seq', 4)"))


FINISHED = {
    "id": 1,
    "uid": "u1",
    "name": escape(NASTY),
    "created_at": 1.5,
    "settings": '{"a":[1,2.5]}',
    "status": "finished",
    "stop_requested": False,
    "owner_host": None,
    "owner_pid": None,
    "owner_started": None,
    "seen_at": None,
    "result": '{"best":null}',
}
RUNNING = {
    "id": 4,
    "uid": "u4",
    "name": "x",
    "created_at": 2.5,
    "settings": "{}",
    "status": "running",
    "stop_requested": True,
    "owner_host": ME.host,
    "owner_pid": ME.pid,
    "owner_started": ME.started,
    "seen_at": 9.0,
    "result": None,
}


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


def _without_uid(run: Run) -> dict[str, object]:
    return {name: value for name, value in rows.submission_row(run).items() if name != "uid"}


def test_numbers_of_deleted_experiments_stay_taken_across_migrations(url: str, opening: Opener) -> None:
    backend = _backend(url, 10)
    assert backend is not None
    old = Database(backend)
    old.write(make_version_2)
    old.dispose()
    store = opening(url)
    assert [(record.id, record.name, record.author) for record in store.experiments()] == [(1, "kept", "ann")]
    assert store.create("new", {}, 3.0).id == 4


def make_version_2(connection: Connection) -> None:
    """A store in which the newest experiments were deleted."""
    _upgraded(connection, "0002")
    tables = MetaData()
    tables.reflect(connection)
    experiments = tables.tables["experiments"]
    more = {"unattended": True, "author": "ann", "shared": False, "request_key": "k", "source": "text"}
    for name in ("kept", "gone", "gone too"):
        row = {**FINISHED, **more, "name": name, "uid": name, "request_key": name}
        connection.execute(insert(experiments), {key: value for key, value in row.items() if key != "id"})
    connection.execute(text("DELETE FROM experiments WHERE name <> 'kept'"))


def _upgraded(connection: Connection, revision: str) -> None:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    config.attributes["connection"] = connection
    command.upgrade(config, revision)


def test_an_old_store_gets_the_components_of_its_user(
    url: str, opening: Opener, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "data" / "luthier" / "components"
    folder.mkdir(parents=True)
    (folder / "dd.yaml").write_text("components: {dd: {}}  # é", encoding="utf-8")
    (folder / "bad.yaml").write_bytes(b"\xff")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    backend = _backend(url, 10)
    assert backend is not None
    old = Database(backend)
    old.write(make_version_1)
    old.dispose()
    store = opening(url)
    assert isinstance(store, SqlStore)
    components = SqlComponents(store._database)
    assert (components.names(), components.text("dd")) == (["dd"], "components: {dd: {}}  # é")
    components.remove("dd")
    assert SqlComponents(cast("SqlStore", opening(url))._database).names() == []
    assert (folder / "dd.yaml").exists()


def test_new_stores_begin_without_components_except_that_of_the_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "luthier" / "components"
    folder.mkdir(parents=True)
    (folder / "dd.yaml").write_text("components: {dd: {}}", encoding="utf-8")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.delenv("LUTHIER_STORE", raising=False)
    assert open_server_store(str(tmp_path / "new.db")).components.names() == []
    assert open_server_store().components.names() == ["dd"]


@pytest.mark.parametrize("command", ["list", "show 1", "serve --port 0", "worker"])
def test_a_newer_store_is_refused_in_one_line_by_everything(command: str, url: str, opening: Opener) -> None:
    change = f"UPDATE {VERSION_TABLE} SET version_num = '9999'"
    in_database(opening(url), lambda connection: connection.exec_driver_sql(change))
    code, said = called(url, command)
    assert (code, said.count("\n")) == (2, 1), said
    assert (
        f"created by a newer luthier (schema 9999; this version knows schemas up to {NEWEST}); upgrade luthier" in said
    )


def test_an_unknown_schema_is_damage(url: str, opening: Opener) -> None:
    change = f"UPDATE {VERSION_TABLE} SET version_num = '00*'"
    in_database(opening(url), lambda connection: connection.exec_driver_sql(change))
    with pytest.raises(StoreError, match="damaged"):
        opening(url)


@pytest.mark.parametrize("journal", ["wal", "delete"])
def test_the_file_of_a_newer_store_is_left_unchanged(journal: str, tmp_path: Path, opening: Opener) -> None:
    path = tmp_path / "x.db"
    store = opening(str(path))
    assert isinstance(store, SqlStore)
    store.dispose()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"UPDATE {VERSION_TABLE} SET version_num='9999'")
        connection.commit()
        connection.execute(f"PRAGMA journal_mode = {journal}")
    before = path.read_bytes()
    with pytest.raises(InvalidInputError, match="newer luthier"):
        opening(str(path))
    gc.collect()  # closes the connection
    assert path.read_bytes() == before
