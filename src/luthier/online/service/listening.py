"""Sockets to listen on: a unix socket is private from its first moment, and nothing but a stale socket is removed."""

import os
import socket
import stat
from pathlib import Path

from luthier.errors import InvalidInputError, UnavailableError
from luthier.online.service.address import Address, TcpAddress, UnixAddress

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
