"""What wings keep in the tables of a store, as far as the core must know it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import cast

from sqlalchemy import Connection

from luthier.plugins import joined, loaded


@dataclass(frozen=True, slots=True)
class WingTables:
    """What happens to the rows of a wing, in the transaction in which the core deletes an experiment or a user.

    `forget_experiment` gets the number of the experiment, `change_author` the name of the user and the name that
    replaces it.
    """

    forget_experiment: Callable[[Connection, int], None] | None = None
    change_author: Callable[[Connection, str, str], None] | None = None


def wing_tables() -> Sequence[WingTables]:
    """Those of all wings of this process; their tables are known to SQLAlchemy from then on."""
    return [cast("WingTables", loaded(wing.tables)) for wing in joined() if wing.tables]


def forget_experiment(connection: Connection, experiment_id: int) -> None:
    """Delete what wings keep about an experiment."""
    for tables in wing_tables():
        if tables.forget_experiment is not None:
            tables.forget_experiment(connection, experiment_id)


def change_author(connection: Connection, name: str, removed: str) -> None:
    """Give what belongs to a user who is removed to another name."""
    for tables in wing_tables():
        if tables.change_author is not None:
            tables.change_author(connection, name, removed)
