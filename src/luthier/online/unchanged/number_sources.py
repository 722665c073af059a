"""Where the number of a running program comes from: a log that grows, a URL, a command."""

import http.client
import ipaddress
import os
import shlex
import socket
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Protocol
from urllib.parse import SplitResult, urlsplit

from luthier.errors import InvalidInputError
from luthier.measures.json_output import JsonPath
from luthier.measures.output import LONGEST_READ_BYTES, Regex, number_in, quote_last_line
from luthier.online.unchanged.bounded_command import run_bounded
from luthier.texts import check_length, check_text, shown
from luthier.trial import Completed, Failed, Outcome


class GrowingLog:
    """The lines that were added to a file since the last call of `new_lines`; the first call begins at its end.

    A log that was renamed and created again (rotation) is read to its end, then the new one from its start. A log that
    was truncated is read from its start. If more than 16 MiB were added, only the last of them are read.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: BinaryIO | None = None
        self._rest = b""
        self._was_called = False

    def __del__(self) -> None:
        self._close()

    def new_lines(self) -> str:
        """All complete lines since the last call; "" while there is no such file."""
        found = b""
        if self._file is not None:
            found = self._added(self._file)
            if self._is_replaced(self._file):
                found += b"\n" + self._added(self._file)  # written between the two looks
                self._close()
        if self._file is None and self._open():
            found += b"\n" if found else b""
            found += self._added(self._file) if self._file is not None else b""
        self._was_called = True
        return found.decode(errors="replace")

    def _open(self) -> bool:
        try:
            self._file = self._path.open("rb")
        except OSError:
            return False
        if not self._was_called:  # only what is written from now on counts
            self._file.seek(0, os.SEEK_END)
        return True

    def _close(self) -> None:
        if self._file is not None:
            self._file.close()
        self._file, self._rest = None, b""

    def _added(self, file: BinaryIO) -> bytes:
        size, position = os.fstat(file.fileno()).st_size, file.tell()
        if size < position:
            position, self._rest = 0, b""
        if size - position > LONGEST_READ_BYTES:
            position, self._rest = size - LONGEST_READ_BYTES, b""
        file.seek(position)
        content = self._rest + file.read(LONGEST_READ_BYTES)
        lines, newline, self._rest = content.rpartition(b"\n")
        self._rest = self._rest[-LONGEST_READ_BYTES:]
        return lines + newline

    def _is_replaced(self, file: BinaryIO) -> bool:
        try:
            here = self._path.stat()
        except OSError:
            return False  # renamed, and not created again yet: it may still be written to
        mine = os.fstat(file.fileno())
        return (here.st_dev, here.st_ino) != (mine.st_dev, mine.st_ino)


HOW = "write log:FILE:REGEX, url:http://127.0.0.1:PORT/PATH, or command:COMMAND"

LONGEST_ANSWER_BYTES = 1024 * 1024

_PICKED = "after the URL, write regex:PATTERN or json:PATH, separated by a space"


@dataclass(frozen=True, slots=True)
class NumbersRead:
    """The numbers since the last reading, or the reason why they are missing.

    `is_failure` tells that no answer came, which a guard counts as a bad number; a log without new lines is not a
    failure.
    """

    numbers: tuple[float, ...]
    problem: str = ""
    is_failure: bool = False


class NumberSource(Protocol):
    """The number that shows how well a running program does."""

    def read(self, now: float) -> NumbersRead:
        """What is new since the last call; the first call only marks the start of a log. It takes a bounded time."""
        ...


class LogSource:
    """The number in each new line of a log."""

    def __init__(self, path: Path, regex: Regex) -> None:
        self._path = path
        self._log = GrowingLog(path)
        self._regex = regex

    def read(self, now: float) -> NumbersRead:  # noqa: ARG002 - other sources need the time
        """The numbers of all matches in the new lines."""
        found = self._regex.every(self._log.new_lines())
        numbers = tuple(outcome.value for outcome in found if isinstance(outcome, Completed))
        problems = [outcome.reason for outcome in found if isinstance(outcome, Failed)]
        if not numbers:
            return NumbersRead((), problems[0] if problems else f"no new line of {self._path} has a match")
        return NumbersRead(numbers)


class UrlSource:
    """The number that a URL answers with."""

    def __init__(self, url: SplitResult, pick: Callable[[str], Outcome], timeout_s: float) -> None:
        self._url = url
        self._pick = pick
        self._timeout_s = timeout_s

    def read(self, now: float) -> NumbersRead:  # noqa: ARG002 - other sources need the time
        """The number of the present answer; redirections are not followed."""
        try:
            return _reading(self._pick(self._fetched()))
        except (OSError, http.client.HTTPException, ValueError) as error:
            return NumbersRead((), f"{self._url.geturl()}: {error or type(error).__name__}", is_failure=True)

    def _fetched(self) -> str:
        deadline = time.monotonic() + self._timeout_s
        kind = http.client.HTTPSConnection if self._url.scheme == "https" else http.client.HTTPConnection
        connection = kind(self._url.hostname or "", self._url.port, timeout=self._timeout_s)
        connection.connect()
        # The timeout of a socket is for each piece of the answer; this one is for the whole.
        cut = threading.Timer(self._timeout_s, _shut, [connection.sock])
        cut.start()
        try:
            answer = self._answer(connection)
        except (OSError, http.client.HTTPException):
            if time.monotonic() < deadline:
                raise
            answer = ""
        finally:
            cut.cancel()
            connection.close()
        if time.monotonic() >= deadline:
            raise ValueError(f"the answer took longer than {self._timeout_s:g} s")
        return answer

    def _answer(self, connection: http.client.HTTPConnection) -> str:
        path = (self._url.path or "/") + (f"?{self._url.query}" if self._url.query else "")
        connection.request("GET", path, headers={"Accept": "*/*", "Connection": "close"})
        answer = connection.getresponse()
        if answer.status != http.HTTPStatus.OK:
            raise ValueError(f"the answer is {answer.status} {answer.reason}")
        content = answer.read(LONGEST_ANSWER_BYTES + 1)
        if len(content) > LONGEST_ANSWER_BYTES:
            raise ValueError("the answer is larger than 1 MiB")
        return content.decode(errors="replace")


def _shut(connected: socket.socket) -> None:
    with suppress(OSError):
        connected.shutdown(socket.SHUT_RDWR)


class CommandSource:
    """The number that a command prints."""

    def __init__(self, argv: Sequence[str], timeout_s: float) -> None:
        self._argv = argv
        self._timeout_s = timeout_s

    def read(self, now: float) -> NumbersRead:  # noqa: ARG002 - other sources need the time
        """The number that the command prints now."""
        ended = run_bounded(self._argv, self._timeout_s)
        if ended.problem is not None:
            return NumbersRead((), ended.problem, is_failure=True)
        return _reading(_only_number(ended.output))


class RateSource:
    """How fast a counter grows, per second; it has no number when the counter was reset."""

    def __init__(self, counter: NumberSource) -> None:
        self._counter = counter
        self._last: tuple[float, float] | None = None

    def read(self, now: float) -> NumbersRead:
        """The growth since the last reading that had a number."""
        reading = self._counter.read(now)
        if not reading.numbers:
            return reading
        count, last = reading.numbers[-1], self._last
        self._last = (now, count)
        if last is None or now <= last[0]:
            return NumbersRead((), "a rate needs two readings")
        if count < last[1]:
            return NumbersRead((), "the counter was reset")
        return NumbersRead(((count - last[1]) / (now - last[0]),))


def number_source(text: str, *, timeout_s: float, shell: bool = False, rate: bool = False) -> NumberSource:
    """The source that a user named: `log:FILE:REGEX`, `url:URL`, `remote-url:URL` or `command:COMMAND`."""
    check_text(check_length(text, "--read"), "--read")
    kind, _, rest = text.partition(":")
    if kind not in ("log", "url", "remote-url", "command") or not rest.strip():
        raise InvalidInputError(f"--read {shown(text)}: {HOW}")
    source: NumberSource
    if kind == "log":
        source = _log(rest)
    elif kind == "command":
        source = CommandSource(words_of(rest, "--read", shell=shell), timeout_s)
    else:
        source = _url(rest, timeout_s, is_remote=kind == "remote-url")
    return RateSource(source) if rate else source


def words_of(text: str, what: str, *, shell: bool) -> tuple[str, ...]:
    """The arguments of a command that is one text, with quotes as in a shell; with `shell`, it is run by one."""
    if shell:
        return ("/bin/sh", "-c", text)
    try:
        words = tuple(shlex.split(text))
    except ValueError as error:
        raise InvalidInputError(f"{what} {shown(text)}: {error}; close the quotation marks") from None
    if not words:
        raise InvalidInputError(f"{what}: the command is empty")
    return words


def _log(text: str) -> LogSource:
    path, colon, pattern = text.partition(":")
    if not colon or not path or not pattern:
        raise InvalidInputError(f"--read log:{text}: write log:FILE:REGEX, for example log:access.log:rt=([0-9.]+)")
    return LogSource(Path(path).absolute(), Regex(pattern))


def _url(text: str, timeout_s: float, *, is_remote: bool) -> UrlSource:
    address, _, rest = text.strip().partition(" ")
    try:
        url = urlsplit(address)
        is_valid = url.scheme in ("http", "https") and bool(url.hostname) and (url.port is None or url.port > 0)
    except ValueError:
        is_valid = False
    if not is_valid or not address.isascii() or not address.isprintable():
        raise InvalidInputError(f"--read url:{shown(address)}: not a valid URL; write http://127.0.0.1:PORT/PATH")
    if not is_remote and not _is_loopback(url.hostname or ""):
        raise InvalidInputError(
            f"--read url:{shown(address)}: not an address of this machine; for another machine write remote-url:"
        )
    return UrlSource(url, _pick(rest.strip()), timeout_s)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _pick(text: str) -> Callable[[str], Outcome]:
    """How to find the number in an answer; by default it is the whole answer."""
    if not text:
        return _only_number
    kind, _, argument = text.partition(":")
    if kind == "json":
        return JsonPath(argument).in_text
    if kind == "regex":
        regex = Regex(argument)
        return lambda answer: regex.last(answer) or Failed(f"no match for {text} ({quote_last_line(answer)})")
    raise InvalidInputError(f"--read: {shown(text)} is not supported; {_PICKED}")


def _only_number(text: str) -> Outcome:
    number = number_in(text)
    return Completed(number) if number is not None else Failed(f"it is not one number ({quote_last_line(text)})")


def _reading(outcome: Outcome) -> NumbersRead:
    return NumbersRead((outcome.value,)) if isinstance(outcome, Completed) else NumbersRead((), outcome.reason)
