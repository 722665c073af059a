from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from luthier.errors import InvalidInputError, LuthierError
from luthier.spec.yaml_lines import parse_document, parse_plain, read_document
from luthier.trial import Json

TEXT = """\
experiment:
  budget: 20
components:
  dd:
    bs: [1, 2,
         4]
    count: {min: 1, max: 3}
    none:
"""


def test_values_come_with_their_lines() -> None:
    document = parse_document(TEXT, "a.yaml")
    assert document.values == {
        "experiment": {"budget": 20},
        "components": {"dd": {"bs": [1, 2, 4], "count": {"min": 1, "max": 3}}},
    }
    assert str(document.error(("components", "dd", "bs", 2), "is odd")) == "a.yaml:6: components.dd.bs.2: is odd"
    assert str(document.error(("components", "dd", "count", "max"), "x")) == "a.yaml:7: components.dd.count.max: x"
    assert str(document.error((), "x")) == "a.yaml:1: x"


def test_a_missing_key_is_reported_where_it_would_stand_and_unknown_steps_are_passed_over() -> None:
    document = parse_document(TEXT, "a.yaml")
    assert str(document.error(("experiment", "seed"), "is missing")) == "a.yaml:1: experiment.seed: is missing"
    where = ("components", "dd", "function-wrap", "bs", 0)
    assert str(document.error(where, "x")) == "a.yaml:5: components.dd.bs.0: x"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\nb: 2\na: 3\n", "t.yaml:3: a is already on line 1; remove one of them"),
        ("a: {x: 1, x: 2}", "t.yaml:1: x is already on line 1"),
        ("a: [1\nb: 2\n", "t.yaml:2: this is not YAML"),
        ("a: !!python/object/apply:os.system [ls]\n", "t.yaml:1: this is not YAML: could not determine a constructor"),
        ("a: 2020-01-01\n", "t.yaml:1: a: 2020-01-01 is a date; put it in quotes"),
        ("a: {1: 2}\n", "the name 1 is not a text; put it in quotes"),
        ("? [a]\n: 1\n", "t.yaml:1: a key is not a single name"),
        ("a: &a [*a]\n", "t.yaml:1: an alias makes this file endless"),
        ("- 1\n", "t.yaml: contains no settings"),
        ("", "t.yaml: contains no settings"),
        ("a: \x01\n", "t.yaml: this is not YAML"),
        ("a: " + "[" * 5000, "t.yaml:1: this is not YAML: it is nested more than 64 levels deep"),
        ("a: " + "[" * 64 + "]" * 64, "nested more than 64 levels deep"),
        ("a: " + "1:" * 5000 + "1\n", "t.yaml:1: this is not YAML: a number has 10001 characters; put it in quotes"),
        ("a: " + "1:" * 5000 + "1.5\n", "t.yaml:1: this is not YAML: a number has 10003 characters"),
        ("a: " + "1" * 5000 + "\n", "t.yaml:1: this is not YAML: a number has 5000 characters"),
        ("a: !!float 1e9999999999999999999x\n", "t.yaml: this is not YAML"),
        ('a: "\\ud800"\n', "t.yaml:1: a: it: contains U+D800, half of a character; write the whole character"),
        ('a: {"\\udcff": 1}\n', "t.yaml:1: a: it: contains U+DCFF"),
        ('a: "\\0"\n', "t.yaml:1: a: it: contains a NUL character"),
        ("a: 9999-99-99\n", "t.yaml: this is not YAML"),
        ("a: 1\n---\nb: 2\n", "t.yaml:2: this is not YAML"),
        ("a: !!bool x\n", "t.yaml: this is not YAML: a value does not match its tag"),
        ("a: !!timestamp x\n", "t.yaml: this is not YAML: a value does not match its tag"),
        (f"a: 0x{'f' * 99}\n", "t.yaml:1: a: is a number of 396 bits; at most 256 are allowed"),
    ],
)
def test_what_is_wrong_is_one_line(text: str, message: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        parse_document(text, "t.yaml")
    assert message in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


def test_aliases_that_multiply_are_refused() -> None:
    levels = [f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 10)}]" for n in range(1, 9)]
    with pytest.raises(InvalidInputError, match="endless"):
        parse_document("l0: &l0 [1]\n" + "\n".join(levels), "t.yaml")


def test_merges_that_multiply_are_refused() -> None:
    levels = [f"l{n}: &l{n} {{<<: [{', '.join([f'*l{n - 1}'] * 10)}]}}" for n in range(1, 9)]
    with pytest.raises(InvalidInputError, match="endless"):
        parse_document("l0: &l0 {a: 1}\n" + "\n".join(levels), "t.yaml")


def test_aliases_that_nest_deeply_are_refused() -> None:
    levels = [f"l{n}: &l{n} [*l{n - 1}]" for n in range(1, 2000)]
    with pytest.raises(InvalidInputError, match="endless"):
        parse_document("l0: &l0 [1]\n" + "\n".join(levels), "t.yaml")


def test_aliases_and_merges_work() -> None:
    document = parse_document("a: &a {x: 1}\nb: *a\nc:\n  <<: *a\n  y: 2\n", "t.yaml")
    assert document.values == {"a": {"x": 1}, "b": {"x": 1}, "c": {"x": 1, "y": 2}}


def test_a_value_is_replaced_and_the_first_document_stays() -> None:
    first = parse_document(TEXT, "a.yaml")
    second = first.with_value(("components", "dd", "bs"), [8], "--set x").with_value(("new", "one"), 1, "--set y")
    assert second.values["components"] == {"dd": {"bs": [8], "count": {"min": 1, "max": 3}}}
    assert second.values["new"] == {"one": 1}
    assert first.values["components"] == {"dd": {"bs": [1, 2, 4], "count": {"min": 1, "max": 3}}}
    assert "new" not in first.values
    assert str(second.error(("components", "dd", "bs"), "no")) == "--set x: components.dd.bs: no"
    with pytest.raises(InvalidInputError, match=r"--set z: experiment\.budget is a single value"):
        first.with_value(("experiment", "budget", "deep"), 1, "--set z")


@pytest.mark.parametrize(
    ("text", "value"),
    [("3", 3), ("0.5", 0.5), ("true", True), ("a b", "a b"), ("[1, x]", [1, "x"]), ("'3'", "3"), ("#x", None)],
)
def test_a_short_text_is_a_value(text: str, value: Json) -> None:
    if value is None:
        with pytest.raises(InvalidInputError):
            parse_plain(text)
    else:
        assert parse_plain(text) == value


def test_a_short_text_holds_one_value() -> None:
    with pytest.raises(InvalidInputError, match="more than one value"):
        parse_plain("3\nother: 4")


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(LuthierError, match="no such file"):
        read_document(tmp_path / "none.yaml")
    (tmp_path / "bad.yaml").write_bytes(b"a: \xff\xfe")
    with pytest.raises(LuthierError, match="not UTF-8"):
        read_document(tmp_path / "bad.yaml")
    with pytest.raises(LuthierError, match="cannot be read"):
        read_document(tmp_path)


@settings(max_examples=150, deadline=None)
@given(st.text(st.sampled_from("ab:-[]{}&*#'\"!<? \n\t|>%@,0~\x85"), max_size=40))
def test_any_text_is_settings_or_one_line(text: str) -> None:
    with suppress(InvalidInputError):  # anything else is a defect
        assert parse_document(text, "t.yaml").values
