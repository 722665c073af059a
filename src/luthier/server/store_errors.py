"""Trouble with the store: its words name hosts, users and files, which are not for everybody."""

import logging
import time
from collections.abc import Callable

from sqlalchemy.exc import SQLAlchemyError

from luthier.errors import StoreError

STORE_AWAY = "the store is not available; try again later"

logger = logging.getLogger(__name__)


def is_about_the_store(error: Exception) -> bool:
    """Whether an error was made of what a database said."""
    return isinstance(error, StoreError) or isinstance(error.__cause__, SQLAlchemyError)


class StoreLog:
    """Writes trouble with the store to the log, but not for every request that meets it."""

    def __init__(self, every_s: float = 10.0, clock: Callable[[], float] = time.monotonic) -> None:
        self._every_s = every_s
        self._clock = clock
        self._next_at = clock()

    def note(self, error: Exception) -> None:
        """Write down what is wrong, unless that was done a moment ago."""
        if self._clock() >= self._next_at:
            self._next_at = self._clock() + self._every_s
            logger.warning("the store: %s", error)
