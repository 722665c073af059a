"""Errors of the store: their messages name hosts, users and files, which not every user may see."""

import logging
import time
from collections.abc import Callable

from sqlalchemy.exc import SQLAlchemyError

from luthier.errors import StoreError

STORE_UNAVAILABLE = "the store is not available; try again later"

logger = logging.getLogger(__name__)


def is_store_error(error: Exception) -> bool:
    """Whether an error comes from the database."""
    return isinstance(error, StoreError) or isinstance(error.__cause__, SQLAlchemyError)


class StoreLog:
    """Logs errors of the store, but not for every request that fails."""

    def __init__(self, every_s: float = 10.0, clock: Callable[[], float] = time.monotonic) -> None:
        self._every_s = every_s
        self._clock = clock
        self._next_at = clock()

    def note(self, error: Exception) -> None:
        """Log an error, unless one was logged within the last `every_s` seconds."""
        if self._clock() >= self._next_at:
            self._next_at = self._clock() + self._every_s
            logger.warning("the store: %s", error)
