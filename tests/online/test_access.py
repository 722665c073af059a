"""Tokens of the on-line service."""

import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from luthier.errors import InvalidInputError
from luthier.online.service.access import Access, kept_token
from luthier.store import open_server_store
from luthier.store.server_store import Accounts, Credential, CredentialKind, Role, User, digest_of
from luthier.store.sql import SqlStore

SECRET = "a-token-that-only-tests-know"


@pytest.fixture
def accounts(tmp_path: Path) -> Iterator[Accounts]:
    store = open_server_store(f"sqlite:///{tmp_path}/x.db")
    yield store.accounts
    assert isinstance(store.history, SqlStore)
    store.history.dispose()


def grant(accounts: Accounts, token: str, user: str, kind: CredentialKind = "token", until: float = 100.0) -> None:
    accounts.grant(digest_of(token), Credential(0, user, kind, "x", 1.0, until))


def add(accounts: Accounts, name: str, role: Role, *, disabled: bool = False) -> None:
    accounts.put_user(User(name, role, 1.0, disabled=disabled))


def test_without_accounts_the_kept_token_and_tokens_of_the_local_user_are_valid(accounts: Accounts) -> None:
    allow = Access(accounts, SECRET, lambda: 50.0)
    grant(accounts, "web", "local")
    assert allow(None) == allow(SECRET) == allow("web") == "local"
    assert allow("wrong") is allow("") is allow("ä") is None
    assert Access(accounts, None)(SECRET) is None


def test_with_accounts_api_tokens_are_valid_and_nothing_else(accounts: Accounts) -> None:
    allow = Access(accounts, SECRET, lambda: 50.0)
    grant(accounts, "web", "local")
    for name, role in (("ada", "user"), ("root", "admin"), ("eve", "viewer")):
        add(accounts, name, role)  # type: ignore[arg-type]
        grant(accounts, f"of {name}", name)
    add(accounts, "out", "user", disabled=True)
    grant(accounts, "of out", "out")
    grant(accounts, "browser", "ada", "session")
    grant(accounts, "old", "ada", until=49.0)
    assert allow("of ada") == "ada"
    assert allow("of root") == "root"
    for token in ("of eve", "of out", "browser", "old", "web", SECRET):
        assert allow(token) is None, token
    accounts.remove_user("ada")
    assert allow("of ada") is None


def test_the_token_is_made_once_and_private(tmp_path: Path) -> None:
    path = tmp_path / "data" / "token"
    token = kept_token(path)
    assert len(token) >= 40
    assert kept_token(path) == token
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_a_token_that_others_can_read_or_that_is_none_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "token"
    kept_token(path)
    path.chmod(0o640)
    with pytest.raises(InvalidInputError, match="other users can read"):
        kept_token(path)
    path.chmod(0o600)
    path.write_text("short\n")
    with pytest.raises(InvalidInputError, match="does not contain a token"):
        kept_token(path)
