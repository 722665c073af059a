"""The addresses of clients, and which proxies are trusted to report them."""

from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, ip_network

from luthier.errors import InvalidInputError
from luthier.online.service.address import parsed_ip, source_of

__all__ = ["Proxies", "source_of"]


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
