"""The journal: what was written gets into the store, whatever happens to the process."""

import json
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from luthier.errors import StoreError, UnavailableError
from luthier.online.records import OnlineRecord
from luthier.online.service.journal import Journal, journal_folder, read_samples, sample_line, session_text
from luthier.online.store import online_sessions_in
from luthier.store import open_server_store
from luthier.store.server_store import ServerStore
from luthier.store.sql import SqlStore
from luthier.trial import Config, Sample


@pytest.fixture
def store(url: str) -> Iterator[ServerStore]:
    opened = open_server_store(url)
    yield opened
    assert isinstance(opened.history, SqlStore)
    opened.history.dispose()


def line_of(record: OnlineRecord, number: int, value: float | None = 1.5) -> bytes:
    config = Config({"block": number})
    sample = Sample(number, 1, "node/1", config, value, 17.25)
    return sample_line(session_text(record.id, record.uid), sample, json.dumps("node/1"), json.dumps(dict(config)))


def numbers(store: ServerStore, record: OnlineRecord) -> list[int]:
    return [sample.number for sample in online_sessions_in(store).samples(record.id)]


def test_samples_go_to_the_store_and_leave_the_disk(folder: Path, store: ServerStore) -> None:
    record = online_sessions_in(store).create("local", "s", {}, 1.0)
    journal = Journal(folder / "j")
    journal.open()
    journal.write(line_of(record, 1) + line_of(record, 2, None))
    assert numbers(store, record) == []
    assert journal.rotate()
    journal.write(line_of(record, 3))
    journal.store_files(online_sessions_in(store))
    assert numbers(store, record) == [1, 2]
    assert online_sessions_in(store).samples(record.id)[1] == Sample(2, 1, "node/1", Config({"block": 2}), None, 17.25)
    assert journal.rotate()
    journal.store_files(online_sessions_in(store))
    assert not journal.rotate()
    journal.close()
    assert numbers(store, record) == [1, 2, 3]
    assert [path.name for path in (folder / "j").iterdir()] == ["lock"]


def test_what_a_killed_service_left_is_stored_once_without_damaged_lines(
    folder: Path, store: ServerStore, caplog: pytest.LogCaptureFixture
) -> None:
    record, gone = (
        online_sessions_in(store).create("local", "s", {}, 1.0),
        online_sessions_in(store).create("local", "gone", {}, 1.0),
    )
    left = folder / "j" / "7.journal"
    left.parent.mkdir()
    left.write_bytes(
        line_of(gone, 1) + line_of(record, 1) + b"{nonsense\n" + line_of(record, 2) + line_of(record, 3)[:20]
    )
    online_sessions_in(store).append(record.id, [sample for *_, sample in read_samples(left)][1:2])
    online_sessions_in(store).delete(gone.id)
    journal = Journal(folder / "j")
    journal.open()
    journal.write(line_of(record, 4))
    journal.store_files(online_sessions_in(store))
    assert numbers(store, record) == [1, 2]
    assert "line 3: is damaged" in caplog.text
    journal.rotate()
    journal.store_files(online_sessions_in(store))
    journal.close()
    assert numbers(store, record) == [1, 2, 4]


def test_a_store_that_cannot_be_reached_keeps_the_file(
    folder: Path, store: ServerStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = online_sessions_in(store).create("local", "s", {}, 1.0)
    journal = Journal(folder / "j")
    journal.open()
    journal.write(line_of(record, 1))
    journal.rotate()
    with monkeypatch.context() as patched:
        patched.setattr(type(online_sessions_in(store)), "append", _away)
        with pytest.raises(StoreError):
            journal.store_files(online_sessions_in(store))
    journal.write(line_of(record, 2))
    assert journal.rotate()
    journal.store_files(online_sessions_in(store))
    journal.close()
    assert numbers(store, record) == [1, 2]


def test_one_service_for_one_store(folder: Path) -> None:
    one, other = Journal(journal_folder(folder, "a")), Journal(journal_folder(folder, "b"))
    one.open()
    other.open()
    with pytest.raises(UnavailableError, match="another on-line service uses this store"):
        Journal(journal_folder(folder, "a")).open()
    identity = one.identity
    assert identity != other.identity
    one.close()
    other.close()
    again = Journal(journal_folder(folder, "a"))
    again.open()
    assert again.identity == identity
    again.close()


def test_a_full_disk_leaves_no_half_line(folder: Path) -> None:
    code = """
import resource, sys
from pathlib import Path
from luthier.online.service.journal import Journal
journal = Journal(Path(sys.argv[1]))
journal.open()
resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
journal.write(b"x" * 59 + b"\\n")
try:
    journal.write(b"y" * 59 + b"\\n")
except OSError:
    journal.write(b"z" * 19 + b"\\n")
"""
    assert resource.RLIM_INFINITY in resource.getrlimit(resource.RLIMIT_FSIZE)
    subprocess.run([sys.executable, "-c", code, str(folder / "j")], check=True)
    assert (folder / "j" / "1.journal").read_bytes() == b"x" * 59 + b"\n" + b"z" * 19 + b"\n"


def _away(*_: object) -> None:
    raise StoreError("the store is away")


def test_a_write_after_a_file_could_not_be_begun_begins_it(folder: Path, store: ServerStore) -> None:
    record = online_sessions_in(store).create("local", "s", {}, 1.0)
    journal = Journal(folder / "j")
    journal.open()
    journal.write(line_of(record, 1))
    (obstacle := folder / "j" / "2.journal").mkdir()
    with pytest.raises(OSError, match="exists"):
        journal.rotate()
    with pytest.raises(OSError, match="exists"):
        journal.write(line_of(record, 2))
    obstacle.rmdir()
    journal.write(line_of(record, 2))
    assert journal.rotate()
    journal.store_files(online_sessions_in(store))
    journal.close()
    assert numbers(store, record) == [1, 2]
