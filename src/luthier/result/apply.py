"""The recommended configuration as a command line and as shell variables."""

import re
import shlex
from dataclasses import dataclass

from luthier.errors import LuthierError
from luthier.result.result import Result
from luthier.result.text import config_text
from luthier.trial import Config


@dataclass(frozen=True, slots=True)
class Applied:
    """One configuration as a command line and as shell variables."""

    config: Config
    line: str
    variables: str


def applied(result: Result, *, best: bool) -> Applied:
    """The recommended configuration, or the best one found if that is asked for."""
    config = result.best.config if best else result.recommended
    if config is None:
        raise LuthierError(f"nothing to apply: {result.verdict}")
    space, template = result.experiment.space, result.experiment.command
    environment = {} if template is None else template.render(space, config)[1]
    values = {_variable(p.name): p.format(config[p.name]) for p in space.parameters}
    lines = [f"export {name}={shlex.quote(text)}" for name, text in (environment or values).items()]
    return Applied(
        config, config_text(config, space) if template is None else template.line(space, config), "\n".join(lines)
    )


def _variable(name: str) -> str:
    """The name with every character replaced that a shell does not accept."""
    return re.sub(r"\W", "_", name)
