"""On-line sessions over REST: what is shown, who may see and change them, and live changes."""

import http.client
import json
import threading
import time
from collections.abc import Callable
from typing import cast
from urllib.parse import urlsplit

import pytest
from tests.online.server.online_samples import BEST, DEFAULT, SPACE, a_session, a_view
from tests.server.server_fixtures import Running

import luthier
from luthier.client import Client, SampleData, SessionSummary
from luthier.errors import InvalidInputError, NotFoundError, UnavailableError
from luthier.online.server import api as models
from luthier.online.server import state as online_operations
from luthier.online.server.summaries import SERVED_S
from luthier.online.store import online_sessions_in
from luthier.server import list_events
from luthier.trial import Json

API = "/api/v1/online"


@pytest.fixture
def client(server: Running) -> Client:
    return luthier.Client(server.url, server.token, retry_s=0.01)


def actions(server: Running) -> list[tuple[str, str, str, str]]:
    entries = server.store.accounts.entries()
    return [(one.user, one.action, one.target, one.detail) for one in entries if "on-line" in one.target]


def test_the_client_has_the_fields_of_the_server() -> None:
    assert list(SessionSummary.__annotations__) == list(models.OnlineSummary.model_fields)
    assert list(SampleData.__annotations__) == list(models.OnlineSample.model_fields)


def test_a_session_is_shown_as_its_service_wrote_it(server: Running, client: Client) -> None:
    made = a_session(server.store)
    (listed,) = client.online_sessions()
    expected = {
        "id": made.id,
        "name": "stencil",
        "author": "local",
        "phase": "searching",
        "search": 2,
        "client_count": 2,
        "best_value": 1.25,
        "default_value": 2.5,
        "gain": 2.0,
        "steps": 40,
        "total": 60.0,
        "compared_steps": 36,
        "compared_total": 50.0,
        "default_total": 90.0,
        "saved": 40.0,
        "mine": True,
        "may_change": True,
    }
    assert expected.items() <= dict(listed).items()
    shown = client.online_session(made.id)
    assert dict(listed).items() <= shown.items()
    assert shown["best"] == {"config": BEST, "value": 1.25, "samples": 3}
    assert shown["default"] == {"config": DEFAULT, "value": 2.5, "samples": 3}
    assert [one["name"] for one in cast("list[dict[str, str]]", shown["clients"])] == ["node1/4711", "node2/4711"]
    assert (shown["parameters"], shown["constraints"]) == (SPACE["parameters"], SPACE["constraints"])
    assert "space" not in cast("dict[str, Json]", shown["settings"])


def test_nothing_is_shown_that_was_not_measured(server: Running, client: Client) -> None:
    before: dict[str, Json] = {"config": DEFAULT, "value": None, "samples": 0}
    view = a_view(
        phase="baseline", best=before, default=before, steps=0, total=0.0, compared_steps=0, compared_total=0.0
    )
    view |= {"default_total": None, "default_step": None, "history": [], "points": [], "changes": []}
    shown = client.online_session(a_session(server.store, view=view).id)
    nothing = ("best", "best_value", "default_value", "gain", "total", "compared_total", "default_total", "saved")
    assert {name: shown[name] for name in nothing} == dict.fromkeys(nothing)
    assert server.ask("GET", f"{API}/{shown['id']}/figures/steps").status == 204
    view = a_view(search=1, default=before, compared_steps=0, compared_total=0.0, default_total=None)
    shown = client.online_session(a_session(server.store, "no default", view=view).id)
    assert (shown["best_value"], shown["total"]) == (1.25, 60.0)
    assert (shown["gain"], shown["saved"], shown["default_total"]) == (None, None, None)
    new = online_sessions_in(server.store).create("local", "new", {"space": SPACE}, 1.0)
    assert client.online_session(new.id)["phase"] == "not served"


@pytest.mark.parametrize(("goal", "gain", "saved"), [("minimize", 2.0, 40.0), ("maximize", 0.5, -40.0)])
def test_better_is_better_in_both_directions(
    server: Running, client: Client, goal: str, gain: float, saved: float
) -> None:
    shown = client.online_session(a_session(server.store, view=a_view(goal=goal), goal=goal).id)
    assert (shown["gain"], shown["saved"]) == (gain, saved)


def test_a_default_from_before_a_change_is_not_compared(server: Running, client: Client) -> None:
    best: Json = {"config": BEST, "value": 1.25, "samples": 3}
    again: Json = {"config": DEFAULT, "value": 5.0, "samples": 1}
    views = (a_view(points=[best]), a_view(points=[best, again]), a_view(points=[best], search=1))
    shown = [
        client.online_session(a_session(server.store, str(number), view=view).id) for number, view in enumerate(views)
    ]
    assert [(one["default_value"], one["gain"]) for one in shown] == [(None, None), (5.0, 4.0), (2.5, 2.0)]


def test_phases(server: Running, client: Client) -> None:
    for phase in ("baseline", "searching", "converged", "stopped"):
        assert client.online_session(a_session(server.store, phase, view=a_view(phase=phase)).id)["phase"] == phase
    left = a_session(server.store, "left")
    online_sessions_in(server.store).update(left.id, seen_at=time.time() - SERVED_S - 1)
    shown = client.online_session(left.id)
    assert (shown["phase"], shown["client_count"], shown["clients"]) == ("not served", 0, [])
    assert shown["best_value"] == 1.25
    client.stop_online(left.id)
    assert client.online_session(left.id)["phase"] == "stopped"


def test_view_of_another_version_breaks_nothing(server: Running, client: Client) -> None:
    views: list[dict[str, Json]] = [
        {},
        {"phase": "searching", "best": 3, "clients": "none", "steps": "many", "total": "x"},
        a_view(clients=[{"nobody": 1}], points=[7], history=[["a", "b"]]),
        a_view(unknown={"a": 1}),
    ]
    for number, view in enumerate(views):
        made = a_session(server.store, f"session {number}", view=view)
        assert client.online_session(made.id)["name"] == made.name
        assert server.ask("GET", f"{API}/{made.id}/figures/steps").status in (200, 204)
    assert len(list(client.online_sessions())) == len(views)


def test_samples_come_in_pages(server: Running, client: Client) -> None:
    made = a_session(server.store)
    assert [(one["number"], one["value"]) for one in client.online_samples(made.id)] == [(1, 2.5), (2, None), (3, 1.25)]
    page = cast("dict[str, object]", server.ask("GET", f"{API}/{made.id}/samples?after=1&limit=1").json)
    assert page["next"] == 2
    assert [one["number"] for one in cast("list[dict[str, int]]", page["items"])] == [2]


def test_sessions_come_in_pages(server: Running) -> None:
    root, bob = server.add_user("root", "admin"), server.add_user("bob", "user")
    numbers = [a_session(server.store, str(number), "bob" if number % 2 else "local").id for number in range(6)]
    online_sessions_in(server.store).share(numbers[2], shared=True)
    newest, bobs = numbers[::-1], numbers[::-1][::2]
    for token, mine, expected in (
        (root, "", newest),
        (root, "&mine=true", []),
        (bob, "", sorted([*bobs, numbers[2]], reverse=True)),
        (bob, "&mine=true", bobs),
    ):
        found: list[int] = []
        following: object = ""
        while following is not None:
            before = f"&before={following}" if following else ""
            page = cast("dict[str, object]", server.ask("GET", f"{API}?limit=2{mine}{before}", token=token).json)
            found += [one["id"] for one in cast("list[dict[str, int]]", page["items"])]
            following = page["next"]
        assert found == expected


def test_figure_has_the_steps_the_default_and_the_restarts(server: Running) -> None:
    made = a_session(server.store)
    figure = cast("dict[str, list[dict[str, object]]]", server.ask("GET", f"{API}/{made.id}/figures/steps").json)
    named = {one["name"]: one for one in figure["data"]}
    assert set(named) == {"slowest client of the step", "default", "search began again"}
    assert named["slowest client of the step"]["x"] == list(range(1, 41))
    assert (named["default"]["x"], named["default"]["y"]) == ([22, 40], [2.6, 2.6])
    assert named["search began again"]["x"] == [22]


def test_stop_share_and_delete_are_noted(server: Running, client: Client) -> None:
    made = a_session(server.store)
    target = f"on-line session {made.id}"
    assert client.stop_online(made.id)["phase"] == "stopped"
    assert online_sessions_in(server.store).get(made.id).stop_requested
    with pytest.raises(UnavailableError, match="already stopped"):
        client.stop_online(made.id)
    assert client.share_online(made.id)["shared"]
    assert not client.share_online(made.id, shared=False)["shared"]
    client.delete_online(made.id)
    with pytest.raises(NotFoundError, match=f"^on-line session {made.id} does not exist"):
        client.online_session(made.id)
    assert actions(server) == [
        ("local", action, target, "stencil") for action in ("delete", "unshare", "share", "stop")
    ]


CALLS: list[tuple[str, str, object]] = [
    ("GET", "", None),
    ("GET", "/samples", None),
    ("GET", "/figures/steps", None),
    ("GET", "/events", None),
    ("POST", "/stop", None),
    ("PATCH", "", {"shared": True}),
    ("DELETE", "", None),
]


def status_of(server: Running, token: str | None, method: str, path: str, body: object) -> int:
    """The status of an answer; its body is not read, because a stream does not end."""
    headers = {"Authorization": f"Bearer {token}"} if token is not None else {}
    connection = http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=60)
    connection.request(method, path, json.dumps(body), {**headers, "Content-Type": "application/json"})
    with connection.getresponse() as answer:
        status = answer.status
    connection.close()
    return status


def test_who_may_see_and_change_a_session(server: Running) -> None:
    root, eve = server.add_user("root", "admin"), server.add_user("eve", "viewer")
    ann, bob = server.add_user("ann", "user"), server.add_user("bob", "user")
    made = a_session(server.store, author="ann")
    assert a_session(server.store, "over the socket").author == "local"

    def statuses(token: str | None) -> list[int]:
        return [status_of(server, token, method, f"{API}/{made.id}{path}", body) for method, path, body in CALLS]

    def listed(token: str) -> list[str]:
        page = cast("dict[str, list[dict[str, str]]]", server.ask("GET", API, token=token).json)
        return [one["name"] for one in page["items"]]

    assert statuses(None) == [401] * len(CALLS)
    assert statuses(bob) == statuses(eve) == [404] * len(CALLS)
    assert (listed(bob), listed(eve), listed(ann)) == ([], [], ["stencil"])
    assert listed(root) == ["over the socket", "stencil"]
    assert server.ask("PATCH", f"{API}/{made.id}", {"shared": True}, token=ann).status == 200
    for token in (bob, eve):
        assert listed(token) == ["stencil"]
        shown = cast("dict[str, bool]", server.ask("GET", f"{API}/{made.id}", token=token).json)
        assert (shown["mine"], shown["may_change"]) == (False, False)
        for method, path, body in CALLS[4:]:
            reply = server.ask(method, f"{API}/{made.id}{path}", body, token=token)
            assert reply.status == 403
            assert b"belongs to ann" in reply.body
    server.context.authenticator.add_user("ann", "viewer", None)
    assert server.ask("DELETE", f"{API}/{made.id}", token=ann).status == 403
    assert server.ask("POST", f"{API}/{made.id}/stop", token=root).status == 200
    assert server.ask("DELETE", f"{API}/{made.id}", token=root).status == 204
    assert [user for user, *_ in actions(server)] == ["root", "root", "ann"]


def wait_for(true: Callable[[], bool], what: str) -> None:
    give_up_at = time.monotonic() + 30
    while not true():
        assert time.monotonic() < give_up_at, what
        time.sleep(0.01)


def test_changes_are_sent_live(server: Running, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(list_events, "LOOK_EVERY_S", 0.02)
    made, other = a_session(server.store), a_session(server.store, "other")
    heard: list[tuple[str, object]] = []

    def listen() -> None:
        for event in client.watch_online(made.id):
            data = cast("dict[str, object]", event.data)
            heard.append((event.kind, data.get("phase", data.get("id"))))

    listening = threading.Thread(target=listen)
    listening.start()
    wait_for(lambda: ("watching", None) in heard, "a first look")
    online_sessions_in(server.store).update(other.id, seen_at=time.time(), view=a_view(phase="converged"))
    online_sessions_in(server.store).update(made.id, seen_at=time.time(), view=a_view(phase="converged"))
    wait_for(lambda: ("session", "converged") in heard, "a change")
    online_sessions_in(server.store).request_stop(made.id)
    wait_for(lambda: ("session", "stopped") in heard, "a stop")
    online_sessions_in(server.store).delete(other.id)
    online_sessions_in(server.store).delete(made.id)
    listening.join(30)
    assert not listening.is_alive()
    assert heard[1:] == [("session", "converged"), ("session", "stopped"), ("gone", made.id)]


def test_an_old_session_is_watched_while_its_page_is_open(
    server: Running, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(online_operations, "NEWEST", 2)
    old = a_session(server.store, "old")
    for name in "abc":
        a_session(server.store, name)
    watched = online_operations.OnlineList(online_sessions_in(server.store))
    newest, gone = watched.look({}, set())
    assert ([one.name for one in newest], gone) == (["c", "b"], [])
    also, gone = watched.look({}, {old.id})
    assert ([one.name for one in also], gone) == (["c", "b", "old"], [])
    client.delete_online(old.id)
    assert watched.look({one.id: one for one in also}, {old.id})[1] == [old.id]


def test_bad_requests_are_refused(server: Running, client: Client) -> None:
    made = a_session(server.store)
    for path in ("0", "-1", "x", str(10**30), f"{made.id}/samples?limit=0", f"{made.id}/samples?after=x"):
        assert server.ask("GET", f"{API}/{path}").status == 422
    with pytest.raises(InvalidInputError, match="shared"):
        client.share_online(made.id, shared=cast("bool", "perhaps"))
    assert not online_sessions_in(server.store).get(made.id).shared
