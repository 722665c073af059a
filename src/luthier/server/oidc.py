"""Coming in by way of another party that knows who people are: OpenID Connect, with the authorization code flow.

Follows OpenID Connect Core 1.0 (section 3.1) with PKCE (RFC 7636).
"""

import base64
import hashlib
import hmac
import http.client
import json
import secrets
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from typing import cast
from urllib.parse import quote_plus, urlencode, urlsplit

from fastapi import FastAPI, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse

from luthier.errors import InvalidInputError, LuthierError, NotFoundError, UnavailableError
from luthier.server.access import AccessError, ForbiddenError
from luthier.server.context import Context, Server, set_session, visitor
from luthier.server.pages import safe_next
from luthier.server.store_errors import STORE_AWAY, is_about_the_store
from luthier.store.server_store import Role

_ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512"]
_COOKIE_S = 600
_TIMEOUT_S = 15.0
_MOST_BYTES = 1_000_000
_LEEWAY_S = 60
_VARIABLES = "LUTHIER_OIDC_"


@dataclass(frozen=True, slots=True)
class Provider:
    """Who vouches for people.

    `claim` is what holds a person's name here; it should be one that people cannot change themselves. Somebody without
    an account gets one with the role `new_users`, or is refused if that is None.
    """

    issuer: str
    client_id: str
    client_secret: str = ""
    claim: str = "preferred_username"
    new_users: Role | None = None


def provider_in(environment: Mapping[str, str]) -> Provider | None:
    """The provider that the variables LUTHIER_OIDC_ISSUER, _CLIENT_ID and so on name; None if they name none."""
    given = {
        name.removeprefix(_VARIABLES): value
        for name, value in environment.items()
        if name.startswith(_VARIABLES) and value
    }
    if not given:
        return None
    known = ("ISSUER", "CLIENT_ID", "CLIENT_SECRET", "CLAIM", "NEW_USERS")
    if unknown := sorted(set(given) - set(known)):
        raise InvalidInputError(f"{_VARIABLES}{unknown[0]} is unknown; there are {_VARIABLES}{', '.join(known)}")
    for name in ("ISSUER", "CLIENT_ID"):
        if name not in given:
            raise InvalidInputError(f"{_VARIABLES}{name} is missing; set it, or none of these variables")
    role = given.get("NEW_USERS")
    if role not in (None, "viewer", "user"):
        raise InvalidInputError(f"{_VARIABLES}NEW_USERS: {role!r} is neither viewer nor user; leave it out for nobody")
    _require_web(given["ISSUER"])
    return Provider(
        given["ISSUER"],
        given["CLIENT_ID"],
        given.get("CLIENT_SECRET", ""),
        given.get("CLAIM", "preferred_username"),
        cast("Role | None", role),
    )


def add_oidc(app: FastAPI, provider: Provider) -> None:
    """Add the two pages by which people come and come back."""
    try:
        import joserfc  # noqa: F401  # it is needed as soon as somebody comes back; say so at once
    except ImportError:
        raise NotFoundError("OpenID Connect needs joserfc: pip install 'luthier[oidc]'") from None

    def log_in(request: Request, server: Server) -> Response:
        try:
            if visitor(request) is not None:  # a link on another site must not replace a session
                return RedirectResponse(safe_next(request.query_params.get("next", "/")), 303)
            return _sent_away(provider, request, server)
        except LuthierError as error:
            return _sorry(error)

    def come_back(request: Request, server: Server) -> Response:
        try:
            return _let_in(provider, request, server)
        except LuthierError as error:
            return _sorry(error)

    app.add_api_route("/oidc/login", log_in, methods=["GET"], include_in_schema=False)
    app.add_api_route("/oidc/callback", come_back, methods=["GET"], include_in_schema=False)


def _sent_away(provider: Provider, request: Request, server: Context) -> Response:
    """To the provider, with a cookie that tells on return that it was this browser that left."""
    state, nonce, verifier = (secrets.token_urlsafe(32) for _ in range(3))
    challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
    query = {
        "response_type": "code",
        "client_id": provider.client_id,
        "redirect_uri": _return_address(request, server),
        "scope": "openid profile email",
        "state": state,
        "nonce": nonce,
        "code_challenge": challenge,
        "code_challenge_method": "S256",
    }
    endpoint = _text_of(_metadata(provider), "authorization_endpoint")
    answer = RedirectResponse(f"{endpoint}{'&' if '?' in endpoint else '?'}{urlencode(query)}", 303)
    following = safe_next(request.query_params.get("next", "/"))
    luggage = base64.urlsafe_b64encode(json.dumps([state, nonce, verifier, following]).encode()).decode()
    answer.set_cookie(
        _cookie(server),
        luggage,
        max_age=_COOKIE_S,
        path="/oidc",
        secure=server.is_https,
        httponly=True,
        samesite="lax",
    )
    return answer


def _let_in(provider: Provider, request: Request, server: Context) -> Response:
    """A session for whoever comes back with the provider's word."""
    state, nonce, verifier, following = _luggage(request, server)
    if not hmac.compare_digest(state.encode(), request.query_params.get("state", "").encode()):
        raise AccessError("this is not the answer to your request; begin again")
    code = request.query_params.get("code")
    if code is None:
        reason = request.query_params.get("error", "no reason")
        raise AccessError(f"the provider did not let you in: {reason[:100]}")
    claims = _claims(provider, code, verifier, nonce, _return_address(request, server))
    name = claims.get(provider.claim)
    if not isinstance(name, str):
        raise ForbiddenError(f"the provider says nothing about {provider.claim}, by which people are known here")
    answer = RedirectResponse(safe_next(following), 303)
    set_session(answer, server, _session(provider, server, name))
    answer.delete_cookie(_cookie(server), path="/oidc", secure=server.is_https, httponly=True, samesite="lax")
    return answer


def _session(provider: Provider, server: Context, name: str) -> str:
    try:
        user = server.books.accounts.user(name)
    except NotFoundError:
        if provider.new_users is None:
            raise ForbiddenError(f"{name[:100]} has no account here; ask an administrator for one") from None
        user = server.door.add_user(name, provider.new_users, None)
    if user.disabled:
        raise ForbiddenError(f"the account of {name} is disabled; ask an administrator")
    return server.door.open_session(user.name)


def _claims(provider: Provider, code: str, verifier: str, nonce: str, address: str) -> Mapping[str, object]:
    """What the provider says about whoever brought this code; every word of it is checked."""
    from joserfc import jwt
    from joserfc.errors import JoseError
    from joserfc.jwk import KeySet, KeySetSerialization

    metadata = _metadata(provider)
    form = {"grant_type": "authorization_code", "code": code, "code_verifier": verifier, "redirect_uri": address}
    token = _fetched(_text_of(metadata, "token_endpoint"), *_proof(provider, metadata, form))
    keys = cast("KeySetSerialization", _fetched(_text_of(metadata, "jwks_uri")))
    try:
        claims = jwt.decode(_text_of(token, "id_token"), KeySet.import_key_set(keys), algorithms=_ALGORITHMS).claims
        jwt.JWTClaimsRegistry(
            leeway=_LEEWAY_S,
            iss={"essential": True, "value": provider.issuer},
            aud={"essential": True, "value": provider.client_id},
            exp={"essential": True},
            sub={"essential": True},
            nonce={"essential": True, "value": nonce},
        ).validate(claims)
    except (JoseError, ValueError, KeyError, TypeError) as error:
        raise AccessError(f"the provider's word cannot be trusted: {error}") from None
    if claims.get("azp", provider.client_id) != provider.client_id:
        raise AccessError("the provider's word is meant for another program")
    return claims


def _proof(
    provider: Provider, metadata: Mapping[str, object], form: dict[str, str]
) -> tuple[dict[str, str], dict[str, str]]:
    """The form and the headers that show which program is asking."""
    methods = metadata.get("token_endpoint_auth_methods_supported", ["client_secret_basic"])
    if not provider.client_secret:
        return {**form, "client_id": provider.client_id}, {}
    if isinstance(methods, list) and "client_secret_basic" not in methods:
        return {**form, "client_id": provider.client_id, "client_secret": provider.client_secret}, {}
    pair = f"{quote_plus(provider.client_id)}:{quote_plus(provider.client_secret)}"
    return form, {"Authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"}


def _metadata(provider: Provider) -> Mapping[str, object]:
    found = _fetched(f"{provider.issuer.rstrip('/')}/.well-known/openid-configuration")
    if found.get("issuer") != provider.issuer:
        raise UnavailableError(f"{provider.issuer}: calls itself {found.get('issuer')!r:.100}; use that name")
    return found


def _fetched(
    url: str, form: Mapping[str, str] | None = None, headers: Mapping[str, str] | None = None
) -> Mapping[str, object]:
    """What the provider answers; a form is posted."""
    _require_web(url)
    body = None if form is None else urlencode(form).encode()
    request = urllib.request.Request(url, body, {"Accept": "application/json", **(headers or {})})  # noqa: S310  # checked above
    try:
        with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as answer:  # noqa: S310  # the same
            found = json.loads(answer.read(_MOST_BYTES))
    except urllib.error.HTTPError as error:
        with error:
            raise AccessError(f"the provider refused: {error.code}; begin again") from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise UnavailableError(f"{urlsplit(url).netloc}: no answer that makes sense: {error}") from None
    if not isinstance(found, dict):
        raise UnavailableError(f"{urlsplit(url).netloc}: no answer that makes sense")
    return found


def _luggage(request: Request, server: Context) -> tuple[str, str, str, str]:
    try:
        kept = json.loads(base64.urlsafe_b64decode(request.cookies.get(_cookie(server), "")))
        state, nonce, verifier, following = map(str, kept)
    except (ValueError, TypeError):
        raise AccessError("nobody has left from this browser in the last minutes; begin again") from None
    return state, nonce, verifier, following


def _return_address(request: Request, server: Context) -> str:
    return f"{'https' if server.is_https else 'http'}://{request.url.netloc}/oidc/callback"


def _cookie(server: Context) -> str:
    return f"{server.cookie}-oidc"


def _text_of(found: Mapping[str, object], name: str) -> str:
    value = found.get(name)
    if not isinstance(value, str):
        raise UnavailableError(f"the provider's answer has no {name}")
    return value


def _require_web(url: str) -> None:
    if urlsplit(url).scheme not in ("https", "http") or not urlsplit(url).netloc:
        raise InvalidInputError(f"{url!r:.100} is no address such as https://login.example.org")


def _sorry(error: LuthierError) -> Response:
    status = (
        503
        if isinstance(error, UnavailableError) or is_about_the_store(error)
        else 401
        if isinstance(error, AccessError)
        else 403
    )
    said = STORE_AWAY if is_about_the_store(error) else str(error)
    text = escape(said.encode("utf-8", "replace").decode())
    page = f'<!doctype html><html lang="en"><title>luthier</title><p>{text}.</p><p><a href="/login">Back</a></p></html>'
    return HTMLResponse(page, status)
