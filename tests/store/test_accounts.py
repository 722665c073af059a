"""Users, passes and the audit log, over each kind of database."""

import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.store.samples import NASTY
from tests.store.strategies import examples, short_texts, texts

from luthier.errors import InvalidInputError, LuthierError, NotFoundError
from luthier.store.base import RequestedBy
from luthier.store.server_store import (
    Accounts,
    Credential,
    CredentialKind,
    Entry,
    Role,
    ServerStore,
    User,
    author_after_removal,
    shown_author,
)

BooksOpener = Callable[[], ServerStore]

ANN = User("ann", "user", 5.0, "hash")
TOKEN = Credential(0, "ann", "token", "laptop", 10.0, 100.0)

_times = st.floats(allow_nan=False, allow_infinity=False)
_users = st.builds(
    User,
    st.text(st.characters(exclude_categories=()), min_size=1, max_size=200),
    st.sampled_from(["viewer", "user", "admin"]),
    _times,
    st.none() | texts,
    st.booleans(),
)


@pytest.fixture
def accounts(server_store: ServerStore) -> Accounts:
    return server_store.accounts


def test_users_are_listed_by_name(accounts: Accounts) -> None:
    for name in ("b", "a", "Z", "ä", NASTY, "_"):
        accounts.put_user(replace(ANN, name=name))
    assert [user.name for user in accounts.users()] == sorted(["b", "a", "Z", "ä", NASTY, "_"])


@examples
@given(user=_users, changed=_users)
def test_users_come_back_as_they_were_put(accounts: Accounts, user: User, changed: User) -> None:
    accounts.put_user(user)
    assert accounts.user(user.name) == user
    accounts.put_user(replace(changed, name=user.name))
    assert accounts.user(user.name) == replace(changed, name=user.name)
    assert [found.name for found in accounts.users()].count(user.name) == 1


def test_removed_user_is_forgotten_with_their_passes(accounts: Accounts) -> None:
    for name in ("ann", "bob"):
        accounts.put_user(replace(ANN, name=name))
        accounts.grant(f"digest of {name}", replace(TOKEN, user=name))
    accounts.note(Entry(0, 1.0, "ann", "launch", "experiment 1"))
    accounts.remove_user("ann")
    with pytest.raises(NotFoundError, match=r"^user 'ann' does not exist"):
        accounts.user("ann")
    with pytest.raises(NotFoundError, match="ann"):
        accounts.remove_user("ann")
    assert accounts.credentials("ann") == []
    assert accounts.find("digest of ann", 11.0) is None
    assert len(accounts.credentials("bob")) == 1
    assert [entry.user for entry in accounts.entries()] == ["ann"]


def test_experiments_of_a_removed_user_are_nobodys(server_store: ServerStore) -> None:
    server_store.accounts.put_user(ANN)
    mine = server_store.history.create("mine", {}, 1.0, RequestedBy("ann", None, "key"))
    other = server_store.history.create("other", {}, 1.0, RequestedBy("bob", None, "key"))
    server_store.accounts.remove_user("ann")
    assert server_store.history.experiment(mine.id).author == author_after_removal("ann") == "ann/removed"
    assert server_store.history.experiment(other.id) == other
    server_store.accounts.put_user(ANN)
    again = server_store.history.create("again", {}, 2.0, RequestedBy("ann", None, "key"))
    assert again.id not in (mine.id, other.id)
    assert [found.id for found in server_store.queue.records(author="ann")] == [again.id]
    server_store.accounts.remove_user("ann")
    assert [server_store.history.experiment(one.id).author for one in (mine, again)] == ["ann/removed"] * 2
    assert shown_author("ann/removed") == "ann (removed)"


def test_user_added_by_several_at_once_is_one(accounts: Accounts, reopen: BooksOpener) -> None:
    others = [reopen().accounts for _ in range(4)]
    for name in ("a", "b", "c"):
        with ThreadPoolExecutor(len(others)) as pool:
            list(pool.map(lambda other, name: other.put_user(replace(ANN, name=name)), others, [name] * len(others)))
    assert [user.name for user in accounts.users()] == ["a", "b", "c"]


@examples
@given(user=short_texts, label=texts, created_at=_times, kind=st.sampled_from(["session", "token"]))
def test_passes_come_back_as_they_were_granted(
    accounts: Accounts, user: str, label: str, created_at: float, kind: CredentialKind
) -> None:
    digest = uuid.uuid4().hex
    issued = accounts.grant(digest, Credential(0, user, kind, label, created_at))
    assert issued == Credential(issued.id, user, kind, label, created_at)
    assert accounts.credentials(user)[-1] == issued
    assert accounts.find(digest, created_at) == replace(issued, used_at=created_at)


def test_find_tells_who_it_is_until_the_pass_expires(accounts: Accounts) -> None:
    issued = accounts.grant("digest", TOKEN)
    assert accounts.find("other digest", 10.0) is None
    found = accounts.find("digest", 99.9)
    assert found == replace(issued, used_at=99.9)
    assert list(accounts.credentials("ann")) == [found]
    assert accounts.find("digest", 100.0) is None


def test_use_is_noted_to_the_minute(accounts: Accounts) -> None:
    accounts.grant("digest", replace(TOKEN, expires_at=None))
    for now, noted in ((20.0, 20.0), (79.0, 20.0), (80.0, 80.0), (3.0, 3.0)):
        found = accounts.find("digest", now)
        assert found is not None
        assert found.used_at == accounts.credentials("ann")[0].used_at == noted


def test_invitation_is_good_once(accounts: Accounts) -> None:
    issued = accounts.grant("digest", replace(TOKEN, kind="once"))
    assert accounts.find("digest", 20.0) == replace(issued, used_at=20.0)
    assert accounts.find("digest", 20.0) is None
    assert accounts.credentials("ann") == []


def test_one_of_several_spends_an_invitation(accounts: Accounts, reopen: BooksOpener) -> None:
    others = [reopen().accounts for _ in range(6)]
    for digest in ("a", "b", "c"):
        accounts.grant(digest, replace(TOKEN, kind="once"))
        with ThreadPoolExecutor(len(others)) as pool:
            found = list(pool.map(lambda other, digest: other.find(digest, 20.0), others, [digest] * len(others)))
        assert len([one for one in found if one is not None]) == 1


def test_digest_is_of_one_pass(accounts: Accounts) -> None:
    issued = accounts.grant("digest", TOKEN)
    with pytest.raises(InvalidInputError, match="this secret is already in use") as caught:
        accounts.grant("digest", replace(TOKEN, user="bob"))
    assert "digest" not in str(caught.value)
    assert list(accounts.credentials("ann")) == [issued]
    assert accounts.credentials("bob") == []


def test_expired_passes_are_swept_out_when_another_is_granted(accounts: Accounts) -> None:
    accounts.grant("old", TOKEN)
    accounts.grant("for ever", replace(TOKEN, user="bob", expires_at=None))
    accounts.grant("new", replace(TOKEN, created_at=99.0, expires_at=200.0))
    assert len(accounts.credentials("ann")) == 2
    latest = accounts.grant("newer", replace(TOKEN, created_at=100.0, expires_at=200.0))
    assert [found.created_at for found in accounts.credentials("ann")] == [99.0, 100.0]
    assert accounts.credentials("ann")[-1] == latest
    assert len(accounts.credentials("bob")) == 1


def test_revoked_pass_is_gone_and_its_number_is_not_given_again(accounts: Accounts) -> None:
    kept, issued = accounts.grant("kept", TOKEN), accounts.grant("digest", TOKEN)
    for number in (issued.id, issued.id, 0, -1, 10**30, -(10**30)):
        accounts.revoke(number)
    assert accounts.find("digest", 20.0) is None
    assert list(accounts.credentials("ann")) == [kept]
    assert accounts.grant("digest", TOKEN).id > issued.id


@examples
@given(at=_times, user=texts, action=texts, target=texts, detail=texts)
def test_entries_come_back_as_they_were_noted(
    accounts: Accounts, at: float, user: str, action: str, target: str, detail: str
) -> None:
    accounts.note(Entry(0, at, user, action, target, detail))
    newest = accounts.entries(limit=1)[0]
    assert newest == Entry(newest.id, at, user, action, target, detail)


def test_entries_are_listed_newest_first_and_in_pages(accounts: Accounts) -> None:
    for index in range(5):
        accounts.note(Entry(0, float(index), "ann", "launch", f"experiment {index}"))
    first = accounts.entries(limit=2)
    assert [entry.at for entry in first] == [4.0, 3.0]
    assert [entry.at for entry in accounts.entries(limit=2, before=first[-1].id)] == [2.0, 1.0]
    assert len(accounts.entries()) == len(accounts.entries(before=10**30, limit=10**30)) == 5
    assert accounts.entries(before=-(10**30)) == []


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_times_are_numbers(accounts: Accounts, number: float) -> None:
    accounts.grant("digest", replace(TOKEN, expires_at=None))
    calls: list[Callable[[], object]] = [
        lambda: accounts.put_user(replace(ANN, created_at=number)),
        lambda: accounts.grant("x", replace(TOKEN, created_at=number)),
        lambda: accounts.grant("x", replace(TOKEN, expires_at=number)),
        lambda: accounts.find("digest", number),
        lambda: accounts.note(Entry(0, number, "ann", "a", "b")),
    ]
    for call in calls:
        with pytest.raises(LuthierError, match="finite"):
            call()
    assert accounts.users() == []
    assert accounts.entries() == []
    assert [found.used_at for found in accounts.credentials("ann")] == [None]


def test_other_bad_arguments_are_told(accounts: Accounts) -> None:
    calls: list[Callable[[], object]] = [
        lambda: accounts.put_user(replace(ANN, name="")),
        lambda: accounts.put_user(replace(ANN, name="n" * 201)),
        lambda: accounts.put_user(replace(ANN, role=cast("Role", "king"))),
        lambda: accounts.grant("d" * 201, TOKEN),
        lambda: accounts.grant("x", replace(TOKEN, user="u" * 201)),
        lambda: accounts.grant("x", replace(TOKEN, kind=cast("CredentialKind", "key"))),
        lambda: accounts.entries(limit=0),
    ]
    for call in calls:
        with pytest.raises(InvalidInputError):
            call()
    assert accounts.users() == []
    assert accounts.credentials("ann") == []


def test_everything_is_there_after_reopening(accounts: Accounts, reopen: BooksOpener) -> None:
    accounts.put_user(ANN)
    accounts.grant("digest", TOKEN)
    accounts.note(Entry(0, 1.0, "ann", "launch", "experiment 1"))
    again = reopen().accounts
    assert list(again.users()) == [ANN]
    assert list(again.credentials("ann")) == list(accounts.credentials("ann"))
    assert list(again.entries()) == list(accounts.entries())
