import configparser
import json
import tomllib
from xml.etree import ElementTree as ET

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from luthier.errors import InvalidInputError
from luthier.spec.config_files import Format, edited
from luthier.trial import Value

INI = "; top\n[server]\nport = 80 ; the usual\nhost=a\n# port = 81\n\n[client]\nport: 1\nport : 2\n"
JSON = '{\n\t"a": {"b": [1, {"c": "x"}]},\n\t"t": true\n}\n'
YAML = "# top\na:\n  b:\n  - 1  # one\n  - {c: x}\nempty:\nblock: |\n  some\n  text\nlast: 1\n"
TOML = '# top\nname = "x"\n[server]\nport = 80 # the usual\n"odd" = 1\n[server.deep]\nport = 81\n'
XML = '<?xml version="1.0"?>\n<!-- é top -->\n<c>\n <p n="a>b"><v>1</v></p>\n <p n=\'b\'><v>2</v><e/></p>\n</c>\n'


@pytest.mark.parametrize(
    ("text", "kind", "place", "value", "before", "after"),
    [
        (INI, "ini", "server.port", 8080, "port = 80 ;", "port = 8080 ;"),
        (INI, "ini", "client.port", 3, "port : 2", "port : 3"),
        (INI, "ini", "['server'].host", "b c", "host=a", "host=b c"),
        (JSON, "json", "a.b[1].c", 'é"', '"c": "x"', '"c": "é\\""'),
        (JSON, "json", "t", False, '"t": true', '"t": false'),
        (YAML, "yaml", "a.b.0", 0, "- 1  # one", "- 0  # one"),
        (YAML, "yaml", "a.b[1].c", "y: z", "{c: x}", '{c: "y: z"}'),
        (YAML, "yaml", "empty", 1e-07, "empty:\n", "empty: 1.0e-07\n"),
        (YAML, "yaml", "block", "one", "block: |\n  some\n  text\n", 'block: "one"\n'),
        (TOML, "toml", "server.port", 8080, "port = 80 #", "port = 8080 #"),
        (TOML, "toml", "server.deep.port", 0.5, "port = 81", "port = 0.5"),
        (TOML, "toml", "server.odd", True, '"odd" = 1', '"odd" = true'),
        (TOML, "toml", "name", "\x7f", 'name = "x"', 'name = "\\u007f"'),
        ('a = "x # y" # z\n', "toml", "a", 1, '"x # y"', "1"),
        (XML, "xml", "p[1].v", "a<b", "<v>2</v>", "<v>a&lt;b</v>"),
        (XML, "xml", "p.v", 0, "<v>1</v>", "<v>0</v>"),
        (XML, "xml", "p.@n", 'q"', 'n="a>b"', 'n="q&quot;"'),
        (XML, "xml", "p[1].@n", True, "n='b'", 'n="true"'),
    ],
)
def test_one_value_changes_and_nothing_else(
    text: str, kind: Format, place: str, value: Value, before: str, after: str
) -> None:
    assert text.count(before) == 1
    assert edited(text, kind, {place: value}) == text.replace(before, after)


@pytest.mark.parametrize(
    ("text", "kind", "place", "message"),
    [
        (INI, "ini", "server.prot", "there is no 'prot' in [server]"),
        (INI, "ini", "port", "there is no 'port'; it must exist in the file already"),
        (JSON, "json", "a.x", "there is no 'x'"),
        (JSON, "json", "a", "is not a single value"),
        ("{", "json", "a", "this is not JSON"),
        (YAML, "yaml", "a.b.7", "there is no '7'"),
        ("a: [", "yaml", "a", "this is not YAML"),
        (TOML, "toml", "server.no", "there is no 'no' in [server]"),
        ("a = [", "toml", "a", "this is not TOML"),
        ("a = [\n1]\n", "toml", "a", "this is not TOML, or the value takes several lines"),
        (XML, "xml", "p", "is not a single value"),
        (XML, "xml", "p[1].e", "is not a single value"),
        (XML, "xml", "p[2].v", "there is no element"),
        (XML, "xml", "p.@x", "there is no attribute 'x'"),
        ("<c>", "xml", "a", "this is not XML"),
        (JSON, "json", "a..b", "cannot read"),
    ],
)
def test_a_place_that_is_not_there_is_one_line(text: str, kind: Format, place: str, message: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        edited(text, kind, {place: 1})
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("text", "kind", "place", "value", "expected"),
    [
        ("net:port = 1\nnet = 2\n", "ini", "net:port", 5, "net:port = 5\nnet = 2\n"),
        ("net:port = 1\nnet = 2\n", "ini", "net", 5, "net:port = 1\nnet = 5\n"),
        ("a = 1\x85b = 2\n", "ini", "a", 5, "a = 5\n"),
        ("a = 1   \r\nb =\r\n", "ini", "b", 5, "a = 1   \r\nb =5\r\n"),
        ('<c><p x=" n=\'1\'" n="2"/></c>', "xml", "p.@n", 3, '<c><p x=" n=\'1\'" n="3"/></c>'),
        ('<c><p n="2"/></c>', "xml", "p.@n", "a\r\n\tb", '<c><p n="a&#13;&#10;&#9;b"/></c>'),
        ("<c><p>1</p></c>", "xml", "p", "a\r\n\tb", "<c><p>a&#13;\n\tb</p></c>"),
    ],
)
def test_values_in_odd_places(text: str, kind: Format, place: str, value: Value, expected: str) -> None:
    assert edited(text, kind, {place: value}) == expected


@pytest.mark.parametrize("sign", ["\x01", "\x1b", "\x0b", "\ufffe", "\uffff", "\x08", "\0", "\ud800"])
def test_xml_holds_no_control_characters(sign: str) -> None:
    for place in ("p.v", "p.@n"):
        with pytest.raises(InvalidInputError, match=r"which XML does not allow|NUL|half of a character") as caught:
            edited(XML, "xml", {place: f"a{sign}b"})
        assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        ("[" * 99_999, "json", "the file: is nested more than 64 levels deep"),
        ("a = " + "[" * 99_999, "toml", "the file: is nested more than 64 levels deep"),
        ('a = """"\n' + "b = " + "[" * 99_999, "toml", "nested|not TOML"),
        ("a" + ".a" * 9999 + " = 1", "toml", "the file: a key has more than 64 parts"),
        ("a" + '."="' * 9999 + " = 1", "toml", "the file: a key has more than 64 parts"),
        ("a = " + "1" * 9999, "toml", "this is not TOML, or the value takes several lines: Exceeds the limit"),
        ("a: " + "[" * 99_999, "yaml", "this is not YAML: .*it is nested more than 64 levels deep"),
        ("<a>" * 99_999, "xml", "nested more than 64 levels deep"),
        ('<!DOCTYPE a [<!ENTITY b "x">]><a>&b;</a>', "xml", "declares entities"),
    ],
)
def test_deep_files_are_refused_in_one_line(text: str, kind: Format, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message) as caught:
        edited(text, kind, {"a": 1})
    assert len(str(caught.value).splitlines()) == 1


def test_a_line_of_an_ini_file_holds_no_line_break() -> None:
    with pytest.raises(InvalidInputError, match="does not fit on a line"):
        edited(INI, "ini", {"server.port": "1\n[other]"})


values = st.one_of(
    st.booleans(),
    st.integers(-(2**60), 2**60),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20),
)


@settings(max_examples=150, deadline=None)
@given(values)
def test_every_value_is_read_back_as_it_was(value: Value) -> None:
    changed = json.loads(edited(JSON, "json", {"a.b[0]": value}))["a"]["b"][0]
    assert changed == value
    assert type(changed) is type(value)
    changed = yaml.safe_load(edited(YAML, "yaml", {"a.b[0]": value}))["a"]["b"][0]
    assert changed == value
    assert type(changed) is type(value)
    changed = tomllib.loads(edited(TOML, "toml", {"server.port": value}))["server"]["port"]
    assert changed == value


@settings(max_examples=80, deadline=None)
@given(st.text(st.characters(min_codepoint=32, max_codepoint=0x2FF, exclude_characters="\x7f"), max_size=20))
def test_every_text_is_read_back_from_xml_and_ini(text: str) -> None:
    root = ET.fromstring(edited(XML, "xml", {"p.v": text, "p.@n": text}))
    first = root.find("p")
    assert first is not None
    assert (first.findtext("v"), first.get("n")) == (text, text)
    parser = configparser.RawConfigParser(strict=False)
    parser.read_string(edited("[a]\nb = 1\n", "ini", {"a.b": text}))
    assert parser["a"]["b"] == text.strip()
