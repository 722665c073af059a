"""The registered components, in an SQL database."""

from collections.abc import Mapping

from sqlalchemy import Connection, bindparam, delete, insert, select

from luthier.errors import InvalidInputError, NotFoundError
from luthier.store.database import Database
from luthier.store.tables import components
from luthier.texts import shown

_IS_COMPONENT = components.c.name == bindparam("component")
_NAMES = select(components.c.name)
_TEXT = select(components.c.description).where(_IS_COMPONENT)
_ADD = insert(components)
_REMOVE = delete(components).where(_IS_COMPONENT)


class SqlComponents:
    """Stores the texts of components in a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def names(self) -> list[str]:
        """The names of all components, sorted."""
        return sorted(self._database.read(lambda connection: connection.execute(_NAMES).scalars().all()))

    def text(self, name: str) -> str:
        """The text of one component."""
        found = self._database.read(lambda connection: connection.execute(_TEXT, {"component": name}).scalar())
        if found is None:
            raise _unknown(name)
        return str(found)

    def put(self, texts: Mapping[str, str], *, replace: bool) -> None:
        """Register components, all of them or none."""

        def work(connection: Connection) -> None:
            taken = sorted(set(texts) & set(connection.execute(_NAMES).scalars().all()))
            if taken and not replace:
                raise InvalidInputError(f"component {taken[0]!r} is already registered; use --replace to overwrite it")
            for name in taken:
                connection.execute(_REMOVE, {"component": name})
            for name, text in texts.items():
                connection.execute(_ADD, {"name": name, "description": text})

        self._database.write(work)

    def remove(self, name: str) -> None:
        """Delete a component."""
        if self._database.write(lambda connection: connection.execute(_REMOVE, {"component": name}).rowcount) == 0:
            raise _unknown(name)


def _unknown(name: str) -> NotFoundError:
    return NotFoundError(f"no component {shown(name)} is registered")
