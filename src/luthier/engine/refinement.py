"""More runs for an experiment that was stopped or has ended: a new search that knows the old one."""

import re
from collections.abc import Sequence
from dataclasses import replace

from luthier.errors import InvalidInputError
from luthier.spec.experiment import Experiment, Refinement
from luthier.store.base import ENDED, Record, Store
from luthier.texts import shown
from luthier.trial import Lost, Run

_NOTATION = re.compile(r"(\+?)([0-9]{1,9})")


def refined(store: Store, record: Record, budget: str | int) -> Experiment:
    """The experiment of a record with a larger budget: `+30` for 30 more runs, or a total such as `90`.

    If its search had ended, the runs made so far count, and after the new search there is a new verification.
    Otherwise more runs are added to the old budget.
    """
    experiment = Experiment.from_json(record.settings)
    if experiment.origin is not None and experiment.origin.searched is not None:
        search = experiment.origin.searched.number
        raise InvalidInputError(
            f"experiment {record.id} compares two configurations; add runs to their search with: "
            f"luthier resume {search} --budget +30"
        )
    runs = store.runs(record.id)
    used = sum(not isinstance(run.outcome, Lost) for run in runs)
    has_ended = record.status in ENDED or any(run.purpose == "verify" for run in _of_last_round(experiment, runs))
    given = _NOTATION.fullmatch(str(budget).strip())
    if given is None:
        raise InvalidInputError(f"budget: {shown(budget)} is not understood; write +30 for 30 more runs, or a total")
    more = int(given[2])
    total = more + (used if has_ended else experiment.budget) if given[1] else more
    if given[1] and not more:
        raise InvalidInputError("budget: +0 adds no runs; give 1 or more")
    if total <= used:
        raise InvalidInputError(
            f"budget: experiment {record.id} has made {used} runs; give a total above that, or +30 for 30 more"
        )
    if not has_ended:
        return replace(experiment, budget=total)
    now = Refinement(2 * len(runs) - sum(run.outcome is None for run in runs), used)
    return replace(experiment, budget=total, refinements=(*experiment.refinements, now))


def _of_last_round(experiment: Experiment, runs: Sequence[Run]) -> list[Run]:
    last = len(experiment.refinements)
    return [run for run in runs if experiment.round_of(run.submit_order) == last]
