"""The jobs that were tuned, in memory, and what each offers to other jobs."""

import logging
import time
from collections.abc import Callable
from dataclasses import replace

from luthier.errors import LuthierError
from luthier.spec.experiment import Experiment
from luthier.store.server_store import Approval, ServerStore, is_no_account
from luthier.submission.matching import Index, Match, NewJob, learn_weights
from luthier.submission.store import job_records_in, submissions_in
from luthier.submission.store.tuned_jobs import JobRecord
from luthier.submission.submitted_job import Offer, offer_of, refusal
from luthier.submission.tuned_jobs import Matcher

logger = logging.getLogger(__name__)

LOOK_EVERY_S = 5.0
"""How often the store is asked for new records, also those of other processes."""


class JobIndex:
    """The records to compare jobs with. It belongs to one thread."""

    def __init__(self, store: ServerStore, own_user: str, stopwatch: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self._matcher = Matcher(store, own_user, time.time)
        self._stopwatch = stopwatch
        self._looked_at = -float("inf")
        self._reviews: object = None
        self._read: object = None
        self._offers: dict[int, tuple[JobRecord, Offer]] = {}
        self._approvals: dict[str, list[Approval]] = {}

    def refresh(self) -> None:
        """Read what changed in the store, if it is time to."""
        if self._stopwatch() - self._looked_at >= LOOK_EVERY_S:
            self._learn(self._matcher.refresh())
            accounts = [(user.name, user.created_at) for user in self._store.accounts.users()]
            read = self._matcher.mark, accounts
            if read != self._read:  # a record may have been replaced, or an experiment belong to nobody now
                self._offers.clear()
                self._read = read
            self._approvals.clear()
            for approval in self._store.components.approvals():
                self._approvals.setdefault(approval.component, []).append(approval)
            self._looked_at = self._stopwatch()

    def match(self, job: NewJob) -> Match | None:
        """The record most like the job, if it is similar enough."""
        found = self._matcher.match(job)
        return found[0] if found else None

    def offer(self, record: int) -> tuple[JobRecord, Offer]:
        """A record, and what it can give to other jobs."""
        if record not in self._offers:
            found = job_records_in(self._store).get(record)
            self._offers[record] = found, self._offer(found)
        return self._offers[record]

    def refusal(self, offer: Offer) -> str | None:
        """Why an offer is not made to other people than the author of its experiment; None if it is approved."""
        return refusal(offer, self._approvals.get(offer.component, ()))

    def _offer(self, record: JobRecord) -> Offer:
        if record.experiment_id is None:
            return Offer(record.tuned.component, {}, problem="its experiment was deleted")
        if record.tuned.keeps_default:
            return Offer(record.tuned.component, {}, problem="tuning found nothing better than the default for it")
        try:
            stored = self._store.history.experiment(record.experiment_id)
            offer = offer_of(Experiment.from_json(stored.settings), record.tuned.config)
        except LuthierError as error:
            return Offer(record.tuned.component, {}, problem=str(error))
        return replace(offer, author="" if is_no_account(stored.author) else stored.author)

    def _learn(self, index: Index) -> None:
        """Weight the fields as reviewed matches say."""
        reviews = submissions_in(self._store).reviews()
        if reviews != self._reviews:
            self._reviews = reviews
            index.weights = learn_weights(reviews)
            logger.info("fields are weighted as learned from %d reviewed matches", len(reviews))
