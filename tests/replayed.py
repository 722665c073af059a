"""Experiments in virtual time."""

from luthier.engine.loop import Watcher
from luthier.engine.session import carry_on
from luthier.result.result import Result
from luthier.runners.replay import ReplayRunner
from luthier.spec.experiment import Experiment
from luthier.store.base import Record, Store


def replayed(
    store: Store, record: Record, experiment: Experiment, runner: ReplayRunner, watch: Watcher = lambda *_: None
) -> tuple[Record, Result]:
    """Work on an experiment by the clock of a runner that only simulates runs."""
    return carry_on(store, record, experiment, runner, watch=watch, virtual_clock=runner.clock)
