"""A stored experiment as the contents of an experiment file, to start another one like it."""

import re
from collections.abc import Mapping
from dataclasses import asdict

from luthier.errors import InvalidInputError
from luthier.space import Choice, Integer, Parameter
from luthier.space.units import format_quantity
from luthier.spec.experiment import Experiment, settings_json
from luthier.spec.script import JobScript
from luthier.spec.settings import Setting, all_settings
from luthier.spec.template import Template
from luthier.trial import Json, Value

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NOT_A_NAME = re.compile(r"[^A-Za-z0-9_.-]+")
_OMITTED = ("after", "objectives")  # `first` has the configurations of `after`


def as_file(experiment: Experiment, name: str) -> tuple[dict[str, Json], list[str]]:
    """The contents of a file that describes an experiment like this one, and notes on what differs.

    An experiment that tunes a Python function is an error. The command of `luthier tune` becomes a script, which gets
    the values in environment variables.
    """
    job = experiment.command
    if job is None:
        raise InvalidInputError("the experiment tunes a Python function, which no file can describe")
    settings: dict[str, Json] = {"name": name} if name else {}
    if isinstance(job, Template):
        called, component, script, notes = _described(job, experiment, name)
        settings |= {"script": script} | ({} if job.where == "local" else {"runner": job.where})
    else:
        called = job.component_name or "component"
        component = job.component.model_dump(mode="json", exclude_defaults=True)
        settings |= {"script": job.application} if job.application else {}
        settings |= {"runner": job.where} | ({} if job.allocation is None else {"allocation": _allocation(job)})
        notes = [] if job.command_is_timed else ["unlike in a file of SHAMan, the component's command is timed here"]
    settings |= _settings(experiment)
    grids: dict[str, Json] = {one.name: _grid(one) for one in experiment.space.parameters}
    return {"experiment": settings, "definitions": {called: component}, "components": {called: grids}}, notes


def _described(template: Template, experiment: Experiment, name: str) -> tuple[str, dict[str, Json], str, list[str]]:
    """The name of a component for a command, the component, the script, and notes."""
    space = experiment.space
    for parameter in space.names:
        if not _VARIABLE.fullmatch(parameter):
            raise InvalidInputError(
                f"parameter {parameter} cannot be the name of an environment variable, by which a file would pass it; "
                "start the copy with luthier tune"
            )
    parameters = {one.name: {"env_var": True, "type": _type(one), "default": _default(one)} for one in space.parameters}
    component: dict[str, Json] = {"parameters": parameters}
    if space.constraints:
        component["constraints"] = list(space.constraints)
    note = "the command is started by a shell, which takes a little time"
    called = _NOT_A_NAME.sub("-", name).strip("-.")[:100] or "command"
    return called, component, template.script(), [note]


def _settings(experiment: Experiment) -> dict[str, Json]:
    """The settings that differ from their defaults, by their names in files."""
    plain = settings_json(experiment)
    changed = [setting for setting in all_settings() if setting.field not in _OMITTED and _is_changed(setting, plain)]
    measures: list[Json] = [objective.text for objective in experiment.objectives]
    return {"measure": measures} | {("folder" if one.field == "cwd" else one.name): plain[one.field] for one in changed}


def _is_changed(setting: Setting, plain: Mapping[str, Json]) -> bool:
    usual = setting.default
    return plain[setting.field] != (list(usual) if isinstance(usual, tuple) else usual)


def _allocation(job: JobScript) -> dict[str, Json]:
    asked = {} if job.allocation is None else asdict(job.allocation)
    return {("walltime" if name == "walltime_s" else name): value for name, value in asked.items() if value is not None}


def _type(parameter: Parameter) -> str:
    if not isinstance(parameter, Choice):
        return "int" if isinstance(parameter, Integer) else "float"
    kinds = {type(value) for value in parameter.values}
    names = {bool: "bool", int: "int", float: "float"}
    return names.get(next(iter(kinds)), "str") if len(kinds) == 1 else "float" if kinds == {int, float} else "str"


def _default(parameter: Parameter) -> Value:
    if isinstance(parameter, Choice):
        return parameter.format(parameter.default) if _type(parameter) == "str" else parameter.default
    return _quantity(parameter.default, parameter.unit)


def _grid(parameter: Parameter) -> Json:
    if isinstance(parameter, Choice):
        is_text = _type(parameter) == "str"
        return [parameter.format(value) if is_text else value for value in parameter.values]
    low, high = _quantity(parameter.low, parameter.unit), _quantity(parameter.high, parameter.unit)
    grid: dict[str, Json] = {"min": low, "max": high}
    if parameter.step is not None and (parameter.step != 1 or parameter.scale == "log"):
        grid["step"] = parameter.step
    return grid | ({"step_type": "multiplicative"} if parameter.scale == "log" else {})


def _quantity(number: float, unit: str) -> Value:
    return format_quantity(number, unit) if unit else number
