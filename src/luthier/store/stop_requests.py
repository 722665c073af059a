"""Requests to stop an experiment: how they are stored, and when they are dropped."""

from collections.abc import Mapping
from typing import TypedDict

from luthier.store.base import ENDED, Status, StopRequest

_COLUMNS: Mapping[StopRequest | None, tuple[bool, bool]] = {
    None: (False, False),
    "verify": (False, True),
    "drain": (True, False),
    "kill": (True, True),
}
"""The values of the columns `stop_requested` and `kill_requested`, weakest request first."""


class StopColumns(TypedDict):
    """A stop request."""

    stop_requested: bool
    kill_requested: bool


def stop_columns(request: StopRequest | None) -> StopColumns:
    """The columns of a stop request."""
    stop, kill = _COLUMNS[request]
    return StopColumns(stop_requested=stop, kill_requested=kill)


def stop_request_from(row: StopColumns) -> StopRequest | None:
    """The stop request of an experiment, if there is one."""
    found = bool(row["stop_requested"]), bool(row["kill_requested"])
    return next(request for request, columns in _COLUMNS.items() if columns == found)


def after_request(status: str, before: StopRequest | None, how: StopRequest) -> tuple[str, StopRequest | None]:
    """The status and the stop request after a request: a queued experiment is stopped, a running one is asked to."""
    if status == "queued":
        return "stopped", None
    strength = list(_COLUMNS)
    return status, max(before, how, key=strength.index) if status == "running" else before


def after_claim(request: StopRequest | None, *, had_owner: bool, has_settings: bool = False) -> StopRequest | None:
    """The request that a new owner gets: a request to stop the former one is dropped, except to verify.

    With new settings, any request is dropped: it was made for the former ones.
    """
    return None if has_settings or (had_owner and request != "verify") else request


def after_close(request: StopRequest | None, status: Status) -> StopRequest | None:
    """The request to verify is kept until the experiment has ended."""
    return request if request == "verify" and status not in ENDED else None
