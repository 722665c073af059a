"""Job records: every experiment that tunes a component for a batch script makes one when it has finished."""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field

from luthier.errors import LuthierError, StoreAwayError
from luthier.result.result import conclude
from luthier.spec.experiment import Experiment
from luthier.store.base import Record
from luthier.store.server_store import LOCAL_USER, ServerStore
from luthier.submission.job_description import batch_script, job_description
from luthier.submission.matching import Index, Match, NewJob, Weights
from luthier.submission.matching.index import THRESHOLD
from luthier.submission.store import job_records_in

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
