"""Addresses of the on-line service: `unix:PATH` and `tcp:[HOST:]PORT`."""

import os
import re
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from pathlib import Path

from luthier.errors import InvalidInputError
from luthier.folders import data_directory
from luthier.texts import check_text, shown

LOOPBACK = "127.0.0.1"

_LARGEST_PORT = 65535
_WITH_PORT = re.compile(r"\[([^\]]*)\](?::[0-9]*)?|([0-9.]+):[0-9]*")
_PREFIX_OF_ONE_PARTY = 64  # a customer of a provider usually gets 2**64 IPv6 addresses
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


def source_of(address: str) -> str:
    """The address under which a client is counted: an IPv4 address, or the /64 network of an IPv6 address.

    A port behind it is ignored. All texts that are no address are counted together: they may be made up.
    """
    with_port = _WITH_PORT.fullmatch(address)
    found = parsed_ip(address if with_port is None else with_port[1] or with_port[2] or "")
    if found is None:
        return "unknown"
    if isinstance(found, IPv6Address):
        return str(ip_network((found, _PREFIX_OF_ONE_PARTY), strict=False))
    return str(found)


def parsed_ip(address: str) -> IPv4Address | IPv6Address | None:
    """The parsed address; an IPv4 address written in IPv6 form becomes IPv4. None if it is invalid."""
    try:
        found = ip_address(address.partition("%")[0])
    except ValueError:
        return None
    return getattr(found, "ipv4_mapped", None) or found
