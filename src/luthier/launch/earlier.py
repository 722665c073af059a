"""What a new experiment learns from earlier ones of its store, and what an ended one teaches the store.

Both are stored with the experiment, so that a resume uses the same.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from luthier.errors import InvalidInputError, LuthierError
from luthier.result.result import Result, conclude
from luthier.result.tuned_parameters import replayed
from luthier.spec.experiment import Experiment
from luthier.spec.rules import is_learned
from luthier.store import open_server_store
from luthier.store.base import ENDED, Record, Store
from luthier.store.server_store import Learned
from luthier.transfer.lessons import best_configs, carried_over, earlier_from, lower_is_better
from luthier.transfer.related import related
from luthier.trial import Config, Json, Run

log = logging.getLogger(__name__)

SUBSET_PICKER = "subset picker"
"""The name of the weights in the store."""

_MEMORY = "memory:"


@dataclass(frozen=True, slots=True)
class Past:
    """The earlier experiments that a new one may learn from: one by number, and all of them for `--after auto`."""

    store: Store
    find: Callable[[int], Record]
    listed: Callable[[], Sequence[Record]]

    @staticmethod
    def of(store: Store) -> "Past":
        """All experiments of a store."""
        return Past(store, store.experiment, store.experiments)


def with_earlier(experiment: Experiment, name: str, past: Past) -> Experiment:
    """The experiment with what is known from those in `after`; `auto` there is replaced by the numbers found."""
    if not experiment.after:
        return experiment
    if experiment.after == ("auto",):
        chosen = related(experiment, name, past.listed())
    else:
        chosen = [(past.find(int(number)), "") for number in experiment.after]
    first, used = list(experiment.first), list[tuple[Record, Result, str]]()
    for record, why in chosen:
        result = conclude(Experiment.from_json(record.settings), past.store.runs(record.id))
        fitting = _fitting(experiment, result)
        if not fitting and not why:
            raise InvalidInputError(
                f"after: none of the best configurations of experiment {record.id} is valid here, except the default; "
                f"see: luthier show {record.id}"
            )
        first += fitting
        used.append((record, result, why))
    return _informed(replace(experiment, first=tuple(first), after=tuple(record.id for record, _, _ in used)), used)


def learned(asked: Experiment, informed: Experiment) -> tuple[str, ...]:
    """For people: which earlier experiments are used, or that none was found."""
    if asked.after == ("auto",) and not informed.after:
        return ("learns from no earlier experiment: none in the store tunes the same by the same measure",)
    return () if informed.earlier is None else tuple(f"learns from {note}" for note in informed.earlier.notes)


def _fitting(experiment: Experiment, earlier: Result) -> list[Config]:
    """The best configurations of an earlier experiment that the new one has, except its default."""
    carried = [carried_over(config, experiment.space) for config in best_configs(earlier)]
    return [config for config in carried if config is not None and config != experiment.space.default]


def _informed(experiment: Experiment, used: Sequence[tuple[Record, Result, str]]) -> Experiment:
    notes = [_note(experiment, *each) for each in used]
    single = [result for _, result, _ in used if not (result.experiment.has_front or experiment.has_front)]
    histories = [lower_is_better(result) for result in single]
    earlier = earlier_from(histories, experiment.space, experiment.transfer, notes)
    return replace(experiment, earlier=earlier if used else None)


def _note(experiment: Experiment, record: Record, result: Result, why: str) -> str:
    """For people: which experiment, how much it knows, and why it was chosen."""
    names = experiment.space.names
    shared = sum(name in result.experiment.space.names for name in names)
    failed = sum(trial.estimate is None for trial in result.trials)
    reason = why or f"{shared} of {len(names)} parameters"
    text = f"experiment {record.id} ({record.name}): {reason}, {len(result.trials)} configurations"
    return f"{text}, {failed} of them without a number" if failed else text


def learned_in(url: str | None) -> Learned | None:
    """What was learned in the store with this URL; a store in memory keeps nothing."""
    return None if url == _MEMORY else open_server_store(url).learned


def with_weights(experiment: Experiment, learned: Learned | None) -> Experiment:
    """The experiment with the weights of its picker, if it has a learned one, so that a resume uses the same."""
    if not is_learned(experiment.impact_first):
        return experiment
    from luthier.policies.learned_subset import shipped

    known = None if learned is None else learned.get(SUBSET_PICKER)
    return replace(experiment, picker_weights=shipped().to_json() if known is None else known)


def learn_from(record: Record, experiment: Experiment, runs: Sequence[Run], url: str | None) -> None:
    """Learn from an experiment that has ended; a failure is only logged."""
    if record.status not in ENDED or not is_learned(experiment.impact_first) or experiment.picker_weights is None:
        return
    from luthier.policies.learned_subset import Recorder, learned_from, shipped
    from luthier.policies.picker_networks import Networks

    recorder = Recorder(Networks.from_json(experiment.picker_weights))
    replayed(experiment, runs, recorder)
    decisions = recorder.decisions()

    def better(known: Mapping[str, Json] | None) -> Mapping[str, Json]:
        before = shipped() if known is None else Networks.from_json(known)
        return learned_from(before, decisions, seed=experiment.seed).to_json()

    try:
        learned = learned_in(url)
        if learned is not None:
            learned.change(SUBSET_PICKER, better)
    except LuthierError as error:
        log.warning("what experiment %d taught the subset picker is not kept: %s", record.id, error)
