"""The front door of work: what it says reaches everybody who asks, and opening it costs nothing."""

import logging
import subprocess
import sys
from pathlib import Path

import pytest

import luthier as lt
from luthier import launch
from luthier.errors import InvalidInputError

SPACE = lt.Space(lt.Integer("x", 1, 9))
NONE_FOUND = "learns from no earlier experiment: none in the store tunes the same by the same measure"


def measure(config: lt.Config) -> float:
    return abs(float(config["x"]) - 6.0) + 1.0


def test_notes_of_a_search_reach_python(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    store = str(tmp_path / "notes.db")
    with caplog.at_level(logging.INFO, "luthier.launch"):
        first = lt.tune(measure, SPACE, budget=8, seed=1, store=store, after="auto")
        second = lt.tune(measure, SPACE, budget=4, seed=1, store=store, after="auto")
    assert first.notes == (NONE_FOUND,)
    (note,) = second.notes
    assert note.startswith("learns from experiment 1 (measure)")
    assert [record.getMessage() for record in caplog.records] == [
        f"experiment 1: {NONE_FOUND}",
        f"experiment 2: {note}",
    ]
    assert lt.tune(measure, SPACE, budget=4, seed=1).notes == ()


def test_what_cannot_be_searched_is_refused_before_anything_is_stored(tmp_path: Path) -> None:
    store = str(tmp_path / "none.db")
    with pytest.raises(InvalidInputError):
        lt.tune(measure, SPACE, budget=4, store=store, optimizer="random", options={"unknown": 1})
    with pytest.raises(lt.LuthierError):
        launch.open(1, store)


def test_stored_experiments_are_opened_and_compared(tmp_path: Path) -> None:
    store = str(tmp_path / "some.db")
    made = [lt.tune(measure, SPACE, budget=6, seed=seed, store=store) for seed in (1, 2)]
    opened = launch.compare([2, 1, 2], store)
    assert [record.id for record, _ in opened] == [2, 1]
    assert [result.best.config for _, result in opened] == [one.best.config for one in reversed(made)]
    assert launch.open(1, store)[1].verdict == made[0].verdict
    assert launch.explained(1, store) is None


@pytest.mark.parametrize("door", ["luthier.launch", "luthier.io", "luthier.online"])
def test_opening_a_door_imports_nothing_heavy(door: str) -> None:
    code = f"import sys, {door}; print(*{{name.partition('.')[0] for name in sys.modules}})"
    found = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, check=True).stdout.split()
    assert not {"numpy", "pydantic", "sqlalchemy", "typer"} & set(found)


def test_everything_that_the_door_names_is_there() -> None:
    assert all(getattr(launch, name) is not None for name in launch.__all__)


@pytest.mark.parametrize(
    "use", ["import luthier; luthier.tune", "from luthier import launch", "import luthier.io; luthier.io.tune"]
)
def test_python_has_the_measures_and_follow_ups_of_wings(use: str) -> None:
    code = f"{use}\nfrom luthier.launch.start import FOLLOW_UPS; print(*FOLLOW_UPS.own())"
    done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, check=True)
    assert done.stdout.split() == ["io"]
