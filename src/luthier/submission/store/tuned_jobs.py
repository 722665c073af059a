"""Jobs that were tuned, with which new jobs are compared: the values, and the interface of their store."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from luthier.store.base import Record
from luthier.submission.job import NewJob
from luthier.trial import Value


@dataclass(frozen=True, slots=True, kw_only=True)
class TunedConfiguration:
    """What tuning found for a job: a configuration of a component that is proven to be better than its default.

    `environment` and `options` are how the configuration is passed to a job: variables, and options of sbatch. All
    three are empty if nothing better than the default was found: similar jobs keep the default. The values are in
    the unit of the `measure`; `speedup` is how many times better the best one is, or a difference where values are not
    positive.
    """

    component: str
    config: Mapping[str, Value]
    environment: Mapping[str, str]
    options: tuple[str, ...]
    measure: str
    default_value: float
    best_value: float
    speedup: float

    @property
    def keeps_default(self) -> bool:
        """Whether nothing better than the default was found."""
        return not self.config


def keeping_default(component: str, measure: str, value: float) -> TunedConfiguration:
    """What is known where tuning found nothing better than the default."""
    return TunedConfiguration(
        component=component,
        config={},
        environment={},
        options=(),
        measure=measure,
        default_value=value,
        best_value=value,
        speedup=1.0,
    )


@dataclass(frozen=True, slots=True)
class JobRecord:
    """A job that was tuned, with which new jobs are compared.

    `experiment_id` is None after the experiment was deleted; the texts of the job are empty then. A record that is
    `withdrawn` is not used; the text says why.
    """

    id: int
    experiment_id: int | None
    created_at: float
    job: NewJob
    tuned: TunedConfiguration
    withdrawn: str | None = None


@dataclass(frozen=True, slots=True)
class JobChanges:
    """What changed of the job records up to a mark: those to use, and those not to use any more."""

    mark: int
    used: Sequence[tuple[int, NewJob]]
    unused: Sequence[int]


class JobRecords(Protocol):
    """The jobs that were tuned. Every method is one transaction; an unknown record raises `NotFoundError`."""

    def put(self, experiment_id: int, job: NewJob, tuned: TunedConfiguration, now: float) -> int:
        """Add the record of an experiment, or replace it; returns its number. `NotFoundError` without the experiment.

        A record that was withdrawn stays so.
        """
        ...

    def get(self, record_id: int) -> JobRecord:
        """One record."""
        ...

    def find(self, experiment_id: int) -> JobRecord | None:
        """The record of an experiment, if it has one."""
        ...

    def all(
        self, *, user: str | None = None, before: int | None = None, limit: int | None = None
    ) -> Sequence[JobRecord]:
        """The newest records first; with a `user`, only the records of that user's jobs.

        `before` is the number of the last one on the previous page.
        """
        ...

    def changed_since(self, mark: int = 0) -> JobChanges:
        """What changed after a mark, which an earlier call returned; by default all records that are used."""
        ...

    def withdraw(self, record_id: int, reason: str) -> None:
        """Do not use a record any more."""
        ...

    def restore(self, record_id: int) -> None:
        """Use a record again that was withdrawn; that of an experiment that was deleted raises `InvalidInputError`."""
        ...

    def unexamined(self, *, limit: int = 100) -> Sequence[Record]:
        """The oldest finished experiments of which it is not known whether they make a record, with their settings."""
        ...

    def set_examined(self, experiment_id: int) -> None:
        """Record that an experiment makes no further record; one that was deleted meanwhile is ignored."""
        ...
