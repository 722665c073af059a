"""Login, logout, and the user's own tokens and password."""

from dataclasses import asdict
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Path, Request, Response
from pydantic import Field
from starlette.concurrency import run_in_threadpool

from luthier.errors import InvalidInputError, NotFoundError
from luthier.server.api.models import ERRORS, LARGEST_NUMBER, Problem, RequestModel, ResponseModel, Short, example
from luthier.server.authentication import AccessError, ForbiddenError, Principal
from luthier.server.context import (
    Context,
    Server,
    Viewer,
    address_of,
    check_csrf,
    clear_session,
    current_user,
    device_in,
    set_device,
    set_session,
)
from luthier.server.login_limits import TooManyError
from luthier.store.server_store import Credential, Entry, Role

router = APIRouter(tags=["session"], responses=ERRORS)

_LONGEST_SHOWN = 64  # characters of a name from a failed login
_DAY_S = 24 * 3600.0
_TOO_MANY: dict[int | str, dict[str, object]] = {429: {"model": Problem, "description": "Too many wrong passwords."}}


class Login(RequestModel):
    """Name and password."""

    model_config = example({"name": "ada", "password": "correct horse battery"})

    name: Annotated[str, Field(max_length=200)]
    password: Annotated[str, Field(max_length=1000)]


class Me(ResponseModel):
    """The current user."""

    model_config = example({"name": "ada", "role": "user", "csrf": None})

    name: str
    role: Role
    csrf: str | None
    """The value that browsers send as X-Luthier-CSRF with every change; null for tokens, which do not need it."""


class LoginResponse(ResponseModel):
    """The user who has logged in."""

    model_config = example({"user": {"name": "ada", "role": "user", "csrf": "f1e2"}})

    user: Me


class InvitationToken(RequestModel):
    """An invitation."""

    model_config = example({"token": "q3vJ..."})

    token: Annotated[str, Field(max_length=200)]
    """The text after `token=` in the link."""


class NewToken(RequestModel):
    """A token for programs."""

    model_config = example({"label": "nightly", "days": 90})

    label: Annotated[Short, Field(min_length=1)]
    """What it is for."""
    days: Annotated[int, Field(ge=1, le=3650)] | None = None
    """How many days it is valid; unlimited by default."""


class Token(ResponseModel):
    """A token without its secret."""

    model_config = example({"id": 3, "label": "nightly", "created_at": 1.7e9, "expires_at": None, "used_at": None})

    id: int
    label: str
    created_at: float
    expires_at: float | None
    used_at: float | None


class IssuedToken(Token):
    """A new token."""

    model_config = example(
        {
            "token": "q3vJ...",
            "id": 3,
            "label": "nightly",
            "created_at": 1.7e9,
            "expires_at": None,
            "used_at": None,
        }
    )

    token: str
    """The secret; it is shown only once."""


class NewPassword(RequestModel):
    """A change of password."""

    model_config = example({"old": "correct horse battery", "new": "staple correct horse"})

    old: Annotated[str, Field(max_length=1000)] = ""
    """Not required within a day after a login by invitation."""
    new: Annotated[str, Field(max_length=1000)]


@router.post("/session", summary="Log in with name and password", responses=_TOO_MANY)
async def log_in(request: Request, response: Response, server: Server, given: Login) -> LoginResponse:
    """Sets the session cookie. The header `X-Luthier-CSRF` is required, with any value.

    After several wrong passwords the answer is 429, with the seconds to wait in `Retry-After`.
    """
    check_csrf(request, None)
    authenticator, address = server.authenticator, address_of(request)
    try:
        attempt = await run_in_threadpool(authenticator.begin_login, given.name, address, device_in(request))
        check = partial(authenticator.finish_login, attempt, given.name, given.password)
        secret = await server.passwords.run(check, is_known=attempt.is_known)
    except (AccessError, TooManyError):
        await run_in_threadpool(_note_failure, server, given.name, address)
        raise
    return await run_in_threadpool(_start_session, response, server, secret, "log in")


@router.post("/session/invitation", summary="Log in by invitation")
def accept_invitation(request: Request, response: Response, server: Server, given: InvitationToken) -> LoginResponse:
    """Sets the session cookie, as a login does. An invitation works once. An older session of the browser ends.

    The header `X-Luthier-CSRF` is required, with any value; in a browser with a session, with the value of the session.
    """
    earlier = current_user(request)
    check_csrf(request, None if earlier is None else earlier.csrf)
    secret = server.authenticator.enter(given.token)
    if secret is None:
        raise ForbiddenError("this link is not valid: it was used before, has expired or is incomplete")
    if earlier is not None and earlier.csrf is not None:
        server.store.accounts.revoke(earlier.credential_id)
    return _start_session(response, server, secret, "enter by invitation")


@router.delete("/session", summary="Log out", status_code=204)
def log_out(response: Response, server: Server, who: Viewer) -> None:
    """Ends the current session."""
    if who.csrf is None:
        raise InvalidInputError("a token is not a session; delete it with DELETE /me/tokens/ID")
    server.store.accounts.revoke(who.credential_id)
    clear_session(response, server)


@router.get("/me", summary="Get the current user")
def get_me(who: Viewer) -> Me:
    """Name, role, and the CSRF value for browsers."""
    return _me(who)


@router.get("/me/tokens", summary="List your tokens")
def list_tokens(server: Server, who: Viewer) -> list[Token]:
    """Without their secrets, which are not stored."""
    return [_token(one) for one in server.store.accounts.credentials(who.name) if one.kind == "token"]


@router.post("/me/tokens", summary="Create a token for programs", status_code=201)
def create_token(server: Server, who: Viewer, given: NewToken) -> IssuedToken:
    """A program that sends it as `Authorization: Bearer TOKEN` has the same rights as you."""
    lifetime_s = None if given.days is None else given.days * _DAY_S
    secret, kept = server.authenticator.issue_token(who.name, given.label, lifetime_s)
    note(server, who, "create token", f"token {kept.id}", given.label)
    return IssuedToken(token=secret, **_token(kept).model_dump())


@router.delete("/me/tokens/{token_id}", summary="Delete a token", status_code=204)
def delete_token(
    server: Server, who: Viewer, token_id: Annotated[int, Path(ge=1, le=LARGEST_NUMBER, examples=[3])]
) -> None:
    """The token stops working immediately."""
    mine = [one.id for one in server.store.accounts.credentials(who.name) if one.kind == "token"]
    if token_id not in mine:
        raise NotFoundError(f"you have no token {token_id}")
    server.store.accounts.revoke(token_id)
    note(server, who, "delete token", f"token {token_id}")


@router.put("/me/password", summary="Change your password", status_code=204, responses=_TOO_MANY)
async def change_password(request: Request, server: Server, who: Viewer, given: NewPassword) -> None:
    """Your other sessions end; your tokens stay valid. If the old password is wrong, the answer is 403."""
    change = partial(server.authenticator.change_password, who, given.old, given.new, address_of(request))
    await server.passwords.run(change)
    await run_in_threadpool(note, server, who, "change password", f"user {who.name}")


def note(server: Context, who: Principal, action: str, target: str, detail: str = "") -> None:
    """Write to the audit log."""
    server.store.accounts.note(Entry(0, server.operations.clock(), who.name, action, target, detail))


def _note_failure(server: Context, name: str, address: str) -> None:
    """Write a failed login to the audit log, within limits: anyone can cause it and choose the name."""
    left_out = server.authenticator.limits.may_note()
    if left_out is None:
        return
    typed = name[:_LONGEST_SHOWN] if name.isprintable() else ascii(name[:_LONGEST_SHOWN])[1:-1][:_LONGEST_SHOWN]
    more = f"; {left_out} more since the previous entry" if left_out else ""
    detail = f"from {address[:_LONGEST_SHOWN]}{more}"
    server.store.accounts.note(Entry(0, server.operations.clock(), "", "failed log-in", f"user {typed}", detail))


def _start_session(response: Response, server: Context, secret: str, action: str) -> LoginResponse:
    """Set the cookies of a new session, and return its user."""
    who = server.authenticator.recognise(secret, "session")
    if who is None:
        raise NotFoundError("this user was just removed")
    set_session(response, server, secret)
    if (device := server.authenticator.device_of(who.name)) is not None:
        set_device(response, server, device)
    note(server, who, action, f"user {who.name}")
    return LoginResponse(user=_me(who))


def _me(who: Principal) -> Me:
    return Me(name=who.name, role=who.role, csrf=who.csrf)


def _token(kept: Credential) -> Token:
    return Token.model_validate(asdict(kept))
