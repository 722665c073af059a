"""Who may use the on-line service: everybody who can open its unix socket, and holders of a token."""

import hmac
import secrets
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from luthier.errors import InvalidInputError, NotFoundError
from luthier.folders import data_directory
from luthier.online.service.address import Address, TcpAddress
from luthier.store.secret_file import kept_secret
from luthier.store.server_store import LOCAL_USER, Accounts, digest_of

_MAY_TUNE = ("user", "admin")
_LEAST_TOKEN = 20


@dataclass(frozen=True, slots=True)
class Access:
    """Maps tokens to users.

    Without accounts in the store, the only user is `local` and `secret` is their token. With accounts, the API tokens
    of users are valid, except those of viewers and of disabled accounts. A client without a token is `local`: it came
    over a unix socket, which only the user of the service can open.
    """

    accounts: Accounts
    secret: str | None = None
    clock: Callable[[], float] = time.time

    def __call__(self, token: str | None) -> str | None:
        """The user with this token; None if it is not valid."""
        if token is None:
            return LOCAL_USER
        if self.secret is not None and hmac.compare_digest(token.encode(), self.secret.encode()):
            return None if self.accounts.users() else LOCAL_USER
        found = self.accounts.find(digest_of(token), self.clock())
        if found is None or found.kind != "token":
            return None
        if found.user == LOCAL_USER:
            return None if self.accounts.users() else LOCAL_USER
        try:
            user = self.accounts.user(found.user)
        except NotFoundError:
            return None
        return user.name if user.role in _MAY_TUNE and not user.disabled else None


def access_for(accounts: Accounts, addresses: Iterable[Address]) -> Access:
    """The access to a service at these addresses; the token of a store without accounts is made if necessary."""
    has_tcp = any(isinstance(address, TcpAddress) for address in addresses)
    return Access(accounts, kept_token(token_path()) if has_tcp and not accounts.users() else None)


def token_path() -> Path:
    """The file with the token of a store without accounts."""
    return data_directory() / "online-token"


def kept_token(path: Path) -> str:
    """The token in a file that only its owner can read; it is made when it is first needed."""
    token = kept_secret(path, _new_token).decode("utf-8", "replace").strip()
    if len(token) < _LEAST_TOKEN or not token.isascii() or not token.isprintable():
        raise InvalidInputError(f"{path}: does not contain a token; delete the file, a new one is made")
    return token


def _new_token() -> bytes:
    return f"{secrets.token_urlsafe(32)}\n".encode()
