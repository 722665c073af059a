"""The commands for declared components and experiments."""

import json
import sys
import time
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from luthier.cli.options import AsJson, Quiet, RunnerName, StoreUrl
from luthier.cli.terminal import print_data, print_json, say, warn
from luthier.errors import InvalidInputError
from luthier.spec.signatures import COMMON, WithHeadings

if TYPE_CHECKING:
    from luthier.result.result import Result
    from luthier.spec.approvals import ComponentVariable
    from luthier.spec.experiment_file import Declared
    from luthier.store.base import Record

component = typer.Typer(help="Manage the components that can be tuned.", no_args_is_help=True, rich_markup_mode=None)
shaman = typer.Typer(help="The commands of SHAMan, with their options.", no_args_is_help=True, rich_markup_mode=None)

_RESULT = "Files of the result"
"""A heading of the help."""

File = Annotated[Path, typer.Argument(help="A YAML file.", metavar="FILE")]
Name = Annotated[str, typer.Argument(help="The component's name; see luthier component list.", metavar="NAME")]
Variables = Annotated[
    list[str] | None,
    typer.Argument(
        help="Variables of the component; by default those that are not approved.", metavar="[VARIABLE[=VALUES]]..."
    ),
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        help="Change a setting of the section experiment, or any other setting by its full path, e.g. "
        "components.dd.bs.max=64.",
        metavar="KEY=VALUE",
    ),
]
After = Annotated[
    list[str] | None,
    typer.Option(
        "--after",
        help="Learn from these earlier experiments: try their best configurations right after the default, and use all "
        "of their results. auto: find them in the store; none: learn from none.",
        metavar="NUMBER,...|auto|none",
    ),
]


def register(app: typer.Typer) -> None:
    """Add these commands to the command line."""
    app.add_typer(component, name="component")
    app.add_typer(shaman, name="shaman")
    for command in (run, validate, render):
        app.command()(command)


@component.command("add")
def add_component(
    file: File,
    replace: Annotated[
        bool, typer.Option("--replace", help="Overwrite components that are already registered.")
    ] = False,
    store: StoreUrl = None,
) -> None:
    """Register the components that a file describes.

    Example: luthier component add dd.yaml
    """
    from luthier.launch import library
    from luthier.spec.component import read_components

    described = read_components(file)
    library(store).add(described, replace=replace)
    say(f"registered: {', '.join(described)}")


@component.command("list")
def list_components(store: StoreUrl = None, as_json: AsJson = False) -> None:
    """List the registered components.

    Example: luthier component list
    """
    from luthier.launch import library

    registered = library(store)
    if as_json:
        print_json(registered.names(), indent=None)
        return
    for name in registered.names():
        described = registered.get(name)
        say(f"{name}  {', '.join(described.parameters)}" + (f"  {described.description}" * bool(described.description)))
    if not registered.names():
        say("no components yet; start with: luthier component add FILE")


@component.command("show")
def show_component(name: Name, store: StoreUrl = None, as_json: AsJson = False) -> None:
    """Print a registered component as a YAML file.

    Example: luthier component show dd
    """
    from luthier.launch import library
    from luthier.spec.library import component_text

    described = library(store).get(name)
    if as_json:
        print_json(described.model_dump(mode="json", exclude_defaults=True))
    else:
        print_data(component_text(name, described))


@component.command("remove")
def remove_component(name: Name, store: StoreUrl = None) -> None:
    """Remove a registered component.

    Example: luthier component remove dd
    """
    from luthier.launch import library

    library(store).remove(name)
    say(f"removed: {name}")


@component.command("approve")
def approve_component(
    name: Name,
    variables: Variables = None,
    harmless: Annotated[
        bool, typer.Option("--harmless", help="Only variables that are known to be harmless, with harmless values.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    store: StoreUrl = None,
) -> None:
    """Approve variables of a component for jobs of all users; without --yes, only show what would be approved.

    VALUES are texts and ranges with spaces between them: 'close spread 1..64'. By default all variables that are not
    approved yet, with the values that are known to be harmless or that the component declares.

    Example: luthier component approve openmpi OMP_NUM_THREADS=1..64 --yes
    """
    from luthier.launch import approve
    from luthier.spec.approvals import chosen
    from luthier.spec.library import Library
    from luthier.store import open_server_store
    from luthier.store.ownership import own_user

    server_store = open_server_store(store)
    review = Library(server_store.components).review(name)
    wanted = chosen(review.variables, variables or (), only_harmless=harmless)
    for one in review.variables:
        say(f"{one.name}  {_approved_text(one, wanted.get(one.name))}")
    if not wanted:
        raise InvalidInputError(f"component {name} has no further variable to approve")
    if not yes and not (sys.stdin.isatty() and typer.confirm(f"set these in jobs of all users of {name}?", err=True)):
        raise InvalidInputError("nothing was approved; to approve what is listed, add --yes")
    approve(server_store, name, wanted, review.version, f"{own_user()} (command line)", time.time())
    say(f"approved: {', '.join(wanted)}")


@component.command("withdraw")
def withdraw_approval(
    name: Name,
    variables: Annotated[
        list[str] | None, typer.Argument(help="Approved variables; by default all.", metavar="[VARIABLE]...")
    ] = None,
    store: StoreUrl = None,
) -> None:
    """Withdraw approvals, so that jobs of other users do not get these variables any more; by default all approvals.

    Example: luthier component withdraw openmpi OMP_NUM_THREADS
    """
    from luthier.launch import withdraw
    from luthier.store import open_server_store
    from luthier.store.ownership import own_user

    by = f"{own_user()} (command line)"
    gone = withdraw(open_server_store(store), name, variables or None, by, time.time())
    say(f"not approved any more: {', '.join(gone)}" if gone else f"nothing was approved for {name}")


@component.command("approvals")
def list_approvals(store: StoreUrl = None, as_json: AsJson = False) -> None:
    """List the variables that are approved for jobs of all users, with their values, who approved them and when.

    Example: luthier component approvals
    """
    from luthier.store import open_server_store

    found = open_server_store(store).components.approvals()
    if as_json:
        print_json([asdict(one) for one in found])
        return
    for one in found:
        at = datetime.fromtimestamp(one.approved_at).astimezone().strftime("%Y-%m-%d %H:%M")
        say(f"{one.component}  {one.variable}  {one.allowed}  {one.approved_by}, {at}")
    if not found:
        say("nothing is approved; see: luthier component approve NAME")


def run(
    file: File,
    settings: Settings = None,
    after: After = None,
    runner: RunnerName = None,
    store: StoreUrl = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> int:
    """Run the experiment that a file describes.

    Example: luthier run examples/dd.yaml --set budget=20
    """
    from luthier.launch import declared_in

    changes = [*(settings or ()), *([f"after={json.dumps(after)}"] if after else ()), *_runner_setting(runner)]
    return _run(declared_in(file, changes, store), store, quiet=quiet, as_json=as_json)


def validate(
    files: Annotated[list[Path] | None, typer.Argument(help="Component and experiment files.", metavar="FILE")] = None,
    schema: Annotated[
        str | None, typer.Option(help="Print the JSON Schema of these files.", metavar="component|experiment")
    ] = None,
    store: StoreUrl = None,
) -> None:
    """Check files without running anything, or print their JSON Schema.

    Example: luthier validate examples/dd.yaml
    """
    from luthier.launch import check

    if schema is None and not files:
        raise InvalidInputError("nothing to check; give a file, or --schema component|experiment")
    if schema is not None:
        print_json(_schema(schema))
    for file in files or ():
        say(f"{file}: {check(file, store)}")


def render(
    file: File,
    values: Annotated[
        list[str] | None,
        typer.Option(
            "-p", "--param", help="The value of a parameter; the others have their default.", metavar="NAME=VALUE"
        ),
    ] = None,
    settings: Settings = None,
    store: StoreUrl = None,
    as_json: AsJson = False,
) -> None:
    """Print the script and the command line that an experiment runs for one configuration.

    Example: luthier render examples/dd.yaml -p bs=4096
    """
    from luthier.launch import config_from, declared_in
    from luthier.spec.script import JobScript, comment

    experiment = declared_in(file, settings or [], store).experiment
    job = experiment.command
    if not isinstance(job, JobScript):
        raise InvalidInputError(f"{file}: does not describe a job")
    batch = job.batch(experiment.space, config_from(experiment.space, values or []))
    if as_json:
        plain = {"script": batch.script, "environment": dict(batch.environment), "options": batch.options}
        print_json(plain)
        return
    print_data(f"{batch.script}\n{comment(f'run as: {job.command_line(batch)}')}\n")


@shaman.command("install")
def install(file: File, store: StoreUrl = None) -> None:
    """Register components like shaman-install does, but keep all others.

    Example: luthier shaman install openmpi.yaml
    """
    add_component(file, replace=True, store=store)


@shaman.command("optimize", cls=WithHeadings)
def optimize(
    component_name: Annotated[str, typer.Option(help="The component to tune.", rich_help_panel=COMMON)],
    nbr_iteration: Annotated[int, typer.Option(help="Largest number of runs.", rich_help_panel=COMMON)],
    sbatch_file: Annotated[Path, typer.Option(help="The script of the application.", rich_help_panel=COMMON)],
    experiment_name: Annotated[str, typer.Option(help="A name for the experiment.", rich_help_panel=COMMON)],
    configuration_file: Annotated[Path, typer.Option(help="The experiment file.", rich_help_panel=COMMON)],
    sbatch_dir: Annotated[
        Path | None, typer.Option(help="Folder for the script of the best configuration.", rich_help_panel=_RESULT)
    ] = None,
    slurm_dir: Annotated[
        Path | None, typer.Option(help="Ignored: the output is stored with each run.", rich_help_panel=_RESULT)
    ] = None,
    result_file: Annotated[
        Path | None, typer.Option(help="File for the result, as JSON.", rich_help_panel=_RESULT)
    ] = None,
    runner: RunnerName = None,
    store: StoreUrl = None,
    quiet: Quiet = False,
) -> int:
    """Run an experiment like shaman-optimize does, as Slurm jobs unless --runner or the file says otherwise.

    Example: luthier shaman optimize --component-name dd --nbr-iteration 50 --sbatch-file app.sbatch \
    --experiment-name first --configuration-file experiment.yaml
    """
    from luthier.launch import declared_in, submitted_in

    if slurm_dir is not None:
        warn("--slurm-dir is ignored: the output is stored with each run; see luthier export")
    settings = {
        "component": component_name,
        "budget": nbr_iteration,
        "application": str(sbatch_file.absolute()),
        "name": experiment_name,
    }
    changes = [f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in settings.items()]
    read = submitted_in if runner is None else declared_in
    found = read(configuration_file, [*changes, *_runner_setting(runner)], store)
    return _run(found, store, quiet=quiet, as_json=False, script_folder=sbatch_dir, result_file=result_file)


def _runner_setting(runner: str | None) -> list[str]:
    return [] if runner is None else [f"runner={json.dumps(runner)}"]


def _run(
    found: "Declared",
    store: str | None,
    *,
    quiet: bool,
    as_json: bool,
    script_folder: Path | None = None,
    result_file: Path | None = None,
) -> int:
    from luthier.cli.running import show_result, work_on
    from luthier.launch import LaunchRequest, create, with_usual_slots
    from luthier.result.text import config_text

    space = found.experiment.space
    for note in found.notes:
        warn(note)
    experiment = found.experiment if found.has_slots else with_usual_slots(found.experiment)
    note = f"default: {config_text(space.default, space)}"
    launch = create(LaunchRequest(experiment, found.name, store))
    done = work_on(launch, note=note, quiet=quiet)
    _keep(done.record, done.result, script_folder, result_file)
    return show_result(done, as_json=as_json)


def _approved_text(variable: "ComponentVariable", allowed: str | None) -> str:
    """What becomes of a variable if the values in `allowed` are approved; None if it is left as it is."""
    if allowed is not None:
        return allowed + ("  (known to be harmless)" if allowed == variable.harmless else "")
    if variable.problem is not None:
        return f"never set: {variable.problem}"
    return "not approved" if variable.approval is None else f"{variable.approval.allowed}  (approved already)"


def _keep(record: "Record", result: "Result", script_folder: Path | None, result_file: Path | None) -> None:
    """Write the best script and the result to the places that the options of SHAMan name."""
    from luthier.result.facts import result_json
    from luthier.result.findings import command_line

    if result_file is not None:
        result_file.write_text(json.dumps(result_json(record, result), indent=1), encoding="utf-8")
    line = command_line(result)
    if script_folder is not None and line is not None:
        script_folder.mkdir(parents=True, exist_ok=True)
        (script_folder / f"{Path(record.name).name}_best.sbatch").write_text(
            line + "\n", encoding="utf-8", errors="surrogateescape"
        )


def _schema(kind: str) -> dict[str, object]:
    from luthier.spec.component import ComponentFile, Section
    from luthier.spec.experiment_file import ExperimentFile

    models: dict[str, type[Section]] = {"component": ComponentFile, "experiment": ExperimentFile}
    if kind not in models:
        raise InvalidInputError(f"--schema {kind}: unknown; give {' or '.join(models)}")
    return models[kind].model_json_schema()
