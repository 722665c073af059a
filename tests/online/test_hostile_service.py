"""A hostile on-line service and the Python client: the program goes on, with nothing that is outside of its space."""

import itertools
import json
import logging
import random
import select
import socket
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import pytest
from tests.online.serving import PATIENCE_S
from tests.torture import repeats

from luthier.errors import InvalidInputError
from luthier.online.service import protocol, remote
from luthier.online.service.address import parse_address
from luthier.online.service.client_connection import ClientConnection
from luthier.online.service.remote import RemoteTuner
from luthier.space import Choice, Integer, Real, Space
from luthier.trial import Config, Json

SPACE = Space(
    Integer("block", 1, 64, default=8),
    Real("ratio", 0.0, 1.0, default=0.25),
    Choice("mode", ["plain", "fused"]),
    constraints=["block >= 2 or mode == 'fused'"],
)
BEST = Config({"block": 20, "ratio": 0.5, "mode": "fused"})
GOOD: Mapping[str, Json] = dict(BEST)
TIMEOUT_S = 0.05
MOST_BYTES = 32 << 20
"""Far more than a client needs, and far less than what a service could send."""

Reply = Callable[[Mapping[str, Json]], bytes]


def answer(**values: Json) -> bytes:
    return json.dumps({"ok": True, **values}).encode() + b"\n"


def proper(request: Mapping[str, Json], config: Mapping[str, Json] = GOOD) -> bytes:
    """What a service answers."""
    kinds: dict[str, bytes] = {
        "hello": answer(protocol=1, session="s", client="c", phase="searching"),
        "fetch": answer(config=dict(config), phase="searching"),
        "best": answer(config=dict(config), value=0.5, samples=3, phase="converged"),
    }
    return kinds.get(str(request["op"]), answer())


class Hostile:
    """Listens on a unix socket and answers every request as it is told; it ends with the test."""

    def __init__(self, path: Path, reply: Reply) -> None:
        self.reply, self.connections = reply, 0
        self.address = f"unix:{path}"
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        self._listener.listen(64)
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._accept)
        self._thread.start()

    def end(self) -> None:
        self._stopped.set()
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive()
        self._listener.close()

    def _accept(self) -> None:
        threads = []
        while not self._stopped.is_set():
            if select.select([self._listener], [], [], 0.02)[0]:
                plain, _ = self._listener.accept()
                self.connections += 1
                threads.append(threading.Thread(target=self._serve, args=(plain,)))
                threads[-1].start()
        for thread in threads:
            thread.join(PATIENCE_S)

    def _serve(self, plain: socket.socket) -> None:
        plain.settimeout(0.02)
        received = bytearray()
        with plain, suppress(OSError):
            while not self._stopped.is_set():
                try:
                    data = plain.recv(1 << 16)
                except TimeoutError:
                    continue
                if not data:
                    return
                received += data
                while (end := received.find(b"\n")) >= 0:
                    request = json.loads(received[:end])
                    del received[: end + 1]
                    if request["op"] == "leave":
                        return
                    self._send(plain, self.reply(request))

    def _send(self, plain: socket.socket, data: bytes) -> None:
        """Send everything, however slowly the client reads, until it has gone."""
        at = 0
        while at < len(data) and not self._stopped.is_set():
            with suppress(TimeoutError):
                at += plain.send(data[at : at + (1 << 16)])


@contextmanager
def hostile(folder: Path, reply: Reply) -> Iterator[Hostile]:
    running = Hostile(folder / "h", reply)
    try:
        yield running
    finally:
        running.end()


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Connect again at once, so that everything is tried many times."""
    monkeypatch.setattr(remote, "_FIRST_PAUSE_S", 0.0)
    monkeypatch.setattr(remote, "_LONGEST_PAUSE_S", 0.0)


def use(one: RemoteTuner, iterations: int) -> float:
    """Run the program; the longest call in seconds. Whatever it is given is in its space, with the right types."""
    longest = 0.0
    for number in range(iterations):
        began = time.monotonic()
        config = one.fetch()
        checked = SPACE.check(config)
        assert config == checked
        assert (
            [type(value) for value in config.values()]
            == [type(value) for value in checked.values()]
            == [int, float, str]
        )
        one.report(1.0 if config == GOOD else 2.0)
        if number % 5 == 0:
            best = one.best
            assert best.best == SPACE.check(best.best)
            assert best.value is None or abs(best.value) < 1e300
            assert best.samples >= 0
        assert one.phase in ("baseline", "searching", "converged", "stopped")
        longest = max(longest, time.monotonic() - began)
    return longest


def configs(**changes: Json) -> Reply:
    """Answers with a configuration that is not as it should be."""
    return lambda request: proper(request, {**GOOD, **changes})


def after_hello(data: bytes) -> Reply:
    return lambda request: proper(request) if request["op"] == "hello" else data


def instead(kind: str, **values: Json) -> Reply:
    return lambda request: answer(**values) if request["op"] == kind else proper(request)


NASTY = "\x1b]0;x\x07\x9b31m\u202e\n"
BAD: dict[str, Reply] = {
    "garbage": after_hello(b"\xff\x00\x01garbage\n"),
    "not utf-8": after_hello(b'{"ok":true,"x":"\xff"}\n'),
    "not an object": after_hello(b"[1,2]\n"),
    "deep": after_hello(b'{"ok":' + 30_000 * b"[" + b"\n"),
    "a deep configuration": after_hello(b'{"ok":true,"config":' + 900 * b"[" + 900 * b"]" + b"}\n"),
    "nothing": after_hello(b"\n"),
    "half a line": after_hello(b'{"ok":true,"conf'),
    "an endless line": after_hello(b'{"ok":true,"x":"' + (64 << 20) * b"y"),
    "endless lines": after_hello(3_000_000 * b'{"ok":true}\n'),
    "huge numbers": after_hello(b'{"ok":true,"config":{"block":' + 60_000 * b"9" + b"}}\n"),
    "an infinite number": after_hello(
        b'{"ok":true,"config":{"block":1e999,"ratio":1e999,"mode":"fused"},"value":1e999}\n'
    ),
    "NaN": after_hello(b'{"ok":true,"config":{"block":20,"ratio":NaN,"mode":"fused"},"value":NaN}\n'),
    "one twice": after_hello(b'{"ok":true,"config":{"block":20,"block":99,"ratio":0.5,"mode":"fused"}}\n'),
    "refused": after_hello(json.dumps({"ok": False, "error": NASTY}).encode() + b"\n"),
    "refused without a reason": after_hello(b'{"ok":false,"error":{"a":[1]}}\n'),
    "below": configs(block=0),
    "above": configs(block=65),
    "not whole": configs(block=20.5),
    "a boolean": configs(block=True),
    "a text": configs(block="20"),
    "null": configs(block=None),
    "a list": configs(block=[20]),
    "beyond 64 bits": configs(block=1 << 70),
    "beyond a float": configs(ratio=10**400),
    "against the constraint": configs(block=1, mode="plain"),
    "another choice": configs(mode="other"),
    "one too many": configs(more=1),
    "control characters in a name": configs(**{NASTY: 1}),
    "a number as configuration": instead("fetch", config=5, phase="searching"),
    "no configuration": instead("fetch", phase="searching"),
    "an unknown phase": instead("fetch", config=dict(GOOD), phase=NASTY),
    "a list as phase": instead("report", phase=[[]]),
    "a text as value": instead("best", config=dict(GOOD), value="fast", samples=3),
    "a negative count": instead("best", config=dict(GOOD), value=1.0, samples=-3),
    "a boolean as count": instead("best", config=dict(GOOD), value=1.0, samples=True),
    "a huge count": instead("best", config=dict(GOOD), value=10**400, samples=1),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_answers_change_nothing(folder: Path, caplog: pytest.LogCaptureFixture, name: str) -> None:
    tracemalloc.start()
    try:
        with hostile(folder, proper) as service:
            one = RemoteTuner(service.address, "s", SPACE, timeout_s=5.0)
            for config in (SPACE.default, SPACE.default, BEST, BEST):
                service.reply = partial(proper, config=dict(config))
                assert one.fetch() == config
                one.report(1.0 if config == BEST else 2.0)
            one._timeout_s = TIMEOUT_S
            service.reply = BAD[name]
            tracemalloc.reset_peak()
            before = tracemalloc.get_traced_memory()[0]
            longest = use(one, repeats(12, 100))
            assert one.fetch() == BEST  # what was best is used, or chosen by the service
            own = 2 * (64 << 20) if name.startswith("endless") or name == "an endless line" else 0
            assert tracemalloc.get_traced_memory()[1] - before < MOST_BYTES + own
            assert longest < PATIENCE_S / 6
            one.leave()
    finally:
        tracemalloc.stop()
    assert len(caplog.records) <= 2
    assert all(record.getMessage().isprintable() for record in caplog.records)
    assert all(len(record.getMessage()) < 1000 for record in caplog.records)


def test_a_refused_start_shows_no_control_characters(folder: Path) -> None:
    with hostile(
        folder, lambda _: json.dumps({"ok": False, "error": NASTY + 10_000 * "x"}).encode() + b"\n"
    ) as service:
        with pytest.raises(InvalidInputError) as refused:
            RemoteTuner(service.address, "s", SPACE, timeout_s=5.0)
        assert str(refused.value).isprintable()
        assert len(str(refused.value)) < 1000


def test_answers_that_drip_cost_one_time_limit(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bytes that come all the time do not extend a call; a line that does not end is given up."""
    monkeypatch.setattr(remote, "_PATIENCE_S", 0.3)

    class Drip(Hostile):
        def _send(self, plain: socket.socket, data: bytes) -> None:
            while not self._stopped.is_set():
                plain.send(b" ")

    dripping = Drip(folder / "h", proper)
    try:
        connection = ClientConnection(parse_address(dripping.address), time.monotonic() + PATIENCE_S)
        connection.send("fetch", protocol.FETCH_LINE, time.monotonic() + PATIENCE_S)
        assert list(connection.answers(time.monotonic() + TIMEOUT_S)) == []  # it does not read on until it is too long
        assert connection.owed == 1
        connection.close()
        one = RemoteTuner(dripping.address, "s", SPACE, timeout_s=TIMEOUT_S)
        assert use(one, 200) < PATIENCE_S / 6
        end = time.monotonic() + PATIENCE_S
        while dripping.connections < 4:  # each was given up
            use(one, 1)
            assert time.monotonic() < end
        one.leave()
    finally:
        dripping.end()


def damaged(line: bytes, rng: random.Random) -> bytes:
    """Change, remove, repeat or cut a few bytes."""
    data = bytearray(line)
    for _ in range(rng.randrange(4)):
        at = rng.randrange(len(data)) if data else 0
        how = rng.randrange(6)
        if how == 0 and data:
            data[at] = rng.choice(b'{}[],:"\\u0019eE+-.truefalsn \x00\x1b\x9b\xc3\xff\n')
        elif how == 1:
            del data[at : at + rng.randrange(1, 9)]
        elif how == 2:
            data[at:at] = data[at : at + rng.randrange(30)]
        elif how == 3:
            data[at:at] = rng.choice(
                [b"1e999", b"-", b"99999999999999999999", b"null", b"[[", b"\\ud800", b"NaN", b"true"]
            )
        elif how == 4:
            del data[at:]
        else:
            data[at:at] = rng.choice([b"\n", b'{"ok":true}\n', b'{"ok":false,"error":"\\u001b[2J"}\n'])
    return bytes(data)


@pytest.mark.parametrize("seed", range(repeats(2, 30)))
def test_damaged_answers_never_leave_the_space(
    folder: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setattr(remote, "_PATIENCE_S", 0.05)
    rng, turn = random.Random(seed), itertools.count()
    others: list[Mapping[str, Json]] = [GOOD, {**GOOD, "block": 1}, dict(SPACE.default), {**GOOD, "ratio": -0.0}]

    def reply(request: Mapping[str, Json]) -> bytes:
        line = proper(request, rng.choice(others))
        return line if next(turn) % 3 == 0 or request["op"] == "hello" else damaged(line, rng)

    with hostile(folder, reply) as service:
        one = RemoteTuner(service.address, "s", SPACE, timeout_s=0.02)
        use(one, repeats(150, 2000))
        assert service.connections > 3
        one.leave()
    assert all(record.getMessage().isprintable() for record in caplog.records)
    assert sum(record.levelno >= logging.WARNING for record in caplog.records) < 20
