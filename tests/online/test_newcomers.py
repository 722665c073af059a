"""Strangers who reach the tcp port of the on-line service do not keep clients out."""

import json
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass

import pytest
from tests.online.serving import PATIENCE_S, SECRET, SPACE, Serving, Wire, until
from tests.torture import repeats

from luthier.online.service import newcomers, protocol
from luthier.online.service.address import Address, TcpAddress
from luthier.online.service.newcomers import GRACE_S, Newcomers, is_loopback
from luthier.online.service.remote import RemoteTuner
from luthier.server.client_addresses import source_of

MOST = 16
FAR, NEAR = "192.0.2.1", "198.51.100.7"


@dataclass(eq=False)
class Stranger:
    """A connection as `Newcomers` sees it."""

    source: str
    is_opening: bool = False
    reason: str | None = None

    def turn_away(self, reason: str) -> None:
        self.reason = reason


@dataclass
class Door:
    """Newcomers with a clock that only moves when it is told to."""

    now: float = 0.0

    def __post_init__(self) -> None:
        self.newcomers = Newcomers(lambda: self.now)

    def come(self, source: str, *, opening: bool = False) -> Stranger:
        one = Stranger(source, opening)
        one.reason = self.newcomers.admit(one, MOST)
        return one

    def crowd(self, count: int, source: str = FAR) -> list[Stranger]:
        return [self.come(source) for _ in range(count)]

    def join(self, source: str) -> None:
        one = self.come(source)
        assert one.reason is None
        self.newcomers.joined(one)


def test_others_get_in_while_one_address_takes_all_places() -> None:
    door = Door()
    crowd = door.crowd(MOST + 5)
    assert [one.reason is None for one in crowd] == [True] * MOST + [False] * 5
    others = [door.come(f"198.51.100.{number}") for number in range(MOST - 2)]
    assert all(one.reason is None for one in others)
    assert all(one.reason for one in crowd[: MOST - 2])  # oldest first
    assert not any(one.reason for one in crowd[MOST - 2 : MOST])


def test_only_when_half_of_the_places_are_taken_slow_ones_are_closed() -> None:
    door = Door()
    crowd = door.crowd(MOST // 2)
    door.now = 100 * GRACE_S
    assert not any(one.reason for one in crowd)
    late = door.come(NEAR)
    assert (late.reason, [bool(one.reason) for one in crowd]) == (None, [True] + [False] * (MOST // 2 - 1))


def test_a_connection_that_is_answered_keeps_its_place() -> None:
    door = Door()
    answered = [door.come(FAR, opening=True) for _ in range(MOST // 2)]
    silent = door.crowd(MOST // 2)
    door.now = 2 * GRACE_S
    assert all(one.reason is None for one in door.crowd(MOST // 2))
    assert all(one.reason for one in silent)
    assert not any(one.reason for one in answered)


def test_known_addresses_get_in_however_many_others_wait() -> None:
    door = Door()
    door.join(NEAR)
    crowd = [door.come(f"192.0.2.{number}") for number in range(MOST)]
    assert door.come("203.0.113.1").reason is not None  # nobody knows it, and nobody has more places
    for number in range(MOST):
        assert door.come(NEAR if number % 2 else "127.0.0.1").reason is None
    assert all(one.reason for one in crowd)
    assert door.come("203.0.113.1").reason is not None  # it does not take the place of one that is known
    door.now = GRACE_S
    assert door.come("203.0.113.1").reason is None


def test_places_are_freed() -> None:
    door = Door()
    crowd = door.crowd(MOST)
    for one in crowd:
        door.newcomers.forget(one)
        door.newcomers.forget(one)
    assert all(one.reason is None for one in door.crowd(MOST))


def test_addresses_are_counted_by_network() -> None:
    assert source_of("2001:db8::1") == source_of("2001:db8::ffff:1") != source_of("2001:db8:0:1::1")
    assert source_of("::ffff:192.0.2.1") == "192.0.2.1"
    assert [is_loopback(source_of(one)) for one in ("127.9.9.9", "::1", "::ffff:127.0.0.1", "10.0.0.1", "2001::1")] == [
        True,
        True,
        True,
        False,
        False,
    ]


@pytest.fixture
def tcp(served: Serving, monkeypatch: pytest.MonkeyPatch) -> Address:
    """The tcp address of a service to which only 127.0.0.1 is this machine."""
    monkeypatch.setattr(newcomers, "is_loopback", lambda source: source == "127.0.0.1")
    return served.addresses[1]


def connect(address: Address, source: str) -> socket.socket:
    """A connection from one of the addresses of this machine."""
    assert isinstance(address, TcpAddress)
    return socket.create_connection((address.host, address.port), PATIENCE_S, source_address=(source, 0))


class From(Wire):
    """A client with another address."""

    def __init__(self, address: Address, source: str) -> None:
        self._socket = connect(address, source)
        self._lines = self._socket.makefile("rb")


def gets_in(address: Address, source: str) -> bool:
    """Whether a client that tries once is let in."""
    hello = protocol.Hello("s", "c", SECRET, SPACE.to_json(), {"strategy": "pro", "samples": 1})
    with From(address, source) as client:
        try:
            client.send(protocol.hello_line(hello))
            return bool(json.loads(client.line() or b"{}").get("ok"))
        except (BrokenPipeError, ConnectionResetError):
            return False


@pytest.fixture
def strangers() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def test_one_stranger_does_not_lock_out_anybody(served: Serving, tcp: Address, strangers: ExitStack) -> None:
    for number in range(repeats(300, 3000)):
        stranger = strangers.enter_context(connect(tcp, "127.0.0.2"))
        if number % 2:
            stranger.sendall(b'{"op":"hello"')  # a line that does not end
    for source in ("127.0.0.1", "127.0.0.3", "127.0.0.4"):
        with From(tcp, source) as client:
            assert client.hello(token=SECRET)["ok"]
            assert client.run(3)["ok"]
    with served.wire() as local:
        assert local.hello()["ok"]
    one = RemoteTuner(str(tcp), "s", SPACE, token=SECRET, timeout_s=5.0, strategy="pro", samples=1)
    assert one.best.samples > 0
    one.leave()


def test_many_strangers_do_not_lock_out_who_was_there_before(
    served: Serving, tcp: Address, strangers: ExitStack
) -> None:
    with From(tcp, "127.0.0.3") as client:
        assert client.hello(token=SECRET)["ok"]
    for number in range(200):
        strangers.enter_context(connect(tcp, f"127.0.1.{number + 1}"))
    with From(tcp, "127.0.0.3") as client, From(tcp, "127.0.0.1") as local:
        assert client.hello(token=SECRET)["ok"]
        assert local.hello(token=SECRET)["ok"]
        assert client.run(3)["ok"]

    until(lambda: gets_in(tcp, "127.0.0.5"))  # after a moment also somebody new


def test_who_shares_the_address_of_a_stranger_gets_in_after_a_moment(tcp: Address, strangers: ExitStack) -> None:
    for _ in range(200):
        strangers.enter_context(connect(tcp, "127.0.0.2"))

    until(lambda: gets_in(tcp, "127.0.0.2"))
