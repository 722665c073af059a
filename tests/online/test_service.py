"""The on-line service on real sockets: sessions, clients that come and go, and clients that misbehave."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.online.serving import BEST, PATIENCE_S, SECRET, SPACE, Serving, Wire, cost, optimum, serving, until

from luthier.errors import InvalidInputError, StoreError, UnavailableError
from luthier.online.service import connection, protocol, sessions
from luthier.online.session import OnlineSession
from luthier.online.store import SqlOnlineSessions, online_sessions_in
from luthier.space import Integer, Space
from luthier.store.server_store import Credential, User, digest_of


def test_a_client_finds_the_optimum_and_then_gets_it_for_good(served: Serving) -> None:
    with served.wire() as wire:
        assert wire.hello("s", "node/1") == {
            "ok": True,
            "protocol": 1,
            "session": "s",
            "client": "node/1",
            "phase": "baseline",
        }
        assert wire.ask(op="fetch") == {"ok": True, "config": dict(SPACE.default), "phase": "baseline"}
        wire.ask(op="report", value=cost(SPACE.default))
        assert wire.run(300) == {"ok": True, "config": BEST, "phase": "converged"}
        assert wire.ask(op="best") == {"ok": True, "config": BEST, "value": 1.0, "samples": 1, "phase": "converged"}
        assert wire.ask(op="leave") == {"ok": True}
        assert wire.is_closed()


def test_several_sessions_at_once_do_not_touch_each_other(served: Serving) -> None:
    other = Space(Integer("x", 0, 9, default=9))
    with served.wire() as one, served.wire() as two, served.wire(served.addresses[1]) as three:
        assert one.hello("a")["ok"]
        assert two.hello("b", space=other.to_json())["ok"]
        assert three.hello("a", token=SECRET)["client"] == "c-2"
        for _ in range(60):
            one.run(1)
            three.run(1)
            two.ask(op="report", value=float(two.ask(op="fetch")["config"]["x"]))
        assert two.ask(op="best")["config"] == {"x": 0}
        assert three.ask(op="best")["config"] == BEST


def test_clients_join_and_leave_at_any_time(served: Serving) -> None:
    wires: list[Wire] = []
    for step in range(120):
        if step % 10 == 0:
            wires.append(served.wire())
            assert wires[-1].hello(client=f"n{step}")["ok"]
        if step % 20 == 15:
            gone = wires.pop(0)
            if step % 40 == 15:
                gone.ask(op="leave")
            gone.close()
        for wire in wires:
            wire.run(1)
    assert wires[0].ask(op="best")["config"] == BEST
    for wire in wires:
        wire.close()
    until(lambda: not served.view("s").clients)


def test_the_point_of_a_client_that_vanishes_is_given_to_another_at_once(served: Serving) -> None:
    with served.wire() as staying:
        staying.hello(settings={"strategy": "pro", "samples": 1, "baseline": 0})
        leaving = served.wire()
        leaving.hello(settings={"strategy": "pro", "samples": 1, "baseline": 0})
        wanted = leaving.ask(op="fetch")["config"]
        assert staying.ask(op="fetch")["config"] != wanted
        leaving.close()
        until(lambda: len(served.view("s").clients) == 1)
        got = []
        for _ in range(6):
            got.append(staying.ask(op="fetch")["config"])
            staying.ask(op="report", value=cost(got[-1]))
        assert wanted in got


def test_one_connection_speaks_for_many_clients(served: Serving) -> None:
    with served.wire() as wire:
        assert wire.hello(client="mpi", clients=6)["client"] == "mpi"
        for _ in range(60):
            fetched = wire.ask(op="fetch")
            assert len(fetched["configs"]) == 6
            assert wire.ask(op="report", values=[cost(config) for config in fetched["configs"]]) == {"ok": True}
        assert wire.ask(op="fetch")["configs"] == [BEST] * 6
        assert "6 clients" in wire.ask(op="report", values=[1.0])["error"]
        names = [client.name for client in served.view("s").clients]
        assert names == [f"mpi:{place}" for place in range(6)]
        assert wire.ask(op="report", values=[1.0] * 6)["ok"]
        before = served.view("s").to_json()
        given = [{**BEST, "block": 21}, None, None, None, None, None]
        assert "nothing was fetched" in wire.ask(op="report", values=[1.0] * 6, configs=given)["error"]
        assert served.view("s").to_json() == before


def test_reports_without_waiting_and_requests_in_one_piece(served: Serving) -> None:
    with served.wire() as wire:
        wire.hello()
        wire.send(b'{"op":"fetch"}\n{"op":"report","value":4}\n{"op":"fetch"}\n')
        answers = [json.loads(wire.line()) for _ in range(3)]
        assert [sorted(answer) for answer in answers] == [["config", "ok", "phase"], ["ok"], ["config", "ok", "phase"]]
        for byte in b'{"op":"best"}\n':
            wire.send(bytes([byte]))
        assert json.loads(wire.line())["value"] == 4.0


def test_wrong_requests_change_nothing_and_the_connection_stays(served: Serving) -> None:
    with served.wire() as wire:
        wire.hello()
        before = served.view("s").to_json()
        for request in (
            {"op": "report", "value": "fast"},
            {"op": "report", "value": 1.0},
            {"op": "report", "value": 1.0, "config": {"block": 1}},
            {"op": "report", "value": 1.0, "config": {**BEST, "block": 65}},
            {"op": "jump"},
            {"op": "hello", "protocol": 1, "session": "t", "client": "c"},
        ):
            answer = wire.ask(**request)
            assert answer["ok"] is False
            assert "\n" not in answer["error"]
        assert served.view("s").to_json() == before
        assert wire.ask(op="fetch")["ok"]


@pytest.mark.parametrize(
    ("sent", "reason"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", "not JSON"),
        (b"\x00\xff\x00\n", "not JSON"),
        (b"[" * 5000 + b"\n", "not JSON"),
        (b'{"op":"fetch"}\n', "the first line must be hello"),
        (b'{"op":"hello"}\n', "use version 1"),
        (b"x" * (protocol.LONGEST_HELLO + 2), "longer than"),
    ],
)
def test_strangers_get_one_line_and_are_closed(served: Serving, sent: bytes, reason: str) -> None:
    with served.wire() as good:
        good.hello()
        with served.wire() as bad:
            bad.send(sent)
            assert reason in json.loads(bad.line())["error"]
            assert bad.is_closed()
        assert good.run(3)["ok"]


@pytest.mark.parametrize("sent", [b"no json\n", b'{"op":"report","value":' + b"1" * 70_000 + b"}\n", b"y" * 70_000])
def test_a_client_that_goes_mad_is_closed_and_its_point_given_away(served: Serving, sent: bytes) -> None:
    with served.wire() as good, served.wire() as mad:
        good.hello()
        mad.hello()
        mad.ask(op="fetch")
        mad.send(sent)
        assert json.loads(mad.line())["ok"] is False
        assert mad.is_closed()
        assert not served.view("s").clients
        assert good.run(3)["ok"]


def test_half_a_line_and_silence(served: Serving, monkeypatch: pytest.MonkeyPatch) -> None:
    with served.wire() as half:
        half.hello()
        half.send(b'{"op":"fet')
        monkeypatch.setattr(connection, "HELLO_S", 0.05)
        with served.wire() as silent, served.wire() as slow:
            slow.send(b'{"op":"hello"')
            for wire in (silent, slow):
                assert "no hello within" in json.loads(wire.line())["error"]
                assert wire.is_closed()
        half.send(b'ch"}\n')
        assert json.loads(half.line())["ok"]


def test_tcp_needs_a_token_and_unix_does_not(served: Serving) -> None:
    tcp = served.addresses[1]
    for token, reason in ((None, "a token is required"), ("wrong", "not valid")):
        with served.wire(tcp) as wire:
            answer = wire.hello(**({} if token is None else {"token": token}))
            assert reason in answer["error"]
            assert "retry" not in answer
            assert wire.is_closed()
    with served.wire(tcp) as wire:
        assert wire.hello(token=SECRET)["ok"]
    with served.wire() as wire:
        assert "not valid" in wire.hello(token="wrong")["error"]
    assert len(online_sessions_in(served.store).all()) == 1


def test_with_accounts_sessions_belong_to_the_user_of_the_token(served: Serving) -> None:
    for name in ("ada", "bob"):
        served.store.accounts.put_user(User(name, "user", 1.0))
        served.store.accounts.grant(digest_of(f"of {name}"), Credential(0, name, "token", "x", 1.0))
        with served.wire(served.addresses[1]) as wire:
            assert wire.hello(token=f"of {name}")["ok"]
            wire.run(1)
    assert sorted(record.author for record in online_sessions_in(served.store).all()) == ["ada", "bob"]
    with served.wire(served.addresses[1]) as wire:
        assert "not valid" in wire.hello(token=SECRET)["error"]


def test_a_session_is_joined_with_the_same_parameters_and_settings_only(served: Serving) -> None:
    with served.wire() as wire:
        assert wire.hello()["ok"]
    for more, reason in (
        ({"space": Space(Integer("block", 1, 65)).to_json()}, "exists with other parameters; use another name"),
        ({"settings": {"strategy": "nelder-mead"}}, "strategy 'pro', not 'nelder-mead'"),
        ({"settings": {"strategi": "pro"}}, "unknown name 'strategi'"),
        ({"space": {"parameters": [{"kind": "integer"}], "constraints": []}}, "missing"),
        ({"space": {}}, "missing"),
    ):
        with served.wire() as wire:
            answer = wire.hello(**more)
            assert reason in answer["error"], answer
            assert wire.is_closed()
    with served.wire() as wire:
        assert wire.ask(op="hello", protocol=1, session="s", client="c")["ok"]  # nothing is asked for


def test_what_cannot_be_created_is_not_stored(served: Serving) -> None:
    for session, more, reason in (
        ("new", {"space": None, "settings": None}, "does not exist; give its space"),
        ("new", {"settings": {"strategy": "magic"}}, "unknown strategy 'magic'"),
        ("new", {"settings": {"samples": 0}}, "samples"),
        ("new", {"settings": {"strategy": "pro:size=7"}}, "size"),
    ):
        with served.wire() as wire:
            assert reason in wire.hello(session, **more)["error"]
    assert not online_sessions_in(served.store).all()


def test_stop_leaves_the_clients_on_the_best(served: Serving) -> None:
    with served.wire() as wire:
        wire.hello()
        wire.run(8)
        online_sessions_in(served.store).request_stop(online_sessions_in(served.store).all()[0].id)
        until(lambda: served.session("s").phase == "stopped")
        best = wire.ask(op="best")
        assert wire.run(3) == {"ok": True, "config": best["config"], "phase": "stopped"}
    with served.wire() as later:
        assert later.hello()["phase"] == "stopped"
        assert later.ask(op="fetch")["config"] == best["config"]


def test_a_deleted_session_ends_its_clients_and_its_name_is_free(served: Serving) -> None:
    with served.wire() as wire:
        wire.hello()
        wire.run(8)
        old = online_sessions_in(served.store).all()[0].id
        online_sessions_in(served.store).delete(old)
        until(lambda: ("local", "s") not in served.service._sessions._served)
        assert "was deleted" in wire.ask(op="fetch")["error"]
        assert wire.is_closed()
    with served.wire() as later:
        assert later.hello(space=Space(Integer("x", 0, 9)).to_json())["phase"] == "baseline"
    assert online_sessions_in(served.store).all()[0].id != old


def test_views_and_samples_are_in_the_store_while_the_session_runs(served: Serving) -> None:
    with served.wire() as wire:
        wire.hello()
        wire.run(5)
        record = online_sessions_in(served.store).all()[0]
        until(lambda: len(online_sessions_in(served.store).samples(record.id)) == 5)
        until(lambda: (online_sessions_in(served.store).get(record.id).view or {}).get("steps") == 5)
        assert online_sessions_in(served.store).get(record.id).seen_at is not None


def test_an_ended_service_leaves_everything_in_the_store(folder: Path, url: str) -> None:
    with serving(url, folder) as first, first.wire() as wire:
        wire.hello()
        wire.run(9)
        best = wire.ask(op="best")
        view = first.view("s").to_json()
    assert not (folder / "s").exists()
    with serving(url, folder) as second:
        record = online_sessions_in(second.store).all()[0]
        assert len(online_sessions_in(second.store).samples(record.id)) == 9
        with second.wire() as wire:
            assert wire.hello()["phase"] == best["phase"]
            assert wire.ask(op="best") == best
            restored = second.view("s").to_json()
            assert [restored[key] for key in ("steps", "total", "points")] == [
                view[key] for key in ("steps", "total", "points")
            ]
            assert wire.run(200)["config"] == BEST


def test_the_first_session_need_not_wait_for_imports(tmp_path: Path) -> None:
    code = (
        "import sys, threading\n"
        "from pathlib import Path\n"
        "from luthier.online.service.service import OnlineService\n"
        "from luthier.store import open_server_store\n"
        "folder, ended = Path(sys.argv[1]), threading.Event()\n"
        "service = OnlineService(open_server_store(str(folder / 'd.db')), [f'unix:{folder}/s'], str, folder=folder)\n"
        "service.run(ended, lambda _: (print(*sys.modules), ended.set()))\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True)
    assert "luthier.online.strategies.auto" in done.stdout.split()


def test_a_clock_that_is_set_makes_no_iteration_long(served: Serving, monkeypatch: pytest.MonkeyPatch) -> None:
    with served.wire() as wire:
        wire.hello()
        for jump_s in (1e6, -1e6):
            assert wire.ask(op="fetch")["ok"]
            with monkeypatch.context() as patched:
                set_clock = time.time() + jump_s
                patched.setattr(time, "time", lambda set_clock=set_clock: set_clock)
                assert wire.ask(op="report", value=1.0) == {"ok": True}
        assert served.session("s").longest_s < PATIENCE_S


def test_idle_sessions_leave_the_memory_and_come_back(served: Serving, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "IDLE_S", 0.0)
    with served.wire() as wire:
        wire.hello()
        wire.run(200)
        assert served.session("s").best.best == optimum()
    until(lambda: not served.service._sessions._served)
    with served.wire() as wire:
        wire.hello()
        assert wire.ask(op="fetch") == {"ok": True, "config": BEST, "phase": "converged"}


def test_a_store_that_is_away_stops_nobody_and_loses_nothing(
    served: Serving, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def away(*_: object, **__: object) -> None:
        raise StoreError("the store is away")

    with served.wire() as wire:
        wire.hello()
        record = online_sessions_in(served.store).all()[0]
        with monkeypatch.context() as patched:
            patched.setattr(SqlOnlineSessions, "get", away)
            patched.setattr(SqlOnlineSessions, "find", away)
            wire.run(6)
            until(lambda: "not stored now" in caplog.text)
            wire.run(6)
            with served.wire() as other:
                assert other.hello("another") == {"ok": False, "error": "the store is away", "retry": True}
        until(lambda: len(online_sessions_in(served.store).samples(record.id)) == 12)
    assert caplog.text.count("not stored now") == 1


def test_a_strategy_that_fails_does_not_end_the_service(
    served: Serving, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError

    with served.wire() as wire:
        wire.hello()
        with monkeypatch.context() as patched:
            patched.setattr(OnlineSession, "fetch", fail)
            assert wire.ask(op="fetch") == {"ok": False, "error": "the service failed; see its log"}
        assert wire.run(3)["ok"]
    assert "ZeroDivisionError" in caplog.text


def test_a_session_of_another_machine_is_not_taken(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url = f"sqlite:///{folder}/x.db"
    with serving(url, folder) as first, first.wire() as wire:
        wire.hello()
        wire.run(2)
        until(lambda: online_sessions_in(first.store).all()[0].view)
        (folder / "elsewhere").mkdir()
        with serving(url, folder / "elsewhere") as second:
            with second.wire() as other:
                answer = other.hello()
                assert "another machine" in answer["error"]
                assert answer["retry"] is True
            monkeypatch.setattr(sessions, "SEEN_S", 0.0)  # as if the first one had ended long ago
            with second.wire() as other:
                assert other.hello()["ok"]


def test_what_prevents_a_start(folder: Path) -> None:
    url = f"sqlite:///{folder}/x.db"
    with serving(url, folder):
        with pytest.raises(UnavailableError, match="another on-line service uses this store"):
            Serving(url, folder, [f"unix:{folder}/t"])
        with pytest.raises(UnavailableError, match="already listening"):
            Serving(f"sqlite:///{folder}/y.db", folder, [f"unix:{folder}/s"])
    with pytest.raises(InvalidInputError, match="no address"):
        Serving(url, folder, [])
