"""Turns the arguments of the command line into the parts of an experiment."""

from collections.abc import Sequence
from pathlib import Path

from luthier.errors import InvalidInputError
from luthier.result.text import config_text
from luthier.runners.registry import AUTO, check_runner, runner_kind
from luthier.space import Space
from luthier.spec.notation import names_default, parse_parameter
from luthier.spec.objectives import GOALS
from luthier.spec.template import Template


def space_from(parameters: Sequence[str], constraints: Sequence[str]) -> Space:
    """The space that `-p` and `--constraint` describe."""
    if not parameters:
        raise InvalidInputError("nothing to tune; give at least one parameter, for example: -p threads=1..16")
    return Space(*(parse_parameter(text) for text in parameters), constraints=list(constraints))


def default_note(parameters: Sequence[str], space: Space) -> str:
    """The default configuration, and which of its values were not chosen by the user."""
    taken = [text.partition("=")[0] for text in parameters if not names_default(text)]
    note = f"default: {config_text(space.default, space)}"
    return note + (f" (the first value of {', '.join(taken)}; choose another one with @)" if taken else "")


def template_from(command: Sequence[str], environment: Sequence[str], *, shell: bool) -> Template:
    """The command after `--` with the variables of `--env`."""
    pairs = {}
    for text in environment:
        name, equals, value = text.partition("=")
        if not equals:
            raise InvalidInputError(f"--env {text}: write NAME=TEXT, for example OMP_NUM_THREADS={{threads}}")
        pairs[name] = value
    return Template(tuple(command), pairs, shell=shell)


def working_folder(given: str | None) -> str:
    """The folder of `--folder`; by default the current one."""
    path = Path.cwd() if given is None else Path.cwd() / given
    if not path.is_dir():
        raise InvalidInputError(f"--folder {given}: does not exist, or is not a folder")
    return str(path)


def runner_from(name: str | None) -> str:
    """The runner that `--runner` names, by default this machine."""
    where = "local" if name in (None, AUTO) else str(name)
    try:
        check_runner(where)
    except InvalidInputError as error:
        raise InvalidInputError(f"--runner: {error}") from None
    if runner_kind(where).program:
        raise InvalidInputError(
            f"--runner {where}: it needs a batch script; write an experiment file, and use luthier run"
        )
    return where


def maximized(measures: Sequence[str]) -> list[str]:
    """The measure that `-m` gives, with the goal that `--maximize` sets."""
    prefix, _, rest = measures[0].partition(":")
    if prefix in GOALS or len(measures) > 1:
        raise InvalidInputError(
            f"--maximize is for one measure without a goal of its own; write -m max:{rest or measures[0]}"
        )
    return [f"max:{measures[0]}"]
