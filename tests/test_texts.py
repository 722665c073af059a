"""Texts that people and programs give."""

import ast
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import luthier
from luthier.errors import InvalidInputError
from luthier.space import Choice
from luthier.texts import (
    check_length,
    check_name,
    check_nesting,
    check_text,
    closest,
    shown,
    visible,
    visible_json,
    visible_lines,
)

ANY = st.text(st.characters())  # surrogates too


@given(ANY)
def test_what_is_visible_can_be_printed_anywhere(text: str) -> None:
    assert visible(text).isprintable()
    assert all(line.replace("\t", "").isprintable() for line in visible_lines(text).split("\n"))
    for written in (visible(text), visible_lines(text)):
        written.encode("utf-8")


@given(ANY)
def test_plain_texts_stay_as_they_are(text: str) -> None:
    assert (visible(text) == text) is text.isprintable()


@given(st.recursive(ANY, lambda inner: st.lists(inner) | st.dictionaries(ANY, inner), max_leaves=5))
def test_json_stays_what_it_is(value: object) -> None:
    for indent in (None, 1):
        written = visible_json(json.dumps(value, indent=indent, ensure_ascii=False))
        assert written.replace("\n", "").isprintable()
        # A pair of halves that stand beside each other is one character to every reader of JSON.
        assert json.loads(written) == json.loads(json.dumps(value))


@pytest.mark.parametrize("bad", ["\ud800", "a\udcff", "\0"])
def test_texts_that_no_file_or_program_takes(bad: str) -> None:
    for check in (check_text, check_name):
        with pytest.raises(InvalidInputError, match=r"^name: contains") as caught:
            check(bad, "name")
        assert str(caught.value).isprintable()


@pytest.mark.parametrize("bad", ["\x1b[31m", "a\nb", "a\tb", "\x9b", "\u202e", "\u2028", "\u200b", "\x7f", "x" * 201])
def test_names_are_one_printable_line(bad: str) -> None:
    with pytest.raises(InvalidInputError, match=r"^name: ") as caught:
        check_name(bad, "name")
    assert str(caught.value).isprintable()
    assert check_text(bad, "text") == bad


@pytest.mark.parametrize("name", ["", "first try", "größe 3 µs", "日本", "😀", "[bold]"])
def test_names_of_all_languages(name: str) -> None:
    assert check_name(name, "name") == name


def test_any_value_can_be_told_in_a_message() -> None:
    for value in ("x" * 10**6, 10**5000, -(10**5000), [10**5000], ["\x1b"] * 10**5, None, "\x1b"):
        assert shown(value).isprintable()
        assert len(shown(value)) < 100


def test_long_texts_are_refused_or_not_compared() -> None:
    with pytest.raises(InvalidInputError, match=r"^stop: 'aaa.*'\.\.\. has 2001 characters; at most 2000 are allowed$"):
        check_length("a" * 2001, "stop")
    assert closest("threds", ["depth", "threads"]) == "threads"
    assert closest("threads" * 1000, ["threads" * 1000, "threads"]) is None


def test_nesting() -> None:
    check_nesting("[" * 64 + '"' + "[" * 999 + '\\"[' + '"' + "]" * 64 + "[]" * 999, "it")
    with pytest.raises(InvalidInputError, match=r"^it: is nested more than 64 levels deep"):
        check_nesting('{"a":' * 65, "it")


def test_values_are_what_programs_can_be_given() -> None:
    assert Choice("x", ["a\udcff"]).default == "a\udcff"  # a byte of a command line that is not UTF-8
    with pytest.raises(luthier.LuthierError, match=r"x: '\\ud800' contains half of a character"):
        Choice("x", ["\ud800"])


def test_only_one_module_of_the_command_line_prints() -> None:
    root = Path(luthier.__file__).parent
    # The server's commands print names that were checked, `luthier submit` lines that must be printable.
    own = ("server/commands.py", "cli/terminal.py", "submission/ask.py")
    for path in root.rglob("*.py"):
        if str(path.relative_to(root)) not in own:
            calls = [node for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.Call)]
            names = {call.func.id for call in calls if isinstance(call.func, ast.Name)}
            assert "print" not in names, path


def test_only_one_module_compares_names() -> None:
    root = Path(luthier.__file__).parent
    own = ("texts.py", "launch/function.py")  # there the names of a Python program's own arguments
    users = [path for path in root.rglob("*.py") if "get_close_matches" in path.read_text("utf-8")]
    assert {str(path.relative_to(root)) for path in users} <= set(own)
