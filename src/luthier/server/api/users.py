"""User accounts and the audit log, for administrators."""

from dataclasses import asdict
from typing import Annotated

from fastapi import APIRouter, Path, Request
from pydantic import Field

from luthier.server.api.models import ERRORS, Before, Limit, Page, RequestModel, ResponseModel, example
from luthier.server.api.session import note
from luthier.server.authentication import LOCAL
from luthier.server.context import Admin, Server
from luthier.store.server_store import Role, User

router = APIRouter(tags=["users"], responses=ERRORS)

Name = Annotated[str, Path(max_length=200, description="The name of the user.", examples=["ada"])]


class Account(ResponseModel):
    """A user."""

    model_config = example(
        {"name": "ada", "role": "user", "created_at": 1.7e9, "disabled": False, "has_password": True}
    )

    name: str
    role: Role
    created_at: float
    disabled: bool
    has_password: bool


class ChangedAccount(RequestModel):
    """Changes of a user; fields that are left out keep their value."""

    model_config = example({"role": "user", "password": "correct horse battery"})

    role: Role
    password: Annotated[str, Field(max_length=1000)] | None = None
    disabled: bool | None = None


class Invitation(ResponseModel):
    """A link with which a user can log in once, within a day."""

    model_config = example({"url": "http://127.0.0.1:8642/enter?token=q3vJ..."})

    url: str


class AuditEntry(ResponseModel):
    """One line of the audit log."""

    model_config = example(
        {"id": 9, "at": 1.7e9, "user": "ada", "action": "launch", "target": "experiment 1", "detail": "dd"}
    )

    id: int
    at: float
    user: str
    action: str
    target: str
    detail: str


@router.get("/users", summary="List the accounts")
def list_users(server: Server, _: Admin) -> list[Account]:
    """Sorted by name. An empty list means that the server is for one person."""
    return [_account(user) for user in server.store.accounts.users()]


@router.put("/users/{name}", summary="Add or change an account")
def put_user(server: Server, who: Admin, name: Name, given: ChangedAccount) -> Account:
    """A new password ends all sessions of the user. Once the first account exists, every user needs one."""
    user = server.authenticator.add_user(name, given.role, given.password, disabled=given.disabled)
    note(server, who, "change user", f"user {name}", f"{user.role}{', disabled' if user.disabled else ''}")
    return _account(user)


@router.delete("/users/{name}", summary="Delete an account", status_code=204)
def delete_user(server: Server, who: Admin, name: Name) -> None:
    """The experiments of the user remain; a new account with the same name does not get them."""
    server.authenticator.remove_user(name)
    note(server, who, "remove user", f"user {name}")


@router.post("/users/{name}/invitation", summary="Create an invitation link for a user", status_code=201)
def invite_user(request: Request, server: Server, who: Admin, name: Name) -> Invitation:
    """It works once, within a day."""
    if name != LOCAL or server.authenticator.has_accounts:
        server.store.accounts.user(name)  # raises if the user does not exist
    note(server, who, "invite", f"user {name}")
    scheme = "https" if server.is_https else "http"
    return Invitation(url=f"{scheme}://{request.url.netloc}/enter?token={server.authenticator.invite(name)}")


@router.get("/audit", summary="Get the audit log")
def list_audit(server: Server, _: Admin, before: Before = None, limit: Limit = 50) -> Page[AuditEntry]:
    """Newest first."""
    entries = server.store.accounts.entries(before=before, limit=limit)
    items = [AuditEntry.model_validate(asdict(entry)) for entry in entries]
    return Page(items=items, next=items[-1].id if len(items) == limit else None)


def _account(user: User) -> Account:
    return Account.model_validate({**asdict(user), "has_password": user.password_hash is not None})
