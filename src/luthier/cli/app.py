"""The command line. Commands are thin: they read the arguments, call one function and show its result."""

import os
import sys
import time
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Annotated

import typer
from typer.exceptions import TyperException

from luthier.cli import components, explain, native, reporting
from luthier.cli.options import AsJson, Number, Quiet, RunnerName, StoreUrl
from luthier.cli.running import show_result, work_on
from luthier.cli.setting_options import Given, read_settings, with_settings
from luthier.cli.terminal import prepare_streams, print_data, print_json, print_view, say, say_lines, warn
from luthier.cli.tune_modes import Modes, TuneRequest, run_in_mode, with_modes
from luthier.errors import InvalidInputError, LuthierError
from luthier.spec.signatures import COMMON, OUTPUT, WithHeadings
from luthier.store.url import without_password
from luthier.texts import LONGEST_NAME, check_name, visible

app = typer.Typer(
    help="Find good settings for expensive, noisy programs in few runs, and prove that they are better.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=False,
)


def main() -> None:
    """Run the command line; an error is one line and exit code 2."""
    _hide_password()
    prepare_streams()
    try:
        code = _called()
    except LuthierError as error:
        _fail(str(error))
    except TyperException as error:
        _fail(_usage(error))
    except KeyboardInterrupt:
        warn("interrupted")
        sys.exit(130)
    except BrokenPipeError:  # the reader, such as `head`, closed the pipe
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)
    except OSError as error:  # an error of the operating system, such as a deleted working directory
        _fail(f"{error.filename or 'the system'}: {error.strerror or error}; fix that and try again")
    sys.exit(code if isinstance(code, int) else 0)


def _called() -> object:
    """Call the command; without any arguments, print the help."""
    try:
        return app(standalone_mode=False, prog_name="luthier")
    except TyperException as error:
        if type(error).__name__ != "NoArgsIsHelpError":  # Typer does not export its class
            raise
        say_lines(error.format_message())
        return 0


@app.command(cls=WithHeadings, context_settings={"allow_interspersed_args": False})
@with_settings
@with_modes
def tune(
    command: Annotated[
        list[str] | None, typer.Argument(help="The command, with {NAME} in place of a value.", metavar="-- COMMAND")
    ] = None,
    parameters: Annotated[
        list[str] | None,
        typer.Option(
            "-p",
            "--param",
            help="Values to try: a,b,c or low..high[:step|:xFACTOR], then @DEFAULT.",
            metavar="NAME=SPEC",
            rich_help_panel=COMMON,
        ),
    ] = None,
    constraints: Annotated[
        list[str] | None,
        typer.Option(
            "-c",
            "--constraint",
            help="A condition on all configurations, e.g. 'threads <= 2 * depth'.",
            metavar="EXPR",
            rich_help_panel=COMMON,
        ),
    ] = None,
    environment: Annotated[
        list[str] | None,
        typer.Option(
            "-e",
            "--env",
            help="An environment variable for the command; TEXT may contain {NAME}.",
            metavar="NAME=TEXT",
            rich_help_panel=COMMON,
        ),
    ] = None,
    settings: Given = None,
    modes: Modes = None,
    maximize: Annotated[
        bool,
        typer.Option("--maximize", help="Higher is better; only with a single measure.", rich_help_panel=COMMON),
    ] = False,
    shell: Annotated[
        bool,
        typer.Option("--shell", help="Run COMMAND with sh -c; values are inserted in quotes.", rich_help_panel=COMMON),
    ] = False,
    name: Annotated[str, typer.Option(help="A name for the experiment.", rich_help_panel=OUTPUT)] = "",
    runner: RunnerName = None,
    store: StoreUrl = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> int:
    """Tune a command: measure the default, search, and verify that the best configuration is better.

    Example: luthier tune -p level=1..9@6 -p threads=1,2,4 -- zstd -{level} -T{threads} -kf big.log
    """
    from luthier.cli import arguments

    request = TuneRequest(
        command or [],
        parameters or [],
        constraints or [],
        environment or [],
        runner,
        settings or {},
        name,
        store,
        maximize=maximize,
        shell=shell,
        quiet=quiet,
        as_json=as_json,
    )
    if (code := run_in_mode(modes, request)) is not None:
        return code
    from luthier.launch import LaunchRequest, create, with_usual_slots
    from luthier.spec.experiment import Experiment

    template = arguments.template_from(command or [], environment or [], shell=shell)
    template = replace(template, where=arguments.runner_from(runner))
    given = dict(settings or {})
    if maximize:
        given["objectives"] = arguments.maximized(given.get("objectives", ["wall"]))
    values = read_settings(given)
    values["cwd"] = arguments.working_folder(values.get("cwd"))
    space = arguments.space_from(parameters or [], constraints or [])
    experiment = Experiment(space=space, command=template, **values)
    if "slots" not in given:
        experiment = with_usual_slots(experiment)
    note = arguments.default_note(parameters or [], experiment.space)
    name = check_name(name or visible(Path(template.argv[0]).name)[:LONGEST_NAME], "--name")
    launch = create(LaunchRequest(experiment, name, store))
    return show_result(work_on(launch, note=note, quiet=quiet), as_json=as_json)


@app.command()
def resume(
    number: Number,
    budget: Annotated[
        str | None,
        typer.Option(
            "-n",
            "--budget",
            help="Continue with a larger budget, also an experiment that has finished: +30 for 30 more runs, or a "
            "total.",
            metavar="+RUNS|RUNS",
        ),
    ] = None,
    store: StoreUrl = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> int:
    """Continue an experiment that was stopped or killed, or add runs to it; completed runs are not repeated.

    Example: luthier resume 3 --budget +30
    """
    from luthier import launch

    return show_result(work_on(launch.resume(number, store, budget), quiet=quiet), as_json=as_json)


@app.command("list")
def list_experiments(store: StoreUrl = None, as_json: AsJson = False) -> None:
    """List the experiments.

    Example: luthier list
    """
    from luthier.cli.listing import experiments_view
    from luthier.result.serial import record_json
    from luthier.store import open_store

    records = open_store(store).experiments()
    if as_json:
        print_json([record_json(record) for record in records])
    elif records:
        print_view(experiments_view(records))
    else:
        say("no experiments yet; start with: luthier tune --help")


@app.command()
def show(
    number: Number,
    everything: Annotated[bool, typer.Option("--all", help="Show all trials.")] = False,
    store: StoreUrl = None,
    as_json: AsJson = False,
) -> None:
    """Show the result of an experiment, its best trials and the importance of its parameters.

    Example: luthier show 3 --all
    """
    from luthier import launch
    from luthier.cli import summary
    from luthier.result import serial
    from luthier.result.facts import facts_json, find_facts
    from luthier.result.findings import stored_findings
    from luthier.result.importance import importances
    from luthier.store import open_server_store
    from luthier.store.ownership import status_text

    record, result = launch.open(number, store)
    found = find_facts(stored_findings(open_server_store(store), record, result, time.time()))
    importance = importances(result)
    if as_json:
        trials = [serial.trial_json(trial) for trial in result.trials]
        explained = serial.importance_json(importance)
        print_json({**serial.record_json(record), **facts_json(found), "importance": explained, "trials": trials})
        return
    say(f"experiment {record.id}: {record.name}, {status_text(record)}")
    say("")
    print_view(summary.facts_view(record, found))
    say("")
    print_view(summary.trials_view(result, everything=everything))
    if importance.unexplained is not None:
        say("")
        print_view(summary.importance_view(importance, result.experiment))


@app.command()
def stop(
    number: Number,
    now: Annotated[bool, typer.Option("--now", help="Kill the current runs instead of waiting for them.")] = False,
    verify: Annotated[
        bool, typer.Option("--verify", help="End the search only, and verify the best configuration found so far.")
    ] = False,
    store: StoreUrl = None,
) -> None:
    """Stop an experiment: current runs finish, and no new ones start.

    Example: luthier stop 3 --verify
    """
    from luthier import launch
    from luthier.store import open_store
    from luthier.store.ownership import status_text

    if now and verify:
        raise InvalidInputError("--now and --verify cannot be combined; give one of them")
    history = open_store(store)
    record = history.experiment(number)
    if status_text(record) not in ("queued", "running"):
        raise InvalidInputError(f"experiment {number} is not running: it is {status_text(record)}")
    if verify:
        launch.verify(number, history)
        say(f"experiment {number}: the search ends when its current runs have finished; then its best is verified")
        return
    history.request_stop(number, "kill" if now else "drain")
    when = "now; its current runs are killed" if now else "when its current runs have finished"
    say(f"experiment {number} stops {when}; continue it later with: luthier resume {number}")


@app.command()
def export(
    number: Number,
    form: Annotated[
        str, typer.Option("--format", "-f", help="The format: csv, json or, with pyarrow, parquet.")
    ] = "csv",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The file to write; the terminal by default.")
    ] = None,
    store: StoreUrl = None,
) -> None:
    """Export all runs of an experiment.

    Example: luthier export 3 --format json --output runs.json
    """
    from luthier import launch
    from luthier.report.export import write_runs

    _, result = launch.open(number, store)
    if output is not None or not sys.stdout.isatty():
        write_runs(result.experiment, result.runs, form, output or sys.stdout)
        return
    text = StringIO()
    write_runs(result.experiment, result.runs, form, text)
    print_data(text.getvalue())


@app.command()
def apply(
    number: Number,
    as_env: Annotated[
        bool, typer.Option("--env", help="Print the values as shell variables instead of the command line.")
    ] = False,
    best: Annotated[
        bool, typer.Option("--best", help="Print the best configuration found, even if it is not proven to be better.")
    ] = False,
    store: StoreUrl = None,
    as_json: AsJson = False,
) -> None:
    """Print the recommended configuration: the best one if it is proven to be better, else the default.

    Example: eval "$(luthier apply 3 --env)"
    """
    from luthier import launch
    from luthier.result.apply import applied

    record, result = launch.open(number, store)
    answer = applied(result, best=best)
    if not (best or result.improved):
        warn(f"experiment {record.id}: {result.verdict}")
    if as_json:
        print_json(dict(answer.config))
    else:
        print_data(f"{answer.variables if as_env else answer.line}\n")


def _hide_password() -> None:
    """Restart with the store in the environment if its URL has a password: `ps` shows command lines to all users."""
    words = sys.argv[1:]
    if not words or sys.orig_argv[-len(words) :] != words:
        return  # called by a program, not from a command line
    end = words.index("--") if "--" in words else len(words)
    for place, word in enumerate(words[:end]):
        name, equals, url = word.partition("=")
        if name == "--store":
            last = place + (1 if equals else 2)
            url = url if equals else " ".join(words[place + 1 : last])
            if without_password(url) != url:
                before = sys.orig_argv[1 : len(sys.orig_argv) - len(words)]
                arguments = [sys.executable, *before, *words[:place], *words[last:]]
                os.execve(sys.executable, arguments, {**os.environ, "LUTHIER_STORE": url})  # noqa: S606 - the same program


def _usage(error: TyperException) -> str:
    """The error of Typer in one line, with the invalid argument."""
    context = getattr(error, "ctx", None)
    message = getattr(error, "format_message", lambda: str(error))().replace("\n", " ").rstrip(".")
    for flag in getattr(getattr(error, "param", None), "opts", ()):
        before = sys.argv.index(flag) if flag in sys.argv else 1  # an argument comes right after the command
        if "Invalid" in message and (flag in sys.argv or not flag.startswith("-")) and before + 1 < len(sys.argv):
            message += f", got {sys.argv[before + 1]!r}"
    where = context.command_path.removeprefix("luthier").strip() if context is not None else ""
    return f"{where + ': ' if where else ''}{message}; see: luthier {where + ' ' if where else ''}--help"


def _fail(message: str) -> None:
    warn(" ".join(message.splitlines()))
    sys.exit(2)


for commands in (components, explain, native, reporting):
    commands.register(app)
