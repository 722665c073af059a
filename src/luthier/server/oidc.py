"""Login with an OpenID Connect provider, by the authorization code flow.

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
from luthier.server.authentication import AccessError, ForbiddenError
from luthier.server.context import Context, Server, current_user, set_session
from luthier.server.pages import safe_next
from luthier.server.store_errors import STORE_UNAVAILABLE, is_store_error
from luthier.store.server_store import Role

_ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512"]
_COOKIE_S = 600
_TIMEOUT_S = 15.0
_MOST_BYTES = 1_000_000
_LEEWAY_S = 60
_VARIABLES = "LUTHIER_OIDC_"


@dataclass(frozen=True, slots=True)
class Provider:
    """An OpenID provider.

    `claim` is the claim with the user's name; it should be one that users cannot change themselves. A user without an
    account gets one with the role `new_users`, or is refused if that is None.
    """

    issuer: str
    client_id: str
    client_secret: str = ""
    claim: str = "preferred_username"
    new_users: Role | None = None


def provider_in(environment: Mapping[str, str]) -> Provider | None:
    """The provider in the variables LUTHIER_OIDC_ISSUER, _CLIENT_ID and so on; None if they are not set."""
    given = {
        name.removeprefix(_VARIABLES): value
        for name, value in environment.items()
        if name.startswith(_VARIABLES) and value
    }
    if not given:
        return None
    known = ("ISSUER", "CLIENT_ID", "CLIENT_SECRET", "CLAIM", "NEW_USERS")
    if unknown := sorted(set(given) - set(known)):
        raise InvalidInputError(f"{_VARIABLES}{unknown[0]} is unknown; supported are {_VARIABLES}{', '.join(known)}")
    for name in ("ISSUER", "CLIENT_ID"):
        if name not in given:
            raise InvalidInputError(
                f"{_VARIABLES}{name} is missing; set it, or remove the other {_VARIABLES}* variables"
            )
    role = given.get("NEW_USERS")
    if role not in (None, "viewer", "user"):
        raise InvalidInputError(
            f"{_VARIABLES}NEW_USERS: {role!r} is not supported; use viewer or user, or leave it out to refuse new users"
        )
    _require_web_address(given["ISSUER"])
    return Provider(
        given["ISSUER"],
        given["CLIENT_ID"],
        given.get("CLIENT_SECRET", ""),
        given.get("CLAIM", "preferred_username"),
        cast("Role | None", role),
    )


def add_oidc(app: FastAPI, provider: Provider) -> None:
    """Add the page that sends users to the provider, and the one to which they return."""
    try:
        import joserfc  # noqa: F401  # needed later; report it at the start if it is missing
    except ImportError:
        raise NotFoundError("OpenID Connect needs joserfc: pip install 'luthier[oidc]'") from None

    def log_in(request: Request, server: Server) -> Response:
        try:
            if current_user(request) is not None:  # a link on another site must not replace a session
                return RedirectResponse(safe_next(request.query_params.get("next", "/")), 303)
            return _redirect_to_provider(provider, request, server)
        except LuthierError as error:
            return _error_page(error)

    def callback(request: Request, server: Server) -> Response:
        try:
            return _finish_login(provider, request, server)
        except LuthierError as error:
            return _error_page(error)

    app.add_api_route("/oidc/login", log_in, methods=["GET"], include_in_schema=False)
    app.add_api_route("/oidc/callback", callback, methods=["GET"], include_in_schema=False)


def _redirect_to_provider(provider: Provider, request: Request, server: Context) -> Response:
    """Redirect to the provider, with a cookie that identifies this browser when it returns."""
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
    endpoint = _required_text(_metadata(provider), "authorization_endpoint")
    answer = RedirectResponse(f"{endpoint}{'&' if '?' in endpoint else '?'}{urlencode(query)}", 303)
    following = safe_next(request.query_params.get("next", "/"))
    login_state = base64.urlsafe_b64encode(json.dumps([state, nonce, verifier, following]).encode()).decode()
    server.set_cookie(answer, _cookie(server), login_state, path="/oidc", max_age_s=_COOKIE_S)
    return answer


def _finish_login(provider: Provider, request: Request, server: Context) -> Response:
    """Log in the user who returns from the provider."""
    state, nonce, verifier, following = _read_login_cookie(request, server)
    if not hmac.compare_digest(state.encode(), request.query_params.get("state", "").encode()):
        raise AccessError("this login was not started in this browser; log in again")
    code = request.query_params.get("code")
    if code is None:
        reason = request.query_params.get("error", "no reason given")
        raise AccessError(f"the provider refused the login: {reason[:100]}")
    claims = _claims(provider, code, verifier, nonce, _return_address(request, server))
    name = claims.get(provider.claim)
    if not isinstance(name, str):
        raise ForbiddenError(f"the provider sent no claim {provider.claim}, which identifies users here")
    answer = RedirectResponse(safe_next(following), 303)
    set_session(answer, server, _session(provider, server, name))
    server.delete_cookie(answer, _cookie(server), "/oidc")
    return answer


def _session(provider: Provider, server: Context, name: str) -> str:
    try:
        user = server.store.accounts.user(name)
    except NotFoundError:
        if provider.new_users is None:
            raise ForbiddenError(f"{name[:100]} has no account; ask an administrator for one") from None
        user = server.authenticator.add_user(name, provider.new_users, None)
    if user.disabled:
        raise ForbiddenError(f"the account of {name} is disabled; ask an administrator")
    return server.authenticator.open_session(user.name)


def _claims(provider: Provider, code: str, verifier: str, nonce: str, address: str) -> Mapping[str, object]:
    """The verified claims of the ID token that the provider returns for a code."""
    from joserfc import jwt
    from joserfc.errors import JoseError
    from joserfc.jwk import KeySet, KeySetSerialization

    metadata = _metadata(provider)
    form = {"grant_type": "authorization_code", "code": code, "code_verifier": verifier, "redirect_uri": address}
    token = _fetch_json(_required_text(metadata, "token_endpoint"), *_client_authentication(provider, metadata, form))
    keys = cast("KeySetSerialization", _fetch_json(_required_text(metadata, "jwks_uri")))
    try:
        claims = jwt.decode(
            _required_text(token, "id_token"), KeySet.import_key_set(keys), algorithms=_ALGORITHMS
        ).claims
        jwt.JWTClaimsRegistry(
            leeway=_LEEWAY_S,
            iss={"essential": True, "value": provider.issuer},
            aud={"essential": True, "value": provider.client_id},
            exp={"essential": True},
            sub={"essential": True},
            nonce={"essential": True, "value": nonce},
        ).validate(claims)
    except (JoseError, ValueError, KeyError, TypeError) as error:
        raise AccessError(f"the ID token is invalid: {error}") from None
    if claims.get("azp", provider.client_id) != provider.client_id:
        raise AccessError("the ID token was issued for another program")
    return claims


def _client_authentication(
    provider: Provider, metadata: Mapping[str, object], form: dict[str, str]
) -> tuple[dict[str, str], dict[str, str]]:
    """The form and the headers that authenticate this program at the provider."""
    methods = metadata.get("token_endpoint_auth_methods_supported", ["client_secret_basic"])
    if not provider.client_secret:
        return {**form, "client_id": provider.client_id}, {}
    if isinstance(methods, list) and "client_secret_basic" not in methods:
        return {**form, "client_id": provider.client_id, "client_secret": provider.client_secret}, {}
    pair = f"{quote_plus(provider.client_id)}:{quote_plus(provider.client_secret)}"
    return form, {"Authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"}


def _metadata(provider: Provider) -> Mapping[str, object]:
    found = _fetch_json(f"{provider.issuer.rstrip('/')}/.well-known/openid-configuration")
    if found.get("issuer") != provider.issuer:
        raise UnavailableError(
            f"{provider.issuer}: the provider reports the issuer {found.get('issuer')!r:.100}; use that one"
        )
    return found


def _fetch_json(
    url: str, form: Mapping[str, str] | None = None, headers: Mapping[str, str] | None = None
) -> Mapping[str, object]:
    """The JSON answer of the provider; with a form, a POST request is sent."""
    _require_web_address(url)
    body = None if form is None else urlencode(form).encode()
    request = urllib.request.Request(url, body, {"Accept": "application/json", **(headers or {})})  # noqa: S310  # checked above
    try:
        with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as answer:  # noqa: S310  # the same
            found = json.loads(answer.read(_MOST_BYTES))
    except urllib.error.HTTPError as error:
        with error:
            raise AccessError(f"the provider refused the request ({error.code}); log in again") from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise UnavailableError(f"{urlsplit(url).netloc}: invalid answer: {error}") from None
    if not isinstance(found, dict):
        raise UnavailableError(f"{urlsplit(url).netloc}: invalid answer")
    return found


def _read_login_cookie(request: Request, server: Context) -> tuple[str, str, str, str]:
    try:
        kept = json.loads(base64.urlsafe_b64decode(request.cookies.get(_cookie(server), "")))
        state, nonce, verifier, following = map(str, kept)
    except (ValueError, TypeError):
        raise AccessError("the login has expired or was not started in this browser; log in again") from None
    return state, nonce, verifier, following


def _return_address(request: Request, server: Context) -> str:
    return f"{'https' if server.is_https else 'http'}://{request.url.netloc}/oidc/callback"


def _cookie(server: Context) -> str:
    return f"{server.cookie}-oidc"


def _required_text(found: Mapping[str, object], name: str) -> str:
    value = found.get(name)
    if not isinstance(value, str):
        raise UnavailableError(f"the provider's answer has no {name}")
    return value


def _require_web_address(url: str) -> None:
    if urlsplit(url).scheme not in ("https", "http") or not urlsplit(url).netloc:
        raise InvalidInputError(f"{url!r:.100} is not a valid address; use for example https://login.example.org")


def _error_page(error: LuthierError) -> Response:
    status = (
        503
        if isinstance(error, UnavailableError) or is_store_error(error)
        else 401
        if isinstance(error, AccessError)
        else 403
    )
    said = STORE_UNAVAILABLE if is_store_error(error) else str(error)
    text = escape(said.encode("utf-8", "replace").decode())
    page = f'<!doctype html><html lang="en"><title>luthier</title><p>{text}.</p><p><a href="/login">Back</a></p></html>'
    return HTMLResponse(page, status)
