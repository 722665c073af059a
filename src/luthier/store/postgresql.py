"""Stores in a PostgreSQL database, for many users at the same time."""

import re

from sqlalchemy import URL, create_engine, event, make_url
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import ArgumentError, DBAPIError
from sqlalchemy.pool import ConnectionPoolEntry, NullPool

from luthier.errors import InvalidInputError, LuthierError, StoreAwayError, StoreError
from luthier.store.database import Backend
from luthier.store.url import without_password

# Keep idle connections open through firewalls, and detect a server that no longer answers.
_PATIENCE = {"connect_timeout": "10", "keepalives_idle": "60", "keepalives_interval": "10", "tcp_user_timeout": "30000"}

_MIGRATION_LOCK = 0x6C757468  # "luth"


def postgresql_backend(text: str, lock_timeout_s: float) -> Backend:
    """The backend for the database at this URL."""
    url = _parse(text)
    where = without_password(text)
    try:
        engine = create_engine(url, poolclass=NullPool, hide_parameters=True)  # parameters may be secrets
    except ImportError:
        raise InvalidInputError(
            f"{where}: the PostgreSQL driver is missing; run: pip install 'luthier[postgresql]'"
        ) from None

    def prepare(connection: DBAPIConnection, _entry: ConnectionPoolEntry) -> None:
        encoding = connection.info.parameter_status("server_encoding")
        if encoding != "UTF8":
            connection.close()
            raise InvalidInputError(
                f"{where}: the database has the encoding {encoding}; create one with: createdb -E UTF8 -T template0"
            )
        cursor = connection.cursor()
        cursor.execute("SELECT set_config('lock_timeout', %s, false)", (f"{max(1, round(lock_timeout_s * 1000))}ms",))
        cursor.close()
        connection.commit()

    event.listen(engine, "connect", prepare)
    return Backend(
        where=where,
        engine=engine,
        explain=lambda error: explain(error, where, lock_timeout_s),
        check=lambda _connection: None,
        migration_lock=f"SELECT pg_advisory_xact_lock({_MIGRATION_LOCK})",
    )


def explain(error: DBAPIError, where: str, lock_timeout_s: float) -> LuthierError:
    """An error of PostgreSQL as one line."""
    said = _main_line(str(error.orig))
    # A refused connection has no error code, only text.
    if re.search(
        r"password authentication failed|no password supplied|role .* does not exist|no pg_hba.conf entry", said
    ):
        return InvalidInputError(f"{where}: the server refuses this user ({said}); correct the user or the password")
    if re.search(r"database .* does not exist", said):
        return InvalidInputError(f"{where}: the database does not exist; create it with createdb, or use another one")
    code = getattr(error.orig, "sqlstate", None)
    if code is None:
        return StoreAwayError(f"{where}: the server does not answer ({said}); try again later")
    kind = StoreAwayError if code.startswith(_TEMPORARY) else StoreError
    return kind(f"{where}: {_EXPLANATIONS.get(code, '{said}').format(said=said, lock_timeout_s=lock_timeout_s)}")


_TEMPORARY = ("08", "40", "53300", "55P03", "57P")
"""Temporary errors: lost connections, conflicts, too many connections, locks, a server that restarts."""


_EXPLANATIONS = {
    "25006": "read-only ({said}); use the server that accepts writes",
    "42501": "{said}; ask the administrator for this right",
    "53100": "the disk of the server is full; free some space and try again",
    "53300": "the server has too many connections; try again later",
    "55P03": "locked by another process for more than {lock_timeout_s:g} s; try again later",
}


def _main_line(text: str) -> str:
    """The most useful line: libpq reports what it tried first and what failed last."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    telling = [line for line in lines if re.search("FATAL|failed|error|refused", line)]
    return telling[-1] if telling else next(iter(lines), "no reason given")


def _parse(text: str) -> URL:
    try:
        url = make_url(text)
    except (ArgumentError, ValueError):
        raise InvalidInputError(
            f"{without_password(text)}: not a PostgreSQL URL; expected postgresql://user:password@host:port/database, "
            "with special characters in the password as %XX"
        ) from None
    defaults = {name: value for name, value in _PATIENCE.items() if name not in url.query}
    return url.set(drivername="postgresql+psycopg").update_query_dict(defaults)
