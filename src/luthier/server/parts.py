"""What a wing adds to the server: REST, pages, and what works beside them."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Protocol, cast

from fastapi import APIRouter

from luthier.plugins import joined, loaded
from luthier.store.server_store import ServerStore


class PartState(Protocol):
    """What a wing keeps in a running server."""

    @property
    def says(self) -> str:
        """A line for the administrator when the server starts; empty if there is nothing to say."""
        ...

    @property
    def listeners(self) -> int:
        """The number of open event streams."""
        ...

    def start(self) -> None:
        """Start what must be ready before the first request; called in the loop of the server."""
        ...

    def close(self) -> None:
        """End what was started, and the event streams."""
        ...


@dataclass(frozen=True, slots=True)
class ServerPart:
    """What a wing adds to the server.

    `api` are routes below the base of the REST API, `pages` those of pages; `address` and `label` are the entry in the
    navigation. `folder` has the folders `templates` and `static`. `state` makes the state from the store and the
    options of the wing. `serving` starts what works beside the server, and gives the state; its second argument is the
    URL of the store, for connections of its own.
    """

    api: Sequence[APIRouter]
    pages: APIRouter
    address: str
    label: str
    folder: Path
    state: Callable[[ServerStore, Any], PartState]
    serving: Callable[[ServerStore, str | None, Any], AbstractContextManager[PartState]]


def parts() -> Mapping[str, ServerPart]:
    """Those of all wings of this process, by the name of the wing."""
    return {wing.name: cast("ServerPart", _part(wing.server)) for wing in joined() if wing.server}


@cache
def _part(text: str) -> object:
    return loaded(text)
