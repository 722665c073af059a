"""The web pages: HTML templates that scripts fill through the API."""

from functools import cache
from typing import Annotated
from urllib.parse import quote

from fastapi import APIRouter, Depends, FastAPI, Query, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse
from jinja2 import ChoiceLoader, Environment, FileSystemLoader, PackageLoader, StrictUndefined
from markupsafe import Markup

from luthier.errors import NotFoundError
from luthier.report.export import offered_formats
from luthier.server.authentication import LOCAL, ForbiddenError, Principal
from luthier.server.context import Server, context_of, current_user
from luthier.server.parts import parts
from luthier.server.static_files import StaticFile, own_files, plotly
from luthier.store.server_store import Role

_FOR_EVER = "public, max-age=31536000, immutable"
_LARGEST_NUMBER = 2**31 - 1
MaybeUser = Annotated[Principal | None, Depends(current_user)]
_router = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)


def add_pages(app: FastAPI) -> None:
    """Add the pages and their static files to an application."""
    for part in parts().values():  # before the last route of the pages below, which accepts every address
        app.include_router(part.pages)
    app.include_router(_router)


def safe_next(address: str) -> str:
    r"""The page to show after login: `address` if it is a page of this server, else the start page.

    Browsers read `//host` and `/\host` as other servers, and ignore control characters.
    """
    own = address.startswith("/") and not address.startswith("//")
    return address if own and "\\" not in address and address.isprintable() else "/"


@_router.get("/")
def experiments(request: Request, who: MaybeUser) -> Response:
    """All experiments."""
    return page(request, who, "experiments", "Experiments", section="/")


@_router.get("/experiments/{number}")
def experiment(request: Request, who: MaybeUser, server: Server, number: str) -> Response:
    """One experiment."""
    if who is None:
        return redirect_to_login(request)
    try:
        record = server.operations.visible(who, number_in(number))
    except NotFoundError:
        return not_found_page(request, who, f"Experiment {number} does not exist, or it is not shared with you.")
    return page(request, who, "experiment", record.name, section="/", number=record.id, formats=offered_formats())


@_router.get("/new")
def new(request: Request, who: MaybeUser) -> Response:
    """Describe and launch an experiment."""
    return page(request, who, "new", "New experiment", section="/", role="user")


@_router.get("/components")
def components(request: Request, who: MaybeUser) -> Response:
    """All components."""
    return page(request, who, "components", "Components", section="/components")


@_router.get("/new-component")
def new_component(request: Request, who: MaybeUser) -> Response:
    """Register a component."""
    return page(request, who, "component", "New component", section="/components", role="user", component="")


@_router.get("/components/{name}")
def component(request: Request, who: MaybeUser, server: Server, name: str) -> Response:
    """Show and change a component."""
    if name not in server.library.names():
        return not_found_page(request, who, f"Component {name} is not registered.")
    return page(request, who, "component", name, section="/components", component=name)


@_router.get("/compare")
def compare(request: Request, who: MaybeUser) -> Response:
    """Several experiments side by side."""
    return page(request, who, "compare", "Compare", section="/compare")


@_router.get("/account")
def account(request: Request, who: MaybeUser) -> Response:
    """Tokens and password of the user."""
    authenticator = context_of(request).authenticator
    return page(
        request,
        who,
        "account",
        "Account",
        has_accounts=authenticator.has_accounts,
        needs_old=who is not None and authenticator.needs_old_password(who),
    )


@_router.get("/admin")
def admin(request: Request, who: MaybeUser) -> Response:
    """Users and the audit log."""
    return page(
        request, who, "admin", "Administration", "admin", has_accounts=context_of(request).authenticator.has_accounts
    )


@_router.get("/login")
def login(
    request: Request, who: MaybeUser, server: Server, following: Annotated[str, Query(alias="next")] = "/"
) -> Response:
    """The page to log in."""
    if who is not None:
        return RedirectResponse(safe_next(following), 303)
    has_oidc = any(getattr(route, "path", "") == "/oidc/login" for route in request.app.routes)
    return _shown(
        "login",
        "Log in",
        None,
        script="login",
        next=safe_next(following),
        has_accounts=server.authenticator.has_accounts,
        oidc=has_oidc,
    )


@_router.get("/enter")
def enter(who: MaybeUser, server: Server, token: str = "") -> Response:
    """Log in by invitation, after a click: programs that open links in messages must not use the invitation up."""
    name = "NAME" if server.authenticator.has_accounts else LOCAL
    return _shown("enter", "Open luthier", who, 200, script="enter", token=token, command=f"luthier user invite {name}")


@_router.get("/static/{version}/{name}")
def static_file(request: Request, version: str, name: str) -> Response:
    """A script, style sheet or icon; a file never changes within one version."""
    current, files = own_files()
    found = files.get(name) if version == current else None
    if found is None:
        raise NotFoundError(f"no file {name}")
    return _file(request, found)


@_router.get("/static/{name}")
def library_file(request: Request, name: str) -> Response:
    """plotly.js, which draws the figures."""
    own_name, found = plotly()
    if name != own_name:
        raise NotFoundError(f"no file {name}")
    return _file(request, found)


@_router.get("/favicon.ico")
def favicon() -> Response:
    """The icon that browsers request for pages without one, such as /docs."""
    return RedirectResponse(f"/static/{own_files()[0]}/logo.svg")


@_router.get("/{path:path}")
def anything_else(request: Request, who: MaybeUser) -> Response:
    """An address that does not exist."""
    return not_found_page(request, who, "This page does not exist.")


def page(
    request: Request, who: Principal | None, name: str, title: str, role: Role = "viewer", **values: object
) -> Response:
    """A page for a logged-in user; others are sent to the login page."""
    if who is None:
        return redirect_to_login(request)
    try:
        who.require(role)
    except ForbiddenError as error:
        return _shown("message", "Not allowed", who, 403, text=f"{error}. Ask an administrator to change it.")
    return _shown(name, title, who, 200, script=name, **values)


def redirect_to_login(request: Request) -> Response:
    """The login page, which leads back to the requested one."""
    target = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    return RedirectResponse("/login" if target == "/" else f"/login?next={quote(target, safe='')}", 303)


def not_found_page(request: Request, who: Principal | None, text: str) -> Response:
    """A page that says what does not exist."""
    return redirect_to_login(request) if who is None else _shown("message", "Page not found", who, 404, text=text)


def _shown(name: str, title: str, who: Principal | None, status: int = 200, **values: object) -> Response:
    version, _ = own_files()
    values = {"section": "", "script": "", "command": "", **values}
    text = (
        _templates()
        .get_template(f"{name}.html")
        .render(
            title=title,
            who=who,
            may_launch=who is not None and who.role != "viewer",
            static=f"/static/{version}",
            plotly=f"/static/{plotly()[0]}",
            **values,
        )
    )
    return HTMLResponse(text, status, {"Cache-Control": "no-store"})


@cache
def _templates() -> Environment:
    wings = [FileSystemLoader(part.folder / "templates") for part in parts().values()]
    loader = ChoiceLoader([PackageLoader(__package__), *wings])
    templates = Environment(loader=loader, autoescape=True, undefined=StrictUndefined)
    templates.globals["icon"] = _icon
    own = [("/", "Experiments")], [("/components", "Components"), ("/compare", "Compare")]
    templates.globals["sections"] = [*own[0], *((part.address, part.label) for part in parts().values()), *own[1]]
    return templates


def _icon(name: str) -> Markup:
    return Markup('<svg class="icon" aria-hidden="true"><use href="/static/{}/icons.svg#{}"/></svg>').format(
        own_files()[0], name
    )


def _file(request: Request, found: StaticFile) -> Response:
    headers = {"Cache-Control": _FOR_EVER, "Vary": "Accept-Encoding"}
    if "gzip" not in request.headers.get("accept-encoding", ""):
        return Response(found.contents, headers=headers, media_type=found.media_type)
    return Response(found.packed, headers={**headers, "Content-Encoding": "gzip"}, media_type=found.media_type)


def number_in(text: str) -> int:
    """The number of an experiment or session in a URL; 0, which is never used, if it is invalid."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 11 and int(text) <= _LARGEST_NUMBER else 0
