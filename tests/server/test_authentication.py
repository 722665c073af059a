"""Who gets in, what they may do, and for how long."""

from collections.abc import Iterator
from contextlib import suppress
from http.cookies import SimpleCookie
from pathlib import Path
from typing import cast

import pytest
from argon2 import PasswordHasher
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.server.described import API, example_of, operations, part_of
from tests.server.server_fixtures import EXPERIMENT, PASSWORD, Running, Starter, server_of_its_own

from luthier.errors import InvalidInputError, NotFoundError
from luthier.server import authentication, login_limits, passwords
from luthier.server.app import ServerAddress
from luthier.server.authentication import (
    INVITATION_S,
    LOCAL,
    SESSION_S,
    AccessError,
    Authenticator,
    ForbiddenError,
)
from luthier.server.login_limits import FREE_PER_ADDRESS, TooManyError
from luthier.store import open_server_store
from luthier.store.server_store import Accounts, CredentialKind
from luthier.store.sql import SqlStore

FOR_EVERYBODY = {"get_health", "log_in", "accept_invitation"}
FOR_USERS = {"add_components", "put_component", "delete_component", "create_experiment", "clone_experiment"}
FOR_USERS |= {"submit_job", "withdraw_record", "restore_record"}
FOR_ADMINS = {
    "approve_variables",
    "withdraw_approval",
    "list_users",
    "put_user",
    "delete_user",
    "invite_user",
    "list_audit",
}
STREAMS = {"watch_experiments", "watch_online"}
"""They do not end as long as somebody listens."""


class Clock:
    def __init__(self) -> None:
        self.now = 1e9

    def __call__(self) -> float:
        return self.now


def cheap_hasher() -> PasswordHasher:
    return PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def accounts(tmp_path: Path) -> Iterator[Accounts]:
    server_store = open_server_store(f"sqlite:///{tmp_path / 'x.db'}")
    yield server_store.accounts
    assert isinstance(server_store.history, SqlStore)
    server_store.history.dispose()


@pytest.fixture
def authenticator(accounts: Accounts, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> Authenticator:
    """A doorkeeper whose hashes are cheap, because tests make many of them."""
    monkeypatch.setattr(passwords, "_hasher", cheap_hasher)
    return Authenticator(accounts, clock, clock)


def test_an_invitation_lets_in_once_and_for_a_day(authenticator: Authenticator, clock: Clock) -> None:
    invitation = authenticator.invite(LOCAL)
    session = authenticator.enter(invitation)
    assert session is not None
    assert authenticator.enter(invitation) is None
    who = authenticator.recognise(session, "session")
    assert who is not None
    assert (who.name, who.role) == (LOCAL, "admin")
    assert authenticator.recognise(session, "token") is None
    late = authenticator.invite(LOCAL)
    clock.now += INVITATION_S
    assert authenticator.enter(late) is None
    clock.now += SESSION_S
    assert authenticator.recognise(session, "session") is None


def test_the_local_user_is_gone_as_soon_as_there_are_accounts(authenticator: Authenticator) -> None:
    session, invitation = authenticator.open_session(LOCAL), authenticator.invite(LOCAL)
    authenticator.add_user("ada", "admin", PASSWORD)
    assert authenticator.recognise(session, "session") is None
    assert authenticator.enter(invitation) is None
    with pytest.raises(InvalidInputError):
        authenticator.add_user(LOCAL, "admin", PASSWORD)


def test_wrong_passwords_have_to_wait_longer_every_time(authenticator: Authenticator, clock: Clock) -> None:
    authenticator.add_user("ada", "admin", PASSWORD)
    fail(authenticator, "ada", "here", times=5)
    for wait in (1, 2, 4, 8):
        with pytest.raises(TooManyError) as refused:
            log_in(authenticator, "ada", PASSWORD, "here")
        assert refused.value.after_s == pytest.approx(wait)
        clock.now += wait
        fail(authenticator, "ada", "here")
    clock.now += 1000
    assert log_in(authenticator, "ada", PASSWORD, "here")
    fail(authenticator, "ada", "here")


def log_in(authenticator: Authenticator, name: str, password: str, address: str, device: str = "") -> str:
    return authenticator.finish_login(authenticator.begin_login(name, address, device), name, password)


def fail(authenticator: Authenticator, name: str, address: str, *, times: int = 1) -> None:
    for _ in range(times):
        with pytest.raises(AccessError, match="wrong name or password"):
            log_in(authenticator, name, "wrong", address)


def test_nobody_is_locked_out_by_others_who_try_their_name(authenticator: Authenticator) -> None:
    authenticator.add_user("ada", "admin", PASSWORD)
    for number in range(30):
        fail(authenticator, "ada", f"10.0.0.{number}", times=5)
    assert log_in(authenticator, "ada", PASSWORD, "10.0.1.1")


def test_a_browser_that_was_let_in_before_is_not_locked_out_from_its_own_address(authenticator: Authenticator) -> None:
    authenticator.add_user("ada", "admin", PASSWORD)
    log_in(authenticator, "ada", PASSWORD, "here")
    device = authenticator.device_of("ada")
    assert device is not None
    fail(authenticator, "ada", "here", times=5)
    for forged in ("", "x", device[:-1], "\ud800"):
        with pytest.raises(TooManyError):
            log_in(authenticator, "ada", PASSWORD, "here", forged)
    assert log_in(authenticator, "ada", PASSWORD, "here", device)
    for _ in range(5):
        with pytest.raises(AccessError):
            log_in(authenticator, "ada", "wrong", "here", device)
    with pytest.raises(TooManyError):  # a stolen one does not help to guess
        log_in(authenticator, "ada", PASSWORD, "here", device)
    authenticator.add_user("ada", "admin", "another long one")
    assert authenticator.device_of("ada") != device
    assert authenticator.device_of("bob") is None


def test_one_address_cannot_try_many_names(authenticator: Authenticator) -> None:
    authenticator.add_user("ada", "admin", PASSWORD)
    authenticator.add_user("eve", "user", PASSWORD)
    for number in range(FREE_PER_ADDRESS):
        fail(authenticator, f"user {number}", "2001:db8::1")
        if number < FREE_PER_ADDRESS - 1:
            log_in(
                authenticator, "eve", PASSWORD, "2001:db8::1"
            )  # an account of one's own does not wipe the slate clean
    for address in ("2001:db8::1", "2001:db8::2:2"):
        with pytest.raises(TooManyError):
            log_in(authenticator, "f", "wrong", address)
    assert log_in(authenticator, "ada", PASSWORD, "2001:db8:0:1::1")


def test_what_is_remembered_of_failures_is_bounded(
    authenticator: Authenticator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(login_limits, "_MOST_REMEMBERED", 10)
    for number in range(30):
        with pytest.raises(AccessError):
            log_in(authenticator, f"user {number}", "wrong", f"192.0.2.{number}")
    assert len(authenticator.limits._failures) == 10


def test_somebody_stays_an_administrator(authenticator: Authenticator) -> None:
    with pytest.raises(InvalidInputError, match="the server needs an administrator"):
        authenticator.add_user("ada", "user", PASSWORD)
    authenticator.add_user("ada", "admin", PASSWORD)
    authenticator.add_user("bob", "admin", PASSWORD)
    authenticator.add_user("ada", "viewer", None)
    for attempt in (
        lambda: authenticator.add_user("bob", "user", None),
        lambda: authenticator.add_user("bob", "admin", None, disabled=True),
        lambda: authenticator.remove_user("bob"),
    ):
        with pytest.raises(InvalidInputError, match="the server needs an administrator"):
            attempt()
    authenticator.remove_user("ada")
    authenticator.remove_user("bob")
    assert not authenticator.has_accounts


def test_a_disabled_account_stays_so_until_it_is_enabled(authenticator: Authenticator) -> None:
    authenticator.add_user("ada", "admin", PASSWORD)
    authenticator.add_user("bob", "user", PASSWORD)
    session, (token, _) = authenticator.open_session("bob"), authenticator.issue_token("bob", "x", None)
    authenticator.add_user("bob", "viewer", None, disabled=True)
    authenticator.add_user("bob", "user", None)
    assert authenticator.recognise(session, "session") is None
    assert authenticator.recognise(token, "token") is None
    with pytest.raises(AccessError):
        log_in(authenticator, "bob", PASSWORD, "here")
    authenticator.add_user("bob", "user", None, disabled=False)
    assert authenticator.recognise(session, "session") is not None


def test_a_new_password_ends_sessions_and_keeps_tokens(authenticator: Authenticator) -> None:
    authenticator.add_user("ada", "admin", PASSWORD)
    mine, other = authenticator.open_session("ada"), authenticator.open_session("ada")
    token, _ = authenticator.issue_token("ada", "x", 10.0)
    who = authenticator.recognise(mine, "session")
    assert who is not None
    with pytest.raises(ForbiddenError, match="the old password is wrong"):
        authenticator.change_password(who, "wrong", "another long one", "here")
    with pytest.raises(InvalidInputError, match="10 to 1000 characters"):
        authenticator.change_password(who, PASSWORD, "short", "here")
    authenticator.change_password(who, PASSWORD, "another long one", "here")
    assert authenticator.recognise(mine, "session") == who
    assert authenticator.recognise(other, "session") is None
    assert authenticator.recognise(token, "token") is not None
    authenticator.add_user("ada", "admin", PASSWORD)
    assert authenticator.recognise(mine, "session") is None
    assert authenticator.recognise(token, "token") is not None


def test_who_was_invited_sets_a_password_without_an_old_one_for_a_day(
    authenticator: Authenticator, clock: Clock
) -> None:
    authenticator.add_user("root", "admin", PASSWORD)
    authenticator.add_user("bob", "user", None)
    session = authenticator.enter(authenticator.invite("bob"))
    who = authenticator.recognise(session or "", "session")
    assert who is not None
    assert not authenticator.needs_old_password(who)
    authenticator.change_password(who, "", "the first password", "here")
    assert log_in(authenticator, "bob", "the first password", "here")
    clock.now += 25 * 3600.0
    with pytest.raises(ForbiddenError, match="the old password is wrong"):
        authenticator.change_password(who, "", "the second password", "here")


def test_only_an_invitation_sets_a_password_without_an_old_one(authenticator: Authenticator) -> None:
    authenticator.add_user("root", "admin", PASSWORD)
    authenticator.add_user("bob", "user", None)
    token, _ = authenticator.issue_token("bob", "invitation", None)
    for secret, kind in ((authenticator.open_session("bob"), "session"), (token, "token")):
        who = authenticator.recognise(secret, cast("CredentialKind", kind))
        assert who is not None
        with pytest.raises(ForbiddenError, match="luthier user invite"):
            authenticator.change_password(who, "", "the first password", "here")


def test_secrets_cannot_be_read_from_the_store(authenticator: Authenticator, tmp_path: Path) -> None:
    authenticator.add_user("ada", "admin", PASSWORD)
    secrets = [
        authenticator.open_session("ada"),
        authenticator.issue_token("ada", "x", None)[0],
        authenticator.invite("ada"),
        PASSWORD,
    ]
    stored = b"".join(path.read_bytes() for path in tmp_path.glob("x.db*"))
    assert b"ada" in stored
    for secret in secrets:
        assert secret.encode() not in stored


@settings(max_examples=60, deadline=None)
@given(name=st.text(max_size=70), password=st.text(max_size=20))
def test_any_name_and_password_works_or_is_refused(name: str, password: str) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(passwords, "_hasher", cheap_hasher)
        with suppress(InvalidInputError):
            authentication._check_name(name)
            assert name.isprintable()
            assert not set(name) & set("/\\?#%")
        with suppress(InvalidInputError):
            hashed = passwords.hash_of(password)
            assert passwords.is_password(hashed, password)
            assert not passwords.is_password(hashed, password + "x")


# Over the whole API --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server with an administrator, two users and a viewer; the experiment is ada's."""
    with server_of_its_own(tmp_path_factory.mktemp("people")) as running:
        running.add_user("root", "admin")
        ada = running.add_user("ada", "user")
        running.add_user("bob", "user")
        running.add_user("vic", "viewer")
        running.launch(token=ada)
        yield running


def token_of(server: Running, name: str) -> str:
    return server.context.authenticator.issue_token(name, "test", None)[0]


def test_every_operation_is_described_with_an_example(people: Running) -> None:
    document = cast("dict[str, object]", people.ask("GET", f"{API}/openapi.json", token=None).json)
    schemas = part_of(part_of(document, "components"), "schemas")
    found = operations(people)
    assert len(found) > 45
    assert len({operation.name for operation in found}) == len(found)
    for operation in found:
        assert operation.described["summary"], operation.name
        assert operation.described["description"], operation.name
        assert operation.described["tags"], operation.name
        answers = part_of(operation.described, "responses")
        assert {"401", "403", "404", "422"} <= set(answers), operation.name
        good = cast("dict[str, object]", next(answers[code] for code in answers if code.startswith("2")))
        shown = [
            media.get("example") or example_of(part_of(media, "schema"), schemas)
            for media in cast("dict[str, dict[str, object]]", good.get("content", {})).values()
        ]
        assert any(shown) or operation.body is not None or "204" in answers, operation.name


def test_every_operation_needs_a_pass(people: Running) -> None:
    for operation in operations(people):
        status = operation.ask(people, None)
        assert (status == 401) == (operation.name not in FOR_EVERYBODY), operation.name
        if operation.name not in FOR_EVERYBODY:
            assert operation.ask(people, "nonsense") == 401
            assert operation.ask(people, None, {"Cookie": f"{people.context.cookie}=nonsense"}) == 401
            assert operation.ask(people, people.context.authenticator.invite("root")) == 401
            assert operation.ask(people, people.context.authenticator.open_session("root")) == 401


def test_every_operation_knows_its_role(people: Running) -> None:
    viewer, user = token_of(people, "vic"), token_of(people, "bob")
    names = {operation.name for operation in operations(people)}
    assert names >= FOR_USERS | FOR_ADMINS | FOR_EVERYBODY
    for operation in operations(people):
        if operation.name in STREAMS | {"log_in", "accept_invitation"}:
            continue
        refused = operation.name in FOR_USERS | FOR_ADMINS
        assert (operation.ask(people, viewer) == 403) == refused, operation.name
        if operation.name in FOR_ADMINS:
            assert operation.ask(people, user) == 403, operation.name


def test_other_peoples_experiments_are_not_there(people: Running) -> None:
    before = people.store.history.experiment(1)
    for name in ("bob", "vic"):
        token = token_of(people, name)
        for operation in operations(people):
            if operation.has_experiment:
                expected = 403 if name == "vic" and operation.name in FOR_USERS else 404
                assert operation.ask(people, token) == expected, operation.name
        assert people.ask("GET", f"{API}/compare?ids=1", token=token).status == 404
        assert people.ask("GET", f"{API}/compare/figures/best?ids=1", token=token).status == 404
        assert b"first try" not in people.ask("GET", f"{API}/experiments", token=token).body
        assert b"first try" not in people.ask("GET", f"{API}/components", token=token).body
    assert people.store.history.experiment(1) == before


def test_sessions_need_their_own_csrf_text_for_every_change(people: Running) -> None:
    good, other = people.session("ada"), people.session("ada")
    cookie = {"Cookie": good["Cookie"]}
    for operation in operations(people):
        if operation.method == "GET" or operation.name in ("log_in", "accept_invitation"):
            continue
        for sent in (cookie, {**cookie, "X-Luthier-CSRF": ""}, {**cookie, "X-Luthier-CSRF": other["X-Luthier-CSRF"]}):
            assert operation.ask(people, None, sent) == 403, operation.name
    assert people.ask("GET", f"{API}/me", token=None, headers=cookie).status == 200
    body = {"yaml": EXPERIMENT}
    assert people.ask("POST", f"{API}/experiments/check", body, token=None, headers=good).status == 200


def test_shared_experiments_are_seen_and_not_changed(server: Running) -> None:
    server.add_user("root", "admin")
    ada, bob = server.add_user("ada", "user"), server.add_user("bob", "user")
    server.launch(token=ada)
    assert server.ask("PATCH", f"{API}/experiments/1", {"shared": True}, token=ada).status == 200
    seen = server.ask("GET", f"{API}/experiments/1", token=bob)
    assert cast("dict[str, object]", seen.json)["may_change"] is False
    for method, path, given_body in (
        ("POST", "/stop", None), ("POST", "/resume", None), ("PATCH", "", {"shared": False}), ("DELETE", "", None),
    ):  # fmt: skip
        assert server.ask(method, f"{API}/experiments/1{path}", given_body, token=bob).status == 403
    copy = server.ask("POST", f"{API}/experiments/1/clone", token=bob)
    assert cast("dict[str, object]", copy.json)["author"] == "bob"


def test_logging_in_and_out(server: Running) -> None:
    server.add_user("ada", "admin")
    login = {"name": "ada", "password": PASSWORD}
    any_page = {"X-Luthier-CSRF": "1"}
    assert server.ask("POST", f"{API}/session", login, token=None).status == 403
    wrong = server.ask("POST", f"{API}/session", {**login, "password": "no"}, token=None, headers=any_page)
    assert wrong.status == 401
    reply = server.ask("POST", f"{API}/session", login, token=None, headers=any_page)
    assert reply.status == 200
    cookie = SimpleCookie(reply.headers["set-cookie"])[server.context.cookie]
    assert (cookie["httponly"], cookie["samesite"], cookie["path"], cookie["secure"]) == (True, "lax", "/", "")
    user = cast("dict[str, dict[str, str]]", reply.json)["user"]
    headers = {"Cookie": f"{server.context.cookie}={cookie.value}", "X-Luthier-CSRF": user["csrf"]}
    assert server.ask("GET", f"{API}/me", token=None, headers=headers).json == user
    assert server.ask("DELETE", f"{API}/session", token=None, headers=headers).status == 204
    assert server.ask("GET", f"{API}/me", token=None, headers=headers).status == 401
    assert server.ask("DELETE", f"{API}/session", token=token_of(server, "ada")).status == 422


def test_too_many_logins_are_told_when_to_come_back(server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    server.add_user("ada", "admin")
    monkeypatch.setattr(server.context.authenticator.limits, "_clock", lambda: 1e9)
    login, headers = {"name": "ada", "password": "no"}, {"X-Luthier-CSRF": "1"}
    statuses = [server.ask("POST", f"{API}/session", login, token=None, headers=headers) for _ in range(6)]
    assert [reply.status for reply in statuses] == [401] * 5 + [429]
    assert statuses[-1].headers["retry-after"] == "2"


def test_cookies_are_for_https_alone_where_there_is_https(start_server: Starter) -> None:
    server = start_server(place=lambda port: ServerAddress(port, is_https=True))
    server.add_user("ada", "admin")
    login = {"name": "ada", "password": PASSWORD}
    reply = server.ask("POST", f"{API}/session", login, token=None, headers={"X-Luthier-CSRF": "1"})
    assert SimpleCookie(reply.headers["set-cookie"])[server.context.cookie]["secure"]
    invited = server.ask("POST", f"{API}/users/ada/invitation", token=token_of(server, "ada"))
    assert cast("dict[str, str]", invited.json)["url"].startswith("https://127.0.0.1:")


def test_tokens_are_made_and_forgotten(server: Running) -> None:
    made = server.ask("POST", f"{API}/me/tokens", {"label": "night", "days": 1})
    assert made.status == 201
    token = cast("dict[str, str]", made.json)["token"]
    assert server.ask("GET", f"{API}/me", token=token).status == 200
    tokens = cast("list[dict[str, object]]", server.ask("GET", f"{API}/me/tokens").json)
    assert [one["label"] for one in tokens] == ["test", "night"]
    assert token not in str(tokens)
    assert server.ask("DELETE", f"{API}/me/tokens/{tokens[1]['id']}").status == 204
    assert server.ask("GET", f"{API}/me", token=token).status == 401
    assert server.ask("DELETE", f"{API}/me/tokens/{tokens[1]['id']}").status == 404


def test_users_are_changed_and_removed_at_once(server: Running) -> None:
    root, bob = server.add_user("root", "admin"), server.add_user("bob", "admin")
    assert server.ask("GET", f"{API}/users", token=bob).status == 200
    assert server.ask("PUT", f"{API}/users/bob", {"role": "viewer"}, token=root).status == 200
    assert server.ask("GET", f"{API}/users", token=bob).status == 403
    assert server.ask("PUT", f"{API}/users/bob", {"role": "viewer", "disabled": True}, token=root).status == 200
    assert server.ask("GET", f"{API}/me", token=bob).status == 401
    users = cast("list[dict[str, object]]", server.ask("GET", f"{API}/users", token=root).json)
    assert [(one["name"], one["role"], one["disabled"]) for one in users] == [
        ("bob", "viewer", True), ("root", "admin", False),
    ]  # fmt: skip
    assert "argon2" not in str(users)
    assert server.ask("DELETE", f"{API}/users/root", token=root).status == 422
    assert server.ask("DELETE", f"{API}/users/bob", token=root).status == 204
    with pytest.raises(NotFoundError):
        server.store.accounts.user("bob")
    assert server.ask("POST", f"{API}/users/bob/invitation", token=root).status == 404
    invited = server.ask("POST", f"{API}/users/root/invitation", token=root)
    link = cast("dict[str, str]", invited.json)["url"]
    assert server.context.authenticator.enter(link.partition("token=")[2]) is not None


def test_own_password(server: Running) -> None:
    assert server.ask("PUT", f"{API}/me/password", {"old": PASSWORD, "new": PASSWORD}).status == 422
    token = server.add_user("ada", "admin")
    changed = {"old": PASSWORD, "new": "another long one"}
    assert server.ask("PUT", f"{API}/me/password", {**changed, "old": "no"}, token=token).status == 403
    assert server.ask("PUT", f"{API}/me/password", {"new": "another long one"}, token=token).status == 403
    assert server.ask("PUT", f"{API}/me/password", changed, token=token).status == 204
    assert log_in(server.context.authenticator, "ada", "another long one", "here")
