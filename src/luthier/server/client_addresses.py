"""The addresses of clients, and which proxies are trusted to report them."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from luthier.errors import InvalidInputError

_WITH_PORT = re.compile(r"\[([^\]]*)\](?::[0-9]*)?|([0-9.]+):[0-9]*")
_PREFIX_OF_ONE_PARTY = 64  # a customer of a provider usually gets 2**64 IPv6 addresses


@dataclass(frozen=True, slots=True)
class Proxies:
    """The trusted proxies in front of the server: only their X-Forwarded-For headers are used."""

    networks: tuple[IPv4Network | IPv6Network, ...] = ()

    @classmethod
    def parse(cls, texts: Iterable[str]) -> "Proxies":
        """The proxies at these addresses or in these networks, such as `127.0.0.1` or `10.0.0.0/24`."""
        networks = []
        for text in texts:
            try:
                networks.append(ip_network(text))
            except ValueError:
                raise InvalidInputError(
                    f"--proxy {text[:100]}: not an address or network; give for example 127.0.0.1 or 10.0.0.0/24"
                ) from None
        return cls(tuple(networks))

    def __contains__(self, address: str) -> bool:
        found = parsed_ip(address)
        return found is not None and any(found in network for network in self.networks)

    @property
    def texts(self) -> list[str]:
        """In the form that uvicorn expects: single addresses without a prefix length."""
        return [str(one.network_address if one.num_addresses == 1 else one) for one in self.networks]


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
