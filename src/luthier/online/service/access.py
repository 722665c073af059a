"""Who may use the on-line service: everybody who can open its unix socket, and holders of a token."""

import hmac
import os
import secrets
import stat
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from luthier.errors import InvalidInputError, NotFoundError, UnavailableError
from luthier.online.service.address import Address, TcpAddress
from luthier.store import data_directory
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
    """The access to a service at these addresses; the token of a store without accounts is made if need be."""
    has_tcp = any(isinstance(address, TcpAddress) for address in addresses)
    return Access(accounts, kept_token(token_path()) if has_tcp and not accounts.users() else None)


def token_path() -> Path:
    """The file with the token of a store without accounts."""
    return data_directory() / "online-token"


def kept_token(path: Path) -> str:
    """The token in a file that only its owner can read; it is made when it is first needed."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not path.exists():
            _make_token(path)
        return _read_token(path)
    except OSError as error:
        raise UnavailableError(f"{path}: cannot be used: {error.strerror}; make it writable") from None


def _make_token(path: Path) -> None:
    """Write a new token; another process that does the same at this moment may win."""
    made = path.with_name(f"{path.name}.{os.getpid()}")
    file = os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        os.write(file, f"{secrets.token_urlsafe(32)}\n".encode())
        with suppress(FileExistsError):
            os.link(made, path)
    finally:
        os.close(file)
        made.unlink()


def _read_token(path: Path) -> str:
    file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    with os.fdopen(file, encoding="utf-8", errors="replace") as readable:
        mode = os.fstat(file).st_mode
        if not stat.S_ISREG(mode) or mode & 0o077:
            raise InvalidInputError(f"{path}: other users can read the token; delete the file, a new one is made")
        token = readable.read(1000).strip()
    if len(token) < _LEAST_TOKEN or not token.isascii() or not token.isprintable():
        raise InvalidInputError(f"{path}: does not contain a token; delete the file, a new one is made")
    return token
