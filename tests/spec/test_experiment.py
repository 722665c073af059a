import json

import pytest

from luthier.errors import InvalidInputError
from luthier.space import Choice, Integer, Space
from luthier.spec import Experiment, Objective, Template

SPACE = Space(
    Integer("n", 1, 8, step=2, scale="log", default=4),
    Choice("mode", ["a", "b"]),
    constraints=["n <= 4 or mode == 'a'"],
)


def test_an_experiment_survives_json() -> None:
    experiment = Experiment(
        space=SPACE,
        command=Template(("prog", "{n}"), {"MODE": "{mode}"}),
        budget=30,
        prune="default",
        options={"kernel": "rbf", "initial": 4},
        timeout_s=9.5,
        seed=7,
        cwd="/tmp",
    )
    assert Experiment.from_json(json.loads(json.dumps(experiment.to_json()))) == experiment


def test_several_objectives_survive_json() -> None:
    experiment = Experiment(space=SPACE, further=(Objective("memory"), Objective("json:iops", "maximize")))
    assert Experiment.from_json(json.loads(json.dumps(experiment.to_json()))) == experiment


@pytest.mark.parametrize(
    "wrong",
    [
        {"budget": 0}, {"budget": 2.5}, {"workers": 0}, {"repeats": -1}, {"goal": "win"}, {"timeout_s": 0.0},
        {"time_limit_s": -1.0}, {"prune": "often"}, {"prune": -3.0}, {"prune": "default", "measure": "memory"},
        {"verify_pairs": -1}, {"seed": -1},
        {"further": (Objective("wall"),)}, {"further": (Objective("returned"),)},
        {"further": (Objective("memory"),), "prune": 3.0}, {"further": (Objective("memory"),), "patience": 3},
        {"further": (Objective("memory"),), "verify_pairs": 3}, {"further": (Objective("cpu"),), "goal": "win"},
        {"further": (Objective("memory"), Objective("cpu"), Objective("user"))},
    ],
)  # fmt: skip
def test_wrong_settings_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(InvalidInputError):
        Experiment(space=SPACE, **wrong)  # type: ignore[arg-type]  # wrong on purpose


def test_unknown_settings_are_refused() -> None:
    plain = {**Experiment(space=SPACE).to_json(), "colour": "red"}
    with pytest.raises(InvalidInputError, match="colour"):
        Experiment.from_json(plain)


@pytest.mark.parametrize(("budget", "pairs"), [(1, 0), (9, 0), (10, 3), (31, 3), (32, 4), (60, 7), (1000, 10)])
def test_the_verification_takes_a_small_share(budget: int, pairs: int) -> None:
    assert Experiment(space=SPACE, budget=budget).reserved_pairs == pairs
    assert budget - 2 * pairs >= 1
    assert Experiment(space=SPACE, budget=budget, further=(Objective("memory"),)).reserved_pairs == 0


@pytest.mark.parametrize("further", ["memory", [{"measure": "memory"}], [3], [{"measure": "memory", "goal": "win"}]])
def test_broken_objectives_are_refused(further: object) -> None:
    plain = {**Experiment(space=SPACE).to_json(), "further": further}
    with pytest.raises(InvalidInputError):
        Experiment.from_json(plain)  # type: ignore[arg-type]  # wrong on purpose
