"""The Python client: it tunes together with others, and no trouble of the service stops or delays its program."""

import itertools
import logging
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.online.serving import BEST, PATIENCE_S, SECRET, SPACE, ServiceProcess, Serving, cost, optimum
from tests.torture import repeats

import luthier
from luthier.errors import InvalidInputError
from luthier.online.service import remote
from luthier.online.service.address import TcpAddress
from luthier.online.service.remote import OwnValues, RemoteTuner
from luthier.online.store import online_sessions_in
from luthier.space import Integer, Space
from luthier.store import open_server_store
from luthier.store.sql import SqlStore
from luthier.trial import Config


@pytest.fixture
def process(folder: Path) -> Iterator[ServiceProcess]:
    """A service of its own that runs."""
    started = ServiceProcess(folder, f"sqlite:///{folder}/x.db")
    started.start()
    yield started
    started.end()


def tuner(address: object, name: str = "s", space: Space = SPACE, timeout_s: float = 5.0) -> RemoteTuner:
    return RemoteTuner(str(address), name, space, timeout_s=timeout_s, strategy="pro", samples=1)


def run(one: RemoteTuner, steps: int) -> None:
    for _ in range(steps):
        one.report(cost(one.fetch()))


def test_two_tuners_find_the_optimum_together(served: Serving) -> None:
    assert luthier.RemoteTuner is RemoteTuner
    one, two = tuner(served.unix), tuner(served.unix)
    assert one.phase == "baseline"
    for _ in range(120):
        run(one, 1)
        run(two, 1)
    assert one.converged
    assert two.best.best == optimum()
    assert two.best.value == 1.0
    assert two.best.converged
    assert {client.reports for client in served.view("s").clients} == {120}
    one.leave()
    two.leave()


def test_a_step_measures_the_time_and_an_exception_is_a_failed_run(served: Serving) -> None:
    one = tuner(served.unix)
    with one.step() as config:
        assert config == SPACE.default
    with pytest.raises(ZeroDivisionError), one.step():
        raise ZeroDivisionError
    one.fetch()
    (client,) = served.view("s").clients
    assert client.reports == 2
    assert client.last is None
    one.leave()


def test_what_was_run_instead_is_reported(served: Serving) -> None:
    one = tuner(served.unix)
    one.fetch()
    one.report(0.5, config=BEST)
    assert one.best.best == optimum()
    for value in (float("nan"), float("inf")):
        with pytest.raises(InvalidInputError, match="finite"):
            one.report(value)
    one.leave()


def test_a_refused_start_is_one_line(served: Serving, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    tuner(served.unix).leave()
    with pytest.raises(InvalidInputError, match="other parameters; use another name"):
        tuner(served.unix, space=Space(Integer("x", 0, 9)))
    with pytest.raises(InvalidInputError, match="a token is required"):
        tuner(served.addresses[1])
    monkeypatch.setenv("LUTHIER_TOKEN", "wrong")
    with pytest.raises(InvalidInputError, match="not valid"):
        tuner(served.addresses[1])
    monkeypatch.delenv("LUTHIER_TOKEN")
    (tmp_path / "token").write_text(f"{SECRET}\n")
    monkeypatch.setenv("LUTHIER_TOKEN_FILE", str(tmp_path / "token"))
    tuner(served.addresses[1]).leave()
    monkeypatch.setenv("LUTHIER_TOKEN_FILE", str(tmp_path / "nothing"))
    with pytest.raises(InvalidInputError, match="LUTHIER_TOKEN_FILE"):
        tuner(served.addresses[1])


@pytest.mark.parametrize(
    ("settings", "reason"),
    [({"strategi": "pro"}, "strategi"), ({"samples": 0}, "samples"), ({"timeout_s": 0}, "timeout_s")],
)
def test_wrong_arguments_are_refused_before_anything_is_sent(settings: dict[str, object], reason: str) -> None:
    with pytest.raises((InvalidInputError, TypeError), match=reason):
        RemoteTuner("unix:/nowhere", "s", SPACE, **settings)  # type: ignore[arg-type]


@pytest.mark.parametrize("address", ["unix:/nowhere/at/all", "tcp:127.0.0.1:1", "tcp:no.such.host.invalid:1"])
def test_without_a_service_the_default_is_run(address: str, caplog: pytest.LogCaptureFixture) -> None:
    one = tuner(address, timeout_s=0.2)
    for _ in range(50):
        assert one.fetch() == SPACE.default
        one.report(1.0)
    assert one.best.best == SPACE.default
    assert one.best.value is None
    assert not one.converged
    assert len(caplog.records) == 1
    assert "going on without it" in caplog.text


def test_a_killed_service_is_found_again(
    process: ServiceProcess, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote, "_LONGEST_PAUSE_S", 0.1)
    one = tuner(process.address)
    run(one, 10)
    assert one.fetch() != SPACE.default
    process.kill()
    for _ in range(20):
        assert one.fetch() == SPACE.default  # nothing else was measured twice
        one.report(1.0)
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    process.start()
    end = time.monotonic() + PATIENCE_S
    while not one.converged:
        run(one, 1)
        assert time.monotonic() < end
    assert one.best.best == optimum()
    one.leave()


def test_a_service_that_hangs_costs_one_timeout_and_not_one_in_every_iteration(process: ServiceProcess) -> None:
    one = tuner(process.address, timeout_s=0.2)
    run(one, 10)
    assert one.fetch() != SPACE.default
    process.signal(signal.SIGSTOP)
    waited = 0
    for _ in range(200):
        start = time.monotonic()
        assert one.fetch() == SPACE.default
        one.report(1.0)
        waited += time.monotonic() - start >= 0.2
    assert waited < 50  # a busy machine may delay some as well
    process.signal(signal.SIGCONT)
    end = time.monotonic() + PATIENCE_S
    while not one.converged:
        run(one, 1)
        assert time.monotonic() < end
    assert one.best.best == optimum()
    one.leave()


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP])
@pytest.mark.parametrize("moment", range(repeats(2, 25)))
def test_the_best_of_the_own_values_is_used_when_the_service_ends(
    process: ServiceProcess, monkeypatch: pytest.MonkeyPatch, how: signal.Signals, moment: int
) -> None:
    """Killed or stopped while it explores: from the next fetch on the program runs the best that it has measured."""
    monkeypatch.setattr(remote, "_LONGEST_PAUSE_S", 0.1)
    one = RemoteTuner(process.address, "s", SPACE, timeout_s=5.0, strategy="pro", samples=3, seed=moment)
    measured: dict[Config, list[float]] = {}
    for count in itertools.count():
        config = one.fetch()
        twice = [config for config, values in measured.items() if len(values) > 1]
        if count > 15 + moment and cost(config) > min(map(cost, twice)) < cost(SPACE.default):
            break  # it runs a configuration that is worse than one it knows
        measured.setdefault(config, []).append(cost(config))
        one.report(cost(config))
        assert count < 500
    best = min((config for config, values in measured.items() if len(values) > 1), key=cost)
    if how == signal.SIGKILL:
        process.kill()
    else:
        one._timeout_s = 0.2
        process.signal(how)
    for _ in range(20):
        assert one.fetch() == best
        one.report(cost(best))
    assert (one.best.best, one.best.value) == (best, cost(best))
    one._timeout_s = 5.0
    if how == signal.SIGKILL:
        process.start()
    else:
        process.signal(signal.SIGCONT)
    end = time.monotonic() + PATIENCE_S
    while not one.converged:
        run(one, 1)
        assert time.monotonic() < end
    assert one.best.best == optimum()
    one.leave()


def own_values(*values: tuple[int, float | None], maximize: bool = False) -> tuple[int, float | None]:
    """The block that is best after these values of blocks (1 is the default), and its value."""
    own = OwnValues(SPACE.default, maximize=maximize)
    for block, value in values:
        own.add(Config({**SPACE.default, "block": block}), value)
    return int(str(own.standing.best["block"])), own.standing.value


def test_the_own_values_are_judged_with_care() -> None:
    assert own_values() == (1, None)
    assert own_values((1, 1.0), (2, 0.1), (3, 9.0)) == (1, 1.0)  # a single value may be due to luck
    assert own_values((1, 1.0), (2, 0.1), (2, 1.5)) == (1, 1.0)  # one of two as well
    assert own_values((1, 1.0), (2, 0.5), (2, 0.6)) == (2, 0.6)
    assert own_values((2, 0.5), (2, 0.6)) == (2, 0.6)
    assert own_values((1, 1.0), (2, None), (2, None)) == (1, 1.0)
    assert own_values((1, None), (2, None)) == (1, None)
    assert own_values((1, 1.0), (2, 1.5), (2, 1.6), (3, 0.5), (3, 0.6), maximize=True) == (2, 1.5)
    many = [(block, 5.0 + block) for block in range(3, 1000)]
    assert own_values((1, 1.0), (2, 0.5), (2, 0.5), *many) == (2, 0.5)
    assert own_values((1, 1.0), (2, 0.5), (2, 0.5), (2, 3.0), (2, 3.0), (2, 3.0)) == (1, 1.0)  # the load has changed


def test_a_service_that_hangs_for_long_is_left(process: ServiceProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "_PATIENCE_S", 0.2)
    monkeypatch.setattr(remote, "_LONGEST_PAUSE_S", 0.1)
    one = tuner(process.address, timeout_s=0.1)
    one.fetch()
    process.signal(signal.SIGSTOP)
    end = time.monotonic() + PATIENCE_S
    while one._connection is not None:
        one.fetch()
        assert time.monotonic() < end
    process.signal(signal.SIGCONT)
    while not one.converged:
        run(one, 1)
        assert time.monotonic() < end
    assert one.best.best == optimum()
    one.leave()


FORKING = """
import os, sys
import luthier as lt

tuner = lt.RemoteTuner(sys.argv[1], "s", lt.Space(lt.Integer("x", 0, 9)), timeout_s=30.0, baseline=99)
tuner.fetch()
child = os.fork()
for _ in range(5):
    tuner.report(1.0)
    tuner.fetch()
if child:
    assert os.waitpid(child, 0)[1] == 0
    tuner.fetch()
"""


def test_a_forked_child_has_its_own_connection(process: ServiceProcess, folder: Path) -> None:
    subprocess.run([sys.executable, "-c", FORKING, process.address], check=True, timeout=PATIENCE_S)
    process.kill()
    process.start()  # stores what the killed one has kept
    store = open_server_store(f"sqlite:///{folder}/x.db")
    clients = Counter(sample.client for sample in online_sessions_in(store).samples(1))
    assert isinstance(store.history, SqlStore)
    store.history.dispose()
    assert sorted(clients.values()) == [5, 5]


def test_many_reports_without_a_fetch_do_not_block(served: Serving) -> None:
    one = tuner(served.unix)
    for _ in range(1000):
        one.report(1.0, config=BEST)
    assert one.best.best == optimum()
    one.leave()


def test_a_service_that_speaks_nonsense_is_left(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    import socket
    import threading

    with socket.socket(socket.AF_UNIX) as fake:
        fake.bind(str(folder / "f"))
        fake.listen()

        def answer() -> None:
            accepted, _ = fake.accept()
            with accepted:
                accepted.recv(1 << 16)
                accepted.sendall(b"220 mail.example.org ESMTP\r\n")

        answering = threading.Thread(target=answer)
        answering.start()
        one = tuner(f"unix:{folder}/f")
        answering.join(PATIENCE_S)
        assert one.fetch() == SPACE.default
    assert "not JSON" in caplog.text


def test_a_full_service_is_tried_again_later(
    served: Serving, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote, "_LONGEST_PAUSE_S", 0.1)
    with monkeypatch.context() as full, served.wire() as other:
        full.setattr(served.service, "_most", 1)
        assert other.hello()["ok"]
        one = tuner(served.unix)
        assert one.fetch() == SPACE.default
    (warning,) = caplog.messages
    assert "1 connections already; try again later; going on without it" in warning
    end = time.monotonic() + PATIENCE_S
    while not one.converged:
        run(one, 1)
        assert time.monotonic() < end
    assert one.best.best == optimum()
    one.leave()


def test_a_refused_request_ends_no_connection(served: Serving, caplog: pytest.LogCaptureFixture) -> None:
    one = tuner(served.unix)
    run(one, 3)
    connection = one._connection
    one._ask("fetch", lambda: b'{"op":"stretch"}\n')
    assert "a fetch was refused: " in caplog.text
    run(one, 3)
    assert one._connection is connection is not None
    one.fetch()
    assert sum(client.reports for client in served.view("s").clients) == 6
    one.leave()


def test_a_service_is_found_by_the_name_of_its_host(served: Serving) -> None:
    place = served.addresses[1]
    assert isinstance(place, TcpAddress)
    one = RemoteTuner(f"tcp:localhost:{place.port}", "s", SPACE, token=SECRET, timeout_s=5.0)
    run(one, 2)
    one.fetch()
    assert sum(client.reports for client in served.view("s").clients) == 2
    one.leave()
