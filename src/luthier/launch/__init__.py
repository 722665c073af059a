"""The one front door for work: command line, server and Python begin, continue and look at experiments here.

`create` puts a `LaunchRequest` into its store, `resume` finds one that can go on; both give a `Launch`, ready to work.
`work_through` works on it and on what follows it.
`open` reads an experiment and its result, `compare` several of them. `verify` ends the search of one that runs, and
`explain` runs its default and its best configuration once more. Start reading at `start.py`.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from luthier.launch.approvals import approve, withdraw
    from luthier.launch.declared import check, config_from, declared_by, declared_in, library, submitted_in
    from luthier.launch.earlier import Past
    from luthier.launch.explaining import explain
    from luthier.launch.runners import with_usual_slots
    from luthier.launch.start import (
        Done,
        FollowUp,
        Launch,
        LaunchRequest,
        Requester,
        Told,
        View,
        create,
        resume,
        told,
        unseen,
        work_through,
    )
    from luthier.launch.stored import compare, discard_files, explained, open, verify  # noqa: A004 - launch.open
    from luthier.launch.worker import Worker

# Importing the engine takes longer than most commands, so each name is imported when it is first used.
_MODULES = {
    "Done": "start",
    "FollowUp": "start",
    "Launch": "start",
    "LaunchRequest": "start",
    "Past": "earlier",
    "Requester": "start",
    "Told": "start",
    "View": "start",
    "Worker": "worker",
    "approve": "approvals",
    "check": "declared",
    "compare": "stored",
    "config_from": "declared",
    "create": "start",
    "declared_by": "declared",
    "declared_in": "declared",
    "discard_files": "stored",
    "explain": "explaining",
    "explained": "stored",
    "library": "declared",
    "open": "stored",
    "resume": "start",
    "submitted_in": "declared",
    "told": "start",
    "unseen": "start",
    "verify": "stored",
    "with_usual_slots": "runners",
    "withdraw": "approvals",
    "work_through": "start",
}

__all__ = [
    "Done",
    "FollowUp",
    "Launch",
    "LaunchRequest",
    "Past",
    "Requester",
    "Told",
    "View",
    "Worker",
    "approve",
    "check",
    "compare",
    "config_from",
    "create",
    "declared_by",
    "declared_in",
    "discard_files",
    "explain",
    "explained",
    "library",
    "open",
    "resume",
    "submitted_in",
    "told",
    "unseen",
    "verify",
    "with_usual_slots",
    "withdraw",
    "work_through",
]


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module 'luthier.launch' has no attribute {name!r}")
    return getattr(import_module(f"luthier.launch.{_MODULES[name]}"), name)
