"""Coming in by way of an OpenID provider: a small real one, which the tests run themselves."""

import base64
import hashlib
import json
import threading
import time
from collections.abc import Iterator
from http.cookies import SimpleCookie
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote_plus, urlencode, urlsplit

import pytest
from joserfc import jwt
from joserfc.jwk import RSAKey
from tests.server.server_fixtures import PASSWORD, Reply, Running, Starter

from luthier.errors import InvalidInputError
from luthier.server.oidc import Provider, provider_in

CLIENT, SECRET = "luthier at home", "s:cret %"


class Party:
    """A provider that knows one person at a time, and whose word tests may spoil."""

    def __init__(self) -> None:
        self.key = RSAKey.generate_key(2048, {"kid": "1"})
        self.signs_with = self.key
        self.name: object = "ada"
        self.spoiled: dict[str, object] = {}
        self.codes: dict[str, dict[str, str]] = {}
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.issuer = f"http://127.0.0.1:{self.server.server_port}"

    def agree(self, location: str) -> tuple[str, str]:
        """What a person's browser brings back from the provider: a code and the state."""
        asked = {name: values[0] for name, values in parse_qs(urlsplit(location).query).items()}
        assert asked["response_type"] == "code"
        assert asked["client_id"] == CLIENT
        assert "openid" in asked["scope"].split()
        assert asked["code_challenge_method"] == "S256"
        code = f"code {len(self.codes)}"
        self.codes[code] = asked
        return code, asked["state"]

    def _token(self, form: dict[str, str], authorization: str) -> dict[str, str] | None:
        pair = base64.b64decode(authorization.removeprefix("Basic ")).decode().split(":")
        asked = self.codes.pop(form.get("code", ""), None)
        if [unquote_plus(word) for word in pair] != [CLIENT, SECRET] or asked is None:
            return None
        digest = hashlib.sha256(form["code_verifier"].encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        if challenge != asked["code_challenge"] or form["redirect_uri"] != asked["redirect_uri"]:
            return None
        now = int(time.time())
        claims = {
            "iss": self.issuer, "aud": CLIENT, "sub": "17", "iat": now, "exp": now + 300, "nonce": asked["nonce"],
            "preferred_username": self.name, **self.spoiled,
        }  # fmt: skip
        known = {name: value for name, value in claims.items() if value is not None}
        return {"id_token": jwt.encode({"alg": "RS256", "kid": "1"}, known, self.signs_with), "access_token": "x"}

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        party = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                answers: dict[str, object] = {
                    "/.well-known/openid-configuration": {
                        "issuer": party.issuer,
                        "authorization_endpoint": f"{party.issuer}/authorize",
                        "token_endpoint": f"{party.issuer}/token",
                        "jwks_uri": f"{party.issuer}/keys",
                    },
                    "/keys": {"keys": [party.key.as_dict(private=False)]},
                }
                self._answer(answers.get(self.path))

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"])).decode()
                form = {name: values[0] for name, values in parse_qs(body).items()}
                self._answer(party._token(form, self.headers["Authorization"]) if self.path == "/token" else None)

            def _answer(self, found: object) -> None:
                self.send_response(400 if found is None else 200)
                self.send_header("Content-Type", "application/json")
                self.end_headers()
                self.wfile.write(json.dumps(found).encode())

            def log_message(self, *_: object) -> None:
                pass

        return Handler


@pytest.fixture(scope="module")
def one_party() -> Iterator[Party]:
    party = Party()
    thread = threading.Thread(target=party.server.serve_forever)
    thread.start()
    yield party
    party.server.shutdown()
    thread.join()
    party.server.server_close()


@pytest.fixture
def party(one_party: Party) -> Party:
    """The provider, with nothing spoiled."""
    one_party.signs_with, one_party.name, one_party.spoiled = one_party.key, "ada", {}
    return one_party


@pytest.fixture
def open_house(start_server: Starter, party: Party) -> Running:
    """A server that takes the provider's word for the people it has accounts of."""
    server = start_server(provider=Provider(party.issuer, CLIENT, SECRET))
    server.context.authenticator.add_user("ada", "admin", None)
    return server


def leave(server: Running, following: str = "/") -> tuple[str, dict[str, str]]:
    """Go to the provider: where to, and the cookie that is taken along."""
    reply = server.ask("GET", f"/oidc/login?{urlencode({'next': following})}", token=None)
    assert reply.status == 303, reply.body
    cookie = next(iter(SimpleCookie(reply.headers["set-cookie"]).values()))
    assert (cookie["httponly"], cookie["samesite"], cookie["path"]) == (True, "lax", "/oidc")
    return reply.headers["location"], {"Cookie": f"{cookie.key}={cookie.value}"}


def callback(server: Running, code: str, state: str, cookie: dict[str, str]) -> Reply:
    return server.ask("GET", f"/oidc/callback?{urlencode({'code': code, 'state': state})}", token=None, headers=cookie)


def visit(server: Running, party: Party, following: str = "/") -> Reply:
    location, cookie = leave(server, following)
    return callback(server, *party.agree(location), cookie)


def test_whoever_is_known_gets_a_session(open_house: Running, party: Party) -> None:
    reply = visit(open_house, party, "/experiments/3")
    assert (reply.status, reply.headers["location"]) == (303, "/experiments/3")
    cookie = {"Cookie": _session_of(open_house, reply)}
    me = open_house.ask("GET", "/api/v1/me", token=None, headers=cookie)
    assert (me.status, me.json["name"]) == (200, "ada")  # type: ignore[index]  # it is a mapping


def test_nobody_is_sent_to_another_site(open_house: Running, party: Party) -> None:
    for target in ("https://evil.example", "//evil.example", "/\\evil.example"):
        assert visit(open_house, party, target).headers["location"] == "/"


def test_the_answer_to_another_browsers_question_is_refused(open_house: Running, party: Party) -> None:
    location, cookie = leave(open_house)
    code, _ = party.agree(location)
    _, other_state = party.agree(leave(open_house)[0])
    for state, headers in ((other_state, cookie), ("", cookie), (other_state, {}), ("x", {"Cookie": "x=y"})):
        reply = callback(open_house, code, state, headers)
        assert reply.status == 401
        assert b"log in again" in reply.body
        assert "set-cookie" not in reply.headers


def test_a_code_works_once(open_house: Running, party: Party) -> None:
    location, cookie = leave(open_house)
    code, state = party.agree(location)
    assert callback(open_house, code, state, cookie).status == 303
    assert callback(open_house, code, state, cookie).status == 401


@pytest.mark.parametrize(
    "spoiled",
    [
        {"nonce": "another"}, {"nonce": None}, {"aud": "another"}, {"aud": None}, {"iss": "http://another"},
        {"exp": 1000}, {"exp": None}, {"sub": None}, {"azp": "another"},
    ],
)  # fmt: skip
def test_a_word_that_is_not_meant_for_this_visit_is_refused(
    open_house: Running, party: Party, spoiled: dict[str, object]
) -> None:
    party.spoiled = spoiled
    assert visit(open_house, party).status == 401


def test_a_word_with_another_signature_is_refused(open_house: Running, party: Party) -> None:
    party.signs_with = RSAKey.generate_key(2048, {"kid": "1"})
    assert visit(open_house, party).status == 401


def test_people_without_an_account(open_house: Running, party: Party) -> None:
    for name in ("bob", "<script>", None, 5):
        party.name = name
        reply = visit(open_house, party)
        assert reply.status == 403
        assert b"<script>" not in reply.body
    assert [user.name for user in open_house.store.accounts.users()] == ["ada"]


def test_disabled_people_stay_out(open_house: Running, party: Party) -> None:
    open_house.context.authenticator.add_user("bob", "user", PASSWORD, disabled=True)
    party.name = "bob"
    assert visit(open_house, party).status == 403


def test_new_people_get_an_account_where_that_is_wanted(start_server: Starter, party: Party) -> None:
    server = start_server(provider=Provider(party.issuer, CLIENT, SECRET, new_users="viewer"))
    party.name = "bob"
    assert visit(server, party).status == 403  # the server needs an administrator first
    server.context.authenticator.add_user("ada", "admin", None)
    assert visit(server, party).status == 303
    assert server.store.accounts.user("bob").role == "viewer"
    party.name = "a/b"
    assert visit(server, party).status == 403


def test_a_provider_that_refuses_or_is_away(start_server: Starter, open_house: Running, party: Party) -> None:
    location, cookie = leave(open_house)
    _, state = party.agree(location)
    refused = open_house.ask("GET", f"/oidc/callback?error=access_denied&state={state}", token=None, headers=cookie)
    assert refused.status == 401
    assert b"access_denied" in refused.body
    away = start_server(provider=Provider(f"{party.issuer}/other", CLIENT, SECRET))
    assert away.ask("GET", "/oidc/login", token=None).status == 401
    assert open_house.ask("GET", "/login", token=None).status == 200


def test_settings_from_the_environment() -> None:
    assert provider_in({"HOME": "/"}) is None
    whole = {"LUTHIER_OIDC_ISSUER": "https://x", "LUTHIER_OIDC_CLIENT_ID": "c", "LUTHIER_OIDC_NEW_USERS": "user"}
    assert provider_in(whole) == Provider("https://x", "c", new_users="user")
    for wrong in (
        {"LUTHIER_OIDC_ISSUER": "https://x"},
        {**whole, "LUTHIER_OIDC_NEW_USERS": "admin"},
        {**whole, "LUTHIER_OIDC_SECRET": "x"},
        {**whole, "LUTHIER_OIDC_ISSUER": "file:///etc/passwd"},
    ):
        with pytest.raises(InvalidInputError, match=r"LUTHIER_OIDC|is not a valid address"):
            provider_in(wrong)


def _session_of(server: Running, reply: Reply) -> str:
    """The session among the cookies of an answer; several headers of one name are joined."""
    name = server.context.cookie
    start = reply.headers["set-cookie"].index(f"{name}=")
    return reply.headers["set-cookie"][start:].partition(";")[0]
