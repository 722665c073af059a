"""Lines of the protocol: what is written can be read, and garbage is refused in one line."""

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from luthier.errors import InvalidInputError
from luthier.online.service import protocol
from luthier.online.service.protocol import Best, Fetch, Hello, Leave, NotJsonError, ReportMessage, read_request

VALUES = st.none() | st.floats(-protocol.LARGEST_VALUE, protocol.LARGEST_VALUE)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=10,
)
KEYS = st.sampled_from(
    ["protocol", "token", "session", "client", "space", "settings", "clients", "value", "values", "config", "configs"]
)
OPS = st.sampled_from(["hello", "fetch", "report", "best", "leave"])


@given(st.binary(max_size=300))
def test_any_bytes_are_a_request_or_one_clear_line(line: bytes) -> None:
    try:
        read_request(line)
    except InvalidInputError as error:
        answer = protocol.error_answer(str(error))
        assert answer.count(b"\n") == 1
        assert json.loads(answer)["ok"] is False


@given(OPS | JSON, st.dictionaries(KEYS | st.text(max_size=5), JSON | st.just(1), max_size=6))
def test_any_object_is_a_request_or_one_clear_line(op: object, rest: dict[str, object]) -> None:
    line = json.dumps({"op": op, **rest}).encode()
    with suppress(InvalidInputError):
        assert isinstance(read_request(line), Hello | Fetch | ReportMessage | Best | Leave)


@given(
    st.text("abcäß/-", min_size=1, max_size=20),
    st.none() | st.text("xyz", min_size=1),
    st.none() | st.integers(1, protocol.MOST_CLIENTS),
)
def test_hello_comes_back(name: str, token: str | None, clients: int | None) -> None:
    hello = Hello(name, name, token, {"parameters": []}, {"strategy": "pro"}, clients)
    line = protocol.hello_line(hello)
    assert line.endswith(b"\n")
    assert read_request(line) == hello


@given(VALUES)
def test_reports_come_back(value: float | None) -> None:
    assert read_request(protocol.report_line(value)) == ReportMessage((value,))
    assert read_request(protocol.report_line(value, {"a": 1})) == ReportMessage((value,), ({"a": 1},))


def test_reports_for_many_clients() -> None:
    assert read_request(b'{"op":"report","values":[1,null,2.5]}') == ReportMessage((1.0, None, 2.5))
    assert read_request(b'{"op":"report","values":[1],"configs":[{"a":2}]}') == ReportMessage((1.0,), ({"a": 2},))


@pytest.mark.parametrize("line", [b"", b"GET / HTTP/1.1\r\n", b"[1]", b'"fetch"', b"\xff\xfe", b"[" * 100_000, b"{"])
def test_what_is_no_json_object_is_told_apart(line: bytes) -> None:
    with pytest.raises(NotJsonError):
        read_request(line)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b'{"op":"fetch","x":1}', "unknown here"),
        (b'{"op":"jump"}', "expected hello, fetch, report, best or leave"),
        (b"{}", "op: None is unknown"),
        (b'{"op":"report"}', "neither a value nor a list"),
        (b'{"op":"report","value":true}', "not a finite number"),
        (b'{"op":"report","value":"1"}', "not a finite number"),
        (b'{"op":"report","value":1e999}', "not a finite number"),
        (b'{"op":"report","value":1' + b"0" * 400 + b"}", "not a finite number"),
        (b'{"op":"report","value":NaN}', "not JSON"),
        (b'{"op":"report","value":1,"config":3}', "not a JSON object"),
        (b'{"op":"report","values":[1],"configs":[]}', "0 items for 1 values"),
        (b'{"op":"report","values":[1],"configs":[3]}', "not a list of configurations"),
        (b'{"op":"hello","session":"s","client":"c"}', "use version 1"),
        (b'{"op":"hello","protocol":1,"client":"c"}', "session: None is not a name"),
        (b'{"op":"hello","protocol":1,"session":"a\\u0007","client":"c"}', "not printable"),
        (b'{"op":"hello","protocol":1,"session":"a\\ud800","client":"c"}', "half of a character"),
        (b'{"op":"hello","protocol":1,"session":"s","client":"' + b"c" * 200 + b'"}', "at most 120"),
        (b'{"op":"hello","protocol":1,"session":"s","client":"c","clients":0}', "from 1 to"),
        (b'{"op":"hello","protocol":1,"session":"s","client":"c","clients":true}', "from 1 to"),
        (b'{"op":"hello","protocol":1,"session":"s","client":"c","token":5}', "token: is not valid"),
        (b'{"op":"hello","protocol":1,"session":"s","client":"c","space":[]}', "not a JSON object"),
    ],
)
def test_wrong_requests_say_what_is_wrong(line: bytes, reason: str) -> None:
    with pytest.raises(InvalidInputError, match=reason):
        read_request(line)


def test_a_report_for_the_most_clients_fits_into_a_line() -> None:
    values = [-1.2345678901234567e-300] * protocol.MOST_CLIENTS
    line = protocol.write_line({"op": "report", "values": values})
    assert len(line) <= protocol.longest_line(protocol.MOST_CLIENTS)
