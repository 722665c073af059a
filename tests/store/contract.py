"""Tests that every store must pass: derive a class from one of these, and define the fixtures it needs.

```python
class TestMyStore(StoreContract):
    @pytest.fixture
    def store(self) -> Store: ...
```
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.store.run_contract import RunContract
from tests.store.samples import ME, NASTY, OTHER, a_run, ended
from tests.store.strategies import examples, jsons, short_texts, texts

from luthier.errors import InUseError, InvalidInputError, NotFoundError
from luthier.store.base import Machine, Owner, Period, RequestedBy, StopRequest, Store
from luthier.trial import BatchJob, Completed, Json, Lost, Run, TimedOut

Reopen = Callable[[], Store]
"""Opens another store on the same data, as another process would."""


class _ExperimentTests:
    def test_new_experiment_runs_and_belongs_to_nobody(self, store: Store) -> None:
        """The given values come back; all others have their initial values."""
        record = store.create("sort", {"budget": 3, "space": {"threads": [1, 2.0, True, None]}}, 12.25)
        assert (record.name, record.created_at, record.status) == ("sort", 12.25, "running")
        assert (record.owner, record.seen_at, record.result) == (None, None, None)
        assert not record.stop_requested
        assert record.runs == 0
        assert (record.unattended, record.author, record.shared, record.source) == (False, "", False, None)
        assert record.settings == {"budget": 3, "space": {"threads": [1, 2.0, True, None]}}
        assert store.experiment(record.id) == record

    def test_experiments_are_listed_oldest_first(self, store: Store) -> None:
        known = list(store.experiments())
        first, second = store.create("b", {}, 2.0), store.create("a", {}, 1.0)
        assert list(store.experiments()) == [*known, first, second]
        assert first.uid != second.uid

    def test_runs_are_counted(self, store: Store) -> None:
        record = store.create("x", {}, 0.0)
        store.append(record.id, a_run(0))
        store.append(record.id, a_run(1))
        assert store.experiment(record.id).runs == 2
        assert store.experiments()[-1].runs == 2

    def test_unknown_experiment_is_not_found(self, store: Store) -> None:
        for unknown in (0, -1, 987_654, 2**31, 2**63, 10**30):
            for call in _every_call(store, unknown):
                with pytest.raises(NotFoundError, match="not in this store"):
                    call()

    @examples
    @given(name=texts, wanted=st.dictionaries(texts, jsons, max_size=4))
    def test_records_come_back_as_they_were_written(self, store: Store, name: str, wanted: dict[str, Json]) -> None:
        """Any text as a name, any JSON as settings and as a result."""
        record = store.create(name, wanted, 0.0)
        owner = Owner(name, 7, name)
        assert store.claim(record.id, owner, 1.0, None)
        assert store.experiment(record.id).owner == owner
        assert not store.heartbeat(record.id, owner, 2.0)
        store.close(record.id, owner, "finished", wanted)
        found = store.experiment(record.id)
        assert (found.name, found.settings, found.result) == (name, wanted, wanted)
        assert list(found.settings) == list(wanted)

    def test_values_are_copied_on_the_way_in(self, store: Store) -> None:
        """Later changes of the argument do not change the store."""
        wanted: dict[str, Json] = {"space": {"threads": [1]}}
        metrics = {"iops": 1.0}
        created = store.create("x", wanted, 0.0)
        run = a_run(0)
        store.append(created.id, run)
        store.finish(created.id, replace(ended(run, Completed(1.0)), metrics=metrics))
        cast("dict[str, list[int]]", wanted["space"])["threads"].append(2)
        metrics["iops"] = 2.0
        assert created.settings == {"space": {"threads": [1]}}
        assert store.experiment(created.id).settings == {"space": {"threads": [1]}}
        assert store.runs(created.id)[0].metrics == {"iops": 1.0}

    def test_values_are_copied_on_the_way_out(self, store: Store) -> None:
        """Changes of a returned value do not change the store."""
        created = store.create("x", {"space": {"threads": [1]}}, 0.0)
        store.append(created.id, a_run(0))
        for record in (created, store.experiment(created.id), store.experiments()[-1]):
            cast("dict[str, dict[str, list[int]]]", record.settings)["space"]["threads"].append(2)
        cast("list[Run]", store.runs(created.id)).clear()
        assert store.experiment(created.id).settings == {"space": {"threads": [1]}}
        assert len(store.runs(created.id)) == 1

    def test_creations_at_once_get_different_ids(self, store: Store) -> None:
        with ThreadPoolExecutor(8) as pool:
            records = list(pool.map(lambda index: store.create(str(index), {}, 0.0), range(16)))
        assert len({record.id for record in records}) == len({record.uid for record in records}) == 16
        assert {store.experiment(record.id).name for record in records} == {str(index) for index in range(16)}


class _RequestTests:
    @examples
    @given(origin=st.builds(RequestedBy, short_texts, st.none() | texts, st.none() | short_texts))
    def test_experiment_with_an_origin_waits_for_a_worker(self, store: Store, origin: RequestedBy) -> None:
        """With any author and any source text."""
        count = len(store.experiments())
        record = store.create("x", {}, 1.0, origin)
        again = store.create("y", {"a": 1}, 2.0, origin)
        if origin.key is None:
            assert again.id != record.id
        else:
            assert again == record
        if len(store.experiments()) > count:  # no earlier example had the same key
            assert (record.status, record.unattended, record.owner) == ("queued", True, None)
            assert (record.author, record.source, record.shared) == (origin.author, origin.source, False)
        assert store.experiment(record.id) == record

    def test_key_is_of_one_author(self, store: Store) -> None:
        """The status of the experiment does not matter."""
        first = store.create("x", {}, 1.0, RequestedBy("ann", "text", "k"))
        store.claim(first.id, ME, 2.0, None)
        store.append(first.id, a_run(0))
        others = [
            RequestedBy("bob", "text", "k"),
            RequestedBy("ann", "text", "K"),
            RequestedBy("ann", "text"),
            RequestedBy("ann", "text"),
        ]
        assert len({first.id, *(store.create("x", {}, 1.0, other).id for other in others)}) == 5
        assert store.create("y", {"a": 1}, 9.0, RequestedBy("ann", "other", "k")) == store.experiment(first.id)

    def test_names_and_keys_have_a_length(self, store: Store) -> None:
        """A database must be able to index them; texts that cannot be compressed are the worst case."""
        widest = "".join(chr(0x20000 + 7919 * index % 40_000) for index in range(200))
        assert store.create("x", {}, 0.0, RequestedBy(widest, None, widest)).author == widest
        count = len(store.experiments())
        for origin in (RequestedBy("a" * 201), RequestedBy("ann", None, "k" * 201)):
            with pytest.raises(InvalidInputError, match="201 characters; the limit is 200"):
                store.create("x", {}, 0.0, origin)
        assert len(store.experiments()) == count

    def test_requests_at_once_with_one_key_make_one_experiment(self, store: Store) -> None:
        with ThreadPoolExecutor(8) as pool:
            records = list(
                pool.map(lambda index: store.create(str(index), {}, 0.0, RequestedBy("ann", None, "k")), range(8))
            )
        assert len({record.id for record in records}) == len({record.name for record in records}) == 1

    def test_claim_takes_up_what_is_queued(self, store: Store) -> None:
        """It stays unattended: another worker can continue after a crash."""
        key = store.create("x", {}, 0.0, RequestedBy("ann")).id
        assert store.claim(key, ME, 1.0, None, "queued")
        record = store.experiment(key)
        assert (record.status, record.owner, record.unattended) == ("running", ME, True)

    def test_stop_of_a_queued_experiment_is_at_once(self, store: Store) -> None:
        """A worker that has just seen it in the queue does not start it; resuming it later works."""
        key = store.create("x", {}, 0.0, RequestedBy("ann")).id
        store.request_stop(key)
        assert (store.experiment(key).status, store.experiment(key).stop_requested) == ("stopped", None)
        assert not store.claim(key, ME, 1.0, None, "queued")
        assert store.experiment(key).owner is None
        assert store.claim(key, ME, 2.0, None, "stopped")
        assert store.heartbeat(key, ME, 3.0) is None


class _OwnerTests:
    def test_claim_compares_the_owner(self, store: Store) -> None:
        key = store.create("x", {}, 0.0).id
        assert not store.claim(key, ME, 5.0, OTHER)
        assert store.claim(key, ME, 5.0, None)
        assert (store.experiment(key).owner, store.experiment(key).seen_at) == (ME, 5.0)
        for wrong in (None, OTHER, replace(ME, pid=2), replace(ME, started="101")):
            assert not store.claim(key, OTHER, 6.0, wrong)
        assert store.claim(key, OTHER, 7.0, ME)
        assert (store.experiment(key).owner, store.experiment(key).seen_at) == (OTHER, 7.0)

    def test_claim_changes_the_settings_or_nothing(self, store: Store) -> None:
        """They come with the claim, so that no process ever works with settings of another one."""
        key = store.create("x", {"budget": 5}, 0.0).id
        assert store.claim(key, ME, 1.0, None)
        store.request_stop(key)
        assert not store.claim(key, OTHER, 2.0, None, settings={"budget": 9})
        assert store.experiment(key).settings == {"budget": 5}
        store.close(key, ME, "finished", None)
        assert not store.claim(key, OTHER, 2.0, None, "stopped", settings={"budget": 9})
        assert store.claim(key, OTHER, 2.0, None, "finished", settings={"budget": 9})
        record = store.experiment(key)
        assert (record.settings, record.status, record.owner) == ({"budget": 9}, "running", OTHER)
        assert store.heartbeat(key, OTHER, 3.0) is None

    def test_a_request_is_not_for_new_settings(self, store: Store) -> None:
        key = store.create("x", {}, 0.0).id
        store.claim(key, ME, 1.0, None)
        store.request_stop(key, "verify")
        assert store.claim(key, OTHER, 2.0, ME, settings={"budget": 9})
        assert store.heartbeat(key, OTHER, 3.0) is None

    def test_heartbeat_is_for_the_owner(self, store: Store) -> None:
        """Others learn that they lost the experiment, and change nothing."""
        key = store.create("x", {}, 0.0).id
        with pytest.raises(InUseError, match="no process"):
            store.heartbeat(key, ME, 1.0)
        store.claim(key, ME, 1.0, None)
        assert store.heartbeat(key, ME, 2.0) is None
        with pytest.raises(InUseError, match="process 1 on here"):
            store.heartbeat(key, OTHER, 3.0)
        assert store.experiment(key).seen_at == 2.0

    def test_batch_jobs_are_kept_until_the_next_claim_or_close(self, store: Store) -> None:
        """They come with a heartbeat; one without jobs leaves them as they are."""
        key = store.create("x", {}, 0.0).id
        assert store.experiment(key).jobs == {}
        waits, runs = BatchJob("77", "PENDING", NASTY), BatchJob("78.pbs", "RUNNING", began_at=1.5)
        store.claim(key, ME, 1.0, None)
        store.heartbeat(key, ME, 2.0, {0: waits, 12: runs})
        store.heartbeat(key, ME, 3.0)
        assert store.experiment(key).jobs == {0: waits, 12: runs}
        with pytest.raises(InUseError):
            store.heartbeat(key, OTHER, 3.0, {})
        store.claim(key, OTHER, 4.0, ME)
        assert store.experiment(key).jobs == {}
        store.heartbeat(key, OTHER, 5.0, {1: runs})
        store.heartbeat(key, OTHER, 6.0, {})
        assert store.experiment(key).jobs == {}
        store.heartbeat(key, OTHER, 7.0, {1: runs})
        store.close(key, OTHER, "stopped", None)
        assert store.experiment(key).jobs == {}

    def test_request_to_stop_reaches_the_owner(self, store: Store) -> None:
        """Until the experiment is closed."""
        key, other = store.create("x", {}, 0.0).id, store.create("y", {}, 0.0).id
        store.claim(key, ME, 1.0, None)
        store.claim(other, ME, 1.0, None)
        store.request_stop(key)
        assert store.experiment(key).stop_requested
        assert store.heartbeat(key, ME, 2.0) == "drain"
        assert store.heartbeat(other, ME, 2.0) is None
        store.close(key, ME, "stopped", None)
        assert not store.experiment(key).stop_requested

    def test_old_request_to_stop_does_not_stop_a_resumed_experiment(self, store: Store) -> None:
        """It counts before the first claim, not after the experiment is closed or its owner is dead."""
        key = store.create("x", {}, 0.0).id
        store.request_stop(key)
        store.claim(key, ME, 1.0, None)
        assert store.heartbeat(key, ME, 2.0) == "drain"
        store.claim(key, OTHER, 3.0, ME)
        assert store.heartbeat(key, OTHER, 4.0) is None
        store.close(key, OTHER, "stopped", None)
        store.request_stop(key)
        store.claim(key, ME, 5.0, None)
        assert store.heartbeat(key, ME, 6.0) is None

    def test_request_to_kill_is_stronger(self, store: Store) -> None:
        """A later request to drain does not weaken it; it is cleared when the experiment is closed or taken over."""
        key = store.create("x", {}, 0.0).id
        store.claim(key, ME, 1.0, None)
        for how, expected in (("drain", "drain"), ("kill", "kill"), ("drain", "kill")):
            store.request_stop(key, cast("StopRequest", how))
            assert store.heartbeat(key, ME, 2.0) == store.experiment(key).stop_requested == expected
        store.claim(key, OTHER, 3.0, ME)
        assert store.heartbeat(key, OTHER, 4.0) is None
        store.request_stop(key, "kill")
        store.close(key, OTHER, "stopped", None)
        assert store.experiment(key).stop_requested is None
        store.request_stop(key, "kill")
        store.claim(key, ME, 5.0, None)
        assert store.heartbeat(key, ME, 6.0) is None

    def test_request_to_verify_outlives_its_owner(self, store: Store) -> None:
        """It is a decision about the search; stronger requests come first, and an ended experiment has none."""
        key = store.create("x", {}, 0.0).id
        store.claim(key, ME, 1.0, None)
        store.request_stop(key, "verify")
        assert store.heartbeat(key, ME, 2.0) == store.experiment(key).stop_requested == "verify"
        store.claim(key, OTHER, 3.0, ME)
        assert store.heartbeat(key, OTHER, 4.0) == "verify"
        store.close(key, OTHER, "failed", None)
        store.claim(key, ME, 5.0, None)
        assert store.heartbeat(key, ME, 6.0) == "verify"
        for how, expected in (("drain", "drain"), ("verify", "drain"), ("kill", "kill"), ("verify", "kill")):
            store.request_stop(key, cast("StopRequest", how))
            assert store.heartbeat(key, ME, 7.0) == expected
        store.close(key, ME, "stopped", None)
        assert store.experiment(key).stop_requested is None
        store.claim(key, ME, 8.0, None)
        store.request_stop(key, "verify")
        store.close(key, ME, "finished", None)
        assert store.experiment(key).stop_requested is None

    def test_periods_of_work_are_recorded(self, store: Store) -> None:
        """A period ends with the last heartbeat, also that of a process which died."""
        here, there = Machine("here", "fast é", 8, "1.0"), Machine("there", "", 1, "2.0")
        key = store.create("x", {}, 0.0).id
        assert store.experiment(key).periods == ()
        store.claim(key, ME, 1.0, None, None, here)
        assert store.experiment(key).periods == (Period(1.0, None, here),)
        store.heartbeat(key, ME, 2.5)
        assert not store.claim(key, OTHER, 6.0, None, None, there)
        store.claim(key, OTHER, 7.0, ME, None, there)
        store.heartbeat(key, OTHER, 8.0)
        store.close(key, OTHER, "stopped", None)
        assert store.experiment(key).periods == (Period(1.0, 2.5, here), Period(7.0, None, there))
        assert store.experiment(key).seen_at == 8.0

    def test_former_owner_cannot_write(self, store: Store) -> None:
        """Not even the same process with an older claim."""
        key = store.create("x", {}, 0.0).id
        first, again = replace(ME, claim="a"), replace(ME, claim="b")
        with pytest.raises(InUseError, match="no process"):
            store.append(key, a_run(0), first)
        store.claim(key, first, 1.0, None)
        store.append(key, a_run(0), first)
        for late, owner in ((first, OTHER), (OTHER, again)):
            store.claim(key, owner, 2.0, late)
            for call in _every_write(store, key, late):
                with pytest.raises(InUseError, match=f"process 1 on {owner.host}"):
                    call()
        assert list(store.runs(key)) == [a_run(0)]
        store.finish(key, ended(a_run(0), Completed(1.0)), again)
        assert store.experiment(key).owner == again

    def test_close_ends_ownership_and_claim_resumes(self, store: Store) -> None:
        """The result stays readable."""
        key = store.create("x", {}, 0.0).id
        store.claim(key, ME, 1.0, None)
        store.close(key, ME, "stopped", {"best": {"threads": 4}})
        record = store.experiment(key)
        assert (record.owner, record.status, record.result) == (None, "stopped", {"best": {"threads": 4}})
        assert store.claim(key, OTHER, 2.0, None)
        assert store.experiment(key).status == "running"
        store.close(key, OTHER, "failed", None)
        assert (store.experiment(key).status, store.experiment(key).result) == ("failed", None)

    def test_close_is_for_the_owner_and_idempotent(self, store: Store) -> None:
        """A process that lost the experiment cannot close it."""
        key = store.create("x", {}, 0.0).id
        store.claim(key, ME, 1.0, None)
        with pytest.raises(InUseError, match="process 1 on here"):
            store.close(key, OTHER, "finished", {"a": 1})
        assert store.experiment(key).status == "running"
        store.close(key, ME, "finished", {"a": 1})
        store.close(key, ME, "finished", {"a": 1})
        with pytest.raises(InUseError, match="no process"):
            store.close(key, ME, "failed", None)
        assert store.experiment(key).status == "finished"

    def test_one_of_many_claims_wins(self, store: Store) -> None:
        key = store.create("x", {}, 0.0).id
        owners = [Owner("here", 1, str(index)) for index in range(8)]
        with ThreadPoolExecutor(len(owners)) as pool:
            won = list(pool.map(lambda owner: store.claim(key, owner, 1.0, None), owners))
        assert won.count(True) == 1
        assert store.experiment(key).owner == owners[won.index(True)]


class StoreContract(_ExperimentTests, _RequestTests, RunContract, _OwnerTests):
    """The tests for every store; needs the fixture `store`."""


class PersistentStoreContract(StoreContract):
    """The tests for stores that outlive their process; needs the fixtures `store` and `reopen`."""

    def test_everything_is_there_after_reopening(self, store: Store, reopen: Reopen) -> None:
        """Records and runs."""
        key = store.create("x", {"a": [1, {"b": None}]}, 0.0, RequestedBy("ann", "text", "k")).id
        store.claim(key, ME, 1.0, None)
        store.append(key, a_run(0))
        store.finish(key, ended(a_run(0), TimedOut("limit", 3.5)))
        store.append(key, a_run(1))
        again = reopen()
        assert list(again.experiments()) == list(store.experiments())
        assert list(again.runs(key)) == list(store.runs(key))
        assert again.create("y", {}, 1.0, RequestedBy("ann", None, "k")) == store.experiment(key)

    def test_stop_is_asked_from_elsewhere(self, store: Store, reopen: Reopen) -> None:
        """As `luthier stop` does."""
        key = store.create("x", {}, 0.0).id
        store.claim(key, ME, 1.0, None)
        reopen().request_stop(key)
        assert store.heartbeat(key, ME, 2.0) == "drain"

    def test_nothing_is_written_behind_a_claim(self, store: Store, reopen: Reopen) -> None:
        """A process that claims an experiment and then reads its history has read all of it."""
        key = store.create("x", {}, 0.0).id
        store.claim(key, ME, 1.0, None)

        def write() -> int:
            for number in range(10_000):
                try:
                    store.append(key, a_run(number), ME)
                except InUseError:
                    return number
            return -1

        other = reopen()
        with ThreadPoolExecutor(1) as pool:
            written = pool.submit(write)
            while len(other.runs(key)) < 5:
                pass
            assert other.claim(key, OTHER, 2.0, ME)
            seen = len(other.runs(key))
            assert written.result() == seen == len(other.runs(key))

    def test_one_of_many_claims_wins_over_many_connections(self, store: Store, reopen: Reopen) -> None:
        """As from several processes."""
        key = store.create("x", {}, 0.0).id
        owners = [Owner("here", index, "1") for index in range(6)]
        others = [reopen() for _ in owners]
        with ThreadPoolExecutor(len(owners)) as pool:
            won = list(pool.map(lambda pair: pair[0].claim(key, pair[1], 1.0, None), zip(others, owners, strict=True)))
        assert won.count(True) == 1
        assert store.experiment(key).owner == owners[won.index(True)]

    def test_the_same_run_from_many_connections_is_recorded_once(self, store: Store, reopen: Reopen) -> None:
        """Retries never create a second run."""
        key = store.create("x", {}, 0.0).id
        others = [reopen() for _ in range(4)]

        def write(other: Store) -> None:
            for number in range(10):
                other.append(key, a_run(number))
                other.finish(key, ended(a_run(number), Completed(float(number))))

        with ThreadPoolExecutor(len(others)) as pool:
            list(pool.map(write, others))
        assert list(store.runs(key)) == [ended(a_run(number), Completed(float(number))) for number in range(10)]

    def test_creations_at_once_over_many_connections_get_different_ids(self, store: Store, reopen: Reopen) -> None:
        """As from several processes."""
        others = [reopen() for _ in range(4)]
        with ThreadPoolExecutor(len(others)) as pool:
            records = list(pool.map(lambda other: other.create("x", {}, 0.0), others * 4))
        assert len({record.id for record in records}) == 16
        assert {record.id for record in records} <= {record.id for record in store.experiments()}

    def test_requests_at_once_over_many_connections_make_one_experiment(self, store: Store, reopen: Reopen) -> None:
        """As from a client that retries while its first request is still active."""
        tries = [(reopen(), key) for key in "abc" for _ in range(4)]
        with ThreadPoolExecutor(len(tries)) as pool:
            made = list(pool.map(lambda one: one[0].create("x", {}, 0.0, RequestedBy("ann", None, one[1])), tries))
        assert [record.id for record in made[::4]] == [record.id for record in made[3::4]]
        assert len({record.id for record in made}) == len(store.experiments()) == 3


def _every_write(store: Store, key: int, owner: Owner) -> Sequence[Callable[[], object]]:
    return (
        lambda: store.append(key, a_run(1), owner),
        lambda: store.finish(key, ended(a_run(0), Lost("?")), owner),
        lambda: store.heartbeat(key, owner, 3.0),
        lambda: store.close(key, owner, "failed", None),
    )


def _every_call(store: Store, key: int) -> Sequence[Callable[[], object]]:
    run = a_run(0)
    return (
        lambda: store.experiment(key),
        lambda: store.runs(key),
        lambda: store.runs(key, since=5),
        lambda: store.claim(key, ME, 0.0, None),
        lambda: store.heartbeat(key, ME, 0.0),
        lambda: store.request_stop(key),
        lambda: store.append(key, run),
        lambda: store.finish(key, ended(run, Lost("?"))),
        lambda: store.close(key, ME, "stopped", None),
    )
