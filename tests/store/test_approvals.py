"""Approved variables of components, in each kind of database."""

import threading
from collections.abc import Callable
from contextlib import suppress

import pytest
from tests.store.samples import NASTY
from tests.store.store_fixtures import BooksOpener

from luthier.errors import InvalidInputError, LuthierError, NotFoundError
from luthier.store.server_store import Approval, ServerStore


def an_approval(variable: str = "A", allowed: str = "1..9", component: str = "mpi") -> Approval:
    return Approval(component, variable, allowed, "version", "root", 5.0)


@pytest.fixture
def store(server_store: ServerStore) -> ServerStore:
    server_store.components.put({"mpi": "one", "omp": "two"}, replace=False)
    return server_store


def test_nothing_is_approved_at_first(store: ServerStore) -> None:
    assert store.components.approvals() == store.components.approvals("mpi") == []


def test_approvals_are_kept_by_component_and_replaced_by_variable(store: ServerStore) -> None:
    odd = Approval("omp", NASTY, NASTY, "version", NASTY, 6.5)
    store.components.approve("mpi", "one", [an_approval("B"), an_approval()])
    store.components.approve("omp", "two", [odd])
    store.components.approve("mpi", "one", [an_approval("B", "x")])
    assert store.components.approvals() == [an_approval(), an_approval("B", "x"), odd]
    assert store.components.approvals("omp") == [odd]


def test_they_are_withdrawn_by_name_or_all(store: ServerStore) -> None:
    store.components.approve("mpi", "one", [an_approval(name) for name in "ABC"])
    assert store.components.withdraw("mpi", ["B", "X"]) == ["B"]
    assert [one.variable for one in store.components.approvals()] == ["A", "C"]
    assert store.components.withdraw("omp") == []
    assert store.components.withdraw("mpi") == ["A", "C"]
    assert store.components.approvals() == []


@pytest.mark.parametrize(
    ("change", "stays"),
    [
        (lambda store: store.components.put({"mpi": "changed", "new": "x"}, replace=True), False),
        (lambda store: store.components.remove("mpi"), False),
        (lambda store: store.components.put({"mpi": "one", "omp": "changed"}, replace=True), True),
        (lambda store: store.components.remove("omp"), True),
    ],
)
def test_a_change_of_the_component_takes_them_back(
    store: ServerStore, change: Callable[[ServerStore], None], stays: bool
) -> None:
    store.components.approve("mpi", "one", [an_approval()])
    change(store)
    assert (store.components.approvals() == [an_approval()]) is stays
    store.components.put({"mpi": "one"}, replace=True)
    assert (store.components.approvals() == [an_approval()]) is stays  # also when it is as it was again


def test_a_component_that_was_changed_meanwhile_is_not_approved(store: ServerStore) -> None:
    with pytest.raises(InvalidInputError, match="was changed meanwhile"):
        store.components.approve("mpi", "two", [an_approval()])
    with pytest.raises(NotFoundError):
        store.components.approve("gone", "one", [an_approval(component="gone")])
    assert store.components.approvals() == []


def test_of_a_change_and_an_approval_at_the_same_time_the_change_wins(reopen: BooksOpener) -> None:
    one, other = reopen(), reopen()
    for turn in range(20):
        one.components.put({"mpi": f"before {turn}"}, replace=True)
        start = threading.Barrier(2)

        def approve(text: str = f"before {turn}", start: threading.Barrier = start) -> None:
            start.wait()
            with suppress(LuthierError):  # the change was first
                other.components.approve("mpi", text, [an_approval()])

        thread = threading.Thread(target=approve)
        thread.start()
        start.wait()
        one.components.put({"mpi": f"after {turn}"}, replace=True)
        thread.join()
        assert one.components.approvals() == []
