"""Turns an experiment file into a running experiment."""

import json
import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from luthier.engine.session import optimizer_of
from luthier.errors import InvalidInputError, LuthierError
from luthier.folders import data_directory
from luthier.launch.runners import named_libraries
from luthier.measures.registry import measures_from
from luthier.result.open_mpi import ignored_settings
from luthier.space import Space
from luthier.spec.component import Component, components_in
from luthier.spec.experiment import Experiment
from luthier.spec.experiment_file import Declared, ExperimentFile, declared
from luthier.spec.library import Library
from luthier.spec.script import JobScript
from luthier.spec.shaman import with_components
from luthier.spec.yaml_lines import Document, Place, parse_plain, read_document
from luthier.store import open_server_store
from luthier.texts import closest
from luthier.trial import Config, Value


def library(store_url: str | None) -> Library:
    """The components that are registered in a store."""
    return Library(open_server_store(store_url).components, data_directory() / "components")


def declared_in(path: Path, settings: Sequence[str] = (), store_url: str | None = None) -> Declared:
    """The experiment that a file describes, with the changes of `--set`, completely checked.

    Components that the file does not describe are those of the store.
    """
    document = read_document(path)
    for text in settings:
        document = _changed(document, text)
    return declared_by(document, Path.cwd(), path.parent, lambda name: library(store_url).get(name))


def submitted_in(path: Path, settings: Sequence[str] = (), store_url: str | None = None) -> Declared:
    """The same for a file of SHAMan, which submits every run to Slurm unless the file names a runner."""
    own = read_document(path).values.get("experiment")
    if isinstance(own, dict) and "runner" in own:
        return declared_in(path, settings, store_url)
    if shutil.which("sbatch") is None:
        raise InvalidInputError(
            f"{path}: its runs are Slurm jobs, and sbatch is not installed here; to run them on this machine use "
            "--runner local"
        )
    return declared_in(path, [*settings, "runner=slurm"], store_url)


def declared_by(document: Document, cwd: Path, folder: Path | None, registered: Callable[[str], Component]) -> Declared:
    """The experiment that a document describes, completely checked; `registered` finds a component by its name.

    Without a `folder` the document is from another user: it must not name files, and messages reveal nothing about the
    files and the environment of this process.
    """
    found = declared(document, folder, cwd, registered)
    place: Place = ("definitions",)
    try:
        if isinstance(found.experiment.command, JobScript):
            named_libraries(found.experiment.command)
        place = ("experiment", "measure")
        measures_from([objective.measure for objective in found.experiment.objectives])
        place = ("experiment", "optimizer")
        optimizer_of(found.experiment)
    except InvalidInputError as error:
        raise document.error(place, str(error)) from None
    return replace(found, notes=(*found.notes, *_ignored(found.experiment, is_own=folder is not None)))


def _ignored(experiment: Experiment, *, is_own: bool) -> list[str]:
    """Settings for Open MPI that would be ignored without a message.

    The environment and the rules file that it names are checked only for the user's own experiment.
    """
    job = experiment.command
    if not isinstance(job, JobScript):
        return []
    added = job.batch(experiment.space, experiment.space.default).environment
    return ignored_settings({**(os.environ if is_own else {}), **added}, reads_rules=is_own)


def check(path: Path, store_url: str | None = None) -> str:
    """A short summary of what a valid file describes."""
    document = with_components(read_document(path))
    if not _is_experiment(document):
        return f"components: {', '.join(components_in(document, path.parent))}"
    listed, own = document.values.get("components"), document.values.get("experiment")
    if not isinstance(listed, dict) or len(listed) < 2 or (isinstance(own, dict) and "component" in own):
        return _summary(declared_in(path, store_url=store_url))
    return "; ".join([*_checked_each(path, list(listed), store_url), "choose one with --set component=NAME"])


def _summary(found: Declared) -> str:
    size = found.experiment.space.size
    over = "a continuous space" if size is None else f"{size} configurations"
    return "; ".join([f"an experiment, {found.name!r}, over {over}", *found.notes])


def _checked_each(path: Path, names: list[str], store_url: str | None) -> list[str]:
    """A summary for each component of a file that lists several; raise if none of them can be tuned."""
    summaries: list[str] = []
    problems: list[LuthierError] = []
    for name in names:
        try:
            summaries.append(_summary(declared_in(path, [f"component={json.dumps(name)}"], store_url)))
        except LuthierError as error:
            problems.append(error)
            summaries.append(f"{name!r} cannot be tuned: {error}")
    if len(problems) == len(names):
        raise problems[0]
    return summaries


def config_from(space: Space, texts: Sequence[str]) -> Config:
    """The default with the values of `-p NAME=VALUE`."""
    values: dict[str, Value] = dict(space.default)
    parameters = {parameter.name: parameter for parameter in space.parameters}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            raise InvalidInputError(f"-p {text}: write NAME=VALUE, for example {space.names[0]}=1")
        if name not in parameters:
            near = closest(name, parameters)
            hint = f"did you mean {near!r}?" if near else f"the tuned parameters are {', '.join(parameters)}"
            raise InvalidInputError(f"-p {text}: {name!r} is not tuned; {hint}")
        values[name] = parameters[name].parse(value)
    return space.check(values)


def _is_experiment(document: Document) -> bool:
    """Whether a file describes an experiment: it has a section of one, or a list of values in place of a component."""
    if any(name in document.values for name in ExperimentFile.model_fields if name != "components"):
        return True
    components = document.values.get("components")
    listed = components.values() if isinstance(components, dict) else ()
    return not any(isinstance(one, dict) and "parameters" in one for one in listed)


def _changed(document: Document, text: str) -> Document:
    """The document with `budget=20`, a setting of its section `experiment`, or `components.dd.bs.max=64`."""
    key, equals, value = text.partition("=")
    if not equals or not all(key.split(".")):
        raise InvalidInputError(
            f"--set {text}: write KEY=VALUE, for example budget=20 or components.NAME.PARAMETER.max=64"
        )
    place = tuple(key.split(".")) if "." in key else ("experiment", key)
    return document.with_value(place, parse_plain(value), f"--set {text}")
