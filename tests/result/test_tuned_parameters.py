"""The decisions of impact first, computed again from a stored history, are those that the search made."""

from dataclasses import replace

import pytest

from luthier.engine.session import plan_of
from luthier.optimizers.impact_first import ImpactFirst
from luthier.result.tuned_parameters import replayed
from luthier.space import Integer, Space
from luthier.spec.experiment import Experiment
from luthier.trial import Completed, Config, Run

SPACE = Space(*(Integer(name, 0, 7) for name in "abcdef"))


def value_of(config: Config, number: int) -> float:
    """Two parameters matter; half-way the machine becomes slower."""
    level = 1.0 if number < 22 else 3.0
    return level * (10.0 + (int(config["b"]) - 5) ** 2 + 2.0 * (int(config["e"]) - 2) ** 2)


@pytest.mark.parametrize("sentinels", [0, 4])
def test_a_history_leads_to_the_decisions_of_the_search(sentinels: int) -> None:
    experiment = Experiment(
        space=SPACE, budget=70, seed=3, verify_pairs=0, impact_first="statistical", sentinels=sentinels, resample="once"
    )
    plan = plan_of(experiment)
    while orders := plan.orders(1, 0.0):
        number, order = len(plan.runs), orders[0]
        at_s = 60.0 * number
        run = Run(number, order.trial, order.purpose, order.config, at_s, plan.events, started_at=at_s)
        plan.submitted(run)
        outcome = Completed(value_of(run.config, number))
        plan.finished(replace(run, outcome=outcome, finish_order=plan.events, duration_s=30.0))
    assert isinstance(plan._optimizer, ImpactFirst)
    made = plan._optimizer.tuned.steps
    assert len(made) > 3
    assert any(len(step.names) < 6 for step in made)
    assert experiment.picker_rule is not None
    assert list(replayed(experiment, plan.runs, experiment.picker_rule)) == list(made)
