"""A damaged store: an error of one line, or what was stored."""

import random
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
from tests.store.answers import called, restored
from tests.store.samples import ME, a_run, ended
from tests.torture import repeats

from luthier.errors import LuthierError
from luthier.online.store import online_sessions_in
from luthier.store import open_server_store
from luthier.store.server_store import ServerStore
from luthier.store.sql import SqlStore
from luthier.submission.store import job_records_in, submissions_in
from luthier.trial import Completed

COMMANDS = (
    "list --json",
    "show 4 --all --json",
    "export 4 --format json",
    "apply 1 --json",
    "explain 4 --stored --json",
    "online show 1 --json",
    "component show buffers",
)
JSON_COLUMNS = (
    ("experiments", "settings"),
    ("experiments", "result"),
    ("experiments", "jobs"),
    ("experiments", "periods"),
    ("runs", "config"),
    ("runs", "metrics"),
    ("runs", "others"),
    ("explanations", "content"),
    ("online_sessions", "settings"),
    ("online_sessions", "view"),
    ("online_samples", "config"),
    ("job_records", "config"),
    ("submissions", "environment"),
)
ODD = ("", "[]", '{"a":1}', "[" * 3000, "{", "3", "null", '"x"', "\xff")
DAMAGED = "damaged; restore the store from a backup"


@pytest.fixture(scope="module")
def intact(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A store in which each result was written by this version, as the contents of its file."""
    path = Path(restored(tmp_path_factory.mktemp("intact")))
    store = open_server_store(str(path))
    for record in store.history.experiments():
        assert store.history.claim(record.id, ME, 1.0, record.owner)
        store.history.close(record.id, ME, record.status, record.result)
    assert isinstance(store.history, SqlStore)
    store.history.dispose()
    return path.read_bytes()


def contents(path: Path, store: ServerStore | None = None) -> dict[str, object]:
    """Everything that pages and commands read, part by part; an error is a text that begins with `error: `."""
    if store is None:
        try:
            store = open_server_store(str(path))
        except LuthierError as error:
            return {"store": as_text(error)}
    history = store.history
    parts: dict[str, Callable[[], object]] = {
        **{f"experiment {number}": partial(finding, store, number) for number in range(1, 7)},
        **{f"runs {number}": partial(history.runs, number) for number in range(1, 7)},
        "experiments": history.experiments,
        "explanation": partial(store.explanations.get, 4),
        "component": partial(store.components.text, "buffers"),
        "sessions": online_sessions_in(store).all,
        "samples": partial(online_sessions_in(store).samples, 1),
        "users": store.accounts.users,
        "entries": store.accounts.entries,
        "records": job_records_in(store).all,
        "submissions": submissions_in(store).all,
        "reviews": submissions_in(store).reviews,
        "queue": store.queue.records,
    }
    found: dict[str, object] = {}
    for name, read in parts.items():
        try:
            found[name] = read()
        except LuthierError as error:
            found[name] = as_text(error)
    assert isinstance(history, SqlStore)
    history.dispose()
    return found


def finding(store: ServerStore, number: int) -> object:
    """What is checked of an experiment that has ended; not who owns and sees it."""
    record = store.history.experiment(number)
    if DAMAGED in str(record.result):
        return f"error: {record.result}"
    return record.id, record.uid, record.name, record.created_at, record.settings, record.result, record.runs


def as_text(error: LuthierError) -> str:
    """An error, which has one line of a length that can be read."""
    assert "\n" not in str(error)
    assert len(str(error)) < 500
    return f"error: {error}"


def flipped(intact: bytes, random: random.Random) -> bytes:
    """The contents with one to eight bits of one byte turned over."""
    changed = bytearray(intact)
    changed[random.randrange(len(changed))] ^= random.randrange(1, 256)
    return bytes(changed)


def fresh(path: Path, contents: bytes) -> Path:
    """A new file with these contents; nothing is left of a former one."""
    for suffix in ("-wal", "-shm", "-journal"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    path.unlink(missing_ok=True)
    path.write_bytes(contents)
    return path


def test_flipped_bytes_are_told_or_change_nothing(intact: bytes, tmp_path: Path) -> None:
    path, chance = tmp_path / "x.db", random.Random(7)
    right, told = contents(fresh(path, intact)), 0
    assert "error" not in repr([str(part)[:6] for part in right.values()])
    store = open_server_store(str(path))  # opened once, which is quicker; every fifth time the opening is seen, too
    for count in range(repeats(500, 20_000)):
        for suffix in ("-wal", "-shm"):
            path.with_name(path.name + suffix).unlink(missing_ok=True)
        path.write_bytes(flipped(intact, chance))  # the same file as before
        found = contents(path, store if count % 5 else None)
        told += found != right
        for name, part in found.items():
            is_checked = name.startswith(("experiment ", "runs "))
            assert not is_checked or part == right.get(name) or str(part).startswith("error: "), name
    assert told > 50  # the flips are seen


def test_a_file_that_is_cut_off_is_told_or_changes_nothing(intact: bytes, tmp_path: Path) -> None:
    path, chance = tmp_path / "x.db", random.Random(8)
    right = contents(fresh(path, intact))
    for _ in range(repeats(20, 1000)):
        found = contents(fresh(path, intact[: chance.randrange(1, len(intact))]))
        assert all(part == right.get(name) or str(part).startswith("error: ") for name, part in found.items())
        assert str(found.get("store", "error: ")).startswith("error: ")


def test_a_damaged_write_ahead_log_loses_last_writes_only(tmp_path: Path) -> None:
    path, chance = tmp_path / "x.db", random.Random(9)
    writer = open_server_store(str(path)).history
    number = writer.create("x", {}, 0.0).id
    for run in range(20):
        writer.append(number, a_run(run))
        writer.finish(number, ended(a_run(run), Completed(float(run))))
    written = writer.runs(number)
    database, log = path.read_bytes(), path.with_name("x.db-wal").read_bytes()
    assert len(log) > 100_000
    for _ in range(repeats(15, 2000)):
        fresh(path, database)
        path.with_name("x.db-wal").write_bytes(flipped(log, chance))
        found = contents(path).get(f"runs {number}", "error: ")
        assert isinstance(found, list | str)
        assert found[: len(found) - 1] == written[: max(0, len(found) - 1)] or str(found).startswith("error: ")
    assert isinstance(writer, SqlStore)
    writer.dispose()


@pytest.mark.parametrize("odd", ODD[: repeats(4, len(ODD))])
def test_columns_with_other_json_are_told_in_one_line(odd: str, intact: bytes, tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    for table, column in JSON_COLUMNS:
        fresh(path, intact)
        with closing(sqlite3.connect(path)) as connection:
            connection.execute(f"UPDATE {table} SET {column} = ?", (odd,))
            if column != "result":  # what the checksums would see is to be seen without them, too
                connection.execute("UPDATE experiments SET result = NULL, status = 'stopped'")
            connection.commit()
        contents(path)
        for command in COMMANDS[: repeats(3, len(COMMANDS))]:
            code, said = called(str(path), command)
            assert code == 0 or (code == 2 and said.count("\n") == 1), (table, column, command, said)


def test_a_flipped_byte_on_the_real_command_line(intact: bytes, tmp_path: Path) -> None:
    path, chance = tmp_path / "x.db", random.Random(10)
    for _ in range(repeats(1, 60)):
        fresh(path, flipped(intact, chance))
        for command in ("resume 1", *COMMANDS[: repeats(1, len(COMMANDS))]):  # experiment 1 has ended
            words = [sys.executable, "-m", "luthier", *command.split(), "--store", str(path)]
            done = subprocess.run(words, capture_output=True, text=True, check=False)
            assert done.returncode == 0 or (done.returncode == 2 and done.stderr.count("\n") == 1), done
