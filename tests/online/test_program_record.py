"""The record of a tuning: its session in the store, its folder, and who may continue it."""

from pathlib import Path

import pytest

from luthier.errors import InUseError, InvalidInputError, NotFoundError
from luthier.online.records import OnlineSessions
from luthier.online.session import OnlineSession
from luthier.online.session_settings import OnlineSettings
from luthier.online.store import online_sessions_in
from luthier.online.unchanged.program_record import ProgramRecord, open_record
from luthier.online.unchanged.program_tuning import Note
from luthier.space import Integer, Space
from luthier.store import open_server_store
from luthier.trial import Config

NOW = 1_000_000.0


@pytest.fixture
def sessions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> OnlineSessions:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    return online_sessions_in(open_server_store(str(tmp_path / "store.db")))


def session(high: int = 9) -> OnlineSession:
    return OnlineSession(Space(Integer("x", 1, high)), OnlineSettings(strategy="pro", samples=1))


def opened(sessions: OnlineSessions, name: str = "", high: int = 9) -> ProgramRecord:
    return open_record(sessions, name, "app.conf", session(high), NOW)


def with_sample(record: ProgramRecord) -> ProgramRecord:
    tuned = session()
    tuned.fetch("luthier", NOW)
    sample = tuned.report("luthier", 2.0, NOW)
    assert sample is not None
    record.keep(sample)
    return record


def test_what_is_kept_is_there_after_a_kill(sessions: OnlineSessions) -> None:
    record = with_sample(opened(sessions))
    note = Note("rolled back", 1, Config({"x": 3}), 9.0, "worse than the bound")
    record.note(note)
    with (record.folder / "notes").open("a") as file:
        file.write('{"kind": "win')  # killed while it wrote
    record.close()
    again = opened(sessions)
    assert again.record.id == record.record.id
    assert [sample.value for sample in again.samples()] == [2.0]
    assert again.notes() == [note]
    assert record.folder.stat().st_mode & 0o777 == 0o700
    again.close()


def test_only_one_process_at_a_time(sessions: OnlineSessions) -> None:
    record = opened(sessions)
    with pytest.raises(InUseError, match="is in use by another luthier process"):
        opened(sessions)
    record.close()
    opened(sessions).close()


def test_an_ended_tuning_is_not_continued(sessions: OnlineSessions) -> None:
    record = with_sample(opened(sessions))
    record.finish(session().view(), NOW, has_ended=True)
    assert sessions.get(record.record.id).status == "stopped"
    assert not record.folder.exists()
    with pytest.raises(InvalidInputError, match="this tuning has ended; give another name"):
        opened(sessions, "app.conf")
    second = opened(sessions)
    assert second.record.name == "app.conf-2"
    second.close()


def test_other_parameters_before_anything_was_measured_replace_the_tuning(sessions: OnlineSessions) -> None:
    first = opened(sessions, "web")
    first.close()
    second = opened(sessions, "web", high=20)
    assert second.record.id != first.record.id
    assert second.record.settings["space"] == session(20).space.to_json()
    assert not first.folder.exists()
    with pytest.raises(NotFoundError):
        sessions.get(first.record.id)
    second.close()


def test_other_parameters_after_a_measurement_need_another_name(sessions: OnlineSessions) -> None:
    with_sample(opened(sessions, "app.conf")).close()
    with pytest.raises(InvalidInputError, match="other parameters or settings; give another name"):
        opened(sessions, "app.conf", high=20)
    other = opened(sessions, high=20)
    assert other.record.name == "app.conf-2"
    other.close()


def test_files_that_were_not_put_back_must_be_put_back_first(sessions: OnlineSessions) -> None:
    record = opened(sessions)
    (record.folder / "original-0").write_text("by hand")
    record.close()
    with pytest.raises(InvalidInputError, match="continue it with its own command"):
        opened(sessions, high=20)
    opened(sessions).close()


def test_requests_to_stop_and_deletion_are_seen(sessions: OnlineSessions) -> None:
    record = opened(sessions)
    assert not record.is_stop_requested(NOW)
    assert sessions.get(record.record.id).seen_at == NOW
    sessions.request_stop(record.record.id)
    assert not record.is_stop_requested(NOW + 0.5), "it is asked once a second"
    assert record.is_stop_requested(NOW + 1.5)
    sessions.delete(record.record.id)
    assert record.is_stop_requested(NOW + 3)
    record.finish(session().view(), NOW + 4, has_ended=True)


def test_views_are_written_twice_a_second_at_most(sessions: OnlineSessions) -> None:
    record = opened(sessions)
    tuned = session()
    record.show(tuned.view(), NOW)
    tuned.stop()
    record.show(tuned.view(), NOW + 0.1)
    view = sessions.get(record.record.id).view
    assert view is not None
    assert view["phase"] == "baseline"
    record.is_stop_requested(NOW + 1.2)
    view = sessions.get(record.record.id).view
    assert view is not None
    assert view["phase"] == "stopped"
    record.close()
