"""Values reach the programs of a shell command exactly, wherever their placeholders stand."""

import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from luthier.errors import InvalidInputError
from luthier.space import Choice, Integer, Space
from luthier.spec.template import Template
from luthier.trial import Config

NASTY = "$(touch made) `touch made` \"two\" 'one' \\ $HOME; * #"

QUOTABLE = [
    "printf %s {v}",
    'printf %s "{v}"',
    "printf %s '{v}'",
    'printf %s "$(printf %s {v})"',
    'printf %s "$(printf %s "{v}")"',
    "printf %s \"$(printf %s '{v}')\"",
    "(printf %s {v})",
    "if true; then printf %s {v}; fi # it's a comment",
    "# it's a comment\nprintf %s {v}",
    'printf %s "a # b" >/dev/null; printf %s {v}',
    "printf %s \\' >/dev/null; printf %s {v}",
    'printf %s "it\'s" >/dev/null; printf %s {v}',
    "printf %s 'a\"b' >/dev/null; printf %s {v}",
    "case x in x) printf %s {v};; esac",
    'x=1; printf %s "${x:+}{v}"',
    "echo $((1 + 1)) >/dev/null; printf %s {v}",
]

UNQUOTABLE = [
    "printf %s `printf %s {v}`",
    "cat <<EOF\n{v}\nEOF",
    "printf %s ${none:-{v}}",
    "echo $(( {v} ))",
    "printf %s \\{v}",
    'printf %s "$(case x in x) printf %s {v};; esac)"',
]


def run(template: Template, space: Space, value: str, folder: Path) -> str:
    template.check(space)
    argv, _ = template.render(space, Config({"v": value}))
    done = subprocess.run(argv, cwd=folder, capture_output=True, check=True)
    assert not (folder / "made").exists()
    return done.stdout.decode("utf-8", "surrogateescape")


@pytest.mark.parametrize("text", QUOTABLE)
def test_a_value_arrives_as_it_is(text: str, tmp_path: Path) -> None:
    assert run(Template((text,), shell=True), Space(Choice("v", [NASTY, "b"])), NASTY, tmp_path) == NASTY


@settings(max_examples=60, deadline=None)
@given(
    value=st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=20),
    text=st.sampled_from(QUOTABLE),
)
def test_any_value_arrives_as_it_is(value: str, text: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    arrived = run(
        Template((text,), shell=True), Space(Choice("v", [value, f"{value}-"])), value, tmp_path_factory.getbasetemp()
    )
    assert arrived == (value.rstrip("\n") if "$(printf" in text else value)


@pytest.mark.parametrize("text", UNQUOTABLE)
def test_what_cannot_be_quoted_is_refused(text: str) -> None:
    template = Template((text,), shell=True)
    with pytest.raises(InvalidInputError, match=r"^--shell: \{v\} cannot be .* pass it with -e VARIABLE=\{v\}$"):
        template.check(Space(Choice("v", ["b", NASTY])))
    template.check(Space(Choice("v", ["a", "b-1"])))
    template.check(Space(Integer("v", 1, 9)))


def test_the_value_of_a_variable_can_be_anything(tmp_path: Path) -> None:
    template = Template(('printf %s "`printf %s "$V"`"',), {"V": "{v}"}, shell=True)
    space = Space(Choice("v", [NASTY, "b"]))
    template.check(space)
    argv, environment = template.render(space, Config({"v": NASTY}))
    done = subprocess.run(
        argv, env={**environment, "PATH": "/bin:/usr/bin"}, cwd=tmp_path, capture_output=True, check=True
    )
    assert done.stdout.decode() == NASTY
