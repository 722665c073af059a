"""Passwords: what is kept of them, and where the work that they cost is done."""

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
_hashing = threading.Semaphore(CHECKS_AT_ONCE + 1)  # each password takes 64 MiB while it is hashed

T = TypeVar("T")


class PasswordQueue:
    """Checks few passwords at a time in threads of its own: other requests do not wait for them.

    Browsers that logged in before have a place of their own, so that strangers cannot keep them waiting.
    """

    def __init__(self) -> None:
        self._strangers = CapacityLimiter(CHECKS_AT_ONCE)
        self._known = CapacityLimiter(1)

    async def run(self, work: Callable[[], T], *, is_known: bool = False) -> T:
        """What the work returns; `TooManyError` if too much is waiting already."""
        limiter = self._known if is_known else self._strangers
        if limiter.statistics().tasks_waiting >= MOST_WAITING:
            raise TooManyError(_RETRY_S)
        return await to_thread.run_sync(work, limiter=limiter)


def hash_of(password: str) -> str:
    """What is kept of a password."""
    if not SHORTEST_PASSWORD <= len(password) <= LONGEST_PASSWORD:
        raise InvalidInputError(f"password: give {SHORTEST_PASSWORD} to {LONGEST_PASSWORD} characters")
    return hash_of_anything(password)


def hash_of_anything(text: str) -> str:
    """The hash of a text that need not be a good password."""
    with _hashing:
        return _hasher().hash(_encoded(text))


def is_password(hashed: str, password: str) -> bool:
    """Whether this is the password that a hash was made of."""
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
