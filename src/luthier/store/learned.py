"""What luthier has learnt from the experiments of a store, in an SQL database."""

from collections.abc import Callable, Mapping
from typing import Any

from sqlalchemy import Connection, Select, bindparam, delete, insert, select
from sqlalchemy.exc import IntegrityError

from luthier.store import json_columns, rows
from luthier.store.database import Database
from luthier.store.tables import learnt
from luthier.trial import Json

_OF_NAME = learnt.c.name == bindparam("wanted")
_CONTENT = select(learnt.c.content).where(_OF_NAME).with_for_update()
_READ = select(learnt.c.content).where(_OF_NAME)
_REMOVE = delete(learnt).where(_OF_NAME)
_ADD = insert(learnt)


class SqlLearnt:
    """Stores what was learnt in a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def get(self, name: str) -> Mapping[str, Json] | None:
        """What was learnt under this name; None if nothing was."""
        return self._database.read(lambda connection: _known(connection, _READ, name))

    def change(self, name: str, better: Callable[[Mapping[str, Json] | None], Mapping[str, Json]]) -> None:
        """Replace what was learnt by what `better` makes of it, in one transaction."""

        def work(connection: Connection) -> None:
            content = rows.to_json(better(_known(connection, _CONTENT, name)), "learnt")
            connection.execute(_REMOVE, {"wanted": name})
            connection.execute(_ADD, {"name": name, "content": content})

        try:
            self._database.write(work)
        except IntegrityError:  # another process has learnt the first thing at the same time
            self._database.write(work)


def _known(connection: Connection, statement: Select[Any], name: str) -> Mapping[str, Json] | None:
    content = connection.execute(statement, {"wanted": name}).scalar()
    return None if content is None else json_columns.mapping(content)
