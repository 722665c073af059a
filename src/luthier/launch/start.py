"""Creating experiments, resuming them, and working on them and on what follows: the same for everybody who asks."""

import os
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

from luthier.engine.interrupts import Interrupts
from luthier.engine.loop import Watcher
from luthier.engine.session import carry_on, optimizer_of, resumable
from luthier.errors import InvalidInputError
from luthier.launch import stored
from luthier.launch.earlier import Past, learn_from, learned, learned_in, with_earlier, with_weights
from luthier.launch.runners import build_libraries, closed_at_end, runner_of
from luthier.measures.registry import measures_from
from luthier.plugins import Registry
from luthier.result.result import Result
from luthier.runners.base import Runner
from luthier.runners.registry import runner_kind
from luthier.spec.experiment import Experiment
from luthier.spec.origin import origin_in
from luthier.spec.rules import is_learned, needs_relation_to_time
from luthier.spec.template import Template
from luthier.store import open_store
from luthier.store.base import ENDED, Record, RequestedBy, Store
from luthier.store.server_store import ServerStore
from luthier.trial import Json


@dataclass(frozen=True, slots=True)
class Requester:
    """The user of a server who asks for an experiment, which then waits there for a worker.

    `past` are the experiments that this user may see. `now` is the time of the request.
    """

    store: ServerStore
    by: RequestedBy
    past: Past
    now: float


@dataclass(frozen=True, slots=True)
class LaunchRequest:
    """What is to be created: an experiment, its name, and the URL of its store or the user of a server who asks.

    `notes` are what the user is told first, found when the experiment was read.
    """

    experiment: Experiment
    name: str
    store: str | None = None
    requester: Requester | None = None
    notes: tuple[str, ...] = ()


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
    before: "Done | None" = None
    """The experiment that this one follows, if that has ended earlier."""

    def work(
        self,
        watch: Watcher = lambda *_: None,
        interrupts: Interrupts | None = None,
        runner: Runner | None = None,
    ) -> tuple[Record, Result]:
        """Run it until it is finished or interrupted; `interrupts` counts the interrupts.

        By default with the runner that it asks for; a `runner` that is given is not closed at the end.
        """
        with closed_at_end(runner_of(self.experiment)) if runner is None else nullcontext(runner) as used:
            record, result = carry_on(
                self.store, self.record, self.experiment, used, watch=watch, interrupts=interrupts
            )
        learn_from(record, self.experiment, result.runs, self.url)
        return record, result


@dataclass(frozen=True, slots=True)
class Done:
    """An experiment that was worked on, until its end or an interrupt, and the one that it followed."""

    record: Record
    result: Result
    is_interrupted: bool = False
    before: "Done | None" = None


@dataclass(frozen=True, slots=True)
class Told:
    """What came out of an experiment and of what followed it: for programs, and around the last result for people."""

    plain: Mapping[str, Json]
    above: tuple[str, ...]
    below: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FollowUp:
    """What a wing does after experiments that are the first step of a tuning of its own.

    `concerns` tells whether an experiment is such a step. When it has ended, `following` gives the next experiment, or
    None if nothing is left to do; `earlier` is then the experiment that has done it already, if there is one. `tell`
    says what came out.
    """

    concerns: Callable[[Record], bool]
    following: Callable[[Record, Result, str | None], Launch | None]
    earlier: Callable[[Record, Result, str | None], Record | None]
    tell: Callable[[Done], Told]


FOLLOW_UPS: Registry[FollowUp] = Registry("follow-up", {}, fits=lambda thing: isinstance(thing, FollowUp))
"""What wings do after experiments; only asked about those that have an origin."""

View: TypeAlias = Callable[[Launch], AbstractContextManager[Watcher]]
"""What shows the progress of an experiment: entered before it begins, and left when it ends."""


def unseen(_launch: Launch) -> AbstractContextManager[Watcher]:
    """A view that shows nothing."""
    return nullcontext(lambda *_: None)


def create(request: LaunchRequest) -> Launch:
    """Check everything that can be checked, then create the experiment in the store.

    It learns from earlier experiments first, unless it knows something already because it is a copy. Its program and
    libraries are checked and built only if it runs on this machine, not if it waits for a worker.
    """
    experiment, requester = request.experiment, request.requester
    measures_from([objective.measure for objective in experiment.objectives])
    optimizer_of(experiment)
    if requester is None:
        _check_program(experiment)
        build_libraries(experiment)
        history = open_store(request.store)
        past, now, by = Past.of(history), time.time(), None
    else:
        history, past, now, by = requester.store.history, requester.past, requester.now, requester.by
    informed = experiment if experiment.earlier is not None else with_earlier(experiment, request.name, past)
    if is_learned(informed.impact_first) and informed.picker_weights is None:
        informed = with_weights(informed, learned_in(request.store) if requester is None else requester.store.learned)
    notes = (*request.notes, *learned(experiment, informed), *assumptions(experiment))
    record = history.create(request.name, informed.to_json(), now, by)
    return Launch(history, record, informed, notes, request.store)


def resume(number: int, store: str | None = None, budget: str | int | None = None) -> Launch:
    """A stored experiment that is not finished, or one that gets a larger `budget`: `+30` or a total.

    Of one that has ended, without a `budget`, what follows it, if that is not done yet.
    """
    history = open_store(store)
    record = history.experiment(number)
    rule = _follow_up(record)
    if rule is not None and budget is None and record.status in ENDED:
        result = stored.open(number, history)[1]
        upcoming = rule.following(record, result, store)
        if upcoming is not None:
            return replace(upcoming, before=Done(record, result))
    launch = reopened(history, record, budget, store)
    if launch.experiment.command is None:
        raise InvalidInputError(
            f"experiment {number} tunes a Python function; continue it with luthier.resume in that program"
        )
    return launch


def reopened(history: Store, record: Record, budget: str | int | None, url: str | None) -> Launch:
    """A stored experiment with something left to do, also one that tunes a Python function."""
    return Launch(history, record, resumable(history, record, budget), url=url)


def work_through(launch: Launch, view: View = unseen) -> Done:
    """Work on an experiment and then on what follows it, to the end or until an interrupt."""
    done, upcoming = launch.before, launch
    while True:
        interrupts = Interrupts()
        with view(upcoming) as watch:
            record, result = upcoming.work(watch, interrupts)
        done = Done(record, result, interrupts.count > 0 and record.status not in ENDED, done)
        rule = None if done.is_interrupted else _follow_up(record)
        if rule is None:
            return done
        following = rule.following(record, result, launch.url)
        if following is None:
            earlier = rule.earlier(record, result, launch.url)
            return done if earlier is None else Done(*stored.open(earlier.id, launch.url), before=done)
        upcoming = following


def told(done: Done) -> Told | None:
    """What came out of an experiment with its follow-up; None for one that no wing follows up."""
    first = done
    while first.before is not None:
        first = first.before
    rule = _follow_up(first.record)
    return None if rule is None else rule.tell(done)


def _follow_up(record: Record) -> FollowUp | None:
    if origin_in(record.settings) is None:
        return None
    rules = map(FOLLOW_UPS.get, FOLLOW_UPS.own())
    return next((rule for rule in rules if rule.concerns(record)), None)


def assumptions(experiment: Experiment) -> tuple[str, ...]:
    """What a criterion to stop assumes of a measure that is not a time."""
    objective = experiment.objective
    if objective.is_time or objective.is_io_time or not any(map(needs_relation_to_time, experiment.stop)):
        return ()
    inversely = "inverse " if objective.maximizes else ""
    return (f"stop learned: the time of a run is assumed to be in {inversely}proportion to {objective.measure}",)


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
