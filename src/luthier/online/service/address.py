"""Addresses of the on-line service: `unix:PATH` and `tcp:[HOST:]PORT`."""

import os
from dataclasses import dataclass
from pathlib import Path

from luthier.errors import InvalidInputError
from luthier.folders import data_directory
from luthier.texts import check_text, shown

LOOPBACK = "127.0.0.1"

_LARGEST_PORT = 65535
_LONGEST_PATH = 107  # bytes that fit into a unix socket address on Linux
_FORMS = "expected unix:PATH, tcp:PORT or tcp:HOST:PORT"


@dataclass(frozen=True, slots=True)
class UnixAddress:
    """A socket file; who may open it may use the service."""

    path: str

    def __str__(self) -> str:
        return f"unix:{self.path}"


@dataclass(frozen=True, slots=True)
class TcpAddress:
    """A host and a port; port 0 is any free one."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"tcp:[{self.host}]:{self.port}" if ":" in self.host else f"tcp:{self.host}:{self.port}"


Address = UnixAddress | TcpAddress


def parse_address(text: str) -> Address:
    """Read an address; raise if it is not one."""
    kind, _, rest = check_text(text, "address").partition(":")
    if kind == "unix" and rest:
        if len(os.fsencode(rest)) > _LONGEST_PATH:
            raise InvalidInputError(f"address {shown(text)}: the path is longer than {_LONGEST_PATH} bytes; shorten it")
        return UnixAddress(rest)
    if kind == "tcp" and rest:
        host, _, port = rest.rpartition(":")
        host = host.removeprefix("[").removesuffix("]") or LOOPBACK
        if port.isascii() and port.isdigit() and len(port) <= len(str(_LARGEST_PORT)) and int(port) <= _LARGEST_PORT:
            return TcpAddress(host, int(port))
        raise InvalidInputError(f"address {shown(text)}: {shown(port)} is not a port; use 0 to {_LARGEST_PORT}")
    raise InvalidInputError(f"address {shown(text)} is not valid; {_FORMS}")


def default_address() -> str:
    """The environment variable LUTHIER_ONLINE, or else a socket in the data directory."""
    return os.environ.get("LUTHIER_ONLINE") or f"unix:{Path(data_directory()) / 'online.sock'}"
