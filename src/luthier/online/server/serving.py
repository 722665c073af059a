"""The on-line service inside of `luthier serve`, in a thread of its own."""

import logging
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse

from luthier.errors import InvalidInputError, LuthierError, NotFoundError, UnavailableError
from luthier.online.commands import OnlineServeOptions
from luthier.online.server import api
from luthier.online.server.state import OnlineState, online_of
from luthier.online.service.access import access_for
from luthier.online.service.address import Address, default_address, parse_address
from luthier.online.service.service import OnlineService
from luthier.server.context import Server
from luthier.server.pages import MaybeUser, not_found_page, number_in, page, redirect_to_login
from luthier.server.parts import ServerPart
from luthier.store import open_server_store
from luthier.store.server_store import ServerStore

router = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)


@router.get("/online")
def online(request: Request, who: MaybeUser, server: Server) -> Response:
    """All on-line sessions."""
    addresses = online_of(server).addresses
    return page(request, who, "online", "On-line sessions", section="/online", addresses=addresses)


@router.get("/online/{number}")
def online_session(request: Request, who: MaybeUser, server: Server, number: str) -> Response:
    """One on-line session."""
    if who is None:
        return redirect_to_login(request)
    try:
        record = online_of(server).operations.visible(who, number_in(number))
    except NotFoundError:
        return not_found_page(request, who, f"On-line session {number} does not exist, or it is not shared with you.")
    return page(request, who, "online-session", record.name, section="/online", number=record.id)


NONE = "none"
"""The address that switches the service off."""

_log = logging.getLogger(__name__)


def addresses_in(given: Sequence[str]) -> list[str]:
    """The addresses to listen on: those given, or the default one; raise if one that was given is not valid."""
    if NONE in given and len(given) > 1:
        raise InvalidInputError(f"--online {NONE} cannot be combined with an address; leave one out")
    if NONE in given:
        return []
    for text in given:
        parse_address(text)
    return list(given) or [default_address()]


class OnlineServing:
    """The thread of an on-line service; `addresses` are those on which it listens."""

    def __init__(self, server_store: ServerStore, listen: Sequence[str]) -> None:
        access = access_for(server_store.accounts, map(parse_address, listen))
        self._service = OnlineService(server_store, listen, access)
        self._stopped, self._settled = threading.Event(), threading.Event()
        self._problem: LuthierError | None = None
        self._thread = threading.Thread(target=self._run, name="online")
        self.addresses: tuple[str, ...] = ()

    def start(self) -> None:
        """Start, and wait until clients can connect; raise `LuthierError` if it cannot listen."""
        self._thread.start()
        self._settled.wait()
        if self._problem is not None:
            self._thread.join()
            raise self._problem

    def stop(self) -> None:
        """Write everything to the store, and end the thread."""
        self._stopped.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            self._service.run(self._stopped, self._ready)
        except (LuthierError, OSError) as error:
            self._problem = error if isinstance(error, LuthierError) else UnavailableError(str(error))
            if self._settled.is_set():
                _log.error("on-line sessions are no longer served: %s", error)
        finally:
            self._settled.set()

    def _ready(self, addresses: Sequence[Address]) -> None:
        self.addresses = tuple(str(address) for address in addresses)
        self._settled.set()


@contextmanager
def serving(store: ServerStore, url: str | None, options: OnlineServeOptions | None) -> Iterator[OnlineState]:
    """Serve on-line sessions beside the server; if its default address cannot be used, only report that."""
    given = (options and options.online) or []
    listen = addresses_in(given)
    service = None
    try:
        if listen:
            # It has its own connection to the store: pages must not delay programs.
            service = OnlineServing(open_server_store(url), listen)
            service.start()
    except LuthierError as error:
        if given:
            raise
        service, says = None, f"on-line tuning is off on this server: {error}"
    else:
        says = "" if service is None else f"on-line sessions at {', '.join(service.addresses)}"
    try:
        yield OnlineState(store, () if service is None else service.addresses, says)
    finally:
        if service is not None:
            service.stop()


def _state(store: ServerStore, _options: object) -> OnlineState:
    return OnlineState(store)


PART = ServerPart((api.router,), router, "/online", "On-line", Path(__file__).parent, state=_state, serving=serving)
