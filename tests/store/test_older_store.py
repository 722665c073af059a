"""Stores that earlier versions wrote (schemas 0002 and 0011) stay readable and can be worked on."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from tests.replayed import replayed
from tests.store.answers import EXPECTED, answers, restored

from luthier.engine.session import resumable
from luthier.result.result import conclude
from luthier.runners.replay import ReplayedRun, ReplayRunner
from luthier.spec.experiment import Experiment
from luthier.store import open_server_store, open_store
from luthier.store.server_store import Approval
from luthier.store.sql import SqlStore
from luthier.trial import Config

WRITTEN = Path(__file__).with_name("written_by_schema_0002.sql")


@pytest.fixture
def store(tmp_path: Path) -> SqlStore:
    path = tmp_path / "old.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(WRITTEN.read_text())
    store = open_store(str(path))
    assert isinstance(store, SqlStore)
    return store


def test_every_result_is_what_it_was(store: SqlStore) -> None:
    found = {}
    for record in store.experiments():
        result = conclude(Experiment.from_json(record.settings), store.runs(record.id))
        assert result.winner is not None
        assert record.result is not None
        assert record.result["improved"] == result.improved
        assert record.result["best"] == dict(result.winner.config)
        found[record.id] = (record.status, len(result.runs), dict(result.winner.config))
    assert found == {
        1: ("finished", 8, {"x": 1, "mode": "a"}),
        2: ("finished", 9, {"x": 1}),
        3: ("finished", 6, {"x": 0, "y": 0}),
        4: ("finished", 6, found[4][2]),
        5: ("stopped", found[5][1], found[5][2]),
    }
    store.dispose()


def test_what_was_stopped_goes_on(store: SqlStore) -> None:
    def answers(config: Config, repeat: int, now_s: float) -> ReplayedRun:
        return ReplayedRun(float(config["x"]) / 100.0, float(config["x"]) / 100.0)

    record = store.experiment(5)
    before = store.runs(5)
    finished, result = replayed(store, record, resumable(store, record), ReplayRunner(answers))
    assert finished.status == "finished"
    assert list(result.runs[: len(before)]) == list(before)
    assert len(result.runs) > len(before)
    store.dispose()


def test_the_command_line_says_what_it_said(tmp_path: Path) -> None:
    found, expected = answers(restored(tmp_path)), json.loads(EXPECTED.read_text(encoding="utf-8"))
    assert found.keys() == expected.keys()
    for command, said in expected.items():
        assert flat(found[command]) == flat(said), f"{command}; if that is meant: python -m tests.store.answers"


def test_nothing_is_approved_for_what_was_registered_before(tmp_path: Path) -> None:
    path = restored(tmp_path)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("INSERT INTO components (name, description) VALUES ('mpi', 'text')")
    components = open_server_store(path).components
    assert components.approvals() == []
    components.approve("mpi", "text", [Approval("mpi", "A", "1", "version", "root", 1.0)])
    assert [one.variable for one in components.approvals("mpi")] == ["A"]


def flat(said: object, path: str = "") -> dict[str, object]:
    """Each value by its path; numbers as far as they are the same on all machines."""
    if isinstance(said, dict | list):
        pairs = said.items() if isinstance(said, dict) else enumerate(said)
        return {name: value for key, each in pairs for name, value in flat(each, f"{path}.{key}").items()}
    return {path: pytest.approx(said, rel=1e-6) if isinstance(said, float) else said}
