"""Explanations of experiments, in an SQL database."""

from collections.abc import Mapping

from sqlalchemy import Connection, bindparam, delete, insert, select

from luthier.store import json_columns, queries, rows
from luthier.store.database import Database
from luthier.store.tables import experiments, explanations
from luthier.trial import Json

_OF_EXPERIMENT = explanations.c.experiment_id == bindparam("experiment")
_CONTENT = select(explanations.c.content).where(_OF_EXPERIMENT)
_EXISTS = select(experiments.c.id).where(queries.IS_EXPERIMENT).with_for_update(read=True)
_ADD = insert(explanations)
DELETE_EXPLANATION = delete(explanations).where(_OF_EXPERIMENT)


class SqlExplanations:
    """Stores the explanations of experiments in a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def get(self, experiment_id: int) -> Mapping[str, Json] | None:
        """The explanation of an experiment; None without one."""
        key = queries.key(experiment_id)
        return self._database.read(lambda connection: _mapping(connection.execute(_CONTENT, key).scalar()))

    def put(self, experiment_id: int, explanation: Mapping[str, Json]) -> None:
        """Store the explanation of an experiment instead of an earlier one."""
        key, content = queries.key(experiment_id), rows.to_json(explanation, "explanation")

        def work(connection: Connection) -> None:
            if connection.execute(_EXISTS, key).first() is None:
                raise rows.no_experiment(experiment_id)
            connection.execute(DELETE_EXPLANATION, key)
            connection.execute(_ADD, {"experiment_id": experiment_id, "content": content})

        self._database.write(work)


def _mapping(text: str | None) -> Mapping[str, Json] | None:
    return None if text is None else json_columns.mapping(text)
