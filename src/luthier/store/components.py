"""The registered components and what is approved for them, in an SQL database."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict

from sqlalchemy import Connection, bindparam, delete, insert, select

from luthier.errors import InvalidInputError, NotFoundError
from luthier.store import rows
from luthier.store.database import Database
from luthier.store.server_store import Approval
from luthier.store.tables import approvals, components
from luthier.texts import shown

_IS_COMPONENT = components.c.name == bindparam("component")
_NAMES = select(components.c.name)
_TEXT = select(components.c.description).where(_IS_COMPONENT)
_LOCKED_TEXT = _TEXT.with_for_update()
_ADD = insert(components)
_REMOVE = delete(components).where(_IS_COMPONENT)
_APPROVALS = select(approvals).order_by(approvals.c.component, approvals.c.variable)
_OF_COMPONENT = approvals.c.component == bindparam("of_component")
_APPROVED = select(approvals.c.variable).where(_OF_COMPONENT)
_APPROVE = insert(approvals)
_WITHDRAW_ALL = delete(approvals).where(_OF_COMPONENT)
_WITHDRAW = _WITHDRAW_ALL.where(approvals.c.variable == bindparam("of_variable"))


class SqlComponents:
    """Stores the texts of components, and approvals, in a database."""

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
        """Register components, all of them or none; a changed text loses its approvals."""

        def work(connection: Connection) -> None:
            taken = sorted(set(texts) & set(connection.execute(_NAMES).scalars().all()))
            if taken and not replace:
                raise InvalidInputError(f"component {taken[0]!r} is already registered; use --replace to overwrite it")
            for name, text in sorted(texts.items()):  # in order: two such changes must not wait for each other
                if connection.execute(_LOCKED_TEXT, {"component": name}).scalar() == text:
                    continue
                _remove(connection, name)
                connection.execute(_ADD, {"name": name, "description": text})

        self._database.write(work)

    def remove(self, name: str) -> None:
        """Delete a component and its approvals."""
        if self._database.write(lambda connection: _remove(connection, name)) == 0:
            raise _unknown(name)

    def approvals(self, name: str | None = None) -> Sequence[Approval]:
        """What is approved for one component, or for all."""
        wanted = _APPROVALS if name is None else _APPROVALS.where(approvals.c.component == name)
        found = self._database.read(lambda connection: connection.execute(wanted).mappings().all())
        return [Approval(**row) for row in found]

    def approve(self, name: str, text: str, new: Sequence[Approval]) -> None:
        """Approve variables of a component, if its text is still the one that was looked at."""
        added = [{**asdict(one), "component": name} for one in new]
        for row in added:
            rows.finite(row["approved_at"], "approved_at")

        def work(connection: Connection) -> None:
            registered = connection.execute(_LOCKED_TEXT, {"component": name}).scalar()
            if registered is None:
                raise _unknown(name)
            if registered != text:
                raise InvalidInputError(f"component {name} was changed meanwhile; look at it again, then approve it")
            for row in added:
                connection.execute(_WITHDRAW, {"of_component": name, "of_variable": row["variable"]})
                connection.execute(_APPROVE, row)

        self._database.write(work)

    def withdraw(self, name: str, variables: Collection[str] | None = None) -> Sequence[str]:
        """Delete approvals of a component, by default all."""

        def work(connection: Connection) -> list[str]:
            approved = sorted(connection.execute(_APPROVED, {"of_component": name}).scalars())
            gone = [one for one in approved if variables is None or one in variables]
            for variable in gone:
                connection.execute(_WITHDRAW, {"of_component": name, "of_variable": variable})
            return gone

        return self._database.write(work)


def _remove(connection: Connection, name: str) -> int:
    """Delete a component, if it is registered, and what was approved for it."""
    gone = connection.execute(_REMOVE, {"component": name}).rowcount
    connection.execute(_WITHDRAW_ALL, {"of_component": name})
    return gone


def _unknown(name: str) -> NotFoundError:
    return NotFoundError(f"no component {shown(name)} is registered")
