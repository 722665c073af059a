"""The page of submitted jobs, and what jobs at submission add to the server."""

from pathlib import Path

from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse

from luthier.server.pages import MaybeUser, page
from luthier.server.parts import ServerPart
from luthier.submission.server import api, gains_api
from luthier.submission.server.state import SubmissionState, serving

router = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)


@router.get("/submissions")
def submissions(request: Request, who: MaybeUser) -> Response:
    """Submitted jobs: what each got, and what that saved."""
    return page(request, who, "submissions", "Submitted jobs", section="/submissions")


PART = ServerPart(
    (api.router, gains_api.router),
    router,
    "/submissions",
    "Jobs",
    Path(__file__).parent,
    state=SubmissionState,
    serving=serving,
)
