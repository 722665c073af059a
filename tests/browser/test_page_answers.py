"""What the server answers to browsers, looked at without one."""

import gzip
import re
from pathlib import Path
from urllib.parse import urljoin, urlsplit

from hypothesis import given
from hypothesis import strategies as st
from tests.online.server.online_samples import a_session
from tests.server.server_fixtures import Running

from luthier.server import pages
from luthier.server.authentication import LOCAL
from luthier.server.pages import safe_next

PAGES = ("/", "/online", "/new", "/components", "/new-component", "/compare", "/account", "/admin")
FOLDER = Path(pages.__file__).parent
EXPERIMENT_REST = """
definitions:
  knob: {parameters: {LEVEL: {env_var: true, type: int, default: 1}}}
components:
  knob: {LEVEL: {min: 1, max: 9}}
"""


def text_of(site: Running, path: str, headers: dict[str, str]) -> str:
    reply = site.ask("GET", path, token=None, headers=headers)
    assert reply.status == 200, path
    return reply.body.decode()


def test_who_is_not_logged_in_is_sent_to_the_door(site: Running) -> None:
    for path in (*PAGES, "/experiments/1", "/online/1", "/components/x", "/nowhere"):
        reply = site.ask("GET", path, token=None)
        assert reply.status == 303, path
        assert urlsplit(reply.headers["location"]).path == "/login"
        assert "set-cookie" not in reply.headers
    assert site.ask("GET", "/new?clone=3", token=None).headers["location"] == "/login?next=%2Fnew%3Fclone%3D3"


def test_every_page_names_only_own_files_and_runs_no_script_of_its_own(site: Running) -> None:
    number = site.launch()
    headers = site.session(LOCAL)
    for path in (*PAGES, f"/experiments/{number}", f"/online/{a_session(site.store).id}"):
        text = text_of(site, path, headers)
        assert not re.search(r"<script(?![^>]*\ssrc=)|\son\w+=|javascript:", text), path
        for address in re.findall(r'(?:src|href|data-plotly)="([^"#]+)', text):
            assert urlsplit(address).netloc == "", address
            if address.startswith("/static/"):
                assert site.ask("GET", address, token=None).status == 200, address


def test_scripts_import_what_is_there_and_nothing_else(site: Running) -> None:
    page = text_of(site, "/", site.session(LOCAL))
    (version,) = set(re.findall(r"/static/[0-9a-f]{16}/", page))
    names = [path.name for path in (FOLDER / "static").iterdir()]
    assert names
    for name in names:
        reply = site.ask("GET", version + name, token=None)
        assert reply.status == 200
        for imported in re.findall(r'from "(.+?)"', reply.body.decode()):
            assert site.ask("GET", urljoin(version, imported), token=None).status == 200, (name, imported)


def test_files_are_packed_and_kept_for_ever_under_their_version(site: Running) -> None:
    page = text_of(site, "/", site.session(LOCAL))
    for address in re.findall(r'(/static/[^"#]+)', page):
        plain = site.ask("GET", address, token=None)
        packed = site.ask("GET", address, token=None, headers={"Accept-Encoding": "gzip"})
        assert "immutable" in plain.headers["cache-control"]
        assert packed.headers["content-encoding"] == "gzip"
        assert gzip.decompress(packed.body) == plain.body
    assert site.ask("GET", "/static/0123456789abcdef/luthier.css", token=None).status == 404


def test_an_invitation_works_once(site: Running) -> None:
    invitation = site.context.authenticator.invite(LOCAL)
    for _ in range(3):  # to look at the link, as programs do that show a preview, does not use it up
        page = site.ask("GET", f"/enter?token={invitation}", token=None)
        assert page.status == 200
        assert b"luthier user invite local" in page.body
        assert "set-cookie" not in page.headers
    path, body = "/api/v1/session/invitation", {"token": invitation}
    assert site.ask("POST", path, body, token=None).status == 403  # as another site would send it
    first, second = (site.ask("POST", path, body, token=None, headers={"X-Luthier-CSRF": "none"}) for _ in "12")
    assert first.status == 200
    assert "HttpOnly" in first.headers["set-cookie"]
    assert second.status == 403
    assert b"this link is not valid" in second.body
    assert "set-cookie" not in second.headers


def test_an_invitation_replaces_a_session_only_if_its_user_says_so(site: Running) -> None:
    site.add_user("root", "admin")
    site.add_user("ada", "user")
    ada, link = site.session("ada"), f"/enter?token={site.context.authenticator.invite('root')}"
    page = text_of(site, link, ada)
    assert "You are logged in as <strong>ada</strong>" in page
    path, body = "/api/v1/session/invitation", {"token": link.partition("=")[2]}
    for csrf in ("none", ""):
        sent = {"Cookie": ada["Cookie"], "X-Luthier-CSRF": csrf}
        assert site.ask("POST", path, body, token=None, headers=sent).status == 403
    assert site.ask("GET", "/api/v1/me", token=None, headers=ada).status == 200
    reply = site.ask("POST", path, body, token=None, headers=ada)
    assert reply.status == 200
    assert b'"root"' in reply.body
    assert site.ask("GET", "/api/v1/me", token=None, headers=ada).status == 401


def test_names_are_text_on_pages_whatever_they_hold(site: Running) -> None:
    hostile = '"><script>alert(1)</script>{{ 7*7 }}'
    number = site.launch(f"experiment: {{name: {hostile!r}, script: echo}}\n" + EXPERIMENT_REST)
    text = text_of(site, f"/experiments/{number}", site.session(LOCAL))
    assert "<script>alert" not in text
    assert "{{ 7*7 }}" in text


def test_others_see_neither_an_experiment_nor_its_name(site: Running) -> None:
    number = site.launch("experiment: {name: secret plan, script: echo}\n" + EXPERIMENT_REST)
    site.add_user("ada", "admin")
    site.add_user("bob", "user")
    reply = site.ask("GET", f"/experiments/{number}", token=None, headers=site.session("bob"))
    assert reply.status == 404
    assert b"secret plan" not in reply.body


def test_a_page_that_takes_another_role_says_so(site: Running) -> None:
    site.add_user("ada", "admin")
    site.add_user("bob", "user")
    site.add_user("eve", "viewer")
    for path, name in (("/new", "eve"), ("/new-component", "eve"), ("/admin", "bob")):
        reply = site.ask("GET", path, token=None, headers=site.session(name))
        assert reply.status == 403, path
        assert b"this requires the role" in reply.body


def test_what_is_not_there_gets_a_page(site: Running) -> None:
    headers = site.session(LOCAL)
    names = [f"/experiments/{number}" for number in ("0", "-1", "99999999999999999999", "1e3", "x", "%00", "7")]
    for path in (*names, "/components/none", "/nowhere", "/experiments/1/more"):
        reply = site.ask("GET", path, token=None, headers=headers)
        assert reply.status == 404, path
        assert b"Page not found" in reply.body


def test_after_logging_in_one_stays_on_this_server() -> None:
    assert safe_next("/experiments/3?x=1#trials") == "/experiments/3?x=1#trials"
    for elsewhere in ("//host", "/\\host", "http://host", "/\t/host", "/\n/host", "host", "", "\\\\host"):
        assert safe_next(elsewhere) == "/"


@given(st.text(alphabet=st.sampled_from("/\\:?#@.ab \t\r\n\x00\x7f\u2028"), max_size=12))
def test_no_text_leads_to_another_server(text: str) -> None:
    stripped = re.sub(r"[\t\r\n]", "", safe_next(text)).replace("\\", "/")  # as browsers read addresses
    target = urlsplit(urljoin("http://here/login", stripped))
    assert (target.scheme, target.netloc) == ("http", "here")
