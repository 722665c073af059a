"""Starting and resuming experiments: store, runner and engine are put together here."""

import os
import time
from dataclasses import dataclass
from pathlib import Path

from luthier.engine.interrupts import Interrupts
from luthier.engine.loop import Watcher
from luthier.engine.session import carry_on, optimizer_of, resumable
from luthier.errors import InvalidInputError
from luthier.launch.earlier import Past, learnt, with_earlier
from luthier.launch.instruments import build_libraries
from luthier.launch.learned_weights import learn_from, learnt_in, with_weights
from luthier.launch.runners import closed_at_end, runner_of
from luthier.measures.registry import measures_from
from luthier.result.result import Result
from luthier.runners.registry import runner_kind
from luthier.spec.experiment import Experiment
from luthier.spec.rules import is_learned, needs_relation_to_time
from luthier.spec.template import Template
from luthier.store import open_store
from luthier.store.base import Record, Store


@dataclass(frozen=True, slots=True)
class Launch:
    """An experiment in its store, ready to run."""

    store: Store
    record: Record
    experiment: Experiment
    notes: tuple[str, ...] = ()
    """What to tell the user first."""
    url: str | None = None
    """The URL of the store."""

    def work(self, watch: Watcher, interrupts: Interrupts | None = None) -> tuple[Record, Result]:
        """Run it until it is finished or interrupted; `interrupts` counts the interrupts."""
        with closed_at_end(runner_of(self.experiment)) as runner:
            record, result = carry_on(
                self.store, self.record, self.experiment, runner, watch=watch, interrupts=interrupts
            )
        learn_from(record, self.experiment, result.runs, self.url)
        return record, result


def create(experiment: Experiment, name: str, store_url: str | None) -> Launch:
    """Check everything that can be checked, then create the experiment in the store."""
    measures_from([objective.measure for objective in experiment.objectives])
    optimizer_of(experiment)
    _check_program(experiment)
    build_libraries(experiment)
    store = open_store(store_url)
    informed = with_earlier(experiment, name, Past.of(store))
    informed = with_weights(informed, learnt_in(store_url) if is_learned(informed.impact_first) else None)
    notes = (*learnt(experiment, informed), *assumptions(experiment))
    record = store.create(name, informed.to_json(), time.time())
    return Launch(store, record, informed, notes, store_url)


def assumptions(experiment: Experiment) -> tuple[str, ...]:
    """What a criterion to stop assumes of a measure that is not a time."""
    objective = experiment.objective
    if objective.is_time or objective.is_io_time or not any(map(needs_relation_to_time, experiment.stop)):
        return ()
    inversely = "inverse " if objective.maximizes else ""
    return (f"--stop learned: the time of a run is assumed to be in {inversely}proportion to {objective.measure}",)


def reopen(number: int, store_url: str | None, budget: str | None = None) -> Launch:
    """A stored experiment that is not finished, or one that gets a larger `budget`: `+30` or a total."""
    store = open_store(store_url)
    record = store.experiment(number)
    experiment = resumable(store, record, budget)
    if experiment.command is None:
        raise InvalidInputError(
            f"experiment {number} tunes a Python function; continue it with luthier.resume in that program"
        )
    return Launch(store, record, experiment, url=store_url)


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
