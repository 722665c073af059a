"""Metrics of the server for Prometheus."""

from collections import Counter as Count

from prometheus_client import CollectorRegistry, Gauge, Histogram, generate_latest

from luthier.store.ownership import status_text
from luthier.store.server_store import ServerStore

MOST_COUNTED = 1000
"""How many of the newest experiments are counted, so that every query is limited."""

OTHER = "other"
"""The label for unusual HTTP methods: labels chosen by clients would be unlimited in number."""

_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_STATUSES = ("queued", "running", "interrupted", "stopped", "finished", "no result", "failed")
_BUCKETS = (0.005, 0.02, 0.1, 0.5, 2.0, 10.0)


class Metrics:
    """The metrics of one server, in a separate registry."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._experiments = Gauge(
            "luthier_experiments",
            f"Number of experiments among the newest {MOST_COUNTED}.",
            ["status"],
            registry=self._registry,
        )
        self._runs = Gauge(
            "luthier_runs",
            f"Number of runs of the newest {MOST_COUNTED} experiments.",
            ["outcome"],
            registry=self._registry,
        )
        self._streams = Gauge("luthier_streams", "Open event streams.", registry=self._registry)
        self._seconds = Histogram(
            "luthier_request_seconds",
            "Duration of requests, without event streams.",
            ["method", "operation", "status"],
            buckets=_BUCKETS,
            registry=self._registry,
        )

    def request(self, method: str, operation: str, status: int, seconds: float) -> None:
        """Record an answered request; `operation` is a name in this program, never text from a client."""
        self._seconds.labels(method if method in _METHODS else OTHER, operation, str(status)).observe(seconds)

    def text(self, server_store: ServerStore, streams: int) -> str:
        """All metrics, in the text format of Prometheus."""
        counted = Count(status_text(record) for record in server_store.queue.records(limit=MOST_COUNTED))
        for status in _STATUSES:
            self._experiments.labels(status).set(counted[status])
        for outcome, count in server_store.queue.outcomes(limit=MOST_COUNTED).items():
            self._runs.labels(outcome).set(count)
        self._streams.set(streams)
        return generate_latest(self._registry).decode()
