"""One process working on one stored experiment: claim it, replay it, continue it, release it."""

import math
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace

from luthier.engine.interrupts import Interrupts
from luthier.engine.ledger import Ledger
from luthier.engine.loop import Loop, Machinery, Watcher
from luthier.engine.plan import Plan
from luthier.engine.refinement import refined
from luthier.errors import InUseError, InvalidInputError, LuthierError
from luthier.measures.registry import measures_from
from luthier.optimizers import Optimizer, make_optimizer
from luthier.policies.stop import AfterSeconds, any_of
from luthier.result.result import Result, conclude
from luthier.result.search_speedup import beside_random
from luthier.result.working_time import pauses_of
from luthier.runners.base import Runner
from luthier.spec.experiment import Experiment
from luthier.store.base import ENDED, Record, Status, Store
from luthier.store.ownership import claim
from luthier.trial import Json


def carry_on(
    store: Store,
    record: Record,
    experiment: Experiment,
    runner: Runner,
    *,
    watch: Watcher = lambda *_: None,
    interrupts: Interrupts | None = None,
    virtual_clock: Callable[[], float] | None = None,
) -> tuple[Record, Result]:
    """Continue a stored experiment after its last recorded event, until it is done or interrupted.

    If `experiment` is not the one of the record, because it was given more runs, the store is changed with the claim.

    `interrupts` counts the interrupts for the caller. A runner that only simulates runs has a `virtual_clock`, which is
    then used for everything.
    """
    is_changed = experiment != Experiment.from_json(record.settings)
    owner = claim(store, record, experiment.to_json() if is_changed else None)
    plan = plan_of(experiment)
    counted = interrupts or Interrupts()
    with counted, Ledger(store, record, owner, gave_up=lambda: counted.count > 0) as ledger:
        try:
            plan.replay(ledger.runs())
            measure = measures_from([objective.measure for objective in experiment.objectives])
            clock, timer = virtual_clock or time.time, virtual_clock or time.monotonic
            machinery = Machinery(runner, measure, experiment.prune_rule, clock, timer)
            finished = Loop(plan, machinery, ledger, watch=watch).run(counted)
        except InUseError:
            raise  # another process works on it now
        except BaseException as error:
            with suppress(LuthierError):
                status: Status = "stopped" if isinstance(error, KeyboardInterrupt) else "failed"
                ledger.close(status, summary(conclude(experiment, plan.runs), f"{type(error).__name__}: {error}"))
            raise
        result = conclude(experiment, plan.runs)
        ended: Status = "no result" if result.winner is None else "finished"
        ledger.close(ended if finished else "stopped", summary(result, plan.ending))
    record = store.experiment(record.id)
    return record, beside_random(store, record, replace(result, pauses=pauses_of(record)))


def resumable(store: Store, record: Record, budget: str | int | None = None) -> Experiment:
    """The experiment of a record; an error if it has ended and gets no new `budget`."""
    if budget is not None:
        return refined(store, record, budget)
    if record.status in ENDED:
        raise InvalidInputError(
            f"experiment {record.id} {ENDED[record.status]}; look at it with: luthier show {record.id}, "
            f"or add runs with: luthier resume {record.id} --budget +30"
        )
    return Experiment.from_json(record.settings)


def summary(result: Result, ending: str | None) -> Mapping[str, Json]:
    """What listings show without reading every run."""
    comparison = result.comparison
    return {
        "ending": ending,
        "verdict": result.verdict,
        "improved": result.improved,
        "best": None if result.winner is None else dict(result.winner.config),
        "value": None if result.winner is None or result.winner.estimate is None else result.winner.estimate.value,
        "speedup": _finite(result.speedup),
        "low": None if comparison is None else _finite(comparison.low),
        "high": None if comparison is None else _finite(comparison.high),
        "kind": None if comparison is None else comparison.kind,
        "cost_s": result.cost_s,
    }


def _finite(number: float | None) -> float | None:
    """A number that JSON can hold, or None: a ratio of extreme values may be infinite."""
    return number if number is not None and math.isfinite(number) else None


def optimizer_of(experiment: Experiment) -> Optimizer:
    """The search that was asked for; for several objectives `auto` is the one that looks for a front."""
    for given, setting in (("seed", "seed"), ("budget", "budget"), ("earlier", "after")):
        if given in experiment.options:
            raise InvalidInputError(f"options: {given} is not an option of an optimizer; use the setting {setting}")
    name = "pareto" if experiment.optimizer == "auto" and experiment.has_front else experiment.optimizer
    return make_optimizer(
        name,
        experiment.space,
        seed=experiment.seed,
        budget=experiment.budget,
        earlier=experiment.earlier,
        picker=experiment.picker_rule,
        **experiment.options,
    )


def plan_of(experiment: Experiment) -> Plan:
    """The plan of a new experiment, with the search and the rules it asks for."""
    stop = experiment.stop_rule
    if experiment.time_limit_s is not None:
        stop = any_of(AfterSeconds(experiment.time_limit_s), stop)
    return Plan(experiment, optimizer_of(experiment), stop=stop, resample=experiment.resample_rule)
