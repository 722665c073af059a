"""The jobs that were tuned and the jobs that were submitted, in the database of a server."""

from luthier.store.server_store import ServerStore
from luthier.store.wing_tables import WingTables
from luthier.submission.store.job_records import SqlJobRecords, forget_experiment
from luthier.submission.store.submissions import SqlSubmissions, change_submitter
from luthier.submission.store.submitted import Submissions
from luthier.submission.store.tuned_jobs import JobRecords

__all__ = ["TABLES", "job_records_in", "submissions_in"]

TABLES = WingTables(forget_experiment, change_submitter)


def job_records_in(store: ServerStore) -> JobRecords:
    """The jobs that were tuned."""
    return SqlJobRecords(store.database)


def submissions_in(store: ServerStore) -> Submissions:
    """The jobs that were submitted."""
    return SqlSubmissions(store.database)
