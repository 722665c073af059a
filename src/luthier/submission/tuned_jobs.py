"""Job records: every experiment that tunes a component for a batch script makes one when it has finished."""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime

from luthier.errors import LuthierError, StoreAwayError
from luthier.result.result import Result, conclude
from luthier.runners.registry import runner_kind
from luthier.spec.experiment import Experiment
from luthier.spec.script import JobScript
from luthier.store.base import Record
from luthier.store.server_store import LOCAL_USER, ServerStore
from luthier.submission.matching import Index, Match, NewJob, Weights, job_of_script
from luthier.submission.matching.index import THRESHOLD
from luthier.submission.store import job_records_in
from luthier.submission.store.tuned_jobs import TunedConfiguration, keeping_default


def batch_script(experiment: Experiment) -> JobScript | None:
    """The batch script of the user's that an experiment tunes a component for; None if it tunes anything else."""
    script = experiment.command
    if not isinstance(script, JobScript) or not script.application.strip() or experiment.has_front:
        return None
    return script if runner_kind(script.where).program == "sbatch" else None


def job_description(
    record: Record, result: Result, user: str, local: Callable[[datetime], datetime] = datetime.astimezone
) -> tuple[NewJob, TunedConfiguration] | None:
    """The job that an experiment ran, and what to use for similar jobs; None without a batch script or a result.

    That is the best configuration if it is proven to be better than the default, else the default: jobs that are most
    like this one then do not get the configuration of another. `user` is the name of who submits the job; `local` puts
    a time into the time zone of the cluster.
    """
    script = batch_script(result.experiment)
    found = None if script is None else _found(result, script)
    if script is None or found is None:
        return None
    at = local(datetime.fromtimestamp(record.created_at, UTC))
    return job_of_script(script.application, user, at, options=script.component.options, script=script.name), found


def _found(result: Result, script: JobScript) -> TunedConfiguration | None:
    """What is known about the component; None if nothing is."""
    if result.default is None or result.winner is None:
        return None
    before, after = result.default.estimate, result.winner.estimate
    if before is None or after is None:
        return None
    measure = result.experiment.objective.measure
    if result.improved and result.speedup is not None:
        batch = script.batch(result.experiment.space, result.winner.config)
        return TunedConfiguration(
            component=script.component_name,
            config=dict(result.winner.config),
            environment=dict(batch.environment),
            options=tuple(batch.options),
            measure=measure,
            default_value=before.value,
            best_value=after.value,
            speedup=result.speedup,
        )
    if result.comparison is None and result.winner.config != result.default.config:
        return None  # it was not compared with the default
    return keeping_default(script.component_name, measure, before.value)


log = logging.getLogger(__name__)


def examine(store: ServerStore, now: float, own_user: str, *, limit: int = 100) -> int:
    """Add the job records of experiments that have finished; returns how many experiments were looked at.

    Each experiment is looked at once, whichever process does so; those that ended before an upgrade are among them.
    `own_user` is the user of experiments that belong to no account, which were started on the command line.
    """
    found = job_records_in(store).unexamined(limit=limit)
    for record in found:
        try:
            _examine(store, record, now, own_user)
        except StoreAwayError:
            raise
        except LuthierError as error:  # written by a newer luthier, damaged, or deleted meanwhile
            log.warning("experiment %d makes no job record: %s", record.id, error)
        job_records_in(store).set_examined(record.id)
    return len(found)


def _examine(store: ServerStore, record: Record, now: float, own_user: str) -> None:
    experiment = Experiment.from_json(record.settings)
    if batch_script(experiment) is None:
        return
    user = own_user if record.author in ("", LOCAL_USER) else record.author
    described = job_description(record, conclude(experiment, store.history.runs(record.id)), user)
    if described is not None:
        job_records_in(store).put(record.id, *described, now)


@dataclass(slots=True)
class Matcher:
    """The index over the job records of a store, which follows their changes. Not safe for several threads."""

    store: ServerStore
    own_user: str
    clock: Callable[[], float]
    weights: Weights = field(default_factory=Weights)
    threshold: float = THRESHOLD
    most_nodes: int | None = None
    _index: Index | None = field(default=None, init=False)
    _mark: int = field(default=0, init=False)

    def refresh(self) -> Index:
        """Look at experiments that have finished, and bring the index up to date."""
        while examine(self.store, self.clock(), self.own_user):
            pass
        changes = job_records_in(self.store).changed_since(self._mark)
        if self._index is None:
            self._index = Index(changes.used, self.weights, self.threshold, most_nodes=self.most_nodes)
        else:
            for number in changes.unused:
                self._index.remove(number)
            for number, job in changes.used:
                self._index.add(number, job)
        self._mark = changes.mark
        return self._index

    @property
    def mark(self) -> int:
        """A number that is higher after every change of the records."""
        return self._mark

    def match(self, job: NewJob, count: int = 1) -> list[Match]:
        """The records most like the job as of the last `refresh`, best first."""
        index = self.refresh() if self._index is None else self._index
        return index.match(job, count)
