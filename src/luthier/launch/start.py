"""Starting and resuming experiments: store, runner and engine are put together here."""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from luthier.analysis.result import Result, conclude
from luthier.analysis.transfer import best_configs, carried_over
from luthier.engine.interrupts import Interrupts
from luthier.engine.loop import Watcher
from luthier.engine.session import carry_on, optimizer_of, resumable
from luthier.errors import InvalidInputError
from luthier.launch.runners import closed_at_end, runner_of
from luthier.measures.registry import measures_from
from luthier.runners.registry import runner_kind
from luthier.spec.experiment import Experiment
from luthier.spec.template import Template
from luthier.store import open_store
from luthier.store.base import Record, Store


@dataclass(frozen=True, slots=True)
class Launch:
    """An experiment in its store, ready to run."""

    store: Store
    record: Record
    experiment: Experiment

    def work(self, watch: Watcher, interrupts: Interrupts | None = None) -> tuple[Record, Result]:
        """Run it until it is finished or interrupted; `interrupts` counts the interrupts."""
        with closed_at_end(runner_of(self.experiment)) as runner:
            return carry_on(self.store, self.record, self.experiment, runner, watch=watch, interrupts=interrupts)


def create(experiment: Experiment, name: str, store_url: str | None) -> Launch:
    """Check everything that can be checked, then create the experiment in the store."""
    measures_from([objective.measure for objective in experiment.objectives])
    optimizer_of(experiment)
    _check_program(experiment)
    store = open_store(store_url)
    experiment = with_earlier_best(experiment, store, store.experiment)
    return Launch(store, store.create(name, experiment.to_json(), time.time()), experiment)


def reopen(number: int, store_url: str | None) -> Launch:
    """A stored experiment that is not finished."""
    store = open_store(store_url)
    record = store.experiment(number)
    experiment = resumable(record)
    if experiment.command is None:
        raise InvalidInputError(
            f"experiment {number} tunes a Python function; continue it with luthier.resume in that program"
        )
    return Launch(store, record, experiment)


def with_earlier_best(experiment: Experiment, store: Store, find: Callable[[int], Record]) -> Experiment:
    """The experiment with the best configurations of those in `after` to try first; `find` returns their records."""
    if not experiment.after:
        return experiment
    space, first = experiment.space, list(experiment.first)
    for number in experiment.after:
        earlier = conclude(Experiment.from_json(find(number).settings), store.runs(number))
        carried = [carried_over(config, space) for config in best_configs(earlier)]
        fitting = [config for config in carried if config is not None and config != space.default]
        if not fitting:
            raise InvalidInputError(
                f"after: none of the best configurations of experiment {number} is valid here, except the default; "
                f"see: luthier show {number}"
            )
        first += fitting
    return replace(experiment, first=tuple(first))


def _check_program(experiment: Experiment) -> None:
    """Raise if the program does not exist, before anything is stored.

    Not checked if a parameter is in its name, or if it runs on another machine.
    """
    if not isinstance(experiment.command, Template) or experiment.command.shell:
        return
    name, _, argument = experiment.command.where.partition(":")
    if not runner_kind(name).is_local_with(argument):
        return
    argv, environment = experiment.command.render(experiment.space, experiment.space.default)
    if argv[0] != experiment.command.argv[0]:
        return
    path = environment.get("PATH", os.environ.get("PATH", os.defpath))
    folders = [""] if "/" in argv[0] else path.split(os.pathsep)
    places = [Path(experiment.cwd or ".", folder, argv[0]) for folder in folders]
    if not any(place.is_file() and os.access(place, os.X_OK) for place in places):
        raise InvalidInputError(f"{argv[0]}: no such program; check its name or give its full path")
