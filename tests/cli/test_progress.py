"""What is shown while an experiment runs."""

from luthier.cli.progress import running_text
from luthier.engine.session import plan_of
from luthier.space import Integer, Space
from luthier.spec.experiment import Experiment
from luthier.trial import Run


def test_only_a_few_of_many_running_configurations_are_shown() -> None:
    plan = plan_of(Experiment(space=Space(Integer("x", 0, 999)), budget=200, optimizer="random", slots=100))
    for order in plan.orders(3, 0.0):
        plan.submitted(Run(len(plan.runs), order.trial, order.purpose, order.config, 0.0, plan.events))
    assert running_text(plan).count("x=") == 3
    assert "more" not in running_text(plan)
    for order in plan.orders(97, 0.0):
        plan.submitted(Run(len(plan.runs), order.trial, order.purpose, order.config, 0.0, plan.events))
    assert running_text(plan).count("x=") == 4
    assert running_text(plan).endswith("; and 96 more")
