"""From the words of the command line to a running experiment."""

import os
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from luthier.engine.result import Result, conclude
from luthier.engine.session import carry_on, optimizer_of, resumable
from luthier.engine.transfer import best_configs, carried_over
from luthier.errors import InvalidInputError
from luthier.measures.registry import measures_from
from luthier.runners.base import Runner
from luthier.runners.command import Command, CommandRunner
from luthier.space import Space
from luthier.spec import (
    GOALS,
    Experiment,
    Goal,
    Objective,
    Template,
    names_default,
    parse_duration,
    parse_parameter,
    parse_value,
)
from luthier.spec.script import JobScript
from luthier.store import data_directory, open_store
from luthier.store.base import Record, Store
from luthier.trial import Config, Value
from luthier.views.progress import progress_view
from luthier.views.terminal import say
from luthier.views.text import config_text


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


def launch(
    experiment: Experiment, name: str, store_url: str | None, *, note: str, after: Sequence[int] = ()
) -> tuple[Record, Result]:
    """Check everything that can be checked, then create the experiment and work on it; quietly without a note.

    It begins with what the experiments numbered in `after` have found.
    """
    measures_from([objective.measure for objective in experiment.objectives])
    optimizer_of(experiment)
    _check_program(experiment)
    store = open_store(store_url)
    experiment = _begun_after(store, experiment, after)
    record = store.create(name, experiment.to_json(), time.time())
    if note:
        count = len(experiment.first)
        more = f"; tried right after it: {count} configuration{'' if count == 1 else 's'}" if count else ""
        say(note + more, sys.stderr)
    return _work(store, record, experiment, quiet=not note)


def _begun_after(store: Store, experiment: Experiment, after: Sequence[int]) -> Experiment:
    """The experiment that also tries first what was best in each of the earlier ones."""
    space, first = experiment.space, list(experiment.first)
    for number in after:
        earlier = conclude(Experiment.from_json(store.experiment(number).settings), store.runs(number))
        carried = [carried_over(config, space) for config in best_configs(earlier)]
        fitting = [config for config in carried if config is not None and config != space.default]
        if not fitting:
            raise InvalidInputError(
                f"--after {number}: none of its best configurations can be tried here, apart from the default; "
                f"look at them with: luthier show {number}"
            )
        first += fitting
    return replace(experiment, first=tuple(first))


def relaunch(number: int, store_url: str | None, *, quiet: bool) -> tuple[Record, Result]:
    """Go on with a stored experiment."""
    store = open_store(store_url)
    record = store.experiment(number)
    experiment = resumable(record)
    if experiment.command is None:
        raise InvalidInputError(
            f"experiment {number} tunes a Python function; go on with luthier.resume in that program"
        )
    return _work(store, record, experiment, quiet=quiet)


def _work(store: Store, record: Record, experiment: Experiment, *, quiet: bool) -> tuple[Record, Result]:
    with progress_view(f"experiment {record.id}: {record.name}", experiment, quiet=quiet) as view:
        return carry_on(store, record, experiment, _runner, watch=view)


def _runner(experiment: Experiment, record: Record) -> Runner:
    template = experiment.command
    if isinstance(template, JobScript):
        from luthier.views.jobs import job_runner  # loads what only declared components need

        return job_runner(experiment, template)

    def render(config: Config) -> Command:
        if template is None:
            raise InvalidInputError(f"experiment {record.id} has no command")
        argv, environment = template.render(experiment.space, config)
        return Command(argv, environment, cwd=experiment.cwd)

    return CommandRunner(render, data_directory() / "runs", slots=experiment.workers)


def _check_program(experiment: Experiment) -> None:
    """A program that is not there is found out before anything is written, unless a parameter is part of its name."""
    if not isinstance(experiment.command, Template) or experiment.command.shell:
        return
    argv, environment = experiment.command.render(experiment.space, experiment.space.default)
    if argv[0] != experiment.command.argv[0]:
        return
    path = environment.get("PATH", os.environ.get("PATH", os.defpath))
    folders = [""] if "/" in argv[0] else path.split(os.pathsep)
    places = [Path(experiment.cwd or ".", folder, argv[0]) for folder in folders]
    if not any(place.is_file() and os.access(place, os.X_OK) for place in places):
        raise InvalidInputError(f"{argv[0]}: no such program; check its name or give its whole path")
