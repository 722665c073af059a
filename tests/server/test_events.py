"""Live events: nobody misses anything, one look serves all, and open streams do not hold up the server's end."""

import asyncio
import http.client
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import cast
from urllib.parse import urlsplit

import pytest
from tests.server.server_fixtures import Running, Starter

from luthier.client import Event, events_in
from luthier.server import experiment_events, list_events, streams
from luthier.server.experiment_events import ExperimentEvents
from luthier.server.streams import Listener
from luthier.store.server_store import Changes, Queue
from luthier.trial import BatchJob, Completed

PATIENCE_S = 120.0
NOTHING_ASKED = {"stop_requested": False, "verify_requested": False}


class Watching:
    """A stream of events, as a browser has it."""

    def __init__(self, server: Running, path: str, token: str = "", last: int | None = None) -> None:
        self._connection = http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=PATIENCE_S)
        headers = {"Authorization": f"Bearer {token or server.token}"}
        if last is not None:
            headers["Last-Event-ID"] = str(last)
        self._connection.request("GET", f"/api/v1{path}", headers=headers)
        self._answer = self._connection.getresponse()
        assert self._answer.status == 200
        assert self._answer.headers["Content-Type"].startswith("text/event-stream")
        assert "content-encoding" not in self._answer.headers
        self._lines = self._read()
        if path in ("/events", "/online/events"):
            assert [next(self._lines) for _ in range(3)] == ["event: watching\n", "data: {}\n", "\n"]
        self.events = events_in(self._lines)

    def _read(self) -> Iterator[str]:
        """Every line; a stream that goes on for too long without what is looked for does not hang the test."""
        give_up_at = time.monotonic() + PATIENCE_S
        for line in self._answer:
            assert time.monotonic() < give_up_at
            yield line.decode()

    def next(self, kind: str) -> Event:
        event = next(self.events)
        assert event.kind == kind, event
        return event

    def runs(self, until: int) -> list[int]:
        """The numbers of the runs told until the event with this id."""
        found: list[int] = []
        for event in self.events:
            if event.kind == "runs":
                assert isinstance(event.data, list)
                found += [run["run"] for run in event.data]
                if event.id == until:
                    return found
        raise AssertionError(f"the stream ended before event {until}")

    def rest(self) -> bytes:
        """Everything up to a proper end; a stream that is cut off is an error."""
        return self._answer.read()

    def close(self) -> None:
        self._answer.close()
        self._connection.close()


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Servers look at the store often, so that tests need not wait."""
    monkeypatch.setattr(experiment_events, "LOOK_EVERY_S", 0.02)
    monkeypatch.setattr(list_events, "LOOK_EVERY_S", 0.02)
    monkeypatch.setattr(streams, "KEEP_ALIVE_S", 1.0)


def test_runs_are_told_as_they_come_and_go(server: Running) -> None:
    number = server.launch()
    watching = Watching(server, f"/experiments/{number}/events")
    assert watching.next("status").data == {"status": "queued", **NOTHING_ASKED, "jobs": []}
    server.play(number, [Completed(3.0), Completed(2.0), None], status=None)
    assert set(watching.runs(until=5)) == {0, 1, 2}
    server.ask("POST", f"/api/v1/experiments/{number}/stop")
    assert any(
        event.data == {"status": "running", **NOTHING_ASKED, "stop_requested": True, "jobs": []}
        for event in watching.events
    )
    watching.close()


def test_what_jobs_wait_for_is_told_when_it_changes(server: Running) -> None:
    number = server.launch()
    server.play(number, [None], status=None)
    watching = Watching(server, f"/experiments/{number}/events")
    watching.next("status")
    history, job = server.store.history, BatchJob("77", "PENDING", "Resources")
    owner = history.experiment(number).owner
    assert owner is not None
    for now, reason in ((1.0, "Resources"), (2.0, "Resources"), (3.0, "Priority")):
        history.heartbeat(number, owner, now, {0: replace(job, reason=reason)})
    told = []
    for event in watching.events:
        assert event.kind == "status"
        told.append(cast("dict[str, list[dict[str, object]]]", event.data)["jobs"])
        if told[-1][0]["reason"] == "Priority":
            break
    assert told[-1] == [{"run": 0, "number": "77", "state": "PENDING", "reason": "Priority", "began_at": None}]
    assert len(told) <= 2, "the same again is not told"
    watching.close()


def test_whoever_comes_back_gets_what_was_missed(server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(experiment_events, "MOST_RUNS", 3)
    number = server.launch()
    server.play(number, [Completed(float(i)) for i in range(10)], "stopped")
    path = f"/experiments/{number}/events"
    everything = Watching(server, f"{path}?since=0")
    parts = [everything.next("runs") for _ in range(4)]
    assert [part.id for part in parts] == [0, 0, 0, 20]
    assert everything.next("status").data == {"status": "stopped", **NOTHING_ASKED, "jobs": []}
    everything.close()
    back = Watching(server, path, last=16)
    assert back.runs(until=20) == [8, 9]
    back.next("status")
    server.play(number, [Completed(1.0)])
    assert set(back.runs(until=22)) == {10}
    back.close()
    from_the_future = Watching(server, path, last=1000)
    assert from_the_future.runs(until=22) == list(range(11))
    from_the_future.close()


def test_a_new_listener_hears_of_what_comes_only(server: Running) -> None:
    number = server.launch()
    server.play(number, [Completed(1.0)], "stopped")
    watching = Watching(server, f"/experiments/{number}/events")
    assert watching.next("status").id == 2
    server.play(number, [Completed(2.0)])
    assert set(watching.runs(until=4)) == {1}
    watching.close()


def test_the_end_of_a_deleted_experiment(server: Running) -> None:
    number = server.launch()
    watching = Watching(server, f"/experiments/{number}/events")
    watching.next("status")
    assert server.ask("DELETE", f"/api/v1/experiments/{number}").status == 204
    assert [event.kind for event in watching.events] == ["gone"]
    watching.close()


def test_open_streams_do_not_hold_up_the_end(start_server: Starter) -> None:
    server = start_server()
    number = server.launch()
    watching = [Watching(server, f"/experiments/{number}/events") for _ in range(3)]
    lists = [Watching(server, "/events"), Watching(server, "/online/events")]
    for one in watching:
        one.next("status")
    assert server.context.experiment_events.listeners == 3
    server.stop()
    assert [one.rest() for one in (*watching, *lists)] == [b""] * 5
    for one in (*watching, *lists):
        one.close()


def test_a_stream_ends_with_the_right_to_it(server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "KEEP_ALIVE_S", 0.05)
    server.add_user("root", "admin")
    ada, bob = server.add_user("ada", "user"), server.add_user("bob", "user")
    number = server.launch(token=ada)
    server.context.operations.store.queue.share(number, shared=True)
    mine, theirs = (Watching(server, f"/experiments/{number}/events", token) for token in (ada, bob))
    everything = Watching(server, "/events", bob)
    server.store.queue.share(number, shared=False)
    assert [event.kind for event in theirs.events] == ["status"]
    server.context.authenticator.remove_user("bob")
    assert [event.kind for event in everything.events] in ([], ["gone"])
    mine.next("status")
    server.play(number, [Completed(1.0)])
    assert set(mine.runs(until=2)) == {0}
    for one in (mine, theirs, everything):
        one.close()


def test_the_list_of_experiments_is_live(server: Running) -> None:
    server.add_user("root", "admin")
    ada, bob = server.add_user("ada", "user"), server.add_user("bob", "user")
    mine, theirs = Watching(server, "/events", ada), Watching(server, "/events", bob)
    number = server.launch(token=ada)
    assert _told(mine.next("experiment"))["status"] == "queued"
    server.store.queue.share(number, shared=True)
    shared = _told(theirs.next("experiment"))
    assert (shared["id"], shared["mine"]) == (number, False)
    assert _told(mine.next("experiment"))["shared"] is True
    server.play(number, [Completed(1.0), Completed(2.0)])
    assert _until(mine, "finished")["runs"] == 2
    assert _until(theirs, "finished")["verdict"] == "played"
    server.store.queue.share(number, shared=False)
    assert theirs.next("gone").data == {"id": number}
    assert _told(mine.next("experiment"))["shared"] is False
    server.ask("DELETE", f"/api/v1/experiments/{number}", token=ada)
    assert mine.next("gone").data == {"id": number}
    later = server.launch(token=bob)
    assert _told(theirs.next("experiment"))["id"] == later
    mine.close()
    theirs.close()


def test_old_experiments_are_watched_while_something_happens_to_them(
    server: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(list_events, "NEWEST", 2)
    numbers = [server.launch() for _ in range(4)]
    watching = Watching(server, "/events")
    server.play(numbers[0], [Completed(1.0)])
    assert _until(watching, "finished")["id"] == numbers[0]
    server.store.queue.delete(numbers[1], None)
    assert watching.next("gone").data == {"id": numbers[1]}
    server.store.queue.delete(numbers[0], None)  # nobody looks at it any more
    server.store.queue.delete(numbers[3], None)
    assert watching.next("gone").data == {"id": numbers[3]}
    watching.close()


def _told(event: Event) -> dict[str, object]:
    assert isinstance(event.data, dict)
    return event.data


def _until(watching: Watching, status: str) -> dict[str, object]:
    for event in watching.events:
        if _told(event).get("status") == status:
            return _told(event)
    raise AssertionError(f"the stream ended before {status}")


class Counting:
    """A queue that counts how often it is asked for changes."""

    def __init__(self, queue: Queue) -> None:
        self._queue = queue
        self.asked = 0

    def __getattr__(self, name: str) -> object:
        return getattr(self._queue, name)

    def changes(self, experiment_id: int) -> Changes:
        self.asked += 1
        return self._queue.changes(experiment_id)


def test_one_look_serves_all_listeners(server: Running) -> None:
    number = server.launch()
    queue = Counting(server.store.queue)
    server_store = replace(server.store, queue=queue)  # type: ignore[arg-type]  # __getattr__ has the rest
    listeners = 40

    async def listen(watched: ExperimentEvents) -> int:
        parts = watched.stream(number, None, lambda: True)
        assert b"queued" in await anext(parts)
        heard.append(1)
        if len(heard) == listeners:
            everybody_is_there.set()
        async for part in parts:
            if b"event: runs" in part:
                await parts.aclose()  # type: ignore[attr-defined]  # it is a generator
                return 1
        return 0

    async def everybody() -> int:
        watched = ExperimentEvents(server_store)
        tasks = [asyncio.create_task(listen(watched)) for _ in range(listeners)]
        await everybody_is_there.wait()
        queue.asked = 0
        await asyncio.to_thread(server.play, number, [Completed(1.0)], None)
        told = await asyncio.gather(*tasks)
        assert watched.listeners == 0
        return sum(told)

    heard: list[int] = []
    everybody_is_there = asyncio.Event()
    assert asyncio.run(everybody()) == listeners
    assert queue.asked < listeners


def test_whoever_does_not_keep_up_is_sent_away() -> None:
    async def slow() -> list[bytes]:
        listener = Listener()
        for number in range(1000):
            listener.tell(b"%d" % number)
        return [part async for part in listener.parts(lambda: True)]

    async def attentive() -> list[bytes]:
        listener = Listener()
        listener.tell(b"1")
        listener.close_stream()
        return [part async for part in listener.parts(lambda: True)]

    assert len(asyncio.run(slow())) < 100
    assert asyncio.run(attentive()) == [b"1"]
