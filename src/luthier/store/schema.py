"""The schema version of a store, and the upgrade to the newest one."""

import threading
from glob import escape
from pathlib import Path

from sqlalchemy import Connection, inspect, text

from luthier.errors import InvalidInputError
from luthier.store.database import Backend, Database, damaged
from luthier.store.tables import VERSION_TABLE, metadata

NEWEST = "0012"
"""The newest migration. It is defined here because importing Alembic takes longer than most commands."""

MIGRATIONS = Path(__file__).parent / "migrations"

_one_at_a_time = threading.Lock()  # Alembic keeps its context in module globals


def prepare(database: Database) -> None:
    """Upgrade the tables of a store to the newest version; several processes may do so at the same time."""
    backend = database.backend
    found = database.read(version)
    if found != NEWEST:
        check_known(backend.where, found)
        with _one_at_a_time:
            database.write(lambda connection: _migrate(connection, backend))


def version(connection: Connection) -> str | None:
    """The version of the tables; None if there are no tables yet."""
    if not inspect(connection).has_table(VERSION_TABLE):
        return None
    found = connection.execute(text(f"SELECT version_num FROM {VERSION_TABLE}")).scalar()  # noqa: S608 a constant
    return None if found is None else str(found)


def check_known(where: str, found: str | None) -> None:
    """Raise unless this luthier can use or upgrade a store of this version; None is a store without tables."""
    if found is None or any((MIGRATIONS / "versions").glob(f"r{escape(found)}_*.py")):
        return
    if len(found) == len(NEWEST) and found.isdecimal() and found > NEWEST:
        raise InvalidInputError(
            f"{where}: created by a newer luthier (schema {found}; this version knows schemas up to {NEWEST}); "
            "upgrade luthier, or use another store"
        )
    raise damaged(where, f"its schema is {found!r}")


def upgrade(connection: Connection) -> None:
    """Run the missing migrations in the transaction of this connection."""
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, "head")


def _migrate(connection: Connection, backend: Backend) -> None:
    if backend.migration_lock is not None:
        connection.exec_driver_sql(backend.migration_lock)
    found = version(connection)  # check again: another process may have upgraded it
    if found == NEWEST:
        return
    if found is None:
        _refuse_other_tables(connection, backend)
    check_known(backend.where, found)
    upgrade(connection)


def _refuse_other_tables(connection: Connection, backend: Backend) -> None:
    """Raise if the database is used by another program."""
    tables = set(inspect(connection).get_table_names())
    if connection.dialect.name != "sqlite":  # a database may be shared with others, but not these table names
        tables &= set(metadata.tables)
    if tables:
        raise InvalidInputError(
            f"{backend.where}: contains tables of another program ({', '.join(sorted(tables)[:3])}); "
            "use an empty database"
        )
