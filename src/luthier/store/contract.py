"""What every store promises, as tests: derive a class from one of these, and give it the fixtures it names.

```python
class TestMyStore(StoreContract):
    @pytest.fixture
    def store(self) -> Store: ...
```
"""

import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from luthier.errors import InUseError, NotFoundError, StoreError
from luthier.store.base import Json, Owner, Store
from luthier.store.samples import ME, NASTY, OTHER, a_run, ended, submitted
from luthier.store.strategies import ended_runs, jsons, texts
from luthier.trial import Completed, Config, Failed, Lost, Pruned, Run, TimedOut, Value

Reopen = Callable[[], Store]
"""Opens one more store over the same data, as another process would."""

# Every example works on an experiment of its own, so that one store may serve them all; several classes inherit a test.
_examples = settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.differing_executors],
)


class _ExperimentPromises:
    def test_new_experiment_runs_and_belongs_to_nobody(self, store: Store) -> None:
        """What was given comes back; the rest is as if nothing had happened yet."""
        record = store.create("sort", {"budget": 3, "space": {"threads": [1, 2.0, True, None]}}, 12.25)
        assert (record.name, record.created_at, record.status) == ("sort", 12.25, "running")
        assert (record.owner, record.seen_at, record.result) == (None, None, None)
        assert not record.stop_requested
        assert record.runs == 0
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

    @_examples
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
        """What the caller changes later does not change the store."""
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
        """What the caller does to an answer does not change the store."""
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


class _RunPromises:
    @_examples
    @given(history=ended_runs())
    def test_runs_come_back_as_they_were_written(self, store: Store, history: Sequence[Run]) -> None:
        """Before and after they ended, with the types of their values and the order of their keys."""
        key = store.create("x", {}, 0.0).id
        for run in history:
            store.append(key, submitted(run))
        assert list(store.runs(key)) == [submitted(run) for run in history]
        for run in history:
            store.finish(key, run)
        found = store.runs(key)
        assert list(found) == list(history)
        for run, same in zip(history, found, strict=True):
            assert _typed(run.config) == _typed(same.config)
            assert list(run.metrics) == list(same.metrics)

    def test_nasty_text_survives(self, store: Store) -> None:
        """Output of broken programs ends up in reasons, names of files in logs."""
        key = store.create(NASTY, {NASTY: NASTY}, 0.0).id
        run = a_run(0, **{NASTY: NASTY})
        last = replace(ended(run, Failed(NASTY)), metrics={NASTY: 1.0}, logs=NASTY)
        store.append(key, run)
        store.finish(key, last)
        assert list(store.runs(key)) == [last]
        record = store.experiment(key)
        assert (record.name, record.settings) == (NASTY, {NASTY: NASTY})

    def test_types_of_values_survive(self, store: Store) -> None:
        """1, 1.0, True and "1" are four values."""
        key = store.create("x", {}, 0.0).id
        values: tuple[Value, ...] = (
            1,
            1.0,
            True,
            "1",
            0,
            0.0,
            False,
            "",
            2**70,
            5e-324,
            0.1 + 0.2,
            1.7976931348623157e308,
        )
        run = a_run(0, **{f"z{-index}": value for index, value in enumerate(values)})
        store.append(key, run)
        assert _typed(store.runs(key)[0].config) == _typed(run.config)

    def test_runs_are_listed_in_order_of_submission(self, store: Store) -> None:
        """Whatever their numbers and the order of writing."""
        key = store.create("x", {}, 0.0).id
        for number, order in ((5, 4), (1, 9), (3, 0)):
            store.append(key, replace(a_run(number), submit_order=order))
        assert [run.number for run in store.runs(key)] == [3, 5, 1]

    def test_append_is_idempotent(self, store: Store) -> None:
        """Also after the run has ended."""
        key = store.create("x", {}, 0.0).id
        run = a_run(0)
        store.append(key, run)
        store.append(key, run)
        assert list(store.runs(key)) == [run]
        last = ended(run, Completed(1.0))
        store.finish(key, last)
        store.append(key, run)
        assert list(store.runs(key)) == [last]

    @pytest.mark.parametrize(
        "different",
        [
            replace(a_run(0, threads=0), trial=9),
            replace(a_run(0, threads=0), purpose="verify"),
            replace(a_run(0, threads=0), submitted_at=1.0),
            a_run(0, threads=0.0),
        ],
    )
    def test_number_cannot_be_taken_twice(self, store: Store, different: Run) -> None:
        """Neither by an append nor by an ending of a different run."""
        key = store.create("x", {}, 0.0).id
        run = a_run(0, threads=0)
        store.append(key, run)
        with pytest.raises(StoreError, match="number 0"):
            store.append(key, different)
        with pytest.raises(StoreError, match="number 0"):
            store.finish(key, ended(different, Completed(1.0)))
        assert list(store.runs(key)) == [run]

    def test_places_in_the_history_cannot_be_taken_twice(self, store: Store) -> None:
        """They are what a replay goes by."""
        key = store.create("x", {}, 0.0).id
        first, second = a_run(0), a_run(1)
        store.append(key, first)
        store.append(key, second)
        with pytest.raises(StoreError, match="submit_order 0"):
            store.append(key, replace(a_run(2), submit_order=0))
        store.finish(key, ended(first, Completed(1.0)))
        with pytest.raises(StoreError, match="finish_order 1"):
            store.finish(key, replace(ended(second, Completed(1.0)), finish_order=1))
        assert list(store.runs(key)) == [ended(first, Completed(1.0)), second]

    def test_first_ending_stays(self, store: Store) -> None:
        """A run that was reported lost and ends after all does not change the history."""
        key = store.create("x", {}, 0.0).id
        run = a_run(0)
        store.append(key, run)
        last = ended(run, Lost("node died"))
        store.finish(key, last)
        store.finish(key, last)
        store.finish(key, replace(ended(run, Completed(3.0)), finish_order=7))
        assert list(store.runs(key)) == [last]

    def test_only_a_recorded_run_can_end(self, store: Store) -> None:
        """In the experiment it belongs to."""
        key, other = store.create("x", {}, 0.0).id, store.create("y", {}, 0.0).id
        run = a_run(4)
        store.append(other, run)
        with pytest.raises(StoreError, match="run 4 was never recorded"):
            store.finish(key, ended(run, Completed(1.0)))
        assert list(store.runs(other)) == [run]

    def test_append_takes_no_ending_and_finish_needs_one(self, store: Store) -> None:
        """Neither loses nor invents anything."""
        key = store.create("x", {}, 0.0).id
        run = a_run(0)
        with pytest.raises(StoreError, match="append it without"):
            store.append(key, ended(run, Completed(1.0)))
        store.append(key, run)
        with pytest.raises(StoreError, match="no outcome"):
            store.finish(key, run)
        assert list(store.runs(key)) == [run]

    @pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
    def test_numbers_that_are_none_are_refused(self, store: Store, number: float) -> None:
        """Nothing of the run or the experiment is written then."""
        key = store.create("x", {}, 0.0).id
        run = a_run(0)
        with pytest.raises(StoreError, match="finite"):
            store.append(key, a_run(0, ratio=number))
        store.append(key, run)
        bad = [
            ended(run, Completed(number)),
            ended(run, Completed(1.0, (number,))),
            ended(run, Pruned("slow", number)),
            replace(ended(run, Completed(1.0)), duration_s=number),
            replace(ended(run, Completed(1.0)), metrics={"iops": number}),
        ]
        for last in bad:
            with pytest.raises(StoreError, match="finite"):
                store.finish(key, last)
        before = len(store.experiments())
        with pytest.raises(StoreError, match="finite"):
            store.create("y", {"limit": number}, 0.0)
        assert list(store.runs(key)) == [run]
        assert len(store.experiments()) == before


class _OwnerPromises:
    def test_claim_compares_the_owner(self, store: Store) -> None:
        key = store.create("x", {}, 0.0).id
        assert not store.claim(key, ME, 5.0, OTHER)
        assert store.claim(key, ME, 5.0, None)
        assert (store.experiment(key).owner, store.experiment(key).seen_at) == (ME, 5.0)
        for wrong in (None, OTHER, replace(ME, pid=2), replace(ME, started="101")):
            assert not store.claim(key, OTHER, 6.0, wrong)
        assert store.claim(key, OTHER, 7.0, ME)
        assert (store.experiment(key).owner, store.experiment(key).seen_at) == (OTHER, 7.0)

    def test_heartbeat_is_for_the_owner(self, store: Store) -> None:
        """Others learn that they lost the experiment, and change nothing."""
        key = store.create("x", {}, 0.0).id
        with pytest.raises(InUseError, match="nobody"):
            store.heartbeat(key, ME, 1.0)
        store.claim(key, ME, 1.0, None)
        assert store.heartbeat(key, ME, 2.0) is False
        with pytest.raises(InUseError, match="process 1 on here"):
            store.heartbeat(key, OTHER, 3.0)
        assert store.experiment(key).seen_at == 2.0

    def test_request_to_stop_reaches_the_owner(self, store: Store) -> None:
        """Until the experiment is closed."""
        key, other = store.create("x", {}, 0.0).id, store.create("y", {}, 0.0).id
        store.claim(key, ME, 1.0, None)
        store.claim(other, ME, 1.0, None)
        store.request_stop(key)
        assert store.experiment(key).stop_requested
        assert store.heartbeat(key, ME, 2.0) is True
        assert store.heartbeat(other, ME, 2.0) is False
        store.close(key, ME, "stopped", None)
        assert not store.experiment(key).stop_requested

    def test_request_to_stop_does_not_haunt_those_who_resume(self, store: Store) -> None:
        """It counts when work is about to begin, not when work is over or its owner dead."""
        key = store.create("x", {}, 0.0).id
        store.request_stop(key)
        store.claim(key, ME, 1.0, None)
        assert store.heartbeat(key, ME, 2.0) is True
        store.claim(key, OTHER, 3.0, ME)
        assert store.heartbeat(key, OTHER, 4.0) is False
        store.close(key, OTHER, "stopped", None)
        store.request_stop(key)
        store.claim(key, ME, 5.0, None)
        assert store.heartbeat(key, ME, 6.0) is False

    def test_close_ends_ownership_and_claim_resumes(self, store: Store) -> None:
        """What was concluded stays readable."""
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
        """One who lost the experiment cannot end it."""
        key = store.create("x", {}, 0.0).id
        store.claim(key, ME, 1.0, None)
        with pytest.raises(InUseError, match="process 1 on here"):
            store.close(key, OTHER, "finished", {"a": 1})
        assert store.experiment(key).status == "running"
        store.close(key, ME, "finished", {"a": 1})
        store.close(key, ME, "finished", {"a": 1})
        with pytest.raises(InUseError, match="nobody"):
            store.close(key, ME, "failed", None)
        assert store.experiment(key).status == "finished"

    def test_one_of_many_claims_wins(self, store: Store) -> None:
        key = store.create("x", {}, 0.0).id
        owners = [Owner("here", 1, str(index)) for index in range(8)]
        with ThreadPoolExecutor(len(owners)) as pool:
            won = list(pool.map(lambda owner: store.claim(key, owner, 1.0, None), owners))
        assert won.count(True) == 1
        assert store.experiment(key).owner == owners[won.index(True)]


class StoreContract(_ExperimentPromises, _RunPromises, _OwnerPromises):
    """Promises of every store; needs the fixture `store`."""


class PersistentStoreContract(StoreContract):
    """Promises of stores that outlive their process; needs the fixtures `store` and `reopen`."""

    def test_everything_is_there_after_reopening(self, store: Store, reopen: Reopen) -> None:
        """Records and runs."""
        key = store.create("x", {"a": [1, {"b": None}]}, 0.0).id
        store.claim(key, ME, 1.0, None)
        store.append(key, a_run(0))
        store.finish(key, ended(a_run(0), TimedOut("limit", 3.5)))
        store.append(key, a_run(1))
        again = reopen()
        assert list(again.experiments()) == list(store.experiments())
        assert list(again.runs(key)) == list(store.runs(key))

    def test_stop_is_asked_from_elsewhere(self, store: Store, reopen: Reopen) -> None:
        """As `luthier stop` does."""
        key = store.create("x", {}, 0.0).id
        store.claim(key, ME, 1.0, None)
        reopen().request_stop(key)
        assert store.heartbeat(key, ME, 2.0) is True

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
        """Retries never make two of one."""
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


def _every_call(store: Store, key: int) -> Sequence[Callable[[], object]]:
    run = a_run(0)
    return (
        lambda: store.experiment(key),
        lambda: store.runs(key),
        lambda: store.claim(key, ME, 0.0, None),
        lambda: store.heartbeat(key, ME, 0.0),
        lambda: store.request_stop(key),
        lambda: store.append(key, run),
        lambda: store.finish(key, ended(run, Lost("?"))),
        lambda: store.close(key, ME, "stopped", None),
    )


def _typed(config: Config) -> list[tuple[str, type[Value], Value]]:
    return [(name, type(value), value) for name, value in config.items()]
