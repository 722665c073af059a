"""SQL that several modules of the store use.

Statements are built once, so that SQLAlchemy compiles each only once.
"""

from typing import cast

from sqlalchemy import Connection, RowMapping, and_, bindparam, func, not_, select

from luthier.store import rows
from luthier.store.base import Owner, Record, StopRequest
from luthier.store.rows import ExperimentRow, OwnerColumns, StateRow
from luthier.store.stop_requests import stop_columns
from luthier.store.tables import experiments, runs

IS_EXPERIMENT = experiments.c.id == bindparam("experiment")
IS_OWNER = and_(
    *(
        column.is_not_distinct_from(bindparam(f"was_{column.name}", type_=column.type))
        for column in experiments.c
        if column.name in OwnerColumns.__annotations__
    )
)
RUN_COUNT = select(func.count()).where(runs.c.experiment_id == experiments.c.id).scalar_subquery().label("runs")
WANTS_VERIFICATION = and_(experiments.c.kill_requested, not_(experiments.c.stop_requested))
_LOCKED = select(experiments).where(IS_EXPERIMENT).with_for_update()
_OWNED = select(experiments.c.id).where(IS_EXPERIMENT, IS_OWNER).with_for_update(read=True)
_STATE = select(*(experiments.c[name] for name in StateRow.__annotations__)).where(IS_EXPERIMENT)


def key(experiment_id: int) -> dict[str, object]:
    """The parameters of `IS_EXPERIMENT`."""
    if not 0 < experiment_id <= rows.LARGEST_ID:
        raise rows.no_experiment(experiment_id)
    return {"experiment": experiment_id}


def was(owner: Owner | None) -> dict[str, object]:
    """The parameters of `IS_OWNER`."""
    return {f"was_{name}": value for name, value in rows.owner_columns(owner).items()}


def state(connection: Connection, experiment_id: int) -> StateRow:
    """The state of an experiment; `NotFoundError` if it does not exist."""
    row = connection.execute(_STATE, key(experiment_id)).mappings().first()
    if row is None:
        raise rows.no_experiment(experiment_id)
    return cast("StateRow", row)


def locked(connection: Connection, experiment_id: int) -> ExperimentRow:
    """An experiment, locked until the transaction ends; `NotFoundError` if it does not exist."""
    row = connection.execute(_LOCKED, key(experiment_id)).mappings().first()
    if row is None:
        raise rows.no_experiment(experiment_id)
    return cast("ExperimentRow", row)


def now_requested(request: StopRequest | None) -> dict[str, object]:
    """The parameters of a statement that changes the stop request."""
    columns = stop_columns(request)
    return {"now_stop": columns["stop_requested"], "now_kill": columns["kill_requested"]}


def require_owner(connection: Connection, experiment_id: int, owner: Owner | None) -> None:
    """Raise unless this owner has the experiment, and lock it until the transaction ends; None is not checked."""
    if owner is None or connection.execute(_OWNED, {**key(experiment_id), **was(owner)}).first() is not None:
        return
    raise rows.not_owned(experiment_id, rows.owner_from(state(connection, experiment_id)))


def record(row: RowMapping) -> Record:
    """The experiment in a row that has its `RUN_COUNT`."""
    return rows.record_from(cast("ExperimentRow", row), row["runs"])
