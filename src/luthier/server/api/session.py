"""Coming in and going out, and what somebody has of their own: tokens, a password."""

from functools import partial
from typing import Annotated

from fastapi import APIRouter, Path, Request, Response
from pydantic import ConfigDict, Field
from starlette.concurrency import run_in_threadpool

from luthier.errors import InvalidInputError, NotFoundError
from luthier.server.access import AccessError, ForbiddenError, Principal
from luthier.server.api.models import ERRORS, LARGEST_NUMBER, Given, Problem, Short, Told
from luthier.server.context import (
    Context,
    Server,
    Viewer,
    address_of,
    clear_session,
    device_in,
    require_own_page,
    set_device,
    set_session,
    visitor,
)
from luthier.server.login_limits import TooManyError
from luthier.store.server_store import Entry, Pass, Role

router = APIRouter(tags=["session"], responses=ERRORS)

_LONGEST_SHOWN = 64  # of what strangers typed
_DAY_S = 24 * 3600.0
_TOO_MANY: dict[int | str, dict[str, object]] = {429: {"model": Problem, "description": "Too many wrong passwords."}}


class Login(Given):
    """Name and password."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"name": "ada", "password": "correct horse battery"}]})

    name: Annotated[str, Field(max_length=200)]
    password: Annotated[str, Field(max_length=1000)]


class Me(Told):
    """Whoever is asking."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"name": "ada", "role": "user", "csrf": None}]})

    name: str
    role: Role
    csrf: str | None
    """What a browser sends as X-Luthier-CSRF with every change; null for tokens, which need none."""


class Welcome(Told):
    """Who has come in."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"user": {"name": "ada", "role": "user", "csrf": "f1e2"}}]}
    )

    user: Me


class GivenInvitation(Given):
    """An invitation."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"token": "q3vJ..."}]})

    token: Annotated[str, Field(max_length=200)]
    """What stands after `token=` in the link."""


class NewToken(Given):
    """A token for programs."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"label": "nightly", "days": 90}]})

    label: Annotated[Short, Field(min_length=1)]
    """What it is for."""
    days: Annotated[int, Field(ge=1, le=3650)] | None = None
    """How long it works; for ever if this is left out."""


class Token(Told):
    """A token as it is kept, without its secret."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"id": 3, "label": "nightly", "created_at": 1.7e9, "expires_at": None, "used_at": None}]
        }
    )

    id: int
    label: str
    created_at: float
    expires_at: float | None
    used_at: float | None


class IssuedToken(Token):
    """A new token."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "token": "q3vJ...",
                    "id": 3,
                    "label": "nightly",
                    "created_at": 1.7e9,
                    "expires_at": None,
                    "used_at": None,
                }
            ]
        }
    )

    token: str
    """The secret; it is shown this once."""


class NewPassword(Given):
    """A change of password."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"old": "correct horse battery", "new": "staple correct horse"}]}
    )

    old: Annotated[str, Field(max_length=1000)]
    new: Annotated[str, Field(max_length=1000)]


@router.post("/session", summary="Log in with name and password", responses=_TOO_MANY)
async def log_in(request: Request, response: Response, server: Server, given: Login) -> Welcome:
    """Sets the cookie of a session. The header `X-Luthier-CSRF` must be there, with any text.

    After some wrong passwords the answer is 429, and `Retry-After` says for how many seconds.
    """
    require_own_page(request, None)
    door, address = server.door, address_of(request)
    try:
        attempt = await run_in_threadpool(door.begin_login, given.name, address, device_in(request))
        check = partial(door.finish_login, attempt, given.name, given.password)
        secret = await server.passwords.run(check, is_known=attempt.is_known)
    except (AccessError, TooManyError):
        await run_in_threadpool(_note_failure, server, given.name, address)
        raise
    return await run_in_threadpool(_welcomed, response, server, secret, "log in")


@router.post("/session/invitation", summary="Come in by invitation")
def accept_invitation(request: Request, response: Response, server: Server, given: GivenInvitation) -> Welcome:
    """Sets the cookie of a session, as logging in does; an invitation works once. Another session of the browser ends.

    The header `X-Luthier-CSRF` must be there, with any text; in a browser that has a session, with its own.
    """
    earlier = visitor(request)
    require_own_page(request, None if earlier is None else earlier.csrf)
    secret = server.door.enter(given.token)
    if secret is None:
        raise ForbiddenError("this link no longer works: it was used before, is too old or is not complete")
    if earlier is not None and earlier.csrf is not None:
        server.books.accounts.revoke(earlier.pass_id)
    return _welcomed(response, server, secret, "enter by invitation")


@router.delete("/session", summary="Log out", status_code=204)
def log_out(response: Response, server: Server, who: Viewer) -> None:
    """Ends the session that the request came with."""
    if who.csrf is None:
        raise InvalidInputError("a token is no session; forget it with DELETE /me/tokens/ID")
    server.books.accounts.revoke(who.pass_id)
    clear_session(response, server)


@router.get("/me", summary="Who is asking")
def get_me(who: Viewer) -> Me:
    """Name and role, and what a browser sends along with changes."""
    return _me(who)


@router.get("/me/tokens", summary="Your tokens")
def list_tokens(server: Server, who: Viewer) -> list[Token]:
    """Without their secrets, which nobody keeps."""
    return [_token(one) for one in server.books.accounts.passes(who.name) if one.kind == "token"]


@router.post("/me/tokens", summary="Make a token for programs", status_code=201)
def create_token(server: Server, who: Viewer, given: NewToken) -> IssuedToken:
    """A program that sends it as `Authorization: Bearer TOKEN` may do all that you may."""
    lifetime_s = None if given.days is None else given.days * _DAY_S
    secret, kept = server.door.issue_token(who.name, given.label, lifetime_s)
    note(server, who, "make token", f"token {kept.id}", given.label)
    return IssuedToken(token=secret, **_token(kept).model_dump())


@router.delete("/me/tokens/{token_id}", summary="Forget a token", status_code=204)
def delete_token(
    server: Server, who: Viewer, token_id: Annotated[int, Path(ge=1, le=LARGEST_NUMBER, examples=[3])]
) -> None:
    """It no longer works from then on."""
    mine = [one.id for one in server.books.accounts.passes(who.name) if one.kind == "token"]
    if token_id not in mine:
        raise NotFoundError(f"you have no token {token_id}")
    server.books.accounts.revoke(token_id)
    note(server, who, "forget token", f"token {token_id}")


@router.put("/me/password", summary="Change your password", status_code=204, responses=_TOO_MANY)
async def change_password(request: Request, server: Server, who: Viewer, given: NewPassword) -> None:
    """Your other sessions end; tokens stay."""
    change = partial(server.door.change_password, who, given.old, given.new, address_of(request))
    await server.passwords.run(change)
    await run_in_threadpool(note, server, who, "change password", f"user {who.name}")


def note(server: Context, who: Principal, action: str, target: str, detail: str = "") -> None:
    """Write to the audit log."""
    server.books.accounts.note(Entry(0, server.operations.clock(), who.name, action, target, detail))


def _note_failure(server: Context, name: str, address: str) -> None:
    """Write a failed log-in to the audit log, within bounds: strangers cause it, and choose the name."""
    left_out = server.door.limits.may_note()
    if left_out is None:
        return
    typed = name[:_LONGEST_SHOWN] if name.isprintable() else ascii(name[:_LONGEST_SHOWN])[1:-1][:_LONGEST_SHOWN]
    more = f"; {left_out} more since the entry before" if left_out else ""
    detail = f"from {address[:_LONGEST_SHOWN]}{more}"
    server.books.accounts.note(Entry(0, server.operations.clock(), "", "failed log-in", f"user {typed}", detail))


def _welcomed(response: Response, server: Context, secret: str, action: str) -> Welcome:
    """Give a browser its new session."""
    who = server.door.recognise(secret, "session")
    if who is None:
        raise NotFoundError("this user was removed a moment ago")
    set_session(response, server, secret)
    if (device := server.door.device_of(who.name)) is not None:
        set_device(response, server, device)
    note(server, who, action, f"user {who.name}")
    return Welcome(user=_me(who))


def _me(who: Principal) -> Me:
    return Me(name=who.name, role=who.role, csrf=who.csrf)


def _token(kept: Pass) -> Token:
    return Token(
        id=kept.id,
        label=kept.label,
        created_at=kept.created_at,
        expires_at=kept.expires_at,
        used_at=kept.used_at,
    )
