"""The lines between the on-line service and its clients, version 1; see docs/online-protocol.md."""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NoReturn, cast

from luthier.errors import InvalidInputError
from luthier.texts import check_name, check_text, shown
from luthier.trial import Json

VERSION: Final = 1
LONGEST_LINE: Final = 64 * 1024
LONGEST_HELLO: Final = 1024 * 1024
LONGEST_CLIENT: Final = 120
LARGEST_VALUE: Final = 1e300
"""The largest magnitude of a reported value: sums of very many of them are finite."""

MOST_CLIENTS: Final = 16384
"""The largest number of clients of one connection."""

_LONGEST_VALUE = 32  # characters of one value in a list, with its comma
_LONGEST_TOKEN = 1000
_HELLO_KEYS = ("op", "protocol", "token", "session", "client", "space", "settings", "clients")


class NotJsonError(InvalidInputError):
    """The line is not a JSON object, so the sender does not speak this protocol."""


@dataclass(frozen=True, slots=True)
class Hello:
    """Joins a session; `space` and `settings` are needed to create it. `clients` is None for a single one."""

    session: str
    client: str
    token: str | None = None
    space: Mapping[str, Json] | None = None
    settings: Mapping[str, Json] | None = None
    clients: int | None = None


@dataclass(frozen=True, slots=True)
class Fetch:
    """Asks what to run."""


@dataclass(frozen=True, slots=True)
class ReportMessage:
    """What was measured, one value for each client; None for a run that failed.

    `configs` are what was run, where that is not what was fetched last.
    """

    values: tuple[float | None, ...]
    configs: tuple[Mapping[str, Json] | None, ...] | None = None


@dataclass(frozen=True, slots=True)
class Best:
    """Asks for the best configuration so far."""


@dataclass(frozen=True, slots=True)
class Leave:
    """Leaves the session."""


Request = Hello | Fetch | ReportMessage | Best | Leave

FETCH: Final = Fetch()
FETCH_LINE: Final = b'{"op":"fetch"}\n'
BEST_LINE: Final = b'{"op":"best"}\n'
LEAVE_LINE: Final = b'{"op":"leave"}\n'
OK_LINE: Final = b'{"ok":true}\n'


def longest_line(clients: int | None) -> int:
    """Most bytes of a request after hello; a report for many clients is longer."""
    return LONGEST_LINE + _LONGEST_VALUE * (clients or 0)


def read_request(line: bytes) -> Request:
    """Read the line of a client, with or without its line end; raise if it is not a valid request."""
    given = read_object(line)
    op = given.get("op")
    if op == "report":
        return _report(given)
    if op == "hello":
        return _hello(given)
    for name, request in (("fetch", FETCH), ("best", Best()), ("leave", Leave())):
        if op == name:
            _check_keys(given, ("op",))
            return cast("Request", request)
    raise InvalidInputError(f"op: {shown(op)} is unknown; expected hello, fetch, report, best or leave")


def check_value(value: Json) -> float | None:
    """The value of a report as a finite number, None for a run that failed; raise if it is neither."""
    if value is None:
        return None
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if -LARGEST_VALUE <= number <= LARGEST_VALUE:
            return number
        if math.isfinite(number):
            raise InvalidInputError(f"value: {number!r} is too large; scale it, or give null for a run that failed")
    raise InvalidInputError(f"value: {shown(value)} is not a finite number; give null for a run that failed")


def read_object(line: bytes) -> Mapping[str, Json]:
    """Read a line as a JSON object."""
    try:
        given = _DECODER.decode(line.decode())
    except (ValueError, RecursionError):
        raise NotJsonError("the line is not JSON; send one JSON object a line") from None
    if not isinstance(given, dict):
        raise NotJsonError("the line is not a JSON object; send one JSON object a line")
    return given


def write_line(values: Mapping[str, Json]) -> bytes:
    """Write one line."""
    return json.dumps(values, separators=(",", ":")).encode() + b"\n"


def hello_line(hello: Hello) -> bytes:
    """The first line of a client."""
    given = {key: getattr(hello, key) for key in ("token", "session", "client", "space", "settings", "clients")}
    return write_line(
        {"op": "hello", "protocol": VERSION, **{key: one for key, one in given.items() if one is not None}}
    )


def report_line(value: float | None, config: Mapping[str, Json] | None = None) -> bytes:
    """The report of a single client."""
    if config is None:
        return b'{"op":"report","value":%s}\n' % (b"null" if value is None else repr(float(value)).encode())
    return write_line({"op": "report", "value": value, "config": config})


def hello_answer(session: str, client: str, phase: str) -> bytes:
    """The answer to hello, with the name that the client got."""
    return write_line({"ok": True, "protocol": VERSION, "session": session, "client": client, "phase": phase})


def fetch_answer(config_text: str, phase: str) -> bytes:
    """The answer to the fetch of a single client; the configuration is given as JSON."""
    return f'{{"ok":true,"config":{config_text},"phase":"{phase}"}}\n'.encode()


def fetch_many_answer(config_texts: Iterable[str], phase: str) -> bytes:
    """The answer to the fetch of a connection that speaks for many clients."""
    return f'{{"ok":true,"configs":[{",".join(config_texts)}],"phase":"{phase}"}}\n'.encode()


def best_answer(config_text: str, value: float | None, samples: int, phase: str) -> bytes:
    """The answer to best."""
    number = "null" if value is None else repr(value)
    return f'{{"ok":true,"config":{config_text},"value":{number},"samples":{samples},"phase":"{phase}"}}\n'.encode()


def error_answer(message: str, *, retry: bool = False) -> bytes:
    """The answer to a request that was refused; with `retry`, the same may work later."""
    return write_line({"ok": False, "error": " ".join(message.split()), **({"retry": True} if retry else {})})


def _hello(given: Mapping[str, Json]) -> Hello:
    _check_keys(given, _HELLO_KEYS)
    if given.get("protocol") != VERSION:
        raise InvalidInputError(f"protocol: {shown(given.get('protocol'))} is not supported; use version {VERSION}")
    clients = given.get("clients")
    if clients is not None and (type(clients) is not int or not 1 <= clients <= MOST_CLIENTS):
        raise InvalidInputError(f"clients: {shown(clients)} is not valid; give a number from 1 to {MOST_CLIENTS}")
    token = given.get("token")
    if token is not None and (not isinstance(token, str) or len(token) > _LONGEST_TOKEN):
        raise InvalidInputError("token: is not valid; give a text")
    return Hello(
        session=_name(given, "session"),
        client=_name(given, "client", LONGEST_CLIENT),
        token=None if token is None else check_text(token, "token"),
        space=_object(given, "space"),
        settings=_object(given, "settings"),
        clients=clients,
    )


def _report(given: Mapping[str, Json]) -> ReportMessage:
    if "value" in given:
        _check_keys(given, ("op", "value", "config"))
        configs = (_object(given, "config"),) if given.get("config") is not None else None
        return ReportMessage((check_value(given["value"]),), configs)
    _check_keys(given, ("op", "values", "configs"))
    values, listed = given.get("values"), given.get("configs")
    if not isinstance(values, list):
        raise InvalidInputError("report: has neither a value nor a list of values; give one of them")
    checked = tuple(map(check_value, values))
    if listed is None:
        return ReportMessage(checked)
    if not isinstance(listed, list) or not all(one is None or isinstance(one, dict) for one in listed):
        raise InvalidInputError("configs: is not a list of configurations; give one or null for each value")
    if len(listed) != len(checked):
        raise InvalidInputError(f"configs: has {len(listed)} items for {len(checked)} values; give one for each value")
    return ReportMessage(checked, tuple(listed))


def _name(given: Mapping[str, Json], key: str, longest: int | None = None) -> str:
    name = given.get(key)
    if not isinstance(name, str) or not name:
        raise InvalidInputError(f"{key}: {shown(name)} is not a name; give a text that is not empty")
    if longest is not None and len(name) > longest:
        raise InvalidInputError(f"{key}: has {len(name)} characters; at most {longest} are allowed")
    return check_name(name, key)


def _object(given: Mapping[str, Json], key: str) -> Mapping[str, Json] | None:
    found = given.get(key)
    if found is not None and not isinstance(found, Mapping):
        raise InvalidInputError(f"{key}: {shown(found)} is not a JSON object")
    return found


def _check_keys(given: Mapping[str, Json], known: Sequence[str]) -> None:
    for key in given:
        if key not in known:
            raise InvalidInputError(f"{shown(key)} is unknown here; expected {', '.join(known)}")


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(name)


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)
