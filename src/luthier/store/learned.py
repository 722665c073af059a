"""What luthier has learned from the experiments of a store, in an SQL database."""

from collections.abc import Callable, Mapping
from typing import Any

from sqlalchemy import Connection, Select, bindparam, delete, insert, select
from sqlalchemy.exc import IntegrityError

from luthier.store import json_columns, rows
from luthier.store.database import Database
from luthier.store.tables import learned
from luthier.trial import Json

_OF_NAME = learned.c.name == bindparam("wanted")
_CONTENT = select(learned.c.content).where(_OF_NAME).with_for_update()
_READ = select(learned.c.content).where(_OF_NAME)
_REMOVE = delete(learned).where(_OF_NAME)
_ADD = insert(learned)


class SqlLearned:
    """Stores what was learned in a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def get(self, name: str) -> Mapping[str, Json] | None:
        """What was learned under this name; None if nothing was."""
        return self._database.read(lambda connection: _known(connection, _READ, name))

    def change(self, name: str, better: Callable[[Mapping[str, Json] | None], Mapping[str, Json]]) -> None:
        """Replace what was learned by what `better` makes from it, in one transaction."""

        def work(connection: Connection) -> None:
            content = rows.to_json(better(_known(connection, _CONTENT, name)), "learned")
            connection.execute(_REMOVE, {"wanted": name})
            connection.execute(_ADD, {"name": name, "content": content})

        try:
            self._database.write(work)
        except IntegrityError:  # another process has learned the first thing at the same time
            self._database.write(work)


def _known(connection: Connection, statement: Select[Any], name: str) -> Mapping[str, Json] | None:
    content = connection.execute(statement, {"wanted": name}).scalar()
    return None if content is None else json_columns.mapping(content)
