"""Experiment files: which component is tuned over which values, for which application, and how."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from pydantic import BeforeValidator, Discriminator, Field, StrictBool, StrictInt, Tag, WithJsonSchema, create_model

from luthier.errors import InvalidInputError, LuthierError, SpaceError
from luthier.runners.psij import Allocation
from luthier.runners.registry import AUTO, automatic, check_runner, runner_kind
from luthier.space import Space
from luthier.spec.component import (
    Component,
    Grid,
    Name,
    Scalar,
    Section,
    Text,
    checked,
    read_components,
    text_of,
    validated,
)
from luthier.spec.experiment import Experiment
from luthier.spec.grids import parameter_of
from luthier.spec.script import JobScript, Where
from luthier.spec.setting_kinds import Kind, Seconds
from luthier.spec.settings import Setting, all_settings
from luthier.spec.shaman import Translation, is_of_shaman, measure_of, translated, with_components
from luthier.spec.yaml_lines import Document, Place
from luthier.texts import shown

_RUNNER = r"^[A-Za-z0-9_.-]+(:[A-Za-z0-9_.:/?=&\[\]-]+)?$"


def _read(kind: Kind) -> Callable[[object], object]:
    """How pydantic reads a setting of this kind."""

    def read(given: object) -> object:
        try:
            return kind.read(given)
        except InvalidInputError as error:
            raise ValueError(str(error)) from None

    return read


def _runner(given: object) -> object:
    if not isinstance(given, str) or not re.fullmatch(_RUNNER, given):
        raise ValueError(f"{shown(given)} is not the name of a runner, such as auto, local, slurm, dask or psij:pbs")
    try:
        if given != AUTO:
            check_runner(given)
    except InvalidInputError as error:
        raise ValueError(str(error)) from None
    return given


def _grid(given: object) -> object:
    return {"values": given} if isinstance(given, list) else given


def _inline_or_file(given: object) -> str:
    return "inline" if isinstance(given, dict) else "file"


Definitions = Annotated[
    Annotated[dict[str, Component], Tag("inline")] | Annotated[Text, Tag("file")], Discriminator(_inline_or_file)
]
Duration = Annotated[float | None, BeforeValidator(_read(Seconds())), WithJsonSchema(dict(Seconds.schema))]
Runner = Annotated[str, BeforeValidator(_runner, json_schema_input_type=Annotated[str, Field(pattern=_RUNNER)])]
Values = Annotated[Grid, BeforeValidator(_grid, json_schema_input_type=Grid | list[Scalar])]


class AllocationSettings(Section):
    """The resources that every job requests from the batch system."""

    queue: Text = ""
    """The queue; by default that of the batch system."""
    account: Text = ""
    """The account or project to charge."""
    nodes: StrictInt = 1
    """Number of nodes."""
    processes_per_node: StrictInt = 1
    """Number of processes on each node."""
    walltime: Duration = None
    """Time limit of a job; by default a little more than the timeout."""


class FileSettings(Section):
    """How the experiment runs; missing settings have the defaults of `luthier tune`."""

    name: Name = ""
    """A name for the experiment."""
    component: Text = ""
    """The component to tune if several are listed."""
    application: Text = ""
    """The shell script to run; its path is relative to this file."""
    script: Text = ""
    """The text of the script, instead of an application."""
    runner: Runner = AUTO
    """Where to run: local, slurm, psij:pbs, dask, dask:tcp://HOST:PORT and so on; auto: Slurm if the script has #SBATCH
    lines or the component has options for sbatch, else this machine."""
    allocation: AllocationSettings | None = None
    """What every job requests with runner: psij:EXECUTOR."""
    default_first: StrictBool = True
    """Accepted from files of SHAMan; the default is always measured first."""

    def given(self) -> dict[str, Any]:
        """The settings of an experiment that the file sets, by their names in `Settings`."""
        names = self.model_fields_set
        return {setting.field: getattr(self, setting.name) for setting in all_settings() if setting.name in names}


def _field(setting: Setting) -> tuple[object, object]:
    """A setting as a field of a pydantic model."""
    schema = {**setting.kind.schema, "description": setting.help}
    usual = setting.kind.words(setting.default) if isinstance(setting.default, tuple) else setting.default
    return Annotated[Any, BeforeValidator(_read(setting.kind)), WithJsonSchema(schema)], Field(default=usual)


if TYPE_CHECKING:
    Settings: TypeAlias = FileSettings
else:  # with a field for each setting of an experiment
    fields = {setting.name: _field(setting) for setting in all_settings()}
    Settings = create_model("Settings", __base__=FileSettings, **fields)


class ExperimentFile(Section):
    """A file that describes an experiment. The sections api, bbo, noise_reduction and pruning are those of SHAMan."""

    experiment: Settings = Field(default_factory=Settings)
    """How it runs."""
    definitions: Definitions | None = None
    """The component itself, by name, or the file that describes it; by default a registered one is used."""
    components: dict[str, dict[str, Values]]
    """The values to try, by component and parameter; `{}` for those in the description of the component."""
    api: dict[str, Scalar] | None = None
    """Ignored: luthier needs no server to run an experiment."""
    bbo: dict[str, Scalar] | None = None
    """The search of SHAMan; files of luthier use experiment.optimizer and experiment.options."""
    noise_reduction: dict[str, Scalar] | None = None
    """The resampling of SHAMan; files of luthier use experiment.resample and experiment.estimator."""
    pruning: dict[str, Scalar] | None = None
    """The pruning of SHAMan; files of luthier use experiment.prune."""


@dataclass(frozen=True, slots=True)
class Declared:
    """An experiment from a file, and notes for its author; without `has_slots` the file gives no number of slots."""

    name: str
    experiment: Experiment
    notes: tuple[str, ...]
    has_slots: bool = True


def declared(document: Document, folder: Path | None, cwd: Path, registered: Callable[[str], Component]) -> Declared:
    """The experiment a document describes.

    Files that it names are in `folder`, and an error without one; `registered` finds a component by name. Runs use the
    working directory `cwd` unless the document names another one, relative to `folder`.
    """
    translation, document = _without_shaman(with_components(document))
    file = validated(ExperimentFile, document, document.values)
    settings: FileSettings = file.experiment
    name = _component_name(document, file)
    component = _component(document, file, name, folder, registered)
    space = _space(document, name, component, file.components[name])
    job = _job(document, settings, name, component, folder)
    given = settings.given()
    if "objectives" not in given:
        given["objectives"] = _measures(document, name, job)
    given["cwd"] = _working_folder(document, given.get("cwd"), folder, cwd)
    notes = [*translation.notes, *_notes(settings, job, given["objectives"])]
    try:
        experiment = Experiment(space=space, command=job, **given)
    except LuthierError as error:
        raise _placed(document, translation, str(error)) from None
    return Declared(settings.name or name, experiment, tuple(notes), "slots" in given)


def _without_shaman(document: Document) -> tuple[Translation, Document]:
    """The document with the settings of SHAMan's sections in the section `experiment`."""
    translation = translated(document)
    document = _with_new_names(document, translation)
    own = document.values.get("experiment", {})
    for name, value in translation.settings.items():
        if isinstance(own, dict) and name in own:
            raise document.error(("experiment", name), "is also set by a section of SHAMan; remove one of them")
        origin = document.origins.get(translation.places[name], document.source)
        document = document.with_value(("experiment", name), value, origin)
    return translation, document


def _with_new_names(document: Document, translation: Translation) -> Document:
    """The document with current names in place of former names of settings."""
    own = document.values.get("experiment")
    for setting in all_settings():
        if isinstance(own, dict) and setting.former in own and setting.name not in own:
            place: Place = ("experiment", setting.former)
            translation.set(setting.name, own[setting.former], place)
            translation.notes.append(f"experiment.{setting.former} is now called {setting.name}")
            document = document.without(place)
    return document


def _component_name(document: Document, file: ExperimentFile) -> str:
    chosen = file.experiment.component
    if chosen:
        if chosen not in file.components:
            raise document.error(("experiment", "component"), f"{chosen!r} is not listed under components")
        return chosen
    if len(file.components) != 1:
        names = ", ".join(file.components)
        problem = (
            f"{names} are listed; name one of them in experiment.component, or with --set component=NAME"
            if names
            else "list what to tune"
        )
        raise document.error(("components",), problem)
    return next(iter(file.components))


def _component(
    document: Document, file: ExperimentFile, name: str, folder: Path | None, registered: Callable[[str], Component]
) -> Component:
    place: Place = ("definitions", name)
    if isinstance(file.definitions, dict):
        if name not in file.definitions:
            raise document.error(("definitions",), f"{name!r} is missing; it contains {', '.join(file.definitions)}")
        return checked(file.definitions[name], document, place, folder)
    try:
        if file.definitions is None:
            return registered(name)
        if folder is None:
            raise InvalidInputError("files are not supported here; describe the component itself, or register it")
        described = read_components(folder / file.definitions)
    except LuthierError as error:
        raise document.error(("components", name) if file.definitions is None else place[:1], str(error)) from None
    if name not in described:
        raise document.error(place[:1], f"{name!r} is missing in the file; it contains {', '.join(described)}")
    return described[name]


def _space(document: Document, name: str, component: Component, grids: Mapping[str, Grid]) -> Space:
    for parameter in grids:
        if parameter not in component.parameters:
            known = ", ".join(component.parameters)
            raise document.error(
                ("components", name, parameter), f"the component has no such parameter; it has {known}"
            )
    parameters = []
    for parameter, described in component.parameters.items():
        grid = grids.get(parameter, described)
        grid = grid if grid.given else described
        if grid.given and (parameter in grids or not grids):
            try:
                parameters.append(parameter_of(parameter, described, grid))
            except SpaceError as error:
                problem = str(error).removeprefix(f"{parameter}: ")
                raise document.error(("components", name, parameter), problem) from None
        elif parameter in grids:
            raise document.error(("components", name, parameter), "has no values to try; give min and max, or a list")
    if not parameters:
        raise document.error(("components", name), "nothing to tune; give values to try for at least one parameter")
    try:
        return Space(*parameters, constraints=component.constraints)
    except SpaceError as error:
        raise document.error(("components", name), str(error)) from None


def _job(
    document: Document, settings: FileSettings, called: str, component: Component, folder: Path | None
) -> JobScript:
    if settings.application and settings.script:
        raise document.error(("experiment", "script"), "application is also given; remove one of them")
    text, name = settings.script, "script"
    if settings.application:
        text = text_of(settings.application, document, ("experiment", "application"), folder)
        name = str((folder or Path()) / settings.application)
    where = settings.runner
    if where == AUTO:
        try:
            where = automatic(text, has_options=bool(component.options or component.submitted))
        except InvalidInputError as error:
            raise document.error(("experiment",), str(error)) from None
    shared = [file.path for file in component.files if "$" not in file.path]
    slots = settings.given().get("slots", 1)
    if shared and slots > 1:
        raise document.error(("experiment", "slots"), f"{slots} runs at a time would all write {shared[0]}; use 1")
    allocation = _allocation(document, settings, where)
    return JobScript(component, text, name, where, allocation, called, not is_of_shaman(document))


def _notes(settings: FileSettings, job: JobScript, measures: list[str]) -> list[str]:
    """What is otherwise than the author of the file may expect."""
    notes = []
    if not settings.default_first:
        notes.append("default_first: false is ignored: the default is always measured for comparison")
    if not job.command_is_timed and measures == ["time"]:
        notes.append("measured is what the script's own time prints first, as in SHAMan")
    elif job.is_timed_without_command and measures == ["wall"]:
        notes.append("the component's command is not timed, as in SHAMan")
    if not job.command_is_timed and job.ends_with_header:
        notes.append("a run whose header fails has failed (SHAMan goes on); begin the header with set +e to go on")
    return notes


def _working_folder(document: Document, given: str | None, folder: Path | None, cwd: Path) -> str:
    """The folder in which runs start; of another user's document it must be absolute, and is not looked at."""
    if given is None:
        return str(cwd)
    place: Place = ("experiment", "folder")
    if folder is None:
        if not Path(given).is_absolute():
            raise document.error(place, f"{given!r} is not an absolute path; start it with /")
        return given
    try:
        path = (folder / Path(given).expanduser()).absolute()
    except RuntimeError as error:
        raise document.error(place, f"{given!r}: {error}") from None
    if not path.is_dir():
        raise document.error(place, f"{str(path)!r} does not exist, or is not a folder")
    return str(path)


def _allocation(document: Document, settings: FileSettings, where: Where) -> Allocation | None:
    """What each job requests from the batch system, if the runner can pass it on."""
    place, asked = ("experiment", "allocation"), settings.allocation or AllocationSettings()
    if not runner_kind(where).takes_allocation:
        if settings.allocation is not None:
            raise document.error(place, "is for runner: psij:EXECUTOR; for Slurm, put #SBATCH lines in the script")
        return None
    try:
        found = Allocation(asked.queue, asked.account, asked.nodes, asked.processes_per_node, asked.walltime)
        found.limit_s(settings.given().get("timeout_s"))
    except InvalidInputError as error:
        raise document.error(place, str(error)) from None
    return found


def _measures(document: Document, name: str, job: JobScript) -> list[str]:
    """The measures if the experiment itself gives none."""
    component = job.component
    if component.measure:
        return list(component.measure)
    if not component.custom_target and not is_of_shaman(document):
        return ["wall"]
    measure = measure_of(component.custom_target, job.application)
    if measure is None:
        raise document.error(
            ("components", name),
            f"custom_target {component.custom_target!r} is a Python function, and files cannot import "
            "functions; give experiment.measure, such as regex:PATTERN or the name of a plug-in",
        )
    return [measure]


def _placed(document: Document, translation: Translation, problem: str) -> InvalidInputError:
    """The error at the setting that the problem begins with, if there is one."""
    name, _, rest = problem.partition(": ")
    place: Place = translation.places.get(name, ("experiment", name))
    if place in document.origins:
        return document.error(place, rest)
    return document.error(("experiment",) if "experiment" in document.values else (), problem)
