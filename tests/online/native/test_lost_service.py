"""A service that dies or hangs while it explores: the program goes on with the best that it has measured itself."""

import json
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median_high

import pytest
from tests.online.native.conftest import mpi_environment
from tests.online.native.peer import (
    CONFIG,
    PATIENT,
    WAIT_S,
    Behaviour,
    Connection,
    Driver,
    Peer,
    answer_to,
    driver,
    peer,
)
from tests.online.native.test_real_service import Service, mpirun, ranks, service
from tests.torture import repeats

from luthier.online.store import online_sessions_in
from luthier.store import open_server_store
from luthier.store.sql import SqlStore
from luthier.trial import Json

__all__ = ["ranks", "service"]

DEFAULT: Mapping[str, Json] = {"block": 64, "depth": 1, "ratio": 0.25, "engine": "sync", "level": "mid"}
NAMES = ("block", "depth", "ratio", "engine", "level")
A, B = ({**CONFIG, "block": block} for block in (8, 16))
Script = Sequence[tuple[Mapping[str, Json], int]]


def seen(answer: Mapping[str, Json]) -> tuple[Json, ...]:
    return tuple(answer[name] for name in NAMES)


def dies_after(fetches: Sequence[Mapping[str, Json]]) -> Behaviour:
    """Hand out these configurations, one after the other, and end the connection."""

    def behave(connection: Connection, service: Peer) -> None:
        left = list(fetches)
        while left:
            request = connection.request()
            service.record(request)
            connection.send(answer_to(request, left.pop(0) if request["op"] == "fetch" else CONFIG))

    return behave


def closes(connection: Connection, service: Peer) -> None:
    """End every connection at once."""


@pytest.mark.parametrize(
    ("script", "block"),
    [
        ([(DEFAULT, 100), (A, 50), (A, 60), (B, 900)], 8),
        ([(DEFAULT, 100), (A, 20), (B, 900)], 64),  # a single value may be due to luck
        ([(DEFAULT, 100), (A, 20), (A, 150), (B, 900)], 64),  # one of two as well
        ([(DEFAULT, 100), (A, 20), (A, 110), (A, 120), (B, 90), (B, 95), (B, 900), (B, 80)], 16),
        ([(DEFAULT, 100), (DEFAULT, 10), (DEFAULT, 100), (A, 50), (A, 60)], 8),
        ([(A, 50), (A, 60), (B, 900)], 8),  # the default was never measured here
        ([(A, 900)], 64),  # nothing is known to be good
        ([(DEFAULT, 100), (B, -1), (B, -1), (A, 900)], 64),  # -1: it failed
    ],
)
def test_the_best_that_was_measured_is_used(program: Path, tmp_path: Path, script: Script, block: int) -> None:
    handed = [config for config, _ in script]
    with (
        peer(tmp_path, dies_after([*handed, B]), closes) as service,
        driver(program, service.address, **PATIENT) as client,
    ):
        for _, value in script:
            assert client.do("fetch")["done"] == 1
            assert client.do("failed" if value < 0 else f"report {value}")["done"] == 1
        assert client.do("fetch")["block"] == B["block"]
        service.wait_for_end()
        lost = client.do("fetch")
        assert (lost["done"], lost["block"], lost["phase"]) == (0, block, "offline")
        best = client.do("best")
        assert (best["done"], best["block"]) == (1, block)
        client.close()


def test_values_without_the_service_count_but_are_not_sent(program: Path, tmp_path: Path) -> None:
    """The load has changed: what was the best is measured again, and is left."""
    script = [DEFAULT, DEFAULT, A, A, B]
    with (
        peer(tmp_path, dies_after(script), closes) as service,
        driver(program, service.address, **PATIENT) as client,
    ):
        for value in (100, 100, 50, 50):
            client.do("fetch")
            client.do(f"report {value}")
        client.do("fetch")
        service.wait_for_end()
        for _ in range(2):
            assert client.do("fetch")["block"] == A["block"]
            assert client.do("report 500")["done"] == 0
        assert client.do("fetch")["block"] == DEFAULT["block"]
        client.close()
        assert len(service.of("report")) == 4


def test_higher_values_can_be_better(program: Path, tmp_path: Path) -> None:
    with (
        peer(tmp_path, dies_after([DEFAULT, A, A, B, B, B]), closes) as service,
        driver(program, service.address, **PATIENT) as client,
    ):
        client.do("setting goal maximize")
        for value in (100, 150, 160, 20, 30):
            client.do("fetch")
            client.do(f"report {value}")
        client.do("fetch")
        service.wait_for_end()
        assert client.do("fetch")["block"] == A["block"]
        client.close()


def test_more_configurations_than_are_remembered(program: Path, tmp_path: Path) -> None:
    """The best ones stay, and the default."""
    others = [{**CONFIG, "depth": 1 << number, "block": block} for number in range(40) for block in range(64, 512, 64)]
    script = [DEFAULT, A, A, *others]
    with (
        peer(tmp_path, dies_after([*script, B]), closes) as service,
        driver(program, service.address, **PATIENT) as client,
    ):
        for number, config in enumerate(script):
            client.do("fetch")
            client.do(f"report {50 if config == A else 100 if config == DEFAULT else 200 + number}")
        client.do("fetch")
        service.wait_for_end()
        assert client.do("fetch")["block"] == A["block"]
        client.close()


def test_a_single_late_answer_is_not_waited_for_on_a_bad_configuration(program: Path, tmp_path: Path) -> None:
    def hangs(connection: Connection, service: Peer) -> None:
        dies_after([DEFAULT, A, A, B])(connection, service)
        service.record(connection.request())
        service.stopped.wait(WAIT_S)

    with peer(tmp_path, hangs) as service, driver(program, service.address, **PATIENT) as client:
        for value in (100, 50, 60):
            client.do("fetch")
            client.do(f"report {value}")
        client.do("fetch")
        client.do("report 900")
        client.do("timeout 20")
        after = client.do("fetch")
        assert (after["done"], after["block"]) == (0, A["block"])
        assert client.do("best")["block"] == A["block"]
        client.close()


class Watched:
    """The driver with what it has measured, by its own answers."""

    def __init__(self, client: Driver) -> None:
        self.client = client
        self.values: dict[tuple[Json, ...], list[float]] = {}

    @staticmethod
    def cost(config: tuple[Json, ...]) -> float:
        """What driver.c reports."""
        block, _, ratio, engine, level = (float(str(one)) for one in config)
        return 1 + abs(block - 128) / 64 + 10 * (engine != 0) + 5 * (level != 1) + 4 * ratio / 1e6

    def step(self) -> tuple[bool, tuple[Json, ...]]:
        """One iteration: whether the service chose, and what was run."""
        answer = self.client.do("step")
        config = seen(answer)
        self.values.setdefault(config, []).append(self.cost(config))
        return answer["done"] == 1, config

    def best(self, default: tuple[Json, ...]) -> float:
        """The lowest cost that the program can know."""
        return min(median_high(v[-5:]) for c, v in self.values.items() if len(v) > 1 or c == default)


def samples_of(folder: Path, name: str) -> list[int]:
    """The numbers of the samples that a service has kept."""
    store = open_server_store(f"sqlite:///{folder}/luthier/luthier.db")
    record = online_sessions_in(store).find("local", name)
    assert record is not None
    numbers = [sample.number for sample in online_sessions_in(store).samples(record.id)]
    assert isinstance(store.history, SqlStore)
    store.history.dispose()
    return numbers


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP])
@pytest.mark.parametrize("moment", range(repeats(2, 25)))
def test_a_real_service_that_ends_while_it_explores(
    program: Path, service: Service, tmp_path: Path, how: signal.Signals, moment: int
) -> None:
    with driver(program, service.address, **PATIENT) as running:
        running.do("setting strategy pro")  # every value is a sample: none comes while the strategy decides
        running.do(f"setting seed {moment}")
        client = Watched(running)
        _, default = client.step()
        count = 1
        while client.step()[1] == default or count < 8 + 3 * moment:  # the last one explores
            count += 1
            assert count < 500
        steps = sum(map(len, client.values.values()))
        running.do("timeout 100")
        service.signal(how)
        if how == signal.SIGKILL:
            service.wait()
        for _ in range(20):
            is_chosen, config = client.step()
            assert not is_chosen
            assert client.cost(config) == pytest.approx(client.best(default))
        best = running.do("best")
        assert best["done"] == 1
        assert client.cost(seen(best)) == pytest.approx(client.best(default))
        running.do("timeout 30000")
        if how == signal.SIGKILL:
            service.start()
        else:
            service.signal(signal.SIGCONT)
        more = 0
        for _ in range(10_000_000):
            more += client.step()[0]
            if more == 10:
                break
        phase = running.do("best")["phase"]
        assert running.close().count("\n") <= 1
    service.stop()
    kept = samples_of(tmp_path, "driver")
    assert len(kept) == len(set(kept)) <= steps + more
    # The report just before the end may not have reached the service; after convergence nothing is kept.
    assert phase == "converged" or len(kept) >= steps + more - (how == signal.SIGKILL)


@pytest.mark.parametrize("mode", ["same", "each"])
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP])
def test_ranks_agree_on_the_best_that_was_measured(
    ranks: Path, service: Service, mode: str, how: signal.Signals
) -> None:
    environment = mpi_environment() | {"LUTHIER_ONLINE": service.address, "ASAN_OPTIONS": "detect_leaks=0"}
    command = mpirun(ranks, mode, "60", "30")
    environment |= {"LUTHIER_TIMEOUT_MS": "2000"}
    with subprocess.Popen(command, env=environment, stdin=-1, stdout=-1, stderr=-1, text=True) as running:
        assert running.stdout is not None
        assert running.stdin is not None
        assert running.stdout.readline() == "pause\n"
        service.signal(how)
        if how == signal.SIGKILL:
            service.wait()
        out, errors = running.communicate("\n", timeout=2 * WAIT_S)
    service.signal(signal.SIGCONT)
    assert running.returncode == 0, errors
    answer = json.loads(out)
    default = 1 + (64 - 256) ** 2 / 65536 + 1 + (3 if mode == "same" else 0)
    assert answer["worst"] <= default, answer
    assert (answer["best"], answer["lowest"], answer["phases"]) == (1, answer["highest"], 1)
    assert 30 < answer["fetched"] + 1 <= 32  # all before the pause
    assert answer["equal"] >= (60 if mode == "same" else 29)
