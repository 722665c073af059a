"""Tuning a loop of a Python program, in this process."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Unpack

from luthier.online.base import Standing
from luthier.online.session import OnlineSession, Phase
from luthier.online.session_settings import OnlineOptions, OnlineSettings
from luthier.online.session_view import SessionView
from luthier.space import Space
from luthier.trial import Config, Value


class OnlineTuner:
    """Tunes a loop while it runs, in this process and without a network.

    >>> from luthier import Integer, OnlineTuner, Space
    >>> tuner = OnlineTuner(Space(Integer("block", 1, 64, default=1)), strategy="pro", samples=1)
    >>> for step in range(60):
    ...     config = tuner.fetch()
    ...     tuner.report(1.0 + abs(config["block"] - 20) / 20)
    >>> tuner.best.best
    {'block': 20}

    Several threads can take part: each passes a name of its own as `client`.
    """

    def __init__(
        self, space: Space, *, clock: Callable[[], float] = time.monotonic, **settings: Unpack[OnlineOptions]
    ) -> None:
        self._session = OnlineSession(space, OnlineSettings(**settings))
        self._clock, self._lock = clock, threading.Lock()

    def fetch(self, client: str = "main") -> Config:
        """The configuration for the next iteration."""
        with self._lock:
            return self._session.fetch(client, self._clock())

    def report(self, value: float | None, client: str = "main", *, config: Mapping[str, Value] | None = None) -> None:
        """Report what the iteration gave: its time, or another number; None if it failed.

        `config` is what was run, if that is not what was fetched last.
        """
        with self._lock:
            self._session.report(client, value, self._clock(), config)

    def leave(self, client: str = "main") -> None:
        """Leave; what this client had to measure is given to another one."""
        with self._lock:
            self._session.leave(client, self._clock())

    @contextmanager
    def step(self, client: str = "main") -> Iterator[Config]:
        """Fetch a configuration, and report how long the block took; an exception in it is a failed iteration."""
        config = self.fetch(client)
        began = time.perf_counter()
        try:
            yield config
        except BaseException:
            self.report(None, client)
            raise
        self.report(time.perf_counter() - began, client)

    def stop(self) -> None:
        """End the search: from now on `fetch` answers with the best configuration."""
        with self._lock:
            self._session.stop()

    @property
    def best(self) -> Standing:
        """The best configuration so far, its value, and whether the search has converged."""
        with self._lock:
            return self._session.best

    @property
    def converged(self) -> bool:
        """Whether the search is over; it starts again if the program's behaviour changes."""
        return self.phase == "converged"

    @property
    def phase(self) -> Phase:
        """What the tuner does: measure the default ("baseline"), search, or hand out the best configuration."""
        return self._session.phase

    def view(self) -> SessionView:
        """Everything that is known, as plain values."""
        with self._lock:
            return self._session.view()
