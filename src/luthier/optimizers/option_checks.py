"""Checks of the options of optimizers; each error says which option of which optimizer is wrong, and what to give."""

import math
from collections.abc import Iterable
from typing import TypeGuard

from luthier.errors import InvalidInputError


def check_known(optimizer: str, option: str, given: object, known: Iterable[str]) -> None:
    """Refuse a name that is not among the known ones."""
    names = sorted(known)
    if given not in names:
        raise InvalidInputError(f"optimizer {optimizer}: {option} {given!r} is unknown; known: {', '.join(names)}")


def check_count(optimizer: str, option: str, given: object, least: int) -> None:
    """Refuse what is not a whole number of at least `least`."""
    if isinstance(given, bool) or not isinstance(given, int) or given < least:
        raise InvalidInputError(f"optimizer {optimizer}: {option} is {given!r}; give a whole number, {least} or more")


def check_share(optimizer: str, option: str, given: object) -> None:
    """Refuse what is not a number from 0 to 1."""
    if not _is_number(given) or not 0.0 <= given <= 1.0:
        raise InvalidInputError(f"optimizer {optimizer}: {option} is {given!r}; give a number from 0 to 1")


def check_share_above_0(optimizer: str, option: str, given: object) -> None:
    """Refuse what is not a number above 0 and at most 1."""
    check_share(optimizer, option, given)
    if given == 0:
        raise InvalidInputError(f"optimizer {optimizer}: {option} is {given!r}; give a number above 0")


def check_positive(optimizer: str, option: str, given: object) -> None:
    """Refuse what is not a finite number above 0."""
    if not _is_number(given) or not given > 0.0:
        raise InvalidInputError(f"optimizer {optimizer}: {option} is {given!r}; give a number above 0")


def _is_number(given: object) -> TypeGuard[int | float]:
    return isinstance(given, int | float) and not isinstance(given, bool) and math.isfinite(given)
