"""The learned subset picker learns on: an experiment begins with what the store knows, and adds to it when it ended."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace

from luthier.errors import LuthierError
from luthier.result.tuned_parameters import replayed
from luthier.spec.experiment import Experiment
from luthier.spec.rules import is_learned
from luthier.store import open_server_store
from luthier.store.base import ENDED, Record
from luthier.store.server_store import Learnt
from luthier.trial import Json, Run

log = logging.getLogger(__name__)

SUBSET_PICKER = "subset picker"
"""The name of the weights in the store."""

_MEMORY = "memory:"


def learnt_in(url: str | None) -> Learnt | None:
    """What was learnt in the store with this URL; a store in memory keeps nothing."""
    return None if url == _MEMORY else open_server_store(url).learnt


def with_weights(experiment: Experiment, learnt: Learnt | None) -> Experiment:
    """The experiment with the weights of its picker, if it has a learned one, so that a resume uses the same."""
    if not is_learned(experiment.impact_first):
        return experiment
    from luthier.policies.learned_subset import shipped

    known = None if learnt is None else learnt.get(SUBSET_PICKER)
    return replace(experiment, picker_weights=shipped().to_json() if known is None else known)


def learn_from(record: Record, experiment: Experiment, runs: Sequence[Run], url: str | None) -> None:
    """Learn from an experiment that has ended; without success, a line in the log."""
    if record.status not in ENDED or not is_learned(experiment.impact_first) or experiment.picker_weights is None:
        return
    from luthier.policies.learned_subset import Recorder, learnt_from, shipped
    from luthier.policies.picker_networks import Networks

    recorder = Recorder(Networks.from_json(experiment.picker_weights))
    replayed(experiment, runs, recorder)
    decisions = recorder.decisions()

    def better(known: Mapping[str, Json] | None) -> Mapping[str, Json]:
        before = shipped() if known is None else Networks.from_json(known)
        return learnt_from(before, decisions, seed=experiment.seed).to_json()

    try:
        learnt = learnt_in(url)
        if learnt is not None:
            learnt.change(SUBSET_PICKER, better)
    except LuthierError as error:
        log.warning("what experiment %d taught the subset picker is not kept: %s", record.id, error)
