"""HEAD works where GET does, on pages, their files and the health: same status and headers, no body."""

import http.client
from urllib.parse import urlsplit

import pytest
from tests.server.server_fixtures import Running

from luthier.server.static_files import own_files

PAGES = ["/", "/login", "/new", "/experiments/1", "/no/such/page", "/favicon.ico", "/api/v1/health", "STATIC"]
CHANGING = {"date", "set-cookie"}


@pytest.mark.parametrize("path", PAGES)
@pytest.mark.parametrize("packed", ["identity", "gzip"])
def test_head_is_get_without_the_body(path: str, packed: str, played: Running) -> None:
    path = f"/static/{own_files()[0]}/live.js" if path == "STATIC" else path
    connection = http.client.HTTPConnection(urlsplit(played.url).netloc, timeout=60)
    found = []
    for method in ("HEAD", "GET", "HEAD"):  # over one connection: a body that was sent would be read as the next answer
        headers = {"Accept-Encoding": packed, "Authorization": f"Bearer {played.token}"}
        connection.request(method, path, headers=headers)
        answer = connection.getresponse()
        said = {name.lower(): value for name, value in answer.getheaders() if name.lower() not in CHANGING}
        found.append((answer.status, said, len(answer.read())))
    connection.close()
    head, get, again = found
    assert head == again == (*get[:2], 0)
    assert get[0] != 405


def test_other_routes_refuse_head(played: Running) -> None:
    assert played.ask("HEAD", "/api/v1/experiments").status == 405
    described = played.ask("GET", "/api/v1/openapi.json").json
    assert isinstance(described, dict)
    assert not any("head" in operations for operations in described["paths"].values())
