"""Interactive pages for the API (Swagger UI), served from an installed package without any other host."""

from functools import cache
from importlib.resources import files

from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse

from luthier.errors import NotFoundError
from luthier.server.context import CSRF_HEADER, current_user

router = APIRouter(include_in_schema=False)

_PAGE = """<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>luthier: API</title><link rel="stylesheet" href="/docs/swagger-ui.css"></head>
<body>
<div id="api"></div><script src="/docs/swagger-ui-bundle.js"></script><script src="/docs/start.js"></script>
</body>
</html>
"""
_START = f"""fetch("/api/v1/me").then((answer) => answer.json()).then((me) => SwaggerUIBundle({{
  url: "/api/v1/openapi.json",
  dom_id: "#api",
  requestInterceptor: (request) => {{
    if (me.csrf) request.headers["{CSRF_HEADER}"] = me.csrf;
    return request;
  }},
}}));
"""
_MEDIA = {"css": "text/css", "js": "text/javascript"}


@router.get("/docs")
def docs(request: Request) -> Response:
    """All operations, to read and to try."""
    if current_user(request) is None:
        return RedirectResponse("/login?next=/docs", 303)
    return HTMLResponse(_PAGE)


@router.get("/docs/{name}")
def docs_file(name: str) -> Response:
    """The scripts and styles of the page."""
    if name == "start.js":
        return Response(_START, media_type=_MEDIA["js"])
    if name not in ("swagger-ui.css", "swagger-ui-bundle.js"):
        raise NotFoundError(f"no file {name}")
    return Response(
        _installed(name), headers={"Cache-Control": "max-age=3600"}, media_type=_MEDIA[name.rpartition(".")[2]]
    )


@cache
def _installed(name: str) -> bytes:
    return files("fastapi_offline").joinpath("static", name).read_bytes()
