"""From the words of the command line to the parts of an experiment."""

from collections.abc import Sequence

from luthier.analysis.text import config_text
from luthier.errors import InvalidInputError
from luthier.space import Space
from luthier.spec import GOALS, Goal, Objective, Template, names_default, parse_duration, parse_parameter, parse_value
from luthier.trial import Value


def space_from(parameters: Sequence[str], constraints: Sequence[str]) -> Space:
    """The space that `-p` and `--constraint` describe."""
    if not parameters:
        raise InvalidInputError("nothing to tune; name at least one parameter, for example: -p threads=1..16")
    return Space(*(parse_parameter(text) for text in parameters), constraints=list(constraints))


def default_note(parameters: Sequence[str], space: Space) -> str:
    """What everything is compared with, and which of it nobody chose."""
    taken = [text.partition("=")[0] for text in parameters if not names_default(text)]
    note = f"default: {config_text(space.default, space)}"
    return note + (f" (the first value of {', '.join(taken)}; choose others with @)" if taken else "")


def template_from(command: Sequence[str], environment: Sequence[str], *, shell: bool) -> Template:
    """The command after `--` with the variables of `--env`."""
    pairs = {}
    for text in environment:
        name, equals, value = text.partition("=")
        if not equals:
            raise InvalidInputError(f"--env {text}: write NAME=TEXT, for example OMP_NUM_THREADS={{threads}}")
        pairs[name] = value
    return Template(tuple(command), pairs, shell=shell)


def objectives_from(measures: Sequence[str], *, maximize: bool) -> tuple[Objective, ...]:
    """What each `-m` names, as in `wall` or `max:json:iops`, and the goal of each."""
    goal: Goal = "maximize" if maximize else "minimize"
    for text in measures if maximize else ():
        word, _, rest = text.partition(":")
        if word in GOALS or len(measures) > 1:
            raise InvalidInputError(
                f"--maximize is for one measure without a goal of its own; write -m max:{rest or text}"
            )
    return tuple(Objective.parse(text, goal) for text in measures or ["wall"])


def options_from(texts: Sequence[str]) -> dict[str, Value]:
    """The options of the optimizer that `--set` names."""
    options: dict[str, Value] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.isidentifier():
            raise InvalidInputError(f"--set {text}: write NAME=VALUE, for example kernel=rbf")
        options[name] = parse_value(value)
    return options


def prune_from(text: str | None) -> str | float | None:
    """What `--prune` names: a rule, or a time in seconds."""
    return parse_duration(text) if text is not None and text[:1].isdigit() else text
