"""Experiment files: which component is tuned over which values, for which application, and how."""

import re
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import BeforeValidator, Discriminator, Field, StrictBool, StrictInt, Tag

from luthier.errors import InvalidInputError, LuthierError, SpaceError
from luthier.runners.psij import Allocation
from luthier.space import Space
from luthier.spec.component import (
    Component,
    Grid,
    Name,
    Section,
    Setting,
    Text,
    Texts,
    checked,
    read_components,
    text_of,
    validated,
)
from luthier.spec.experiment import Experiment, Objective
from luthier.spec.grids import parameter_of
from luthier.spec.notation import parse_duration
from luthier.spec.script import JobScript, Where
from luthier.spec.shaman import MEASURES, Translation, translated
from luthier.spec.yaml_lines import Document, Place
from luthier.texts import shown
from luthier.trial import Config

_OTHER_NAMES: Mapping[str, str] = {
    "time_limit_s": "time_limit",
    "timeout_s": "timeout",
    "verify-pairs": "verify",
    "static": "resample",
    "sedr": "resample",
}
"""Settings by what an error calls them."""

_RUNNER = r"^(auto|local|slurm|psij:[A-Za-z0-9_-]+)$"


def _duration(given: object) -> object:
    if isinstance(given, bool) or not isinstance(given, int | float | str):
        raise ValueError(f"{shown(given)} is no duration; write for example 90s, 1.5m or 2h")
    try:
        return parse_duration(given if isinstance(given, str) else repr(given))
    except InvalidInputError as error:
        raise ValueError(str(error)) from None


def _limit(given: object) -> object:
    return given if isinstance(given, str) and not given[:1].isdigit() else _duration(given)


def _runner(given: object) -> object:
    if isinstance(given, str) and re.fullmatch(_RUNNER, given):
        return given
    raise ValueError(f"{shown(given)} is not what is expected here: 'auto', 'local', 'slurm' or such as 'psij:pbs'")


def _grid(given: object) -> object:
    return {"values": given} if isinstance(given, list) else given


def _inline_or_file(given: object) -> str:
    return "inline" if isinstance(given, dict) else "file"


Definitions = Annotated[
    Annotated[dict[str, Component], Tag("inline")] | Annotated[Text, Tag("file")], Discriminator(_inline_or_file)
]
Duration = Annotated[float, BeforeValidator(_duration, json_schema_input_type=float | str)]
Limit = Annotated[float | str, BeforeValidator(_limit, json_schema_input_type=float | str)]
Runner = Annotated[str, BeforeValidator(_runner, json_schema_input_type=Annotated[str, Field(pattern=_RUNNER)])]
Values = Annotated[Grid, BeforeValidator(_grid, json_schema_input_type=Grid | list[Setting])]


class AllocationSettings(Section):
    """What every job asks of the batch system."""

    queue: Text = ""
    """The queue; the default one if it is left out."""
    account: Text = ""
    """The account or project that pays."""
    nodes: StrictInt = 1
    """How many nodes."""
    processes_per_node: StrictInt = 1
    """How many processors on each of them."""
    walltime: Duration | None = None
    """How long a job may take; a little more than the timeout if it is left out."""


class Settings(Section):
    """How the experiment is run; what is left out is as in `luthier tune`."""

    name: Name = ""
    """A name for the listing."""
    component: Text = ""
    """Which one is tuned, where several are listed."""
    application: Text = ""
    """The shell script that is run, seen from this file."""
    script: Text = ""
    """The text of the script, instead of an application."""
    runner: Runner = "auto"
    """Where it is run: local, slurm, psij:pbs and the like; auto: by Slurm if the script has #SBATCH lines, or the
    component has options for sbatch, and sbatch is there; else on this machine."""
    allocation: AllocationSettings | None = None
    """What every job asks for with runner: psij:EXECUTOR."""
    default_first: StrictBool = True
    """The default is always measured first; this is here for SHAMan's files."""
    budget: StrictInt = 60
    """How many runs in all."""
    workers: StrictInt = 1
    """How many runs at a time."""
    seed: StrictInt = 0
    """The same seed makes the same suggestions."""
    optimizer: Text = "auto"
    """How to search."""
    options: dict[str, Setting] = Field(default_factory=dict)
    """Options of the optimizer."""
    measure: Texts = Field(default_factory=list)
    """What is measured, as in `luthier tune -m`; what the component says, else the elapsed time."""
    resample: Text = "auto"
    """How often a configuration runs."""
    estimator: Text = "auto"
    """What stands for several runs."""
    prune: Limit | None = None
    """Which runs are stopped early."""
    stop: Texts = Field(default_factory=list)
    """When the search ends early."""
    timeout: Duration | None = None
    """Kill a run after this long."""
    time_limit: Duration | None = None
    """End the search after this long."""
    verify: StrictInt | None = None
    """Most pairs of runs for the final comparison."""
    sentinels: StrictInt = 0
    """Run the default again after so many runs, and take what these show of the machine out of the values."""
    first: list[dict[str, Setting]] = Field(default_factory=list)
    """Configurations to try right after the default; a parameter that is left out has its default."""


class ExperimentFile(Section):
    """A file that describes an experiment. The sections api, bbo, noise_reduction and pruning are SHAMan's."""

    experiment: Settings = Field(default_factory=Settings)
    """How it is run."""
    definitions: Definitions | None = None
    """The component itself, by name, or the file that describes it; without it, a registered one is meant."""
    components: dict[str, dict[str, Values]]
    """The values to try: by component, by parameter; `{}` for those that the component itself declares."""
    api: dict[str, Setting] | None = None
    """Passed over: luthier needs no server to run an experiment."""
    bbo: dict[str, Setting] | None = None
    """SHAMan's search; in luthier's own files, experiment.optimizer and its neighbours."""
    noise_reduction: dict[str, Setting] | None = None
    """SHAMan's resampling; in luthier's own files, experiment.resample and estimator."""
    pruning: dict[str, Setting] | None = None
    """SHAMan's pruning; in luthier's own files, experiment.prune."""


@dataclass(frozen=True, slots=True)
class Declared:
    """An experiment that was read from a file, and remarks for the one who wrote it."""

    name: str
    experiment: Experiment
    notes: tuple[str, ...]


def declared(document: Document, folder: Path | None, cwd: Path, registered: Callable[[str], Component]) -> Declared:
    """The experiment a document describes.

    Files it names are looked for in `folder`, without one they are refused; `registered` finds a component by name.
    Runs are made in `cwd`.
    """
    translation, document = _in_own_words(document)
    file = validated(ExperimentFile, document, document.values)
    settings = file.experiment
    name = _component_name(document, file)
    component = _component(document, file, name, folder, registered)
    space = _space(document, name, component, file.components[name])
    job = _job(document, settings, name, component, folder)
    notes = list(translation.notes)
    if not settings.default_first:
        notes.append("default_first: false is passed over: the default is always measured, to compare with")
    measures = _measures(document, name, component, settings)
    try:
        experiment = _experiment(settings, space, job, measures, cwd)
    except LuthierError as error:
        raise _placed(document, translation, str(error)) from None
    return Declared(settings.name or name, experiment, tuple(notes))


def _experiment(settings: Settings, space: Space, job: JobScript, measures: list[str], cwd: Path) -> Experiment:
    first, *further = map(Objective.parse, measures)
    return Experiment(
        space=space,
        command=job,
        cwd=str(cwd),
        measure=first.measure,
        goal=first.goal,
        further=tuple(further),
        optimizer=settings.optimizer,
        options=settings.options,
        seed=settings.seed,
        budget=settings.budget,
        time_limit_s=settings.time_limit,
        timeout_s=settings.timeout,
        workers=settings.workers,
        resample=settings.resample,
        estimator=settings.estimator,
        prune=settings.prune,
        stop=tuple(settings.stop),
        verify_pairs=settings.verify,
        sentinels=settings.sentinels,
        first=tuple(map(Config, settings.first)),
    )


def _in_own_words(document: Document) -> tuple[Translation, Document]:
    """The document with what SHAMan's sections say in the section `experiment`."""
    translation = translated(document)
    own = document.values.get("experiment", {})
    for name, value in translation.settings.items():
        if isinstance(own, dict) and name in own:
            raise document.error(("experiment", name), "is said by SHAMan's sections as well; keep one of them")
        origin = document.origins.get(translation.places[name], document.source)
        document = document.with_value(("experiment", name), value, origin)
    return translation, document


def _component_name(document: Document, file: ExperimentFile) -> str:
    chosen = file.experiment.component
    if chosen:
        if chosen not in file.components:
            raise document.error(("experiment", "component"), f"{chosen!r} is not listed under components")
        return chosen
    if len(file.components) != 1:
        names = ", ".join(file.components) or "none"
        raise document.error(("components",), f"which one is tuned? There are {names}; say experiment.component")
    return next(iter(file.components))


def _component(
    document: Document, file: ExperimentFile, name: str, folder: Path | None, registered: Callable[[str], Component]
) -> Component:
    place: Place = ("definitions", name)
    if isinstance(file.definitions, dict):
        if name not in file.definitions:
            raise document.error(("definitions",), f"there is no {name!r}; there are {', '.join(file.definitions)}")
        return checked(file.definitions[name], document, place, folder)
    try:
        if file.definitions is None:
            return registered(name)
        if folder is None:
            raise InvalidInputError("no files are read here; describe the component itself, or register it")
        described = read_components(folder / file.definitions)
    except LuthierError as error:
        raise document.error(("components", name) if file.definitions is None else place[:1], str(error)) from None
    if name not in described:
        raise document.error(place[:1], f"there is no {name!r} in it; there are {', '.join(described)}")
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
        raise document.error(("components", name), "nothing to tune; give the values to try of at least one parameter")
    try:
        return Space(*parameters, constraints=component.constraints)
    except SpaceError as error:
        raise document.error(("components", name), str(error)) from None


def _job(document: Document, settings: Settings, called: str, component: Component, folder: Path | None) -> JobScript:
    if settings.application and settings.script:
        raise document.error(("experiment", "script"), "there is an application as well; give one of them")
    text, name = settings.script, "script"
    if settings.application:
        text = text_of(settings.application, document, ("experiment", "application"), folder)
        name = str((folder or Path()) / settings.application)
    where: Where = "local"
    if settings.runner == "slurm" or (settings.runner == "auto" and _wants_slurm(text, component)):
        where = "slurm"
    elif settings.runner.startswith("psij:"):
        where = settings.runner
    shared = [file.path for file in component.files if "$" not in file.path]
    if shared and settings.workers > 1:
        raise document.error(
            ("experiment", "workers"), f"{settings.workers} runs at a time would all write {shared[0]}; say 1"
        )
    return JobScript(component, text, name, where, _allocation(document, settings), called)


def _allocation(document: Document, settings: Settings) -> Allocation | None:
    """What the jobs ask for where PSI/J submits them, and nothing elsewhere."""
    place, asked = ("experiment", "allocation"), settings.allocation or AllocationSettings()
    if not settings.runner.startswith("psij:"):
        if settings.allocation is not None:
            raise document.error(place, "is for runner: psij:EXECUTOR; for Slurm, put #SBATCH lines in the script")
        return None
    try:
        found = Allocation(asked.queue, asked.account, asked.nodes, asked.processes_per_node, asked.walltime)
        found.limit_s(settings.timeout)
    except InvalidInputError as error:
        raise document.error(place, str(error)) from None
    return found


def _wants_slurm(text: str, component: Component) -> bool:
    """Whether there is something for sbatch, in the script or in the component, and an sbatch that takes it."""
    asks = any(line.startswith("#SBATCH") for line in text.split("\n"))
    return bool(asks or component.options or component.submitted) and shutil.which("sbatch") is not None


def _measures(document: Document, name: str, component: Component, settings: Settings) -> list[str]:
    if settings.measure or component.measure:
        return list(settings.measure or component.measure)
    if not component.custom_target:
        return ["wall"]
    function = component.custom_target.rpartition(".")[2]
    if function not in MEASURES:
        raise document.error(
            ("components", name),
            f"custom_target {component.custom_target!r} names a Python function, and nothing that a file names is "
            "imported; say experiment.measure, such as regex:PATTERN or an installed plug-in's name",
        )
    return [MEASURES[function]]


def _placed(document: Document, translation: Translation, problem: str) -> InvalidInputError:
    """The problem at the setting that it names first, if it names one."""
    name, _, rest = problem.partition(": ")
    name = _OTHER_NAMES.get(name, name)
    place: Place = translation.places.get(name, ("experiment", name))
    if place in document.origins:
        return document.error(place, rest)
    return document.error(("experiment",) if "experiment" in document.values else (), problem)
