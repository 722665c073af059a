"""Who may come in, and what they did: for administrators."""

from typing import Annotated

from fastapi import APIRouter, Path, Request
from pydantic import ConfigDict, Field

from luthier.server.access import LOCAL
from luthier.server.api.models import ERRORS, Before, Given, Limit, Page, Told
from luthier.server.api.session import note
from luthier.server.context import Admin, Server
from luthier.store.server_store import Role, User

router = APIRouter(tags=["users"], responses=ERRORS)

Name = Annotated[str, Path(max_length=200, description="The name of the user.", examples=["ada"])]


class Account(Told):
    """A user."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"name": "ada", "role": "user", "created_at": 1.7e9, "disabled": False, "has_password": True}]
        }
    )

    name: str
    role: Role
    created_at: float
    disabled: bool
    has_password: bool


class ChangedAccount(Given):
    """What is to be true of a user; what is left out stays as it is."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"role": "user", "password": "correct horse battery"}]})

    role: Role
    password: Annotated[str, Field(max_length=1000)] | None = None
    disabled: bool | None = None


class Invitation(Told):
    """A link that lets a user in once, within a day."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"url": "http://127.0.0.1:8642/enter?token=q3vJ..."}]})

    url: str


class AuditEntry(Told):
    """Who did what to what, and when."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"id": 9, "at": 1.7e9, "user": "ada", "action": "launch", "target": "experiment 1", "detail": "dd"}
            ]
        }
    )

    id: int
    at: float
    user: str
    action: str
    target: str
    detail: str


@router.get("/users", summary="Every account")
def list_users(server: Server, _: Admin) -> list[Account]:
    """By name; none means that the server is for one person."""
    return [_account(user) for user in server.books.accounts.users()]


@router.put("/users/{name}", summary="Add or change an account")
def put_user(server: Server, who: Admin, name: Name, given: ChangedAccount) -> Account:
    """A new password ends all sessions of the user. As soon as there is one account, everybody needs one."""
    user = server.door.add_user(name, given.role, given.password, disabled=given.disabled)
    note(server, who, "change user", f"user {name}", f"{user.role}{', disabled' if user.disabled else ''}")
    return _account(user)


@router.delete("/users/{name}", summary="Forget an account", status_code=204)
def delete_user(server: Server, who: Admin, name: Name) -> None:
    """What the user launched stays; a new account of the same name does not get it."""
    server.door.remove_user(name)
    note(server, who, "remove user", f"user {name}")


@router.post("/users/{name}/invitation", summary="Make a link that lets a user in", status_code=201)
def invite_user(request: Request, server: Server, who: Admin, name: Name) -> Invitation:
    """It works once, within a day."""
    if name != LOCAL or server.door.has_accounts:
        server.books.accounts.user(name)  # says so if there is none
    note(server, who, "invite", f"user {name}")
    scheme = "https" if server.is_https else "http"
    return Invitation(url=f"{scheme}://{request.url.netloc}/enter?token={server.door.invite(name)}")


@router.get("/audit", summary="Who did what")
def list_audit(server: Server, _: Admin, before: Before = None, limit: Limit = 50) -> Page[AuditEntry]:
    """The newest lines first."""
    entries = server.books.accounts.entries(before=before, limit=limit)
    items = [
        AuditEntry(
            id=entry.id,
            at=entry.at,
            user=entry.user,
            action=entry.action,
            target=entry.target,
            detail=entry.detail,
        )
        for entry in entries
    ]
    return Page(items=items, next=items[-1].id if len(items) == limit else None)


def _account(user: User) -> Account:
    return Account(
        name=user.name,
        role=user.role,
        created_at=user.created_at,
        disabled=user.disabled,
        has_password=user.password_hash is not None,
    )
