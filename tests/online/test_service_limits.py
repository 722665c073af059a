"""What the on-line service does for clients that are too many, silent, eager or deaf."""

import json
import threading

import pytest
from tests.online.serving import PATIENCE_S, SECRET, Serving, until

from luthier.online.service import service as service_module


def test_too_many_connections_are_told_to_come_back(served: Serving, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(served.service, "_most", 2)
    with served.wire() as one, served.wire() as two:
        assert one.hello()["ok"]
        assert two.hello()["ok"]
        with served.wire() as third:
            answer = json.loads(third.line())
            assert "2 connections already" in answer["error"]
            assert answer["retry"] is True
            assert third.is_closed()
        assert one.run(2)["ok"]


def test_strangers_that_say_nothing_do_not_use_up_the_memory(served: Serving, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service_module, "_MOST_UNKNOWN", 2)
    tcp = served.addresses[1]
    with served.wire(tcp) as one, served.wire(tcp) as two:
        until(lambda: len(served.service._connections) == 2)
        with served.wire(tcp) as third:
            assert "not said hello yet" in json.loads(third.line())["error"]
        with served.wire() as local:
            assert local.hello()["ok"]
        assert one.hello(token=SECRET)["ok"]
        with served.wire(tcp) as fourth:
            assert fourth.hello(token=SECRET)["ok"]
        assert two.hello(token=SECRET)["ok"]


def test_a_client_that_sends_very_many_requests_at_once_gets_all_answers_and_lets_others_pass(served: Serving) -> None:
    count = 20_000
    with served.wire() as good, served.wire() as eager:
        good.hello()
        eager.hello()
        sending = threading.Thread(target=eager.send, args=(b'{"op":"best"}\n' * count,))
        sending.start()
        assert good.run(20)["ok"]
        assert all(json.loads(eager.line())["ok"] for _ in range(count))
        sending.join(PATIENCE_S)
        assert eager.run(2)["ok"]


def test_a_client_that_reads_no_answers_stops_being_read(served: Serving) -> None:
    with served.wire() as good, served.wire() as deaf:
        good.hello()
        deaf.hello()
        deaf._socket.settimeout(0.5)
        with pytest.raises(TimeoutError):
            deaf.send(b'{"op":"best"}\n' * 1_000_000)
        assert good.run(3)["ok"]
