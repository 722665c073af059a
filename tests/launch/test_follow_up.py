"""What follows an experiment: asked of the wing that it belongs to, and worked on by everybody in the same way."""

from dataclasses import replace
from pathlib import Path

import pytest

import luthier as lt
from luthier import launch
from luthier.errors import InvalidInputError
from luthier.launch.start import FOLLOW_UPS
from luthier.spec.experiment import Experiment
from luthier.spec.origin import Origin
from luthier.spec.template import Template
from luthier.store.base import Record

FIRST = Experiment(
    space=lt.Space(lt.Integer("x", 1, 9)),
    command=Template(("true", "{x}")),
    budget=3,
    verify_pairs=0,
    optimizer="random",
    origin=Origin((), "a model", data={"next": "second"}),
)


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A store, and a wing that makes an experiment `second` after one that is called `first`."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    url = str(tmp_path / "store.db")
    done: list[Record] = []

    def following(record: Record, result: lt.Result, where: str | None) -> launch.Launch | None:
        if done:
            return None
        second = replace(result.experiment, budget=2, origin=Origin((), "the program"))
        made = launch.create(launch.LaunchRequest(second, "second", where))
        done.append(made.record)
        return made

    def tell(last: launch.Done) -> launch.Told:
        return launch.Told({"last": last.record.name}, ("above",), ("below",))

    rule = launch.FollowUp(lambda record: record.name == "first", following, lambda *_: done[0] if done else None, tell)
    monkeypatch.setitem(FOLLOW_UPS.built_in, "test", rule)
    return url


def test_what_follows_is_worked_on_and_told(store: str) -> None:
    done = launch.work_through(launch.create(launch.LaunchRequest(FIRST, "first", store)))
    assert (done.record.name, done.record.status, len(done.result.runs)) == ("second", "finished", 2)
    assert done.before is not None
    assert (done.before.record.name, len(done.before.result.runs)) == ("first", 3)
    assert launch.told(done) == launch.Told({"last": "second"}, ("above",), ("below",))
    with pytest.raises(InvalidInputError, match="experiment 1 is finished"):
        launch.resume(1, store)


def test_a_resume_does_what_is_left(store: str) -> None:
    """The process died after the search: only what follows it is done, and the search is not repeated."""
    launch.create(launch.LaunchRequest(FIRST, "first", store)).work()
    upcoming = launch.resume(1, store)
    assert upcoming.record.name == "second"
    done = launch.work_through(upcoming)
    assert done.before is not None
    assert [done.before.record.id, done.record.id] == [1, 2]


def test_more_runs_that_change_nothing_show_what_was_done_earlier(store: str) -> None:
    launch.work_through(launch.create(launch.LaunchRequest(FIRST, "first", store)))
    done = launch.work_through(launch.resume(1, store, "+2"))
    assert done.before is not None
    assert (done.before.record.id, len(done.before.result.runs), done.record.id) == (1, 5, 2)


def test_other_experiments_have_no_follow_up(store: str) -> None:
    for other, name in ((FIRST, "other"), (replace(FIRST, origin=None), "first")):
        done = launch.work_through(launch.create(launch.LaunchRequest(other, name, store)))
        assert done.before is None
        assert launch.told(done) is None
