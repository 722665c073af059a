"""Tuning a Python function with one call."""

import logging
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import TypeAlias, Unpack

from luthier.engine.interrupts import Interrupts
from luthier.errors import InvalidInputError
from luthier.launch.runners import closed_at_end, function_runner, usual_slots
from luthier.launch.start import Launch, LaunchRequest, create, reopened
from luthier.result.result import Result
from luthier.runners.base import Runner
from luthier.runners.function import FunctionRunner, Returned
from luthier.space import Space
from luthier.spec.experiment import Experiment
from luthier.spec.objectives import Goal, Objective
from luthier.spec.settings import GivenSettings
from luthier.store import open_store
from luthier.store.base import ENDED
from luthier.texts import check_name, closest, shown
from luthier.trial import Config

log = logging.getLogger(__name__)

Measured: TypeAlias = Callable[[Config], Returned]
AnyRunner: TypeAlias = Runner | Callable[[int], Runner] | str
"""A runner, a function that makes one for a number of parallel runs, or a name such as `dask`."""


def tune(  # keywords, as for an experiment
    measure: Measured,
    space: Space,
    *,
    goal: Goal | None = None,
    goals: Sequence[Goal] = (),
    store: str = "memory:",
    name: str = "",
    runner: AnyRunner | None = None,
    **settings: Unpack[GivenSettings],
) -> Result:
    """Find a good configuration of `space` for `measure(config)` and verify that it beats the default.

    With `goals`, two or three of them, the function returns a number for each, and what is found is a Pareto front,
    `result.front`, without verification: `tune(f, space, goals=("minimize", "maximize"))`. With several `slots` the
    function is called from as many threads. With `store` (a file or a database URL) everything measured survives this
    process, and `resume` continues it, also after a `KeyboardInterrupt`. `luthier tune --help` explains the settings.
    What the command line says before the first run, such as which earlier experiments the search learns from, is logged
    at the level INFO, and is in `result.notes`.

    By default the function is called in this process. A `runner` is used instead: an object with the methods of
    `luthier.runners.base.Runner`, or a function that makes one for a number of slots, such as
    `lambda slots: MyRunner(measure, slots)`. It is given up to `slots` jobs at a time, and each `Execution` that it
    reports holds the measured `value`; `measure` is then not called by luthier itself. With the name `dask` or
    `dask:tcp://HOST:PORT` the function is called on the workers of a Dask cluster, which need luthier and everything
    that the function imports; without `slots` it is called on as many at a time as there are workers.
    """
    known = [*GivenSettings.__annotations__, "goal", "goals"]
    if unknown := [option for option in settings if option not in known]:
        near = closest(unknown[0], known)
        hint = f"did you mean {near}?" if near else f"the options are {', '.join(known)}"
        raise InvalidInputError(f"tune: unknown option {unknown[0]!r}; {hint}")
    if goals and (goal is not None or isinstance(goals, str)):
        raise InvalidInputError("tune: give one goal, or a list of goals with one for each returned number")
    objectives = tuple(Objective("returned", one) for one in goals or [goal or "minimize"])
    if isinstance(runner, str) and "slots" not in settings:
        settings["slots"] = usual_slots(runner)
    experiment = Experiment(space=space, objectives=objectives, **settings)  # type: ignore[arg-type]  # it checks them
    used = _runner_of(measure, experiment, runner)
    name = check_name(name or getattr(measure, "__name__", "function"), "name")
    launch = create(LaunchRequest(experiment, name, store))
    for note in launch.notes:
        log.info("experiment %d: %s", launch.record.id, note)
    return replace(_work(launch, used, is_ours=isinstance(runner, str)), notes=launch.notes)


def resume(
    measure: Measured,
    number: int,
    *,
    store: str,
    runner: AnyRunner | None = None,
    budget: str | int | None = None,
) -> Result:
    """Continue experiment `number` of `store`, which tuned this function and was stopped or killed.

    With a `budget`, `"+30"` for 30 more runs or a total, also one that has finished: the search continues and knows
    what was measured, and is verified again. `runner` is the same as for `tune`.
    """
    history = open_store(store)
    launch = reopened(history, history.experiment(number), budget, store)
    if launch.experiment.command is not None:
        raise InvalidInputError(f"experiment {number} tunes a command; continue it with: luthier resume {number}")
    used = _runner_of(measure, launch.experiment, runner)
    return _work(launch, used, is_ours=isinstance(runner, str))


def _work(launch: Launch, runner: Runner, *, is_ours: bool) -> Result:
    """Work on the experiment to its end; a `KeyboardInterrupt` if it was interrupted before."""
    interrupts = Interrupts()
    with closed_at_end(runner) if is_ours else nullcontext():
        record, result = launch.work(interrupts=interrupts, runner=runner)
    if interrupts.count and record.status not in ENDED:
        raise KeyboardInterrupt(f"experiment {record.id} was interrupted; luthier.resume continues it")
    return result


def _runner_of(measure: Measured, experiment: Experiment, runner: AnyRunner | None) -> Runner:
    if runner is None:
        return FunctionRunner(measure, slots=experiment.slots)
    if isinstance(runner, str):
        return function_runner(runner, measure, experiment.slots)
    made = runner if isinstance(runner, Runner) else runner(experiment.slots) if callable(runner) else None
    if not isinstance(made, Runner):
        raise InvalidInputError(
            f"runner: {shown(runner)} is not a runner, nor makes one; it needs submit, poll, cancel and started_at"
        )
    return made
