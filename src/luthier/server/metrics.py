"""What the server tells Prometheus."""

from collections import Counter as Count

from prometheus_client import CollectorRegistry, Gauge, Histogram, generate_latest

from luthier.store.ownership import status_text
from luthier.store.server_store import Books

MOST_COUNTED = 1000
"""How many of the newest experiments are counted; every look at the store has an end."""

OTHER = "other"
"""What an HTTP method counts as that is none of the usual ones: a label that clients could choose has no bound."""

_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_STATUSES = ("queued", "running", "interrupted", "stopped", "finished", "failed")
_BUCKETS = (0.005, 0.02, 0.1, 0.5, 2.0, 10.0)


class Metrics:
    """Numbers of one server, in a registry of its own."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._experiments = Gauge(
            "luthier_experiments", f"Experiments of the newest {MOST_COUNTED}.", ["status"], registry=self._registry
        )
        self._runs = Gauge(
            "luthier_runs", f"Runs of the newest {MOST_COUNTED} experiments.", ["outcome"], registry=self._registry
        )
        self._streams = Gauge("luthier_streams", "Open streams of live events.", registry=self._registry)
        self._seconds = Histogram(
            "luthier_request_seconds",
            "How long requests took, streams left out.",
            ["method", "operation", "status"],
            buckets=_BUCKETS,
            registry=self._registry,
        )

    def request(self, method: str, operation: str, status: int, seconds: float) -> None:
        """Note a request that was answered; `operation` names a part of this program, never what a client sent."""
        self._seconds.labels(method if method in _METHODS else OTHER, operation, str(status)).observe(seconds)

    def text(self, books: Books, streams: int) -> str:
        """Everything, in Prometheus's own format."""
        counted = Count(status_text(record) for record in books.desk.records(limit=MOST_COUNTED))
        for status in _STATUSES:
            self._experiments.labels(status).set(counted[status])
        for outcome, count in books.desk.outcomes(limit=MOST_COUNTED).items():
            self._runs.labels(outcome).set(count)
        self._streams.set(streams)
        return generate_latest(self._registry).decode()
