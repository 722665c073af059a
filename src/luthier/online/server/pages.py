"""The pages of on-line sessions."""

from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse

from luthier.errors import NotFoundError
from luthier.online.server.state import online_of
from luthier.server.context import Server
from luthier.server.pages import MaybeUser, not_found_page, number_in, page, redirect_to_login

router = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)


@router.get("/online")
def online(request: Request, who: MaybeUser, server: Server) -> Response:
    """All on-line sessions."""
    addresses = online_of(server).addresses
    return page(request, who, "online", "On-line sessions", section="/online", addresses=addresses)


@router.get("/online/{number}")
def online_session(request: Request, who: MaybeUser, server: Server, number: str) -> Response:
    """One on-line session."""
    if who is None:
        return redirect_to_login(request)
    try:
        record = online_of(server).operations.visible(who, number_in(number))
    except NotFoundError:
        return not_found_page(request, who, f"On-line session {number} does not exist, or it is not shared with you.")
    return page(request, who, "online-session", record.name, section="/online", number=record.id)
