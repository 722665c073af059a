"""The help of every command."""

import re
from collections.abc import Iterator

import pytest
import typer.main

from luthier.__main__ import app_with_wings
from luthier.spec.signatures import COMMON, WithHeadings

MOST = 12
"""Options below one heading."""
OPTION = re.compile(r"  -\S")


def _below(path: str, command: object) -> Iterator[tuple[str, object]]:
    yield path, command
    for name, each in getattr(command, "commands", {}).items():
        yield from _below(f"{path} {name}".strip(), each)


ALL = dict(_below("", typer.main.get_command(app_with_wings())))


def _help(path: str) -> str:
    context = ALL[path].make_context(path, [], resilient_parsing=True, terminal_width=80)  # type: ignore[attr-defined]
    return str(ALL[path].get_help(context))  # type: ignore[attr-defined]  # commands of typer's own kind of click


def _sections(text: str) -> dict[str, list[str]]:
    """The lines of options below each heading."""
    found: dict[str, list[str]] = {}
    for line in text.splitlines():
        if line.endswith(":") and not line.startswith(" "):
            found[line[:-1]] = []
        elif found and OPTION.match(line):
            found[list(found)[-1]].append(line.split()[0].strip(","))
    return found


@pytest.mark.parametrize("path", ALL)
def test_help_fits_80_columns_with_few_options_below_a_heading(path: str) -> None:
    text = _help(path)
    assert max(map(len, text.splitlines())) <= 80
    assert {heading: len(options) for heading, options in _sections(text).items() if len(options) > MOST} == {}


@pytest.mark.parametrize("path", [path for path, command in ALL.items() if isinstance(command, WithHeadings)])
def test_long_help_begins_with_the_most_used_options_and_ends_with_the_store_and_the_output(path: str) -> None:
    sections = _sections(_help(path))
    headings = [heading for heading in sections if heading != "Arguments"]
    assert headings[0] == COMMON
    assert sections[headings[-1]][-1] == "--help"
    assert {"--json", "--store", "--quiet"}.isdisjoint(
        option for heading in headings[:-1] for option in sections[heading]
    )


def test_every_long_help_has_headings() -> None:
    long = {
        path for path, each in ALL.items() if len(getattr(each, "params", ())) > MOST and not hasattr(each, "commands")
    }
    assert long
    assert {path for path in long if not isinstance(ALL[path], WithHeadings)} == set()


@pytest.mark.parametrize("path", ALL)
def test_every_option_has_help(path: str) -> None:
    shown = [each for each in getattr(ALL[path], "params", ()) if not getattr(each, "hidden", False)]
    assert [each.name for each in shown if not getattr(each, "help", None)] == []
