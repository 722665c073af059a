"""One database connection, shared by threads; every use is a transaction."""

import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError, IntegrityError, SQLAlchemyError

from luthier.errors import LuthierError, StoreError
from luthier.store.json_columns import DAMAGE
from luthier.texts import visible

Answer = TypeVar("Answer")

_LONGEST_SAID = 120


@dataclass(frozen=True, slots=True)
class Backend:
    """What differs between databases.

    `begin_read` and `begin_write` start a transaction if the driver does not do so itself; `migration_lock` prevents
    simultaneous migrations; `check` raises if the connection no longer belongs to the store; `explain` turns an error
    of the driver into one line.
    """

    where: str
    engine: Engine
    explain: Callable[[DBAPIError], LuthierError]
    check: Callable[[Connection], None]
    begin_read: str | None = None
    begin_write: str | None = None
    migration_lock: str | None = None


class Database:
    """Runs work in transactions, over one connection that is opened when first needed and replaced when it is lost.

    Rows are turned into values inside `work`: what a damaged row raises there becomes a `StoreError`.
    """

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self._lock = threading.RLock()
        self._connection: Connection | None = None
        self._pid = os.getpid()
        self._inherited: list[Connection] = []

    def read(self, work: Callable[[Connection], Answer]) -> Answer:
        """Do work that changes nothing."""
        return self._transaction(work, self.backend.begin_read, repeatable=True)

    def write(self, work: Callable[[Connection], Answer], *, repeatable: bool = True) -> Answer:
        """Do work that may change data, completely or not at all.

        If the connection is lost, the work is repeated once over a new one. It is unknown whether a commit that was
        in progress took place, so work that is not `repeatable` is not retried then. A violated constraint raises
        `IntegrityError`.
        """
        return self._transaction(work, self.backend.begin_write, repeatable=repeatable)

    def dispose(self) -> None:
        """Close the connection; the next use opens another one."""
        with self._lock:
            connection, self._connection = self._connection, None
            if connection is not None:
                connection.close()

    def _transaction(self, work: Callable[[Connection], Answer], begin: str | None, *, repeatable: bool) -> Answer:
        with self._lock:
            try:
                try:
                    return self._attempt(work, begin, repeatable=repeatable)
                except DBAPIError as error:
                    if not error.connection_invalidated:
                        raise
                    self._abandon()
                return self._attempt(work, begin, repeatable=repeatable)
            except IntegrityError:
                raise
            except DBAPIError as error:
                if error.connection_invalidated:
                    self._abandon()
                raise self.backend.explain(error) from error
            except (*DAMAGE, SQLAlchemyError) as error:  # even the driver's own message may be undecodable
                raise damaged(self.backend.where, str(error)) from error

    def _attempt(self, work: Callable[[Connection], Answer], begin: str | None, *, repeatable: bool) -> Answer:
        connection = self._connected()
        self.backend.check(connection)
        transaction = connection.begin()
        try:
            if begin is not None:
                connection.exec_driver_sql(begin)
            answer = work(connection)
        except BaseException:
            transaction.rollback()
            raise
        try:
            transaction.commit()
        except BaseException as error:  # also an interrupt by the user
            self._abandon()
            if isinstance(error, DBAPIError) and not repeatable:
                raise self.backend.explain(error) from error
            raise
        return answer

    def _abandon(self) -> None:
        """Drop a connection in any state; the database rolls back what was not committed."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.invalidate()
            connection.close()

    def _connected(self) -> Connection:
        if self._pid != os.getpid():
            # After a fork the connection still belongs to the parent: using or closing it here would disturb the
            # parent. It is kept in a list so that it is never finalized in this process.
            if self._connection is not None:
                self._inherited.append(self._connection)
            self._connection, self._pid = None, os.getpid()
        if self._connection is None:
            self._connection = self.backend.engine.connect()
        return self._connection


def damaged(where: str, said: str) -> StoreError:
    """The error for a database whose contents cannot be what luthier wrote."""
    said = visible(said.partition("\n")[0])[:_LONGEST_SAID]
    return StoreError(f"{where}: the database is damaged ({said}); restore it from a backup, or use another one")
