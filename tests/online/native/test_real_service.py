"""The client with the real service: programs in C, C++, Fortran and MPI are tuned while they run."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest
from tests.online.native.conftest import ROOT, SANITIZERS, SOURCES, STRICT, compiled, mpi_environment, need
from tests.online.native.peer import PATIENT, WAIT_S, driver

from luthier.online.native_client import install_client
from luthier.trial import Json

EXAMPLES = ROOT / "examples" / "online"
RANKS = 4


class Service:
    """`luthier online` in a process of its own, with a store of its own."""

    def __init__(self, folder: Path, address: str | None = None) -> None:
        self.address = address or f"unix:{folder / 'online.sock'}"
        self.environment = {"XDG_DATA_HOME": str(folder), "LUTHIER_ONLINE": self.address, **PATIENT}
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Start it; it listens when this returns."""
        command = [sys.executable, "-m", "luthier", "online", "--listen", self.address]
        environment = os.environ | self.environment
        self._process = subprocess.Popen(command, stderr=subprocess.PIPE, env=environment, text=True)
        assert self._process.stderr is not None
        lines = []
        for line in self._process.stderr:
            lines.append(line)
            if "on-line sessions at" in line:
                return
        raise AssertionError(lines)

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal, if it runs."""
        if self._process is not None:
            self._process.send_signal(number)

    def kill(self) -> None:
        """End it without notice."""
        self.signal(signal.SIGKILL)
        self.wait()

    def wait(self) -> None:
        """Wait until it has ended after a signal."""
        assert self._process is not None
        self._process.communicate(timeout=WAIT_S)
        self._process = None

    def stop(self) -> None:
        """End it as Ctrl-C does, if it runs."""
        if self._process is None:
            return
        self._process.send_signal(signal.SIGINT)
        _, errors = self._process.communicate(timeout=WAIT_S)
        assert self._process.returncode == 0, errors
        self._process = None

    def end(self, name: str) -> Mapping[str, Json]:
        """Stop it; the last view of a session."""
        self.stop()
        command = [sys.executable, "-m", "luthier", "online", "show", name, "--json"]
        ended = subprocess.run(command, env=os.environ | self.environment, capture_output=True, text=True, check=False)
        assert ended.returncode == 0, ended.stderr
        view: Mapping[str, Json] = json.loads(ended.stdout)["view"]
        return view


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    running = Service(tmp_path)
    running.start()
    yield running
    running.stop()


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which the client is installed."""
    need("cc", "make", "pkg-config")
    folder = tmp_path_factory.mktemp("client")
    install_client(folder)
    return folder


def flags(client: Path, part: str) -> list[str]:
    """What pkg-config says for a user's program."""
    environment = os.environ | {"PKG_CONFIG_PATH": str(client / "lib" / "pkgconfig")}
    command = ["pkg-config", "--cflags", "--libs", part]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.split()


def run(command: Sequence[str | Path], environment: Mapping[str, str]) -> str:
    """What a program prints; it must end well and write no message."""
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=2 * WAIT_S)
    assert (ended.returncode, ended.stderr) == (0, ""), ended.stdout + ended.stderr
    return ended.stdout


def without_service(*command: str | Path) -> str:
    """What a program prints when there is no service, which it tells in one line."""
    environment = os.environ | {"LUTHIER_ONLINE": "unix:/nonexistent"}
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=WAIT_S)
    assert ended.stderr.count("\n") == 1
    return ended.stdout


def is_tuned(view: Mapping[str, Json], steps: int) -> None:
    """All steps were counted, several configurations measured, and the best is no worse than the default.

    When the load of the machine changes, the session may search again, and have measured little in that search.
    """
    best, default, points = view["best"], view["default"], view["points"]
    assert isinstance(best, dict)
    assert isinstance(default, dict)
    assert isinstance(points, list)
    assert view["steps"] == steps
    assert int(str(view["search"])) > 1 or len({json.dumps(one["config"], sort_keys=True) for one in points}) > 3
    if default["value"] is not None and best["value"] is not None:
        assert float(best["value"]) <= float(default["value"])
    else:
        assert int(str(view["search"])) > 1


def test_a_c_program_in_at_most_eight_lines(client: Path, service: Service, tmp_path: Path) -> None:
    source = (EXAMPLES / "tiles.c").read_text(encoding="utf-8").split("*/", 1)[1]
    assert sum("luthier_" in line for line in source.splitlines()) - source.count("luthier_phase") <= 8
    program = compiled(tmp_path / "tiles", *STRICT, "-O2", EXAMPLES / "tiles.c", *flags(client, "luthier-online"))
    environment = os.environ | service.environment
    tuned = run([program, "300"], environment)
    is_tuned(service.end("tiles"), 300)
    assert without_service(program, "3").startswith("sum 5307461, tile 4, order 0, offline")
    assert tuned.startswith("sum 5307461, ")


def test_a_cpp_program(client: Path, service: Service, tmp_path: Path) -> None:
    need("g++")
    source = tmp_path / "program.cc"
    source.write_text(
        "#include <luthier_online.h>\n#include <cstdio>\nint main() { int block = 64; auto *tuning = "
        'luthier_open(nullptr, "cpp"); luthier_integer(tuning, "block", &block, 8, '
        '512, 8);\nstd::printf("%d\\n", luthier_fetch(tuning)); luthier_close(tuning); }\n'
    )
    words: list[str | Path] = [
        "-std=c++11",
        "-Wall",
        "-Wextra",
        "-Wpedantic",
        "-Werror",
        source,
        *flags(client, "luthier-online"),
    ]
    program = compiled(tmp_path / "program", *words, compiler="g++")
    assert run([program], os.environ | service.environment) == "1\n"


def test_a_fortran_program(client: Path, service: Service, tmp_path: Path) -> None:
    need("gfortran")
    words: list[str | Path] = [
        "-std=f2008",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-O2",
        f"-J{tmp_path}",
        EXAMPLES / "smooth.f90",
    ]
    program = compiled(tmp_path / "smooth", *words, *flags(client, "luthier-online-fortran"), compiler="gfortran")
    environment = os.environ | service.environment
    tuned = run([program, "300"], environment)
    is_tuned(service.end("smooth"), 300)
    alone = without_service(program, "300").split(",")
    assert alone[1:] == [" rows 4", " columns 4", " offline\n"]
    assert tuned.split(",")[0] == alone[0]


@pytest.fixture(scope="module")
def ranks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The MPI test program under the sanitizers."""
    need("mpicc", "mpirun")
    sources = [Path(__file__).parent / "ranks.c", SOURCES / "luthier_online_mpi.c", SOURCES / "luthier_online.c"]
    target = tmp_path_factory.mktemp("ranks") / "ranks"
    return compiled(target, *STRICT, *SANITIZERS, f"-I{SOURCES}", *sources, compiler="mpicc")


def mpirun(*words: str | Path, count: int = RANKS) -> list[str | Path]:
    return ["mpirun", "-n", str(count), *words]


def on_ranks(program: Path, address: str, *words: str, patient: bool = True) -> dict[str, Json]:
    environment = mpi_environment() | {"LUTHIER_ONLINE": address, "ASAN_OPTIONS": "detect_leaks=0"}  # MPI itself leaks
    command = mpirun(program, *words)
    ended = subprocess.run(
        command,
        env=environment | (PATIENT if patient else {}),
        capture_output=True,
        text=True,
        check=False,
        timeout=2 * WAIT_S,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    answer: dict[str, Json] = json.loads(ended.stdout)
    return answer


def test_the_same_configuration_on_all_ranks(ranks: Path, service: Service) -> None:
    answer = on_ranks(ranks, service.address, "same", "120")
    assert (answer["fetched"], answer["equal"], answer["best"]) == (120, 120, 1), answer
    assert (answer["lowest"], answer["error"], answer["phases"]) == (answer["highest"], "", 1)
    view = service.end("same")
    is_tuned(view, 120)
    best = view["best"]
    assert isinstance(best, dict)
    block, mode = best["config"]["block"], best["config"]["mode"]
    expected = 1 + (block - 256) ** 2 / 65536 + (mode != "two") + RANKS - 1  # the value of the slowest rank
    assert best["value"] == pytest.approx(expected)


def test_each_rank_has_a_configuration_of_its_own(ranks: Path, service: Service) -> None:
    answer = on_ranks(ranks, service.address, "each", "60")
    assert (answer["fetched"], answer["best"], answer["lowest"]) == (60, 1, answer["highest"]), answer
    assert int(str(answer["apart"])) > 0
    assert answer["phases"] == 1  # all ranks know the same one
    assert answer["outside"] == 0
    view = service.end("each")
    is_tuned(view, 60)
    best = view["best"]
    assert isinstance(best, dict)
    block, mode = best["config"]["block"], best["config"]["mode"]
    assert best["value"] == pytest.approx(1 + (block - 256) ** 2 / 65536 + (mode != "two"))


def test_ranks_of_a_fortran_program(client: Path, service: Service, tmp_path: Path) -> None:
    need("mpifort", "mpirun")
    libraries = [*flags(client, "luthier-online-fortran"), *flags(client, "luthier-online-mpi")]
    words: list[str | Path] = [
        "-std=f2008",
        "-Wall",
        "-Wextra",
        f"-J{tmp_path}",
        Path(__file__).parent / "ranks.f90",
        *libraries,
    ]
    program = compiled(tmp_path / "ranks", *words, compiler="mpifort")
    assert run(mpirun(program), mpi_environment() | service.environment).startswith("40 ")
    is_tuned(service.end("fortran"), 40)
    assert service.end("clock")["steps"] == 5


@pytest.mark.parametrize("mode", ["same", "each"])
def test_ranks_without_a_service_run_on(ranks: Path, mode: str) -> None:
    answer = on_ranks(ranks, "unix:/nonexistent", mode, "50", patient=False)
    assert (answer["fetched"], answer["best"], answer["lowest"], answer["highest"]) == (0, 0, 64, 64)
    assert answer["phase"] == "offline"


def test_ranks_that_declare_different_parameters_are_not_tuned(ranks: Path, service: Service) -> None:
    answer = on_ranks(ranks, service.address, "differ", "20")
    assert (answer["fetched"], answer["lowest"], answer["highest"]) == (0, 64, 64)
    assert answer["error"] == "the ranks declared different parameters"


def test_the_stencil_is_tuned_and_computes_the_same(client: Path, service: Service, tmp_path: Path) -> None:
    need("mpicc", "mpirun")
    words: list[str | Path] = [*STRICT, "-O2", EXAMPLES / "stencil.c", *flags(client, "luthier-online-mpi")]
    program = compiled(tmp_path / "stencil", *words, compiler="mpicc")
    environment = mpi_environment() | service.environment
    tuned = json.loads(run(mpirun(program, "150", "128"), environment))
    view = service.end("stencil")
    is_tuned(view, 150)
    points = view["points"]
    assert isinstance(points, list)
    assert int(str(view["search"])) > 1 or len({point["config"]["depth"] for point in points}) > 1
    plain = json.loads(run(mpirun(program, "150", "128", "plain"), environment))
    alone = json.loads(run(mpirun(program, "150", "128", "plain", count=1), environment))
    assert tuned["checksum"] == plain["checksum"] == alone["checksum"]
    assert (plain["depth"], plain["phase"]) == (1, "offline")


def test_the_service_is_killed_and_comes_back(program: Path, service: Service) -> None:
    with driver(program, service.address, **PATIENT) as running:
        assert running.do("fetch")["done"] == 1
        assert running.do("report 1000")["done"] == 1
        assert running.do("fetch")["done"] == 1  # so the report before it is acknowledged
        service.kill()
        after = running.do("loop 1000")
        assert (after["done"], after["phase"]) == (0, "offline")
        service.start()
        for _ in range(10_000_000):
            if running.do("fetch")["done"] == 1:
                break
        assert running.do("report 2000")["done"] == 1
        errors = running.close()
        assert errors.count("\n") == 1
    assert service.end("driver")["steps"] == 2


def test_a_token_over_tcp(program: Path, tmp_path: Path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    service = Service(tmp_path, f"tcp:127.0.0.1:{port}")
    service.start()
    try:
        with driver(program, service.address, **PATIENT) as client:
            refused = client.do("fetch")
            assert (refused["done"], "token" in str(refused["error"])) == (0, True)
            client.close()
        token = {"LUTHIER_TOKEN_FILE": str(tmp_path / "luthier" / "online-token")}
        with driver(program, service.address, **PATIENT, **token) as client:
            assert client.do("loop 20")["done"] == 20
            client.close()
        assert service.end("driver")["steps"] == 20
    finally:
        service.stop()


@pytest.mark.parametrize("other", ["constraint block > 8", "setting strategy pro"])
def test_a_refused_session_says_why(program: Path, service: Service, other: str) -> None:
    with driver(program, service.address, **PATIENT) as first, driver(program, service.address, **PATIENT) as second:
        assert first.do("fetch")["done"] == 1
        assert second.do(other)["done"] == 1
        after = second.do("fetch")
        assert (after["done"], after["block"]) == (0, 64)
        assert "driver" in str(after["error"])
        assert second.close().count("\n") == 1
