import shlex
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from luthier.errors import InvalidInputError
from luthier.space import Choice, Integer, Space
from luthier.spec.template import Template
from luthier.trial import Config

SPACE = Space(Integer("n", 1, 4), Choice("mode", ["a b", "$(id)"]))
CONFIG = Config({"n": 2, "mode": "$(id)"})


def test_placeholders_are_filled_and_other_braces_left_alone() -> None:
    template = Template(("awk", "{print $1}", "--n={n}", "{{n}}", "{mode}", '{"a":{"b":1}}', "{}"), {"MODE": "x{mode}"})
    argv, environment = template.render(SPACE, CONFIG)
    assert argv == ("awk", "{print $1}", "--n=2", "{n}", "$(id)", '{"a":{"b":1}}', "{}")
    assert environment == {"MODE": "x$(id)"}


def test_a_shell_command_gets_its_values_quoted() -> None:
    template = Template(("echo {n}-{mode} | cat",), shell=True)
    argv, _ = template.render(SPACE, CONFIG)
    assert subprocess.run(argv, capture_output=True, text=True, check=True).stdout == "2-$(id)\n"


nasty = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=20)


@settings(max_examples=40, deadline=None)
@given(nasty)
def test_any_value_reaches_the_program_as_it_is(text: str) -> None:
    space = Space(Choice("v", [text]))
    for template in (Template(("printf", "%s", "{v}")), Template(("printf %s {v}",), shell=True)):
        argv, _ = template.render(space, space.default)
        assert subprocess.run(argv, capture_output=True, check=True).stdout == text.encode()
        line = template.line(space, space.default)
        assert subprocess.run(["sh", "-c", line], capture_output=True, check=True).stdout == text.encode()


def test_the_pasted_line_sets_the_environment() -> None:
    line = Template(("prog", "{n}"), {"MODE": "{mode}"}).line(SPACE, CONFIG)
    assert shlex.split(line) == ["MODE=$(id)", "prog", "2"]


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (("prog", "{n}", "{mode}", "{level}"), "placeholder {level} has no parameter"),
        (("prog", "{n}", "{mod}"), "did you mean {mode}?"),
        (("prog", "{n}"), "parameter mode is not used"),
    ],
)
def test_placeholders_and_parameters_must_match(argv: tuple[str, ...], message: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        Template(argv).check(SPACE)
    assert message in str(caught.value)


@pytest.mark.parametrize("bad", [(), ("",), ("a\0b",)])
def test_commands_that_cannot_run(bad: tuple[str, ...]) -> None:
    with pytest.raises(InvalidInputError):
        Template(bad)


def test_bad_variable_names() -> None:
    with pytest.raises(InvalidInputError, match="environment variable"):
        Template(("prog",), {"A-B": "1"})
