"""Tests about runs that every store must pass; part of `tests.store.contract`."""

import math
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from tests.store.samples import NASTY, a_run, ended, submitted
from tests.store.strategies import ended_runs, examples

from luthier.errors import StoreError
from luthier.store.base import Store
from luthier.trial import Completed, Config, Failed, Lost, Pruned, Run, Value


class RunContract:
    """Needs the fixture `store`."""

    @examples
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
        """For any numbers and any order of writing."""
        key = store.create("x", {}, 0.0).id
        for number, order in ((5, 4), (1, 9), (3, 0)):
            store.append(key, replace(a_run(number), submit_order=order))
        assert [run.number for run in store.runs(key)] == [3, 5, 1]

    @examples
    @given(history=ended_runs())
    def test_runs_since_an_event(self, store: Store, history: Sequence[Run]) -> None:
        """Those that were submitted then or later, and those that ended then or later."""
        key = store.create("x", {}, 0.0).id
        for run in history:
            store.append(key, submitted(run))
        for run in history[1:]:
            store.finish(key, run)
        known = [submitted(history[0]), *history[1:]]
        for since in range(-1, 2 * len(history) + 2):
            wanted = [run for run in known if max(run.submit_order, run.finish_order or 0) >= since]
            assert list(store.runs(key, since)) == wanted
        assert list(store.runs(key, -(10**30))) == known
        assert list(store.runs(key, since=10**30)) == []

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
        """Replays depend on them."""
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
        """A run that was reported lost and ends later does not change the history."""
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
        with pytest.raises(StoreError, match="run 4 was not recorded"):
            store.finish(key, ended(run, Completed(1.0)))
        assert list(store.runs(other)) == [run]

    def test_append_takes_no_ending_and_finish_needs_one(self, store: Store) -> None:
        """So that no field is lost or invented."""
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


def _typed(config: Config) -> list[tuple[str, type[Value], Value]]:
    return [(name, type(value), value) for name, value in config.items()]
