"""Tuning a Python function: the whole of luthier in one call."""

import time
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from typing import TypedDict, Unpack

from luthier.analysis.result import Result
from luthier.engine.session import carry_on, resumable
from luthier.errors import InvalidInputError
from luthier.runners.function import FunctionRunner, Returned
from luthier.space import Space
from luthier.spec import Experiment, Goal, Objective
from luthier.store import open_store
from luthier.texts import check_name
from luthier.trial import Config, Value


class Settings(TypedDict, total=False):
    """The options of `tune`, as `luthier tune --help` explains them."""

    budget: int
    seed: int
    optimizer: str
    options: Mapping[str, Value]
    workers: int
    resample: str
    estimator: str
    time_limit_s: float
    timeout_s: float
    prune: float
    stop: tuple[str, ...]
    verify_pairs: int
    sentinels: int


Measured = Callable[[Config], Returned]


def tune(
    measure: Measured,
    space: Space,
    *,
    goal: Goal | None = None,
    goals: Sequence[Goal] = (),
    store: str = "memory:",
    name: str = "",
    first: Sequence[Mapping[str, Value]] = (),
    **settings: Unpack[Settings],
) -> Result:
    """Find a good configuration of `space` for `measure(config)` and verify that it beats the default.

    With `goals`, two or three of them, the function returns a number for each, and what is found is a Pareto front,
    `result.front`, without verification: `tune(f, space, goals=("minimize", "maximize"))`. Several `workers` call the
    function from as many threads. With `store` (a file or a database URL) everything measured survives this process,
    and `resume` goes on with it. The configurations of `first` are measured right after the default.
    """
    known = [*Settings.__annotations__, "goal", "goals", "first"]
    if unknown := [option for option in settings if option not in known]:
        near = get_close_matches(unknown[0], known, n=1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"
        raise InvalidInputError(f"tune: no option {unknown[0]!r}; {hint}")
    if goals and (goal is not None or isinstance(goals, str)):
        raise InvalidInputError("tune: give one goal, or goals as a list with one for each number that is returned")
    main, *others = goals or [goal or "minimize"]
    experiment = Experiment(
        space=space,
        measure="returned",
        goal=main,
        further=tuple(Objective("returned", goal) for goal in others),
        first=first,  # type: ignore[arg-type]  # checked and made into configurations there
        **settings,
    )
    history = open_store(store)
    name = check_name(name or getattr(measure, "__name__", "function"), "name")
    record = history.create(name, experiment.to_json(), time.time())
    return carry_on(history, record, experiment, _runner_of(measure, experiment), watch=lambda *_: None)[1]


def resume(measure: Measured, number: int, *, store: str) -> Result:
    """Go on with experiment `number` of `store`, which tuned this function and was stopped or killed."""
    history = open_store(store)
    record = history.experiment(number)
    experiment = resumable(record)
    if experiment.command is not None:
        raise InvalidInputError(f"experiment {number} tunes a command; go on with: luthier resume {number}")
    return carry_on(history, record, experiment, _runner_of(measure, experiment), watch=lambda *_: None)[1]


def _runner_of(measure: Measured, experiment: Experiment) -> FunctionRunner:
    return FunctionRunner(measure, slots=experiment.workers)
