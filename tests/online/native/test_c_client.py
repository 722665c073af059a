"""The C client against a service that behaves well, badly, or not at all; under the sanitizers."""

import json
import os
import re
import socket
import subprocess
import threading
from collections.abc import Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest
from tests.conftest import missing
from tests.online.native.conftest import SANITIZERS, SOURCES, STRICT, compiled, need
from tests.online.native.peer import CONFIG, PATIENT, Behaviour, Connection, Peer, answer_to, driver, peer, well_behaved

import luthier as lt
from luthier.trial import Json

DEFAULTS = {"block": 64, "depth": 1, "ratio": 250_000, "engine": 0, "level": 1}
FETCHED = {"block": 128, "depth": 1 << 33, "ratio": 500_000, "engine": 2, "level": 2}
SPACE = lt.Space(
    lt.Integer("block", 8, 512, 8, default=64),
    lt.Integer("depth", 1, 1 << 40, 2, scale="log", default=1),
    lt.Real("ratio", 0.0, 1.0, default=0.25),
    lt.Choice("engine", ["sync", "libaio", '"Größe"']),
    lt.Choice("level", ["low", "mid", "high"], default="mid", ordered=True),
    constraints=["block >= 2 * depth or level == 'low'"],
)


def variables(answer: dict[str, Json]) -> dict[str, Json]:
    return {name: answer[name] for name in DEFAULTS}


def test_an_iteration_sets_the_variables_and_reports(program: Path, tmp_path: Path) -> None:
    with peer(tmp_path, well_behaved) as service, driver(program, service.address, **PATIENT) as client:
        assert client.do("constraint block >= 2 * depth or level == 'low'")["done"] == 1
        for name, value in (("strategy", "pro:size=0.3"), ("samples", "3"), ("watch", "false"), ("goal", "maximize")):
            assert client.do(f"setting {name} {value}")["done"] == 1
        fetched = client.do("fetch")
        assert (fetched["done"], variables(fetched), fetched["phase"]) == (1, FETCHED, "searching")
        assert client.do("report 1250")["done"] == 1
        assert client.do("report 9")["done"] == 0  # there was no fetch in between
        client.do("fetch")
        client.do("failed")
        client.do("fetch")
        assert client.do("huge")["done"] == 1  # the sum of such values would not be finite: it counts as failed
        best = client.do("best")
        assert (best["done"], best["phase"]) == (1, "converged")
        assert client.close() == ""
        hello = service.of("hello")[0]
        assert lt.Space.from_json(hello["space"]) == SPACE  # type: ignore[arg-type]  # JSON that was received
        assert hello["settings"] == {"strategy": "pro:size=0.3", "samples": 3, "watch": False, "goal": "maximize"}
        assert (hello["protocol"], hello["session"]) == (1, "driver")
        assert hello["client"] == f"{socket.gethostname()}/{client.process.pid}"
        assert "token" not in hello
        assert [request["value"] for request in service.of("report")] == [1.25, None, None]
        assert len(service.wait_for("leave")) == 1


@pytest.mark.parametrize("through", ["variable", "file"])
def test_the_token_over_tcp(program: Path, tmp_path: Path, through: str) -> None:
    (tmp_path / "token").write_text('ab"c\nnot this\n')
    given = {"LUTHIER_TOKEN": 'ab"c'} if through == "variable" else {"LUTHIER_TOKEN_FILE": str(tmp_path / "token")}
    with (
        peer(tmp_path, well_behaved, tcp=True) as service,
        driver(program, service.address, **given, **PATIENT) as client,
    ):
        assert client.do("fetch")["done"] == 1
        client.close()
        assert service.of("hello")[0]["token"] == 'ab"c'


def test_numbers_in_a_locale_with_a_decimal_comma(program: Path, tmp_path: Path) -> None:
    need("localedef")
    made = ["localedef", "-i", "de_DE", "-f", "UTF-8", str(tmp_path / "de_DE.UTF-8")]
    if subprocess.run(made, capture_output=True, check=False).returncode != 0:
        pytest.skip("the sources of the locale de_DE are not installed (package locales)")
    comma = {"LOCPATH": str(tmp_path)}
    with (
        peer(tmp_path, well_behaved) as service,
        driver(program, service.address, "de_DE.UTF-8", **comma, **PATIENT) as client,
    ):
        assert client.do("setting samples 2.5")["done"] == 1
        assert variables(client.do("fetch")) == FETCHED
        client.do("report 1250")
        client.close()
        hello, report = service.of("hello")[0], service.of("report")[0]
        assert report["value"] == 1.25
        assert hello["settings"] == {"samples": 2.5}
        assert lt.Space.from_json(hello["space"]).default["ratio"] == 0.25  # type: ignore[arg-type]


def test_a_child_has_a_connection_of_its_own(program: Path, tmp_path: Path) -> None:
    with peer(tmp_path, well_behaved) as service, driver(program, service.address, **PATIENT) as client:
        client.do("fetch")
        assert client.do("fork")["done"] == 3
        assert client.do("report 1250")["done"] == 1  # the parent's connection is as it was
        assert client.do("fetch")["done"] == 1
        client.close()
        assert service.connections == 2
        first, second = (request["client"] for request in service.of("hello"))
        assert first != second
        assert [request["value"] for request in service.of("report")] == [7.0, 1.25]


def test_a_wrong_declaration_is_told_once_and_nothing_is_tuned(program: Path, tmp_path: Path) -> None:
    with peer(tmp_path, well_behaved) as service, driver(program, service.address, **PATIENT) as client:
        client.do("fetch")
        assert client.do("constraint block > 1")["done"] == 0
        after = client.do("fetch")
        assert after["done"] == 0
        assert "before the first fetch" in str(after["error"])
        assert client.close().count("\n") == 1


@pytest.mark.parametrize("address", ["unix:/nonexistent/socket", "tcp:127.0.0.1:1", "tcp:192.0.2.1:9", "tcp:[::1]:1"])
def test_without_a_service_the_program_runs_on(program: Path, address: str) -> None:
    with driver(program, address) as client:
        after = client.do("loop 100000")
        assert (after["done"], variables(after), after["phase"]) == (0, DEFAULTS, "offline")
        assert float(str(after["longest_ms"])) < 5_000
        assert "no service at" in str(after["error"])
        errors = client.close()
        assert errors.startswith(f"luthier: driver: no service at {address}: ")
        assert errors.count("\n") == 1


def test_a_host_that_does_not_answer_costs_the_time_limit_now_and_then(program: Path) -> None:
    with ExitStack() as held:
        listener = held.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        for _ in range(4):  # the queue is full: packets of others are dropped
            waiting = held.enter_context(socket.socket())
            waiting.settimeout(0)
            waiting.connect_ex(listener.getsockname())
        client = held.enter_context(driver(program, f"tcp:127.0.0.1:{listener.getsockname()[1]}"))
        after = client.do("loop 100000")
        assert (after["done"], variables(after)) == (0, DEFAULTS)
        assert str(after["error"]).endswith("Connection timed out")
        assert float(str(after["longest_ms"])) < 5_000
        client.close()


@pytest.mark.parametrize(
    ("address", "problem"),
    [
        ("tcp:example.invalid:5", "write tcp:HOST:PORT with the address of the host in numbers"),
        ("tcp:", "write tcp:HOST:PORT"),
        ("tcp:127.0.0.1:99999", "write tcp:HOST:PORT"),
        ("http://there", "is neither unix:PATH nor tcp:HOST:PORT"),
        ("unix:/" + 200 * "x", "is too long"),
    ],
)
def test_an_address_that_cannot_work(program: Path, address: str, problem: str) -> None:
    with driver(program, address) as client:
        client.do("quiet")
        assert problem in str(client.do("loop 10")["error"])
        assert client.close() == ""


def closes(connection: Connection, service: Peer) -> None:
    """End every connection at once."""


def silent(connection: Connection, service: Peer) -> None:
    service.record(connection.request())
    service.stopped.wait(60)


def half_a_line(connection: Connection, service: Peer) -> None:
    connection.send(b'{"ok":true,"conf')
    silent(connection, service)


def answers_after_hello(text: bytes, connection: Connection, service: Peer) -> None:
    connection.send(answer_to(connection.request()), text)
    service.stopped.wait(60)


def fetched(config: Mapping[str, Json]) -> bytes:
    return json.dumps({"ok": True, "config": dict(config), "phase": "searching"}).encode() + b"\n"


def wrong_config(**changes: Json) -> Behaviour:
    config = {name: value for name, value in {**CONFIG, **changes}.items() if value is not None}
    return partial(answers_after_hello, fetched(config))


BAD: dict[str, Behaviour] = {
    "closes": closes,
    "silent": silent,
    "half a line": half_a_line,
    "garbage": partial(answers_after_hello, b"\xff\x00\x01garbage\n"),
    "not an object": partial(answers_after_hello, b"[1,2]\n"),
    "deep": partial(answers_after_hello, b'{"x":' + 50_000 * b"[" + b"\n"),
    "nothing in it": partial(answers_after_hello, b"{}\n"),
    "no config": partial(answers_after_hello, b'{"ok":true}\n'),
    "refused": partial(answers_after_hello, b'{"ok":false,"error":"no"}\n'),
    "lines nobody asked for": partial(answers_after_hello, 1000 * b'{"ok":true}\n'),
    "below": wrong_config(block=0),
    "above": wrong_config(block=520),
    "beside the steps": wrong_config(block=9),
    "not whole": wrong_config(block=64.5),
    "beyond 64 bits": wrong_config(depth=1 << 70),
    "a text": wrong_config(block="64"),
    "a real above": wrong_config(ratio=1.5),
    "another choice": wrong_config(engine="uring"),
    "a number for a choice": wrong_config(engine=1),
    "a control character": partial(answers_after_hello, fetched(CONFIG).replace(b"searching", b"sear\tching")),
    "one twice": partial(answers_after_hello, fetched(CONFIG).replace(b'"level": "high"', b'"block": 128')),
    "one missing": wrong_config(level=None),
    "one too many": wrong_config(more=1),
}


@pytest.mark.parametrize("name", BAD)
def test_a_service_that_behaves_badly_changes_nothing(program: Path, tmp_path: Path, name: str) -> None:
    with peer(tmp_path, BAD[name]) as service, driver(program, service.address) as client:
        after = client.do("loop 20000")
        assert (after["done"], variables(after)) == (0, DEFAULTS), after
        assert after["error"] != ""
        assert float(str(after["longest_ms"])) < 5_000
        assert int(str(after["slow"])) < 50  # of 40,000 calls
        assert service.connections < 10  # the pauses grow
        assert client.close().count("\n") <= 1


def test_messages_of_a_service_cannot_control_the_terminal(program: Path, tmp_path: Path) -> None:
    nasty = "\\u001b[31mGröße 💥 \\u009b31m \\u007f \\u202e".encode() + b"\x9b31m \xc3"
    refused = partial(answers_after_hello, b'{"ok":false,"error":"' + nasty + b' end"}\n')
    with peer(tmp_path, refused) as service, driver(program, service.address, **PATIENT) as client:
        after = str(client.do("fetch")["error"])
        assert "[31mGröße 💥 ??31m   ???" in after
        assert after.endswith("?31m ? end")
        said = client.close()
        assert after.isprintable()
        assert said.removesuffix("\n").isprintable()


def test_an_answer_that_does_not_end(program: Path, tmp_path: Path) -> None:
    huge = partial(answers_after_hello, b'{"ok":true,"x":"' + 8_000_000 * b"y")
    with peer(tmp_path, huge) as service, driver(program, service.address, **PATIENT) as client:
        after = client.do("fetch")
        assert (after["done"], variables(after)) == (0, DEFAULTS)
        assert str(after["error"]).endswith("is too long")
        client.close()


def test_a_late_answer_is_used_by_the_next_iteration(program: Path, tmp_path: Path) -> None:
    go = threading.Event()

    def late(connection: Connection, service: Peer) -> None:
        hello, fetch = connection.request(), connection.request()
        assert go.wait(60)
        connection.send(answer_to(hello), answer_to(fetch))
        well_behaved(connection, service)

    with peer(tmp_path, late) as service, driver(program, service.address) as client:
        client.do("timeout 20")
        first = client.do("fetch")
        assert (first["done"], variables(first)) == (0, DEFAULTS)
        assert client.do("report 1")["done"] == 0  # what ran was not what the service will have chosen
        go.set()
        for _ in range(2000):
            after = client.do("fetch")
            if after["done"] == 1:
                break
        assert variables(after) == FETCHED
        assert client.do("report 2000")["done"] == 1
        client.close()
        assert [request["value"] for request in service.of("report")] == [2.0]


def test_the_service_ends_in_the_middle_and_comes_back(program: Path, tmp_path: Path) -> None:
    def ends_after_a_fetch(connection: Connection, service: Peer) -> None:
        for _ in range(2):
            connection.send(answer_to(connection.request()))

    with (
        peer(tmp_path, ends_after_a_fetch, well_behaved) as service,
        driver(program, service.address, **PATIENT) as client,
    ):
        assert client.do("fetch")["done"] == 1
        service.wait_for_end()
        client.do("report 1250")  # the connection has ended, so it is kept
        for _ in range(100_000):
            after = client.do("fetch")
            if after["done"] == 1:
                break
        assert variables(after) == FETCHED
        client.do("report 3000")
        errors = client.close()
        assert errors.count("\n") == 1
        first, second = service.of("report")
        assert (first["value"], first["config"]) == (1.25, CONFIG)
        assert (second["value"], "config" in second) == (3.0, False)


def test_a_report_into_a_broken_connection_raises_no_signal(program: Path, tmp_path: Path) -> None:
    reading_ends = threading.Event()

    def stops_reading(connection: Connection, service: Peer) -> None:
        for _ in range(2):
            connection.send(answer_to(connection.request()))
        connection.stop_reading()
        reading_ends.set()
        service.stopped.wait(60)

    with (
        peer(tmp_path, stops_reading, well_behaved) as service,
        driver(program, service.address, **PATIENT) as client,
    ):
        assert client.do("fetch")["done"] == 1
        assert reading_ends.wait(60)
        after = client.do("report 1250")
        assert (after["done"], str(after["error"]).endswith("Broken pipe")) == (0, True)
        assert client.do("fetch")["done"] == 1
        client.close()
        assert [(report["value"], report["config"]) for report in service.of("report")] == [(1.25, CONFIG)]


def test_programs_that_are_started_do_not_inherit_the_connection(program: Path, tmp_path: Path) -> None:
    with peer(tmp_path, well_behaved) as service, driver(program, service.address, **PATIENT) as client:
        client.do("fetch")
        process = Path(f"/proc/{client.process.pid}")
        if not process.exists():
            missing("there is no /proc to look into")
        sockets = [link.name for link in (process / "fd").iterdir() if str(link.readlink()).startswith("socket:")]
        assert len(sockets) == 1
        (flags,) = re.findall(r"flags:\s+(\d+)", (process / "fdinfo" / sockets[0]).read_text())
        assert int(flags, 8) & os.O_CLOEXEC
        client.close()


LARGE = """
#include <stdio.h>
#include <string.h>
#include "luthier_online.h"
static char values[1000000];
int main(void)
{
    int choice = 0;
    size_t length = 0;
    for (int i = 0; i < 100000; i++)
        length += (size_t)sprintf(values + length, i == 0 ? "v%d" : ",v%d", i);
    luthier_online *tuning = luthier_open(NULL, "large");
    luthier_choice(tuning, "choice", &choice, values);
    int done = luthier_fetch(tuning);
    printf("%d %d %s\\n", done, choice, luthier_error(tuning));
    luthier_close(tuning);
    return 0;
}
"""


def test_a_declaration_that_is_larger_than_the_buffers_of_a_socket(tmp_path: Path) -> None:
    need("cc")
    source = tmp_path / "large.c"
    source.write_text(LARGE)
    large = compiled(tmp_path / "large", *STRICT, *SANITIZERS, f"-I{SOURCES}", source, SOURCES / "luthier_online.c")
    with peer(tmp_path, partial(well_behaved, config={"choice": "v99999"})) as service:
        environment = os.environ | {"LUTHIER_ONLINE": service.address, **PATIENT}
        ended = subprocess.run([large], env=environment, capture_output=True, text=True, check=False, timeout=60)
        assert (ended.returncode, ended.stdout, ended.stderr) == (0, "1 99999 \n", "")


def test_a_lost_service_costs_no_attempt_each_iteration(program: Path, tmp_path: Path) -> None:
    with peer(tmp_path, closes) as service, driver(program, service.address) as client:
        client.do("loop 300000")
        assert 1 <= service.connections < 15
        client.close()


def test_damaged_answers_are_read_within_bounds(tmp_path: Path) -> None:
    need("cc")
    source = Path(__file__).parent / "fuzz.c"
    fuzz = compiled(tmp_path / "fuzz", *STRICT, *SANITIZERS, f"-I{SOURCES}", source)
    ended = subprocess.run([fuzz, "100000", "1"], capture_output=True, text=True, check=False, timeout=120)
    assert ended.returncode == 0, ended.stdout + ended.stderr
