"""Who comes in, and what they may do."""

import hashlib
import hmac
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from luthier.errors import InvalidInputError, LuthierError, NotFoundError
from luthier.server.login_limits import Attempt, LoginLimits
from luthier.server.passwords import hash_of, hash_of_anything, is_password
from luthier.store.base import Record
from luthier.store.server_store import Accounts, Pass, PassKind, Role, User

LOCAL = "local"
"""The one user of a server without accounts; whoever holds its invitation."""

SESSION_S = 14 * 24 * 3600.0
INVITATION_S = 24 * 3600.0
_LONGEST_NAME = 64
_UNFIT = "/\\?#%"  # they mean something in the address of a page
_RANKS: dict[Role, int] = {"viewer": 0, "user": 1, "admin": 2}


class AccessError(LuthierError):
    """Nobody known: log in first."""


class ForbiddenError(LuthierError):
    """Somebody known, who may not do this."""


@dataclass(frozen=True, slots=True)
class Principal:
    """Whoever makes a request. `pass_id` is what they came in with; `csrf` is what their browser must send back."""

    name: str
    role: Role
    pass_id: int
    csrf: str | None = None

    def require(self, role: Role) -> None:
        """Raise unless they have this role, or a higher one."""
        if _RANKS[self.role] < _RANKS[role]:
            raise ForbiddenError(f"{self.name} is a {self.role}; this takes the role {role}")

    def may_see(self, record: Record) -> bool:
        """Whether an experiment is theirs, or for everybody."""
        return self.role == "admin" or record.shared or record.author == self.name

    def may_change(self, record: Record) -> bool:
        """Whether they may stop, resume, share or delete it."""
        return self.role == "admin" or (self.role == "user" and record.author == self.name)


class Doorkeeper:
    """Lets people in with a password, an invitation, a session or a token.

    A server whose store knows no users is for one person: `local`, an administrator, who comes in by invitation. As
    soon as there is one account, everybody needs one. Secrets are long random texts, kept as digests only; passwords
    are kept as Argon2 hashes.
    """

    def __init__(
        self,
        accounts: Accounts,
        clock: Callable[[], float] = time.time,
        stopwatch: Callable[[], float] = time.monotonic,
    ) -> None:
        self._accounts = accounts
        self._clock = clock
        self.limits = LoginLimits(stopwatch)
        self._stand_in = hash_of_anything(secrets.token_urlsafe())

    @property
    def has_accounts(self) -> bool:
        """Whether people have accounts here."""
        return bool(self._accounts.users())

    def invite(self, name: str) -> str:
        """A secret that lets this user in once, within a day."""
        return self._issue(name, "once", "invitation", INVITATION_S)

    def enter(self, invitation: str) -> str | None:
        """The secret of a new session in exchange for an invitation; None if it is not, or no longer, good."""
        found = self._accounts.find(digest_of(invitation), self._clock())
        if found is None or found.kind != "once" or self._principal(found) is None:
            return None
        return self._issue(found.user, "session", "browser", SESSION_S)

    def begin_login(self, name: str, address: str, device: str = "") -> Attempt:
        """Somebody who may be checked now; `TooManyError` if they have to wait after too many wrong passwords.

        `device` is what `device_of` gave their browser earlier, if it did.
        """
        known = self.device_of(name) if device else None
        is_known = known is not None and hmac.compare_digest(known.encode(), device.encode("utf-8", "replace"))
        return self.limits.begin(name, address, is_known=is_known)

    def finish_login(self, attempt: Attempt, name: str, password: str) -> str:
        """The secret of a new session; `AccessError` if name or password are wrong, and it does not say which."""
        user = self._checked(attempt, name, password)
        return self._issue(user.name, "session", "browser", SESSION_S)

    def log_in(self, name: str, password: str, address: str, device: str = "") -> str:
        """Both in one step."""
        return self.finish_login(self.begin_login(name, address, device), name, password)

    def device_of(self, name: str) -> str | None:
        """What a browser keeps to show that it has logged in as this user before; None without a password.

        It lets nobody in. It follows from the hash of the password, so a new password makes it worthless.
        """
        user = self._user(name)
        if user is None or user.password_hash is None:
            return None
        return hmac.new(user.password_hash.encode(), b"device", hashlib.sha256).hexdigest()

    def change_password(self, who: Principal, old: str, new: str, address: str) -> None:
        """Give somebody a new password; their other sessions end. `AccessError` if the old one is wrong."""
        if self._user(who.name) is None:
            raise InvalidInputError(f"{who.name} has no account, so there is no password to change")
        user = self._checked(self.begin_login(who.name, address), who.name, old)
        self._accounts.put_user(replace(user, password_hash=hash_of(new)))
        self._end_sessions(who.name, but=who.pass_id)

    def open_session(self, name: str) -> str:
        """The secret of a new session for somebody whom another party has recognised."""
        return self._issue(name, "session", "browser", SESSION_S)

    def issue_token(self, name: str, label: str, lifetime_s: float | None) -> tuple[str, Pass]:
        """The secret of a new token for programs, and what is kept of it."""
        return self._granted(name, "token", label, lifetime_s)

    def recognise(self, secret: str, kind: PassKind) -> Principal | None:
        """Who holds this secret; None if nobody does, or no longer."""
        found = self._accounts.find(digest_of(secret), self._clock())
        principal = None if found is None or found.kind != kind else self._principal(found)
        if principal is None or kind != "session":
            return principal
        return replace(principal, csrf=csrf_of(secret))

    def add_user(self, name: str, role: Role, password: str | None, *, disabled: bool | None = None) -> User:
        """Add an account, or change one; what is None stays as it is.

        The passes of a disabled account do not work until it is enabled again. A new password ends all sessions.
        """
        _check_name(name)
        if role not in _RANKS:
            raise InvalidInputError(f"role: {role!r} is unknown; there are {', '.join(_RANKS)}")
        known = self._user(name) or User(name, role, self._clock())
        user = replace(known, role=role, disabled=known.disabled if disabled is None else disabled)
        if password is not None:
            user = replace(user, password_hash=hash_of(password))
        self._require_admin_left(user)
        self._accounts.put_user(user)
        if password is not None:
            self._end_sessions(name)
        return user

    def remove_user(self, name: str) -> None:
        """Forget an account."""
        user = self._accounts.user(name)
        if len(self._accounts.users()) > 1:
            self._require_admin_left(replace(user, disabled=True))
        self._accounts.remove_user(name)

    def _require_admin_left(self, changed: User) -> None:
        """Refuse what would lock everybody out of the administration."""
        others = [user for user in self._accounts.users() if user.name != changed.name]
        if any(user.role == "admin" and not user.disabled for user in [*others, changed]):
            return
        raise InvalidInputError(f"user {changed.name}: somebody has to be an administrator; make another one first")

    def _checked(self, attempt: Attempt, name: str, password: str) -> User:
        """The user of this name and password; the attempt counts as wrong until it has turned out to be right."""
        user = self._user(name)
        known = user.password_hash if user is not None and not user.disabled else None
        right = is_password(known or self._stand_in, password)  # the same work for a user who is not there
        if user is None or known is None or not right:
            raise AccessError("wrong name or password")
        self.limits.succeed(attempt)
        return user

    def _end_sessions(self, name: str, but: int | None = None) -> None:
        """Whoever knew the old password has to come in anew."""
        for one in self._accounts.passes(name):
            if one.kind != "token" and one.id != but:
                self._accounts.revoke(one.id)

    def _issue(self, name: str, kind: PassKind, label: str, lifetime_s: float | None) -> str:
        return self._granted(name, kind, label, lifetime_s)[0]

    def _granted(self, name: str, kind: PassKind, label: str, lifetime_s: float | None) -> tuple[str, Pass]:
        secret, now = secrets.token_urlsafe(32), self._clock()
        expires_at = None if lifetime_s is None else now + lifetime_s
        return secret, self._accounts.grant(digest_of(secret), Pass(0, name, kind, label, now, expires_at))

    def _principal(self, found: Pass) -> Principal | None:
        user = self._user(found.user)
        if user is not None:
            return None if user.disabled else Principal(user.name, user.role, found.id)
        if found.user == LOCAL and not self.has_accounts:
            return Principal(LOCAL, "admin", found.id)
        return None

    def _user(self, name: str) -> User | None:
        try:
            return self._accounts.user(name)
        except NotFoundError:
            return None


def digest_of(secret: str) -> str:
    """What is kept of a secret: it is random and long, so a plain hash is enough."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def csrf_of(secret: str) -> str:
    """What the pages of a session send along with every change; other sites cannot know it."""
    return hmac.new(secret.encode("utf-8", "surrogatepass"), b"csrf", hashlib.sha256).hexdigest()


def _check_name(name: str) -> None:
    plain = name.isprintable() and name == name.strip() and not any(character in _UNFIT for character in name)
    if not plain or not 0 < len(name) <= _LONGEST_NAME or name in (LOCAL, ".", ".."):
        raise InvalidInputError(
            f"user: {name[:_LONGEST_NAME]!r} is no name; give up to {_LONGEST_NAME} printable characters without "
            f"{' '.join(_UNFIT)}, and not {LOCAL!r}"
        )
