import contextlib
import logging
import os
import resource
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import event
from tests.store.samples import a_run, ended

from luthier.errors import InvalidInputError, StoreError
from luthier.store import open_store, sqlite
from luthier.store.base import Store
from luthier.store.sql import SqlStore
from luthier.trial import Completed

Opener = Callable[[str], Store]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "history.db"


@pytest.fixture
def store(path: Path, opening: Opener) -> Store:
    return opening(str(path))


def ask(path: Path, statement: str) -> list[tuple[object, ...]]:
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        return connection.execute(statement).fetchall()


def test_write_ahead_log_and_foreign_keys_are_on(store: Store, path: Path) -> None:
    assert isinstance(store, SqlStore)
    assert ask(path, "PRAGMA journal_mode") == [("wal",)]
    pragmas = ("foreign_keys", "synchronous", "journal_mode")
    assert [_pragma(store, pragma) for pragma in pragmas] == [1, 1, "wal"]


def test_network_file_system_gets_a_rollback_journal(
    path: Path, opening: Opener, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    before = opening(str(path))
    before.create("before", {}, 0.0)
    _let_go(before)  # SQLite converts the file when nobody else has it open
    monkeypatch.setattr(sqlite, "_file_system_now", lambda path: "nfs4")
    with caplog.at_level(logging.WARNING):
        store = opening(str(path))
    assert isinstance(store, SqlStore)
    assert [_pragma(store, pragma) for pragma in ("synchronous", "journal_mode")] == [2, "delete"]
    assert "nfs4" in caplog.text
    store.create("after", {}, 0.0)
    assert [record.name for record in store.experiments()] == ["before", "after"]


MOUNTS = """\
/dev/vda / ext4 rw 0 0
server:/home /home nfs4 rw 0 0
/dev/vdb /home/local\\040disk xfs rw 0 0
tmpfs /scratch tmpfs rw 0 0
lustre /scratch lustre rw 0 0
broken line
"""


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        ("/var/x.db", "ext4"),
        ("/home/ann/x.db", "nfs4"),
        ("/home/local disk/x.db", "xfs"),
        ("/homeless/x.db", "ext4"),
        ("/scratch/x.db", "lustre"),
    ],
)
def test_file_system_of_a_path(place: str, expected: str) -> None:
    assert sqlite.file_system(Path(place), MOUNTS) == expected


def test_file_system_without_mounts() -> None:
    assert sqlite.file_system(Path("/x"), "") is None


def test_not_a_database(path: Path) -> None:
    path.write_bytes(b"some notes of mine\n" * 100)
    with pytest.raises(InvalidInputError, match=r"history\.db: not an SQLite database"):
        open_store(str(path))
    assert path.read_bytes() == b"some notes of mine\n" * 100


def test_database_of_another_program(path: Path) -> None:
    ask(path, "CREATE TABLE cookies (x)")
    with pytest.raises(InvalidInputError, match=r"another program \(cookies\)"):
        open_store(str(path))
    assert ask(path, "SELECT name FROM sqlite_master") == [("cookies",)]


def test_damaged_database(store: Store, path: Path) -> None:
    key = store.create("x", {}, 0.0).id
    for number in range(200):
        store.append(key, a_run(number, text="y" * 200))
    _let_go(store)
    ask(path, "PRAGMA wal_checkpoint(TRUNCATE)")
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(8192)
        file.write(b"\xff" * (size - 8192))
    with pytest.raises(StoreError, match=r"history\.db: the database is damaged"):
        open_store(str(path)).runs(key)


def test_folder_instead_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "folder.db").mkdir()
    with pytest.raises(InvalidInputError, match=r"this is a folder; use a file in it"):
        open_store(str(tmp_path / "folder.db"))


def test_locked_beyond_the_timeout(store: Store, path: Path) -> None:
    key = store.create("x", {}, 0.0).id
    hasty = open_store(str(path), lock_timeout_s=0.05)
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match=r"locked by another process for more than 0\.05 s"):
            hasty.append(key, a_run(0))
        assert hasty.runs(key) == []  # a writer does not keep readers out
    hasty.append(key, a_run(0))
    assert list(store.runs(key)) == [a_run(0)]


def test_new_store_locked_beyond_the_timeout(path: Path) -> None:
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(StoreError, match="locked"):
            open_store(str(path), lock_timeout_s=0.05)
    open_store(str(path), lock_timeout_s=0.05)


def test_change_of_journal_waits_for_others() -> None:
    busy = sqlite3.OperationalError("database is locked")
    busy.sqlite_errorname = "SQLITE_BUSY"
    broken = sqlite3.OperationalError("disk I/O error")
    broken.sqlite_errorname = "SQLITE_IOERR"
    answers = iter([busy, busy, None, broken])

    def change() -> str:
        if (answer := next(answers)) is not None:
            raise answer
        return "wal"

    assert sqlite._retry_while_locked(change, lock_timeout_s=60) == "wal"
    with pytest.raises(sqlite3.OperationalError, match="I/O"):
        sqlite._retry_while_locked(change, lock_timeout_s=60)


def test_removed_or_replaced_file(store: Store, path: Path) -> None:
    key = store.create("x", {}, 0.0).id
    aside = path.rename(path.with_suffix(".aside"))
    for _ in range(2):
        with pytest.raises(StoreError, match="removed or replaced"):
            store.append(key, a_run(0))
    path.touch()
    with pytest.raises(StoreError, match="removed or replaced"):
        store.runs(key)
    aside.rename(path)
    store.append(key, a_run(0))
    assert list(store.runs(key)) == [a_run(0)]


def test_newer_schema(store: Store, path: Path) -> None:
    ask(path, "UPDATE luthier_version SET version_num = '0999'")
    with pytest.raises(InvalidInputError, match=r"newer luthier \(schema 0999; .* up to \d+\); upgrade luthier"):
        open_store(str(path))


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that other users can reach."""
    folder = Path(tempfile.mkdtemp(prefix="luthier-store-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@contextlib.contextmanager
def nobody() -> Iterator[None]:
    """To root no file is read-only."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_folder_that_is_not_writable(open_folder: Path) -> None:
    open_folder.chmod(0o555)
    with nobody(), pytest.raises(StoreError, match="check the permissions"):
        open_store(f"{open_folder}/x.db")
    open_folder.chmod(0o755)


@pytest.mark.parametrize("journal", ["wal", "delete"])
def test_file_that_is_read_only(open_folder: Path, journal: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite, "_file_system_now", lambda path: None if journal == "wal" else "nfs")
    path = open_folder / "x.db"
    store = open_store(str(path))
    key = store.create("x", {}, 0.0).id
    _let_go(store)
    path.chmod(0o444)
    open_folder.chmod(0o555)
    with nobody(), pytest.raises(StoreError, match=r"x\.db: (read-only for you|cannot be opened)"):
        open_store(str(path)).append(key, a_run(0))
    open_folder.chmod(0o755)


def test_read_only_file_can_be_read(open_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite, "_file_system_now", lambda path: "nfs")
    path = open_folder / "x.db"
    open_store(str(path)).create("x", {}, 0.0)
    path.chmod(0o444)
    open_folder.chmod(0o555)
    with nobody():
        assert [record.name for record in open_store(str(path)).experiments()] == ["x"]
    open_folder.chmod(0o755)


def test_full_disk(tmp_path: Path, opening: Opener) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=600k", "none", disk], check=False, capture_output=True, text=True
    )
    if mounted.returncode != 0:
        pytest.skip(f"no small file system to be had: {mounted.stderr.strip()}")
    try:
        store = opening(f"{disk}/x.db")
        key = store.create("x", {}, 0.0).id
        written, refused = _fill(store, key)
        assert "the disk is full; free some space and try again" in str(refused)
        assert [run.number for run in store.runs(key)] == list(range(written))
        subprocess.run(["mount", "-o", "remount,size=2M", disk], check=True)
        store.append(key, a_run(written))
        assert len(store.runs(key)) == written + 1
        _let_go(store)
    finally:
        subprocess.run(["umount", "--lazy", disk], check=True)


def test_file_that_may_not_grow(tmp_path: Path) -> None:
    """A quota, in effect; the limit holds for a whole process, so one of its own must bear it."""
    child = subprocess.run(
        [sys.executable, "-m", "tests.store.test_sqlite_store", str(tmp_path / "x.db")],
        check=False,
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[2],
    )
    assert child.returncode == 0, child.stderr
    assert "x.db: the" in child.stdout
    written = int(child.stdout.split()[0])
    assert [run.number for run in open_store(str(tmp_path / "x.db")).runs(1)] == list(range(written))


def test_interrupted_call_leaves_the_store_usable(store: Store) -> None:
    assert isinstance(store, SqlStore)
    database, interrupts = store._database, iter([KeyboardInterrupt])
    key = store.create("x", {}, 0.0).id

    def interrupt(*_: object) -> None:
        for reason in interrupts:
            raise reason

    for moment in ("commit", "before_cursor_execute"):
        interrupts = iter([KeyboardInterrupt])
        event.listen(database.backend.engine, moment, interrupt)
        with pytest.raises(KeyboardInterrupt):
            store.append(key, a_run(0))
        assert store.runs(key) == []
    store.append(key, a_run(0))
    assert list(store.runs(key)) == [a_run(0)]


def test_fork_does_not_share_the_connection(store: Store, path: Path) -> None:
    key = store.create("x", {}, 0.0).id
    program = f"""
import os
from luthier.store import open_store
from tests.store.samples import ME, a_run, ended
store = open_store({str(path)!r})
store.append({key}, a_run(0))
child = os.fork()
if child == 0:
    store.append({key}, a_run(1))
    os._exit(len(store._database._inherited))
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1
store.append({key}, a_run(2))
"""
    subprocess.run([sys.executable, "-c", program], check=True)
    assert list(store.runs(key)) == [a_run(0), a_run(1), a_run(2)]


def _fill(store: Store, key: int) -> tuple[int, StoreError]:
    """Append until there is no room; how many runs were acknowledged, and what was said then."""
    for number in range(10_000):
        try:
            store.append(key, a_run(number, padding="x" * 1000))
        except StoreError as error:
            return number, error
    raise AssertionError("there is always room")


def _pragma(store: SqlStore, name: str) -> object:
    return store._database.read(lambda connection: connection.exec_driver_sql(f"PRAGMA {name}").scalar())


def _let_go(store: Store) -> None:
    assert isinstance(store, SqlStore)
    store.dispose()


if __name__ == "__main__":
    limited = open_store(sys.argv[1])
    experiment = limited.create("x", {}, 0.0).id
    resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, 400_000))
    count, said = _fill(limited, experiment)
    assert [run.number for run in limited.runs(experiment)] == list(range(count))
    sys.stdout.write(f"{count} {said}\n")


def test_new_store_is_for_its_owner_only(tmp_path: Path) -> None:
    """It may hold password hashes and what others may not see, wherever it is."""
    before = os.umask(0o022)
    try:
        store = open_store(str(tmp_path / "x.db"))
        store.create("x", {}, 0.0)
        assert {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {
            "x.db": 0o600,
            "x.db-wal": 0o600,
            "x.db-shm": 0o600,
        }
    finally:
        os.umask(before)
    assert isinstance(store, SqlStore)
    store.dispose()


@pytest.mark.parametrize(
    "damage",
    [
        "settings = '{'",
        "settings = '" + "[" * 100_000 + "'",
        "created_at = 'yesterday'",
        "owner_pid = 'x', owner_host = 'h', owner_started = 's'",
        "result = x'ff'",
    ],
)
def test_damaged_experiment_does_not_hide_the_others(tmp_path: Path, damage: str) -> None:
    store = open_store(str(tmp_path / "x.db"))
    assert isinstance(store, SqlStore)
    for name in ("damaged", "intact"):
        store.create(name, {}, 0.0)
    store._database.write(lambda connection: connection.exec_driver_sql(f"UPDATE experiments SET {damage} WHERE id=1"))
    first, second = store.experiments()
    assert (first.name, first.status, second.name, second.status) == ("damaged", "failed", "intact", "running")
    assert "experiment 1 is damaged" in str((first.result or {})["verdict"])
    store.dispose()


@pytest.mark.parametrize(
    "damage", ["config = '['", "config = '3'", "outcome = 'odd'", "value = 'abc'", "metrics = 'x'", "trial = 'one'"]
)
def test_damaged_run_is_told_in_one_line(tmp_path: Path, damage: str) -> None:
    store = open_store(str(tmp_path / "x.db"))
    assert isinstance(store, SqlStore)
    key = store.create("x", {}, 0.0).id
    store.append(key, a_run(0))
    store.finish(key, ended(a_run(0), Completed(1.0)))
    store._database.write(lambda connection: connection.exec_driver_sql(f"UPDATE runs SET {damage}"))
    with pytest.raises(StoreError) as caught:
        store.runs(key)
    assert "\n" not in str(caught.value)
    store.dispose()
