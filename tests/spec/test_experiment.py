import json

import pytest

from luthier.errors import InvalidInputError
from luthier.space import Choice, Integer, Space
from luthier.spec import Experiment, Template

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
        timeout_s=9.5,
        seed=7,
        cwd="/tmp",
    )
    assert Experiment.from_json(json.loads(json.dumps(experiment.to_json()))) == experiment


@pytest.mark.parametrize(
    "wrong",
    [
        {"budget": 0}, {"budget": 2.5}, {"workers": 0}, {"repeats": -1}, {"goal": "win"}, {"timeout_s": 0.0},
        {"time_limit_s": -1.0}, {"prune": "often"}, {"prune": -3.0}, {"prune": "default", "measure": "memory"},
        {"verify_pairs": -1}, {"seed": -1},
    ],
)  # fmt: skip
def test_wrong_settings_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(InvalidInputError):
        Experiment(space=SPACE, **wrong)  # type: ignore[arg-type]  # wrong on purpose


def test_unknown_settings_are_refused() -> None:
    plain = {**Experiment(space=SPACE).to_json(), "colour": "red"}
    with pytest.raises(InvalidInputError, match="colour"):
        Experiment.from_json(plain)


@pytest.mark.parametrize(("budget", "pairs"), [(1, 0), (6, 0), (7, 2), (11, 2), (12, 3), (60, 7), (1000, 10)])
def test_the_verification_takes_a_small_share(budget: int, pairs: int) -> None:
    assert Experiment(space=SPACE, budget=budget).reserved_pairs == pairs
    assert budget - 2 * pairs >= 1
