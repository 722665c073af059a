"""Real servers, tuned while real clients use them: nginx and PostgreSQL."""

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest
from tests.conftest import missing

from luthier.online.store import online_sessions_in
from luthier.store import open_server_store
from luthier.trial import Sample

EXAMPLES = Path(__file__).parent.parent.parent / "examples" / "online"
WAIT_S = 240.0


def example(name: str) -> ModuleType:
    """The script of an example as a module."""
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / name / "run.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def nginx_program() -> str:
    found = shutil.which("nginx", path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin")
    if found is None:
        missing("nginx is not installed; as root: sh tests/services.sh")
    return found


def need_postgresql() -> None:
    if not list(Path("/usr/lib/postgresql").glob("*/bin/initdb")) and shutil.which("initdb") is None:
        missing("PostgreSQL (initdb, pg_ctl) is not installed; as root: sh tests/services.sh")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.delenv("LUTHIER_STORE", raising=False)
    return tmp_path


def check_example(done: "subprocess.CompletedProcess[str]", unit: str) -> None:
    """Some configurations were tried, clients were served meanwhile, and none of them saw an error."""
    assert done.returncode == 0, done.stderr + done.stdout
    counted = re.search(rf"^served (\d+) {unit} with (\d+) errors$", done.stdout, re.MULTILINE)
    assert counted is not None, done.stdout
    tried = set(re.findall(r"^window +\d+  \S+  (.*?)(?:  \[best.*)?$", done.stderr, re.MULTILINE))
    assert len(tried) >= 3, done.stderr
    assert int(counted[1]) > 4 * len(tried)
    assert int(counted[2]) == 0
    assert re.search(r"^default  \S+ ", done.stdout, re.MULTILINE), done.stdout


def run_example(name: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, str(EXAMPLES / name / "run.py"), "--every", "0.2s", "--budget", "12"]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=WAIT_S)


def test_the_example_with_nginx(home: Path) -> None:
    nginx_program()
    check_example(run_example("nginx"), "requests")


def test_the_example_with_postgresql(home: Path) -> None:
    need_postgresql()
    check_example(run_example("postgresql"), "queries")


READINGS_UNTIL_BACK = 7
"""One that drops what came before, two that are too bad, and some in which PostgreSQL has not read its files yet."""


def test_a_really_bad_setting_of_postgresql_is_rolled_back_within_a_few_readings(home: Path) -> None:
    need_postgresql()
    postgresql = example("postgresql")
    with tempfile.TemporaryDirectory(prefix="luthier-postgresql-") as place:  # the server may run as another user
        done, events = tune_indexes(postgresql, Path(place), home / "events")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["rolled_back"] >= 1, done.stderr
    assert result["in_place"] == {"indexes": "on"}
    bad_times = re.findall(r"^off\n((?:read\n)*)on$", events, re.MULTILINE)
    assert len(bad_times) == result["rolled_back"]
    assert max(text.count("read") for text in bad_times) <= READINGS_UNTIL_BACK


def tune_indexes(postgresql: ModuleType, folder: Path, events: Path) -> "tuple[subprocess.CompletedProcess[str], str]":
    """Tune whether PostgreSQL uses indexes; every reading and every change is written to `events`."""
    psql = f"psql -X -q -At -v ON_ERROR_STOP=1 -h {folder} -U tuner postgres"
    names = ("enable_indexscan", "enable_bitmapscan", "enable_indexonlyscan")
    sets = " ".join(f'-c "ALTER SYSTEM SET {name} = {{indexes}}"' for name in names)
    query = "EXPLAIN (ANALYZE, TIMING OFF) SELECT amount FROM bills WHERE id = 77"
    read = f"echo read >> {events}; {psql} -c '{query}' | sed -n 's/.*Execution Time: \\(.*\\) ms/\\1/p'"
    with postgresql.server(folder):
        postgresql.fill(folder)
        done = subprocess.run(
            [
                *(sys.executable, "-m", "luthier", "tune", "--online", "--shell", "-p", "indexes=on,off", "--json"),
                *("--reload", f"echo {{indexes}} >> {events}; {psql} {sets} -c 'SELECT pg_reload_conf()'"),
                *("--read", f"command:{read}", "--every", "1s", "--guard", "5", "-n", "6"),
            ],
            capture_output=True,
            text=True,
            check=False,
            timeout=WAIT_S,
        )
    return done, events.read_text()


class TunedNginx:
    """An nginx with clients, and luthier's command for it."""

    def __init__(self, folder: Path, program: str) -> None:
        self.run = example("nginx")
        self.folder, self.port = folder, self.run.free_port()
        self.run.prepare(folder, self.port)
        self.nginx = [program, "-p", str(folder), "-c", f"{folder}/nginx.conf", "-e", f"{folder}/error.log"]
        self.server = subprocess.Popen([*self.nginx, "-g", "daemon off;"])
        self.run.wait_for(self.port)
        url = f"http://127.0.0.1:{self.port}/index.html"
        self.users = subprocess.Popen([sys.executable, EXAMPLES / "http_load.py", url], stdout=subprocess.PIPE)

    def command(self) -> list[str]:
        status = f"url:http://127.0.0.1:{self.port}/status regex:^ \\d+ \\d+ (\\d+)"
        return [
            *(sys.executable, "-m", "luthier", "tune", "--online", "--json", "--name", "web", "-n", "12"),
            *("-p", "gzip_comp_level=1..9@6", "-p", "gzip_buffer=4k,16k", "-p", "sendfile=on,off"),
            *("--write", f"{self.folder}/nginx.conf.in:{self.folder}/nginx.conf"),
            *("--reload", " ".join([*self.nginx, "-s", "reload"])),
            *("--read", status, "--rate", "--maximize", "--every", "0.3s"),
        ]

    def requests(self) -> int:
        """How many requests nginx has answered."""
        from urllib.request import urlopen

        with urlopen(f"http://127.0.0.1:{self.port}/status", timeout=30) as answer:
            return int(answer.read().split()[9])

    def stop(self) -> dict[str, int]:
        self.users.terminate()
        counted: dict[str, int] = json.loads(self.users.communicate(timeout=60)[0])
        self.server.terminate()
        self.server.wait(60)
        return counted


@pytest.fixture
def web(home: Path) -> Iterator[TunedNginx]:
    folder = home / "web"
    folder.mkdir()
    tuned = TunedNginx(folder, nginx_program())
    try:
        yield tuned
    finally:
        for process in (tuned.users, tuned.server):
            process.terminate()  # an nginx that is killed leaves its workers behind
            process.wait(60)
        assert tuned.users.stdout is not None
        tuned.users.stdout.close()


def samples_of(home: Path) -> list[Sample]:
    sessions = online_sessions_in(open_server_store(str(home / "luthier" / "luthier.db")))
    found = sessions.find("local", "web")
    return [] if found is None else list(sessions.samples(found.id))


def wait_until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_luthier_is_killed_nginx_goes_on_and_the_next_luthier_continues(home: Path, web: TunedNginx) -> None:
    original = (web.folder / "nginx.conf").read_bytes()
    first = subprocess.Popen(web.command(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    assert first.stderr is not None
    for line in iter(first.stderr.readline, ""):
        if "window   5" in line:
            break
    first.kill()
    first.communicate()
    before = samples_of(home)
    assert len(before) >= 4
    answered = web.requests()
    wait_until(lambda: web.requests() > answered + 20)
    done = subprocess.run(web.command(), capture_output=True, text=True, check=False, timeout=WAIT_S)
    assert done.returncode == 0, done.stderr
    after = samples_of(home)
    assert after[: len(before)] == before
    assert len(after) > len(before)
    result = json.loads(done.stdout)
    assert result["windows"] >= len(after)
    assert len(re.findall(r"^window ", done.stderr, re.MULTILINE)) <= result["windows"] - len(before)
    in_place = (web.folder / "nginx.conf").read_text()
    if result["improved"]:
        assert f"gzip_comp_level {result['best']['config']['gzip_comp_level']};" in in_place
    else:
        assert in_place.encode() == original
    counted = web.stop()
    assert counted["requests"] > 100
    assert counted["errors"] == 0, counted


def test_a_configuration_that_nginx_refuses_is_replaced_at_once(home: Path, web: TunedNginx) -> None:
    original = (web.folder / "nginx.conf").read_bytes()
    command = [word.replace("gzip_comp_level=1..9@6", "gzip_comp_level=6,77") for word in web.command()]
    command = [
        word.replace("gzip_buffer=4k,16k", "gzip_buffer=4k").replace("sendfile=on,off", "sendfile=on")
        for word in command
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=WAIT_S)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["refused"] >= 1
    assert "value must be between 1 and 9" in done.stderr or "gzip_comp_level" in done.stderr
    assert (web.folder / "nginx.conf").read_bytes() == original
    assert web.stop()["errors"] == 0
