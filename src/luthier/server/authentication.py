"""Users: how they log in, and what they may do."""

import hashlib
import hmac
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

from luthier.errors import InvalidInputError, LuthierError, NotFoundError
from luthier.server.login_limits import Attempt, LoginLimits
from luthier.server.passwords import hash_of, hash_unchecked, is_password
from luthier.store.server_store import LOCAL_USER, Accounts, Credential, CredentialKind, Role, User, digest_of

LOCAL = LOCAL_USER
"""The only user of a server without accounts; logs in with an invitation link."""

SESSION_S = 14 * 24 * 3600.0
INVITATION_S = 24 * 3600.0
_INVITED = "invitation"  # the label of a session that was opened by an invitation
_LONGEST_NAME = 64
_FORBIDDEN = "/\\?#%"  # these have a meaning in a URL
_RANKS: dict[Role, int] = {"submitter": -1, "viewer": 0, "user": 1, "admin": 2}


class AccessError(LuthierError):
    """Not logged in."""


class ForbiddenError(LuthierError):
    """Logged in, but without the right to do this."""


class Owned(Protocol):
    """An experiment or an on-line session: it has an author, and may be shared with all users."""

    @property
    def author(self) -> str:
        """The name of a user; empty for the command line."""
        ...

    @property
    def shared(self) -> bool:
        """Whether all users may see it."""
        ...


@dataclass(frozen=True, slots=True)
class Principal:
    """The user behind a request. `credential_id` is how they logged in; browsers send `csrf` back with changes."""

    name: str
    role: Role
    credential_id: int
    csrf: str | None = None

    def require(self, role: Role) -> None:
        """Raise `ForbiddenError` unless the user has this role or a higher one."""
        if _RANKS[self.role] < _RANKS[role]:
            raise ForbiddenError(f"{self.name} has the role {self.role}; this requires the role {role}")

    def may_see(self, record: Owned) -> bool:
        """Whether the user may see it: it is their own, it is shared, or they are an administrator."""
        return self.role == "admin" or record.shared or record.author == self.name

    def may_change(self, record: Owned) -> bool:
        """Whether the user may stop, resume, share or delete it."""
        return self.role == "admin" or (self.role == "user" and record.author == self.name)


class Authenticator:
    """Checks passwords, invitations, sessions and tokens.

    A server whose store has no accounts is for one person: `local`, an administrator, who logs in with an invitation.
    Once the first account exists, every user needs one. Secrets are long random texts, stored only as digests;
    passwords are stored as Argon2 hashes.
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
        self._dummy_hash = hash_unchecked(secrets.token_urlsafe())

    @property
    def has_accounts(self) -> bool:
        """Whether this server has user accounts."""
        return bool(self._accounts.users())

    def invite(self, name: str) -> str:
        """A secret with which this user can log in once, within a day."""
        return self._issue(name, "once", "invitation", INVITATION_S)

    def enter(self, invitation: str) -> str | None:
        """The secret of a new session in exchange for an invitation; None if the invitation is invalid or expired."""
        found = self._accounts.find(digest_of(invitation), self._clock())
        if found is None or found.kind != "once" or self._principal(found) is None:
            return None
        return self._issue(found.user, "session", _INVITED, SESSION_S)

    def begin_login(self, name: str, address: str, device: str = "") -> Attempt:
        """Begin to check a password; `TooManyError` if the client has to wait after too many wrong passwords.

        `device` is the value of `device_of` that the browser stored at an earlier login, if any.
        """
        known = self.device_of(name) if device else None
        is_known = known is not None and hmac.compare_digest(known.encode(), device.encode("utf-8", "replace"))
        return self.limits.begin(name, address, is_known=is_known)

    def finish_login(self, attempt: Attempt, name: str, password: str) -> str:
        """The secret of a new session; `AccessError` if the name or the password is wrong (it does not say which)."""
        user = self._checked(attempt, name, password)
        return self._issue(user.name, "session", "browser", SESSION_S)

    def device_of(self, name: str) -> str | None:
        """A value that a browser stores to prove that this user has logged in with it before; None without a password.

        It does not replace a login. It is computed from the password hash, so a new password makes it invalid.
        """
        user = self._user(name)
        if user is None or user.password_hash is None:
            return None
        return hmac.new(user.password_hash.encode(), b"device", hashlib.sha256).hexdigest()

    def needs_old_password(self, who: Principal) -> bool:
        """Whether this user must give the old password to set a new one.

        Not within a day after an invitation: an invited user has no password yet, or has forgotten it. Sessions that an
        OpenID provider opened are not enough: a password would still work after the provider has removed the user.
        """
        fresh_since = self._clock() - INVITATION_S
        return not any(
            one.id == who.credential_id and one.kind == "session" and one.label == _INVITED
            for one in self._accounts.credentials(who.name)
            if one.created_at > fresh_since
        )

    def change_password(self, who: Principal, old: str, new: str, address: str) -> None:
        """Set a new password and end the user's other sessions.

        `ForbiddenError` if the old password is required and wrong: the user stays logged in.
        """
        user = self._user(who.name)
        if user is None:
            raise InvalidInputError(f"{who.name} has no account, so there is no password to change")
        if self.needs_old_password(who):
            if user.password_hash is None:
                raise ForbiddenError("you have no password; to set one, log in with a link of: luthier user invite")
            try:
                self._checked(self.begin_login(who.name, address), who.name, old)
            except AccessError:
                raise ForbiddenError("the old password is wrong; nothing was changed") from None
        self._accounts.put_user(replace(user, password_hash=hash_of(new)))
        self._end_sessions(who.name, but=who.credential_id)

    def open_session(self, name: str) -> str:
        """The secret of a new session for a user who was authenticated elsewhere, such as by an OpenID provider."""
        return self._issue(name, "session", "browser", SESSION_S)

    def issue_token(self, name: str, label: str, lifetime_s: float | None) -> tuple[str, Credential]:
        """The secret of a new token for programs, and the credential that is stored for it."""
        return self._granted(name, "token", label, lifetime_s)

    def recognise(self, secret: str, kind: CredentialKind) -> Principal | None:
        """The user of this secret; None if it is unknown, expired or revoked."""
        found = self._accounts.find(digest_of(secret), self._clock())
        principal = None if found is None or found.kind != kind else self._principal(found)
        if principal is None or kind != "session":
            return principal
        return replace(principal, csrf=csrf_of(secret))

    def add_user(self, name: str, role: Role, password: str | None, *, disabled: bool | None = None) -> User:
        """Add an account, or change one; arguments that are None keep their value.

        The credentials of a disabled account do not work until it is enabled again. A new password ends all sessions.
        """
        _check_name(name)
        if role not in _RANKS:
            raise InvalidInputError(f"role: {role!r} is unknown; choose one of {', '.join(_RANKS)}")
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
        """Delete an account."""
        user = self._accounts.user(name)
        if len(self._accounts.users()) > 1:
            self._require_admin_left(replace(user, disabled=True))
        self._accounts.remove_user(name)

    def _require_admin_left(self, changed: User) -> None:
        """Raise if a change would leave the server without an administrator."""
        others = [user for user in self._accounts.users() if user.name != changed.name]
        if any(user.role == "admin" and not user.disabled for user in [*others, changed]):
            return
        raise InvalidInputError(f"user {changed.name}: the server needs an administrator; make another user one first")

    def _checked(self, attempt: Attempt, name: str, password: str) -> User:
        """The user with this name and password; until the password is confirmed, the attempt counts as wrong."""
        user = self._user(name)
        known = user.password_hash if user is not None and not user.disabled else None
        right = is_password(known or self._dummy_hash, password)  # the same work for an unknown user
        if user is None or known is None or not right:
            raise AccessError("wrong name or password")
        self.limits.succeed(attempt)
        return user

    def _end_sessions(self, name: str, but: int | None = None) -> None:
        """End the sessions and invitations that were made with the old password."""
        for one in self._accounts.credentials(name):
            if one.kind != "token" and one.id != but:
                self._accounts.revoke(one.id)

    def _issue(self, name: str, kind: CredentialKind, label: str, lifetime_s: float | None) -> str:
        return self._granted(name, kind, label, lifetime_s)[0]

    def _granted(self, name: str, kind: CredentialKind, label: str, lifetime_s: float | None) -> tuple[str, Credential]:
        secret, now = secrets.token_urlsafe(32), self._clock()
        expires_at = None if lifetime_s is None else now + lifetime_s
        return secret, self._accounts.grant(digest_of(secret), Credential(0, name, kind, label, now, expires_at))

    def _principal(self, found: Credential) -> Principal | None:
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


def csrf_of(secret: str) -> str:
    """The value that the pages of a session send with every change; other sites cannot know it."""
    return hmac.new(secret.encode("utf-8", "surrogatepass"), b"csrf", hashlib.sha256).hexdigest()


def _check_name(name: str) -> None:
    plain = name.isprintable() and name == name.strip() and not any(character in _FORBIDDEN for character in name)
    if not plain or not 0 < len(name) <= _LONGEST_NAME or name in (LOCAL, ".", ".."):
        raise InvalidInputError(
            f"user: {name[:_LONGEST_NAME]!r} is not valid; use up to {_LONGEST_NAME} printable characters without "
            f"{' '.join(_FORBIDDEN)}, and not {LOCAL!r}"
        )
