"""Explanations of experiments, over each kind of database."""

from collections.abc import Callable

import pytest
from tests.store.samples import NASTY

from luthier.errors import NotFoundError, StoreError
from luthier.store.server_store import ServerStore
from luthier.trial import Json

Reopen = Callable[[], ServerStore]


def test_the_last_explanation_is_kept(server_store: ServerStore, reopen: Reopen) -> None:
    number, other = (server_store.history.create(name, {}, 1.0).id for name in ("one", "two"))
    assert server_store.explanations.get(number) is None
    content: dict[str, Json] = {"at": 1.5, "notes": [NASTY], "best": {"quantities": {"wall_s": 0.25}}}
    server_store.explanations.put(number, {"at": 0.5})
    server_store.explanations.put(number, content)
    assert reopen().explanations.get(number) == content
    assert server_store.explanations.get(other) is None


def test_it_is_deleted_with_its_experiment(server_store: ServerStore) -> None:
    number = server_store.history.create("one", {}, 1.0).id
    server_store.explanations.put(number, {"at": 1.0})
    assert server_store.queue.delete(number, None)
    assert server_store.explanations.get(number) is None
    with pytest.raises(NotFoundError, match="not in this store"):
        server_store.explanations.put(number, {"at": 2.0})


def test_numbers_that_are_not_finite_are_refused(server_store: ServerStore) -> None:
    number = server_store.history.create("one", {}, 1.0).id
    with pytest.raises(StoreError, match="explanation"):
        server_store.explanations.put(number, {"at": float("nan")})
    assert server_store.explanations.get(number) is None
