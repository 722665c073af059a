"""Checks that all runners have in common."""

import math
import os
import re
from collections.abc import Iterable, Sized

from luthier.errors import InvalidInputError, UnavailableError
from luthier.trial import Lost

_KEY = re.compile(r"(?!\.\.?$)[A-Za-z0-9._-]{1,200}")


def checked_slots(slots: int) -> int:
    """Return `slots` if it is a whole number of at least one."""
    if isinstance(slots, bool) or not isinstance(slots, int) or slots < 1:
        raise InvalidInputError(f"slots: {slots!r} is not a number of parallel jobs; give 1 or more")
    return slots


def require_free_slot(under_way: Sized, slots: int) -> None:
    """Refuse one job more than there are slots."""
    if len(under_way) >= slots:
        raise UnavailableError(f"all {slots} slots are busy; poll until a job has ended")


def checked_key(key: str) -> str:
    """Return `key` if it can name the folder of a run."""
    if not _KEY.fullmatch(key):
        raise InvalidInputError(f"key: {key!r} cannot name a folder; use letters, digits, '.', '_' and '-'")
    return key


def not_adopted(where: str, whose: str = "another configuration") -> Lost:
    """The outcome of a run whose key was used before for another one: nothing is started or adopted."""
    return Lost(f"not started: {where} holds a run of {whose}, which is left as it is")


def checked_timeout(timeout_s: float | None) -> float | None:
    """Return `timeout_s` if it is a time limit, or None for no limit."""
    if timeout_s is not None and not 0 < timeout_s < math.inf:
        raise InvalidInputError(f"timeout_s: {timeout_s} is not a time limit; give seconds above 0, or None")
    return timeout_s


def checked_wait(name: str, wait_s: float) -> float:
    """Return `wait_s` if it is a waiting time; error messages call it `name`."""
    if not 0 <= wait_s < math.inf:
        raise InvalidInputError(f"{name}: {wait_s} is not a waiting time; give 0 or more seconds")
    return wait_s


def verbatim(what: str, texts: Iterable[str]) -> list[bytes]:
    """Return the texts as bytes for a program; error messages call them `what`."""
    try:
        encoded = [os.fsencode(text) for text in texts]
    except UnicodeEncodeError as error:
        raise InvalidInputError(f"{what}: {error.object!r} cannot be passed to a program: {error.reason}") from error
    for text in encoded:
        if b"\0" in text:
            raise InvalidInputError(
                f"{what}: {text!r} contains a NUL character, which cannot be passed to a program; remove it"
            )
    return encoded
