"""The jobs that were tuned, in memory, kept as the store has them."""

import logging
import time
from collections.abc import Callable

from luthier.errors import LuthierError
from luthier.matching import Index, Job, Match, learn_weights
from luthier.spec.experiment import Experiment
from luthier.spec.submitted_job import Offer, offer_of
from luthier.store.server_store import ServerStore
from luthier.store.tuned_jobs import JobRecord

logger = logging.getLogger(__name__)

LOOK_EVERY_S = 2.0
"""How often the store is asked for changes: of other processes too."""

LEARN_EVERY_S = 60.0
"""How often the weights are learned again from the reviewed matches."""


class JobIndex:
    """The records to compare jobs with, and what each offers. It belongs to one thread."""

    def __init__(self, store: ServerStore, stopwatch: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self._stopwatch = stopwatch
        self._index = Index()
        self._mark = 0
        self._looked_at = self._learned_at = -float("inf")
        self._reviews = 0
        self._offers: dict[int, tuple[JobRecord, Offer]] = {}

    def refresh(self) -> None:
        """Read what changed in the store, if it is time to."""
        now = self._stopwatch()
        if now - self._looked_at >= LOOK_EVERY_S:
            changes = self._store.job_records.changed_since(self._mark)
            for record, job in changes.used:
                self._index.add(record, job)
                self._offers.pop(record, None)
            for record in changes.unused:
                self._index.remove(record)
            self._mark, self._looked_at = changes.mark, now
        if now - self._learned_at >= LEARN_EVERY_S:
            self._learn()
            self._learned_at = now

    def match(self, job: Job) -> Match | None:
        """The record most like the job, if it is similar enough."""
        found = self._index.match(job, 1)
        return found[0] if found else None

    def offer(self, record: int) -> tuple[JobRecord, Offer]:
        """A record, and what it can give to other jobs."""
        if record not in self._offers:
            found = self._store.job_records.get(record)
            self._offers[record] = found, self._offer(found)
        return self._offers[record]

    def _offer(self, record: JobRecord) -> Offer:
        if record.experiment_id is None:
            return Offer(record.tuned.component, {}, problem="its experiment was deleted")
        try:
            stored = self._store.history.experiment(record.experiment_id)
            return offer_of(Experiment.from_json(stored.settings), record.tuned.config)
        except LuthierError as error:
            return Offer(record.tuned.component, {}, problem=str(error))

    def _learn(self) -> None:
        reviews = self._store.submissions.reviews()
        if len(reviews) != self._reviews:
            self._reviews = len(reviews)
            self._index.weights = learn_weights(reviews)
            logger.info("fields are weighted as learned from %d reviewed matches", len(reviews))
