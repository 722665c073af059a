"""The on-line service: many sessions for many clients, over unix and tcp sockets, in one thread."""

import asyncio
import itertools
import logging
import os
import resource
import socket
import stat
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from luthier.errors import InvalidInputError, LuthierError, UnavailableError
from luthier.folders import data_directory
from luthier.online.service.address import Address, TcpAddress, UnixAddress, parse_address
from luthier.online.service.connection import ServedConnection
from luthier.online.service.journal import Journal, journal_folder
from luthier.online.service.newcomers import Newcomers
from luthier.online.service.protocol import Hello
from luthier.online.service.sessions import ServedSession, Sessions
from luthier.online.session import OnlineSession
from luthier.online.store import online_sessions_in
from luthier.space import Integer, Space
from luthier.store.server_store import ServerStore

_BACKLOG = 1024
_PROBE_S = 2.0


def listen(address: Address) -> socket.socket:
    """A socket that listens on the address; the service's clients can connect at once."""
    return _listen_unix(address) if isinstance(address, UnixAddress) else _listen_tcp(address)


def address_of(listening: socket.socket, address: Address) -> Address:
    """The address with the port that the system chose, if it was 0."""
    return TcpAddress(address.host, listening.getsockname()[1]) if isinstance(address, TcpAddress) else address


def stop_listening(listening: socket.socket, address: Address) -> None:
    """Close the socket; a socket file is removed, unless another process has replaced it."""
    listening.close()
    if isinstance(address, UnixAddress) and _is_socket(Path(address.path)) and not _is_served(address):
        Path(address.path).unlink(missing_ok=True)


def _listen_unix(address: UnixAddress) -> socket.socket:
    path = Path(address.path)
    if path.is_symlink() or (path.exists() and not _is_socket(path)):
        raise InvalidInputError(f"{address}: the file exists and is not a socket; choose another path")
    if _is_socket(path):
        if _is_served(address):
            raise UnavailableError(f"{address}: a service is already listening there; stop it or choose another path")
        path.unlink(missing_ok=True)
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o077)  # nobody else can connect, not even before chmod
    try:
        listening.bind(address.path)
        path.chmod(0o600)
        listening.listen(_BACKLOG)
    except OSError as error:
        listening.close()
        raise UnavailableError(f"{address}: cannot listen: {error.strerror}; choose another path") from None
    finally:
        os.umask(before)
    return listening


def _listen_tcp(address: TcpAddress) -> socket.socket:
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    try:
        return socket.create_server((address.host, address.port), family=family, backlog=_BACKLOG)
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or "invalid host"
        raise UnavailableError(f"{address}: cannot listen: {reason}; choose another address") from None


def _is_socket(path: Path) -> bool:
    try:
        return stat.S_ISSOCK(path.lstat().st_mode)
    except OSError:
        return False


def _is_served(address: UnixAddress) -> bool:
    """Whether a process accepts connections on the socket file; a stale one refuses them."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(_PROBE_S)
        try:
            probe.connect(address.path)
        except (ConnectionRefusedError, FileNotFoundError):
            return False
        except OSError:
            return True  # it exists and does not answer in time, or belongs to another user
    return True


Allow = Callable[[str | None], str | None]
"""Maps a token to the name of its user, or to None if it is refused; no token is given over unix sockets only."""

SAVE_EVERY_S = 0.25
_LOOK_EVERY_S = 0.05
_VIEWS_EVERY = 2  # saves
_HEARTBEAT_EVERY = 8  # saves
_SWITCH_S = 1e-4  # how long the thread of the store may keep the interpreter while a client waits; 5 ms by default
_MOST_CONNECTIONS = 8192
_MOST_UNKNOWN = 128
_DECIDERS = 2
_OPENERS = 4
_OTHER_FILES = 64
_log = logging.getLogger(__name__)


class OnlineService:
    """Serves on-line sessions from a store until it is told to stop.

    The thread of `run` answers requests and waits for nothing: others write to the store, open sessions and make the
    decisions of strategies that take long.
    """

    def __init__(
        self, server_store: ServerStore, listen: Sequence[str], allow: Allow, *, folder: Path | None = None
    ) -> None:
        self._addresses = [parse_address(text) for text in listen]
        if not self._addresses:
            raise InvalidInputError("listen: no address is given; give unix:PATH or tcp:PORT")
        self._allow = allow
        self._journal = Journal(journal_folder(folder or data_directory(), server_store.where))
        self._sessions = Sessions(online_sessions_in(server_store), self._journal, self._decide)
        self._connections: set[ServedConnection] = set()
        self._newcomers = Newcomers()
        self._most = _most_connections()
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="online-store")
        self._openers = ThreadPoolExecutor(_OPENERS, thread_name_prefix="online-open")
        self._deciders = ThreadPoolExecutor(_DECIDERS, thread_name_prefix="online-strategy")
        self._failing = False

    def run(
        self, stopped: threading.Event, ready: Callable[[Sequence[Address]], None] = lambda _addresses: None
    ) -> None:
        """Serve until `stopped` is set. `ready` is called with the addresses as soon as clients can connect.

        Raise `LuthierError` if it cannot listen on an address or the store cannot be used.
        """
        with ExitStack() as ending:
            ending.callback(self._writer.shutdown)
            ending.callback(self._openers.shutdown, cancel_futures=True)
            ending.callback(self._deciders.shutdown, cancel_futures=True)
            ending.callback(sys.setswitchinterval, sys.getswitchinterval())
            sys.setswitchinterval(_SWITCH_S)
            self._journal.open()
            ending.callback(self._journal.close)
            self._journal.store_files(self._sessions.store)  # what a killed service has left
            OnlineSession(Space(Integer("any", 0, 1)))  # imports what the first session needs: its clients wait 0.2 s
            listening = []
            for address in self._addresses:
                opened = listen(address)
                ending.callback(stop_listening, opened, address)
                listening.append((opened, address_of(opened, address)))
            asyncio.run(self._serve(stopped, ready, listening))

    def admit(self, connection: ServedConnection) -> str | None:
        """Take a new connection; the reason if it is refused."""
        self._connections.add(connection)
        if len(self._connections) > self._most:
            return f"the service has {self._most} connections already; try again later"
        return self._newcomers.admit(connection, _MOST_UNKNOWN) if connection.needs_token else None

    def joined(self, connection: ServedConnection) -> None:
        """Note that a connection has joined a session."""
        if connection.needs_token:
            self._newcomers.joined(connection)

    def forget(self, connection: ServedConnection) -> None:
        """Note that a connection has ended."""
        self._connections.discard(connection)
        self._newcomers.forget(connection)

    def open(self, hello: Hello, *, needs_token: bool) -> Awaitable[ServedSession]:
        """Check the token and find the session, in another thread."""
        return asyncio.get_running_loop().run_in_executor(self._openers, self._open, hello, needs_token)

    def _open(self, hello: Hello, needs_token: bool) -> ServedSession:
        if needs_token and hello.token is None:
            raise InvalidInputError("a token is required; set LUTHIER_TOKEN or LUTHIER_TOKEN_FILE")
        user = self._allow(hello.token)
        if user is None:
            raise InvalidInputError("the token is not valid; set LUTHIER_TOKEN or LUTHIER_TOKEN_FILE to a valid one")
        return self._sessions.open(user, hello)

    def _decide(self, decision: Callable[[], None], done: Callable[[], None]) -> None:
        """Let a strategy decide in another thread: other clients and sessions do not wait for it."""

        def ended(future: asyncio.Future[None]) -> None:
            if future.cancelled():
                return
            if (error := future.exception()) is not None:
                _log.error("a strategy failed", exc_info=error)
            done()

        asyncio.get_running_loop().run_in_executor(self._deciders, decision).add_done_callback(ended)

    async def _serve(
        self,
        stopped: threading.Event,
        ready: Callable[[Sequence[Address]], None],
        listening: Sequence[tuple[socket.socket, Address]],
    ) -> None:
        loop = asyncio.get_running_loop()
        servers = []
        for opened, address in listening:
            make = partial(ServedConnection, self, needs_token=not isinstance(address, UnixAddress))
            start = loop.create_unix_server if isinstance(address, UnixAddress) else loop.create_server
            servers.append(await start(make, sock=opened.dup()))
        ready([address for _, address in listening])
        try:
            await self._save_until(stopped)
        finally:
            for server in servers:
                server.close()
            for connection in list(self._connections):
                connection.abandon()
            await self._save(views=True, heartbeat=False)

    async def _save_until(self, stopped: threading.Event) -> None:
        for count in itertools.count(1):
            end = time.monotonic() + SAVE_EVERY_S
            while time.monotonic() < end:
                if stopped.is_set():
                    return
                await asyncio.sleep(_LOOK_EVERY_S)
            await self._save(views=count % _VIEWS_EVERY == 0, heartbeat=count % _HEARTBEAT_EVERY == 0)

    async def _save(self, *, views: bool, heartbeat: bool) -> None:
        """Write what is new to the store, and do what users asked for there."""
        now = time.time()
        try:
            has_files = self._journal.rotate()
            if not (has_files or views):
                return
            saves = self._sessions.to_save(heartbeat=heartbeat, everything=self._failing) if views else []
            loop = asyncio.get_running_loop()
            statuses = await loop.run_in_executor(self._writer, self._sessions.save, saves, now)
            self._sessions.follow(statuses)
            self._failing = False
        except (LuthierError, OSError) as error:
            if not self._failing:
                _log.warning("on-line sessions are not stored now; their samples are kept in the journal: %s", error)
            self._failing = True
        except Exception:  # noqa: BLE001 - clients are served whatever goes wrong here
            if not self._failing:
                _log.exception("on-line sessions are not stored now; their samples are kept in the journal")
            self._failing = True


def _most_connections() -> int:
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return max(1, min(_MOST_CONNECTIONS, files - _OTHER_FILES))
