"""The loop of runners that watch jobs: look, forget those that ended, wait."""

import time
from collections.abc import Callable, Collection, Sequence
from typing import TypeVar

from luthier.trial import Execution

Watched = TypeVar("Watched")


def poll_watched(
    watched: dict[str, Watched],
    many: Sequence[str],
    wait_s: float,
    look: Callable[[Collection[Watched]], Sequence[Execution]],
    wait: Callable[[Collection[Watched], float], None],
) -> Sequence[Execution]:
    """Return those of the named jobs that have ended, as soon as there is one; unknown names are ignored.

    `look` returns the jobs that have ended, which are then no longer watched; `wait` returns when it is worth looking
    again, at the latest after the given seconds.
    """
    give_up_at = time.monotonic() + wait_s
    while True:
        named = [watched[key] for key in dict.fromkeys(many) if key in watched]
        ended = look(named)
        for execution in ended:
            del watched[execution.key]
        left_s = give_up_at - time.monotonic()
        if ended or not named or left_s <= 0:
            return ended
        wait(named, left_s)
