"""The command line that starts an experiment like a stored one."""

import re
import shlex
from collections.abc import Mapping

from luthier.errors import LuthierError
from luthier.space import Choice, Parameter
from luthier.space.units import format_quantity
from luthier.spec.experiment import Experiment, checked_first
from luthier.spec.notation import parse_parameter
from luthier.spec.settings import Setting, all_settings
from luthier.spec.template import Template


def tune_command(experiment: Experiment, name: str) -> str | None:
    """`luthier tune ...` with all settings; None if the command line cannot express them exactly."""
    template = experiment.command
    parameters = [parameter_text(parameter) for parameter in experiment.space.parameters]
    settings = [(setting, setting.kind.words(getattr(experiment, setting.field))) for setting in all_settings()]
    exact = all(_reads(experiment, setting, words) for setting, words in settings)
    if not isinstance(template, Template) or None in parameters or not exact:
        return None
    words = ["luthier", "tune"]
    for text in filter(None, parameters):
        words += ["-p", text]
    words += [word for constraint in experiment.space.constraints for word in ("-c", constraint)]
    words += [word for name, text in template.environment.items() for word in ("-e", f"{name}={text}")]
    for setting, texts in settings:
        is_known = setting.field != "cwd" and (setting.field != "after" or experiment.earlier is not None)
        if getattr(experiment, setting.field) != setting.default and is_known:
            words += [word for text in texts for word in (setting.flags[-1], text)]
    words += ["--runner", template.where] if template.where != "local" else []
    words += ["--shell"] * template.shell + ["--name", name, "--", *template.argv]
    line = shlex.join(words)
    return line if experiment.cwd is None else f"cd {shlex.quote(experiment.cwd)} && {line}"


def parameter_text(parameter: Parameter) -> str | None:
    """`NAME=SPEC@DEFAULT` for one parameter; None if the notation cannot express it."""
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


def _reads(experiment: Experiment, setting: Setting, words: list[str]) -> bool:
    """Whether the texts on a command line mean the same setting."""
    value = getattr(experiment, setting.field)
    if value == setting.default or setting.field == "after" or not isinstance(value, tuple | Mapping):
        return True  # `first` contains the configurations from `after`
    try:
        read = setting.kind.read(words)
        return (checked_first(experiment.space, read) if setting.field == "first" else read) == value
    except LuthierError:
        return False


def _escaped(text: str) -> str:
    return re.sub(r"([,@])", r"\\\1", text)
