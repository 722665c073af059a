"""Password hashing, and a queue that limits how many passwords are checked at a time."""

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from anyio import CapacityLimiter, to_thread

from luthier.errors import InvalidInputError
from luthier.server.login_limits import TooManyError

if TYPE_CHECKING:
    from argon2 import PasswordHasher

SHORTEST_PASSWORD = 10
LONGEST_PASSWORD = 1000
CHECKS_AT_ONCE = 2
MOST_WAITING = 64

_RETRY_S = 5.0
_hashing = threading.Semaphore(CHECKS_AT_ONCE + 1)  # hashing takes 64 MiB per password

T = TypeVar("T")


class PasswordQueue:
    """Checks a few passwords at a time in separate threads, so that other requests do not wait for them.

    Browsers that logged in before have a separate queue, so that unknown clients cannot delay them.
    """

    def __init__(self) -> None:
        self._unknown = CapacityLimiter(CHECKS_AT_ONCE)
        self._known = CapacityLimiter(1)

    async def run(self, work: Callable[[], T], *, is_known: bool = False) -> T:
        """Run the check and return its result; `TooManyError` if too many are waiting."""
        limiter = self._known if is_known else self._unknown
        if limiter.statistics().tasks_waiting >= MOST_WAITING:
            raise TooManyError(_RETRY_S)
        return await to_thread.run_sync(work, limiter=limiter)


def hash_of(password: str) -> str:
    """The hash of a new password, whose length is checked."""
    if not SHORTEST_PASSWORD <= len(password) <= LONGEST_PASSWORD:
        raise InvalidInputError(f"password: use {SHORTEST_PASSWORD} to {LONGEST_PASSWORD} characters")
    return hash_unchecked(password)


def hash_unchecked(text: str) -> str:
    """The hash of any text."""
    with _hashing:
        return _hasher().hash(_encoded(text))


def is_password(hashed: str, password: str) -> bool:
    """Whether a hash belongs to this password."""
    from argon2.exceptions import VerificationError

    if len(password) > LONGEST_PASSWORD:
        return False
    try:
        with _hashing:
            return _hasher().verify(hashed, _encoded(password))
    except VerificationError:
        return False


def _encoded(password: str) -> bytes:
    return password.encode("utf-8", "surrogatepass")


def _hasher() -> "PasswordHasher":
    from argon2 import PasswordHasher

    return PasswordHasher()
