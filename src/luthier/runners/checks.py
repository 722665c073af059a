"""Checks that every runner makes alike."""

from collections.abc import Sized

from luthier.errors import InvalidInputError, UnavailableError


def checked_slots(slots: int) -> int:
    """Return `slots` if it is a whole number of at least one."""
    if isinstance(slots, bool) or not isinstance(slots, int) or slots < 1:
        raise InvalidInputError(f"slots: {slots!r} is no number of jobs at once; give 1 or more")
    return slots


def require_free_slot(under_way: Sized, slots: int) -> None:
    """Refuse one job more than there are slots."""
    if len(under_way) >= slots:
        raise UnavailableError(f"all {slots} slots are busy; poll until a job has ended")
