"""Numbers of running programs: real files, a real HTTP server, real commands."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import pytest

from luthier.errors import InvalidInputError
from luthier.measures import output
from luthier.online.unchanged.number_sources import GrowingLog, NumberSource, NumbersRead, RateSource, number_source

Append = Callable[[str], None]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "access.log"
    path.write_text("rt=99\n")
    return path


def append(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)


def source(text: str, *, timeout_s: float = 20.0, **options: bool) -> NumberSource:
    return number_source(text, timeout_s=timeout_s, **options)


def test_only_new_lines_of_a_log_count(log: Path) -> None:
    reader = source(f"log:{log}:rt=([0-9.]+)")
    assert reader.read(0).numbers == ()
    append(log, "rt=1.5 GET /\nnothing here\nrt=2\n")
    assert reader.read(1) == NumbersRead((1.5, 2.0))
    assert reader.read(2).numbers == ()
    assert "no new line" in reader.read(3).problem


def test_half_a_line_waits_for_its_rest(log: Path) -> None:
    reader = source(f"log:{log}:rt=([0-9.]+)")
    reader.read(0)
    append(log, "rt=1")
    assert reader.read(1).numbers == ()
    append(log, "2\nrt=3")
    assert reader.read(2).numbers == (12.0,)


def test_a_log_that_is_rotated_is_read_to_its_end_and_then_the_new_one(log: Path) -> None:
    reader = source(f"log:{log}:rt=([0-9.]+)")
    reader.read(0)
    append(log, "rt=1\n")
    log.rename(log.with_suffix(".1"))
    append(log.with_suffix(".1"), "rt=2\n")
    assert reader.read(1).numbers == (1.0, 2.0)
    append(log.with_suffix(".1"), "rt=3\n")
    append(log, "rt=4\nrt=5\n")
    assert reader.read(2).numbers == (3.0, 4.0, 5.0)
    append(log, "rt=6\n")
    assert reader.read(3).numbers == (6.0,)


def test_a_log_that_is_truncated_is_read_from_its_start(log: Path) -> None:
    reader = source(f"log:{log}:rt=([0-9.]+)")
    append(log, "rt=98\n" * 10)
    reader.read(0)
    log.write_text("rt=7\n")
    assert reader.read(1).numbers == (7.0,)


def test_a_log_that_appears_later_is_read_from_its_start(tmp_path: Path) -> None:
    reader = source(f"log:{tmp_path / 'new.log'}:rt=([0-9.]+)")
    assert reader.read(0).numbers == ()
    append(tmp_path / "new.log", "rt=1\n")
    assert reader.read(1).numbers == (1.0,)


def test_of_a_huge_addition_only_the_end_is_read(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("luthier.online.unchanged.number_sources.LONGEST_READ_BYTES", 100)
    growing = GrowingLog(log)
    growing.new_lines()
    append(log, "".join(f"{number}\n" for number in range(1000)))
    lines = growing.new_lines().splitlines()
    assert lines[-1] == "999"
    assert len("\n".join(lines)) <= 100


def test_a_group_that_holds_a_part_of_a_number_has_no_number(log: Path) -> None:
    reader = source(rf"log:{log}:rt=(\d)")
    reader.read(0)
    append(log, "rt=12\n")
    assert "out of '12'" in reader.read(1).problem


def test_a_slow_pattern_ends(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output, "LONGEST_SEARCH_S", 0.2)
    reader = source(f"log:{log}:^(?:(?:a|aa)+)+([0-9]+)$")
    reader.read(0)
    append(log, "a" * 60 + "!\n")
    assert "took longer" in reader.read(1).problem


class Page(BaseHTTPRequestHandler):
    """Answers with what a test wants."""

    answers: ClassVar[dict[str, tuple[int, bytes]]] = {}
    pause_s: ClassVar[float] = 0.0

    def do_GET(self) -> None:
        if self.path == "/slow":  # one byte after the other, for ever
            self.wfile.write(b"HTTP/1.0 200 OK\r\nX: ")
            try:
                while True:
                    self.wfile.write(b"x")
                    time.sleep(0.02)
            except OSError:
                return
        status, body = self.answers.get(self.path, (404, b"no"))
        self.send_response(status)
        self.send_header("Location", "/number")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments: object) -> None:
        return


@contextmanager
def serving(answers: dict[str, tuple[int, bytes]]) -> Iterator[str]:
    Page.answers = answers
    server = ThreadingHTTPServer(("127.0.0.1", 0), Page)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_a_url_with_a_number_a_pattern_or_a_path() -> None:
    status = json.dumps({"queue": {"length": 7}}).encode()
    answers = {"/number?a=1": (200, b" 12.5\n"), "/status": (200, status), "/text": (200, b"load: 3\nload: 4\n")}
    with serving(answers) as url:
        assert source(f"url:{url}/number?a=1").read(0) == NumbersRead((12.5,))
        assert source(f"url:{url}/status json:$.queue.length").read(0) == NumbersRead((7.0,))
        assert source(f"url:{url}/text regex:load: (\\S+)").read(0) == NumbersRead((4.0,))
        assert "no match" in source(f"url:{url}/text regex:lord: (\\S+)").read(0).problem
        assert "not one number" in source(f"url:{url}/text").read(0).problem


def test_errors_redirections_and_large_answers_of_a_url_are_no_number() -> None:
    answers = {"/number": (200, b"1"), "/moved": (302, b"2"), "/large": (200, b"1" * (1024 * 1024 + 1))}
    with serving(answers) as url:
        assert "404" in source(f"url:{url}/gone").read(0).problem
        assert "302" in source(f"url:{url}/moved").read(0).problem
        assert "1 MiB" in source(f"url:{url}/large").read(0).problem
    assert "refused" in source(f"url:{url}/number").read(0).problem


def test_an_answer_that_never_ends_is_given_up() -> None:
    with serving({}) as url:
        assert "took longer than 0.3 s" in source(f"url:{url}/slow", timeout_s=0.3).read(0).problem


@pytest.mark.parametrize(
    "text",
    ["url:http://example.org/", "url:http://10.0.0.1:80/", "url:http://127.0.0.1.example.org/", "url:http://[::2]/"],
)
def test_other_machines_must_be_asked_for(text: str) -> None:
    with pytest.raises(InvalidInputError, match="for another machine write remote-url:"):
        source(text)
    source(f"remote-{text}")


@pytest.mark.parametrize("text", ["url:http://localhost:1/", "url:http://127.0.0.1/", "url:http://[::1]:2/"])
def test_this_machine(text: str) -> None:
    source(text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "write log:FILE:REGEX"),
        ("log", "write log:FILE:REGEX"),
        ("file:x", "write log:FILE:REGEX"),
        ("log:access.log", "write log:FILE:REGEX"),
        ("log:access.log:(a", "correct the pattern"),
        ("log:access.log:(a)(b)", "2 groups"),
        ("url:ftp://127.0.0.1/", "not a valid URL"),
        ("url:http://127.0.0.1:99999/", "not a valid URL"),
        ("url:http://127.0.0.1/ xpath:a", "regex:PATTERN or json:PATH"),
        ("url:http://127.0.0.1/ json:a[", "cannot read"),
        ("command:echo 'a", "close the quotation marks"),
        ("command: ", "write log:FILE:REGEX"),
        ("log:a:" + "x" * 3000, "at most 2000"),
        ("log:a\0:b", "NUL"),
    ],
)
def test_what_cannot_be_read_is_refused_in_one_line(text: str, said: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        source(text)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_number_that_a_command_prints(tmp_path: Path) -> None:
    assert source("command:echo ' 4.5 '").read(0) == NumbersRead((4.5,))
    assert source("command:echo $((2+3))").read(0).numbers == ()
    assert source("command:echo $((2+3))", shell=True).read(0) == NumbersRead((5.0,))
    assert "exit code 3: no socket" in source("command:sh -c 'echo no socket >&2; exit 3'").read(0).problem
    assert "No such file" in source(f"command:{tmp_path}/none").read(0).problem


def test_a_command_that_hangs_is_killed() -> None:
    assert "took longer than 0.2 s" in source("command:sleep 600", timeout_s=0.2).read(0).problem


class Counter:
    def __init__(self, *values: float | None) -> None:
        self._values = iter(values)

    def read(self, now: float) -> NumbersRead:
        value = next(self._values)
        return NumbersRead((), "away") if value is None else NumbersRead((value,))


def test_a_counter_as_a_rate() -> None:
    rate = RateSource(Counter(100, 110, None, 140, 20, 25))
    assert rate.read(0).problem == "a rate needs two readings"
    assert rate.read(2).numbers == (5.0,)
    assert rate.read(3).problem == "away"
    assert rate.read(5).numbers == (10.0,)
    assert rate.read(6).problem == "the counter was reset"
    assert rate.read(11).numbers == (1.0,)
