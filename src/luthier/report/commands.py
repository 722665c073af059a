"""The command line that starts an experiment like a stored one."""

import re
import shlex
from collections.abc import Iterator
from decimal import Decimal

from luthier.errors import LuthierError
from luthier.space import Choice, Parameter
from luthier.space.units import format_quantity
from luthier.spec import Experiment, Objective, Template, parse_parameter, parse_value
from luthier.trial import Value

_GOALS = {"minimize": "", "maximize": "max:"}
_OPTIONS = {
    "budget": "--budget",
    "workers": "--workers",
    "resample": "--resample",
    "estimator": "--estimator",
    "timeout_s": "--timeout",
    "time_limit_s": "--time-limit",
    "prune": "--prune",
    "sentinels": "--sentinels",
    "verify_pairs": "--verify",
    "optimizer": "--optimizer",
    "seed": "--seed",
}


def tune_command(experiment: Experiment, name: str) -> str | None:
    """`luthier tune ...` with everything that was set; None where no command line says quite the same."""
    template = experiment.command
    parameters = [parameter_text(parameter) for parameter in experiment.space.parameters]
    unsaid = any(parse_value(_plain(value)) != value for value in experiment.options.values())
    if not isinstance(template, Template) or None in parameters or unsaid or experiment.first:
        return None
    words = ["luthier", "tune"]
    for text in filter(None, parameters):
        words += ["-p", text]
    for option, value in _options(experiment, template):
        words += [option, value]
    words += ["--shell"] * template.shell + ["--name", name, "--", *template.argv]
    line = shlex.join(words)
    return line if experiment.cwd is None else f"cd {shlex.quote(experiment.cwd)} && {line}"


def parameter_text(parameter: Parameter) -> str | None:
    """`NAME=SPEC@DEFAULT` for one parameter; None if that notation cannot say it."""
    if isinstance(parameter, Choice):
        spec = ",".join(_escaped(parameter.format(value)) for value in parameter.values)
    else:
        low, high = (format_quantity(end, parameter.unit) for end in (parameter.low, parameter.high))
        step = "" if parameter.step in (None, 1) else f":{'x' * (parameter.scale == 'log')}{parameter.step}"
        spec = f"{low}..{high}{step}"
    text = f"{parameter.name}={spec}@{_escaped(parameter.format(parameter.default))}"
    try:
        return text if parse_parameter(text) == parameter else None
    except LuthierError:
        return None


def _options(experiment: Experiment, template: Template) -> Iterator[tuple[str, str]]:
    """The options that say something else than what is chosen without them."""
    usual = Experiment(space=experiment.space)
    yield from (("-c", constraint) for constraint in experiment.space.constraints)
    yield from (("-e", f"{name}={text}") for name, text in template.environment.items())
    if experiment.objectives != (Objective("wall"),):
        yield from (("-m", _GOALS[objective.goal] + objective.measure) for objective in experiment.objectives)
    for field, option in _OPTIONS.items():
        value = getattr(experiment, field)
        if value != getattr(usual, field):
            yield option, f"{Decimal(repr(value)):f}s" if isinstance(value, float) else str(value)
    yield from (("--stop", criterion) for criterion in experiment.stop)
    yield from (("--set", f"{name}={_plain(value)}") for name, value in experiment.options.items())


def _escaped(text: str) -> str:
    return re.sub(r"([,@])", r"\\\1", text)


def _plain(value: Value) -> str:
    return ("true" if value else "false") if isinstance(value, bool) else str(value)
