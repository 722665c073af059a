"""The Python client of the on-line service; it never raises or hangs because of the service or the network."""

import logging
import math
import os
import socket
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from statistics import median_high
from typing import Unpack, cast

from luthier.errors import InvalidInputError, LuthierError
from luthier.online.base import Standing
from luthier.online.service import protocol
from luthier.online.service.address import default_address, parse_address
from luthier.online.service.client_connection import Asked, ClientConnection
from luthier.online.session_settings import OnlineOptions, OnlineSettings
from luthier.space import Space
from luthier.texts import check_name, shown, visible
from luthier.trial import Config, Json, Value

START_S = 2.0
"""How long a new tuner waits for the service; later calls wait for `timeout_s`."""

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.1, 30.0
_PATIENCE_S = 5.0  # a connection without an answer for so long is given up
_MOST_KNOWN_BYTES = 1 << 22  # of answers to fetch that need not be read again
_PHASES = ("baseline", "searching", "converged", "stopped")
_STEADY_S = 5.0  # after a connection that lasted for so long, a loss is a new one: logged, and tried again soon
_MOST_MEASURED, _KEPT = 128, 5  # configurations whose values are remembered, and the last values of each
_FEWEST = 2  # values before a configuration may replace the default: one may be due to luck
_LONGEST_REASON = 500
_MOST_OWED = 64  # answers to reports that are not read yet
_log = logging.getLogger(__name__)


class _RefusedError(LuthierError):
    """The service does not let this client join."""


class OwnValues:
    """What this process has measured itself: the best of it is used while the service does not answer."""

    def __init__(self, default: Config, *, maximize: bool) -> None:
        self._default, self._sign = default, -1.0 if maximize else 1.0
        self._values: dict[Config, deque[float]] = {}

    def add(self, config: Config, value: float | None) -> None:
        """Remember a value, None if the configuration failed; of very many configurations the worst is forgotten."""
        if config not in self._values and len(self._values) >= _MOST_MEASURED:
            del self._values[max(self._values.keys() - {self._default}, key=self._judged)]
        values = self._values.setdefault(config, deque(maxlen=_KEPT))
        values.append(math.inf if value is None else self._sign * value)

    @property
    def standing(self) -> Standing:
        """The default, or the best configuration that was measured at least twice and is better."""
        enough = [config for config, values in self._values.items() if len(values) >= _FEWEST]
        best = min((self._default, *enough), key=self._judged)
        value = self._judged(best)
        known = None if value == math.inf else self._sign * value
        return Standing(best, known, len(self._values.get(best, ())), converged=False)

    def _judged(self, config: Config) -> float:
        """The median of the last values, the worse one of an even number: one of them may be due to luck."""
        return median_high(self._values.get(config, (math.inf,)))


class RemoteTuner:
    """Tunes this program together with its other processes, through the on-line service.

    Every call takes `timeout_s` at most. While the service does not answer, `fetch` returns the best configuration that
    this tuner has measured at least twice, or the default; reports stay here, and it is tried again with increasing
    pauses. Only a start that the service refuses (wrong token, other parameters) is an error. A forked child makes its
    own connection; threads need a tuner each.
    """

    def __init__(
        self,
        address: str | None,
        name: str,
        space: Space,
        *,
        token: str | None = None,
        timeout_s: float = 0.2,
        **settings: Unpack[OnlineOptions],
    ) -> None:
        if not 0.0 < timeout_s < float("inf"):
            raise InvalidInputError(f"timeout_s: {shown(timeout_s)} is not valid; give a time above 0 in seconds")
        OnlineSettings(**settings)  # raises if one of them is wrong
        self._address = parse_address(address or default_address())
        self._name, self._space = check_name(name, "name"), space
        self._settings = cast("Mapping[str, Json]", settings)
        self._token = token if token is not None else token_from_environment()
        self._timeout_s = timeout_s
        self._connection: ClientConnection | None = None
        self._pid = os.getpid()
        self._config = self._chosen = space.default  # what the program runs, and what the service chose last
        self._is_tuned = False  # the service has chosen something
        self._fetched: Config | None = None  # what the service knows that it runs
        self._phase = "baseline"
        self._measured = OwnValues(space.default, maximize=settings.get("goal") == "maximize")
        self._arrived: set[Asked] = set()  # answers to the last request
        self._standing = Standing(space.default, None, 0, converged=False)
        self._known: dict[bytes, tuple[Config, str]] = {}  # answers to fetch
        self._known_bytes = 0
        self._connected_at = 0.0
        self._pause_s, self._next_try = _FIRST_PAUSE_S, 0.0
        self._is_late = self._is_warned = False
        try:
            self._exchange(time.monotonic() + max(timeout_s, START_S))
        except _RefusedError as error:
            self._drop(leave=False)
            raise InvalidInputError(f"{self._address}: {visible(str(error))}") from None

    @property
    def phase(self) -> str:
        """What the session does, as far as this client knows: "baseline", "searching", "converged" or "stopped"."""
        return self._phase

    @property
    def converged(self) -> bool:
        """Whether the search is over; it starts again if the program's behaviour changes."""
        return self._phase == "converged"

    @property
    def best(self) -> Standing:
        """The best configuration so far; the best of this tuner's own values if the service does not answer in time."""
        self._ask("best", lambda: protocol.BEST_LINE)
        return self._standing if "best" in self._arrived or not self._is_tuned else self._measured.standing

    def fetch(self) -> Config:
        """The configuration for the next iteration."""
        self._ask("fetch", lambda: protocol.FETCH_LINE)
        self._is_tuned = self._is_tuned or "fetch" in self._arrived
        self._config = self._chosen if "fetch" in self._arrived else self._measured.standing.best
        return self._config

    def report(self, value: float | None, *, config: Mapping[str, Value] | None = None) -> None:
        """Report what the iteration gave: its time, or another number; None if it failed. Does not wait.

        `config` is what was run, if that is not what was fetched last.
        """
        ran = self._config if config is None else self._space.check(config)
        number = protocol.check_value(value)
        if self._is_tuned:
            self._measured.add(ran, number)

        def line() -> bytes:  # made when it is sent: on a new connection the service does not know what was fetched
            known, self._fetched = ran == self._fetched, None
            return protocol.report_line(number, None if known else dict(ran))

        self._ask("report", line)

    def leave(self) -> None:
        """Leave the session; the next `fetch` joins again."""
        if self._connection is not None:
            self._drop(leave=self._pid == os.getpid())

    @contextmanager
    def step(self) -> Iterator[Config]:
        """Fetch a configuration, and report how long the block took; an exception in it is a failed iteration."""
        config = self.fetch()
        began = time.perf_counter()
        try:
            yield config
        except BaseException:
            self.report(None)
            raise
        self.report(time.perf_counter() - began)

    def _ask(self, asked: Asked, line: Callable[[], bytes]) -> None:
        """Send a request and read the answers, except that of a report: it is read with the next ones."""
        self._arrived.clear()
        try:
            self._exchange(time.monotonic() + self._timeout_s, asked, line)
        except _RefusedError as error:
            self._lose(str(error))

    def _exchange(self, deadline: float, asked: Asked | None = None, line: Callable[[], bytes] = bytes) -> None:
        """Send a request and use all answers that come in time.

        After a time-out, later calls do not wait for what is owed, and send nothing, until it has come: a service that
        hangs costs one time-out, not one in every iteration.
        """
        try:
            connection = self._connected(deadline)
            if connection is None:
                return
            if self._is_late:
                self._use_answers(connection, time.monotonic())
                if self._is_late:
                    if connection.silent_s > _PATIENCE_S:
                        self._lose("it does not answer")
                    return
            if asked is not None:
                connection.send(asked, line(), deadline)
            if asked != "report" or connection.owed > _MOST_OWED:
                self._use_answers(connection, deadline)
        except _RefusedError:
            raise
        except (OSError, LuthierError) as error:
            self._lose(getattr(error, "strerror", None) or str(error))

    def _use_answers(self, connection: ClientConnection, deadline: float) -> None:
        for kind, answer in connection.answers(deadline):
            self._take(kind, answer)
        self._is_late = connection.owed > 0

    def _connected(self, deadline: float) -> ClientConnection | None:
        """The connection of this process; None while the service cannot be reached."""
        if self._pid != os.getpid():  # after a fork the connection belongs to the parent
            self._drop(leave=False)
            self._pid, self._next_try = os.getpid(), 0.0
        if self._connection is None and time.monotonic() >= self._next_try:
            self._connection = ClientConnection(self._address, deadline)
            self._connected_at = time.monotonic()
            client = f"{socket.gethostname()}/{self._pid}"[: protocol.LONGEST_CLIENT]
            hello = protocol.Hello(self._name, client, self._token, self._space.to_json(), self._settings)
            self._connection.send("hello", protocol.hello_line(hello), deadline)
        return self._connection

    def _take(self, asked: Asked, line: bytes) -> None:
        """Use one answer of the service."""
        if asked == "fetch" and line in self._known:
            self._chosen, self._phase = self._known[line]
            self._fetched = self._chosen
            self._arrived.add(asked)
            return
        answer = protocol.read_object(line)
        if answer.get("ok") is not True:
            reason = answer.get("error")
            message = reason[:_LONGEST_REASON] if isinstance(reason, str) else "no reason is given"
            if asked == "hello" and answer.get("retry") is not True:
                raise _RefusedError(message)
            if asked == "hello":
                raise ConnectionError(message)
            self._warn(f"a {asked} was refused: {message}")
            return
        phase = answer.get("phase", self._phase)
        if phase not in _PHASES:
            raise ConnectionError(f"the service is in an unknown phase: {shown(phase)}")
        self._phase = str(phase)
        if asked == "fetch":
            self._chosen = self._fetched = self._space.check(cast("Mapping[str, Value]", answer.get("config")))
            self._known_bytes += len(line)
            if self._known_bytes > _MOST_KNOWN_BYTES:
                self._known.clear()
                self._known_bytes = len(line)
            self._known[line] = self._chosen, self._phase
        elif asked == "best":
            config = self._space.check(cast("Mapping[str, Value]", answer.get("config")))
            value, samples = protocol.check_value(answer.get("value")), answer.get("samples", 0)
            if isinstance(samples, bool) or not isinstance(samples, int) or samples < 0:
                raise ConnectionError(f"the service has a wrong number of samples: {shown(samples)}")
            self._standing = Standing(config, value, samples, self.converged)
        self._arrived.add(asked)

    def _lose(self, reason: str) -> None:
        if self._connection is not None and time.monotonic() - self._connected_at > _STEADY_S:
            self._pause_s, self._is_warned = _FIRST_PAUSE_S, False
        self._drop(leave=True)
        self._next_try = time.monotonic() + self._pause_s
        self._pause_s = min(2.0 * self._pause_s, _LONGEST_PAUSE_S)
        self._warn(f"{reason}; going on without it")

    def _drop(self, *, leave: bool) -> None:
        connection, self._connection, self._fetched = self._connection, None, None
        self._is_late = False
        if connection is not None:
            connection.close(leave=leave)

    def _warn(self, message: str) -> None:
        """Log the first problem since the service was last steady: a loop runs thousands of times."""
        if not self._is_warned:
            _log.warning("on-line service %s: %s", self._address, visible(message))
        self._is_warned = True


def token_from_environment() -> str | None:
    """The token in LUTHIER_TOKEN, or in the file that LUTHIER_TOKEN_FILE names."""
    token = os.environ.get("LUTHIER_TOKEN")
    file = os.environ.get("LUTHIER_TOKEN_FILE")
    if token or not file:
        return token or None
    try:
        return Path(file).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeError) as error:
        raise InvalidInputError(f"LUTHIER_TOKEN_FILE: {file}: cannot be read: {error}") from None
