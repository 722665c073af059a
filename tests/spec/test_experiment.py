import json

import pytest

from luthier.errors import InvalidInputError
from luthier.space import Choice, Integer, Space
from luthier.spec.experiment import Experiment
from luthier.spec.objectives import Objective
from luthier.spec.template import Template
from luthier.trial import Config, Value

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
        prune="chance",
        resample="sedr:20%",
        estimator="trimmed",
        stop=("target 50% of default", "improvement < 5% over 15 and after 30 runs"),
        options={"kernel": "rbf", "initial": 4},
        timeout_s=9.5,
        seed=7,
        cwd="/tmp",
    )
    assert Experiment.from_json(json.loads(json.dumps(experiment.to_json()))) == experiment


def test_several_objectives_survive_json() -> None:
    experiment = Experiment(
        space=SPACE, objectives=(Objective("wall"), Objective("memory"), Objective("json:iops", "maximize"))
    )
    assert Experiment.from_json(json.loads(json.dumps(experiment.to_json()))) == experiment


def test_configurations_to_try_first_are_made_whole_and_kept_once() -> None:
    given: list[dict[str, Value]] = [
        {"n": 8},
        {"mode": "b", "n": 2},
        {"n": 8, "mode": "a"},
        {},
        {"n": "2", "mode": "b"},
    ]
    experiment = Experiment(space=SPACE, first=tuple(map(Config, given)))
    assert experiment.first == (Config({"n": 8, "mode": "a"}), Config({"n": 2, "mode": "b"}))
    assert all(isinstance(config, Config) for config in experiment.first)
    assert Experiment.from_json(json.loads(json.dumps(experiment.to_json()))) == experiment
    older = experiment.to_json()
    del older["first"]
    assert Experiment.from_json(older).first == ()


@pytest.mark.parametrize(
    ("first", "problem"),
    [
        ([{"n": 3}], "first: n: 3 is not one of its values; expected an integer from 1 to 8 in factors of 2"),
        ([{"m": 4}], "first: there is no parameter 'm'"),
        ([{"n": 8, "mode": "b"}], "first: "),
        ([{"n": "many"}], "first: n: 'many' is not a quantity"),
        ([8], "first: 8 is not a configuration; give values by parameter"),
        ({"n": 8}, "first: {'n': 8} is not a list of configurations; give a list, also for a single one"),
        ("n=8", "first: 'n=8' is not a list"),
        (8, "first: 8 is not a list"),
        (None, "first: None is not a list"),
    ],
)
def test_configurations_that_cannot_be_tried_are_refused(first: object, problem: str) -> None:
    plain = {**Experiment(space=SPACE).to_json(), "first": first}
    with pytest.raises(InvalidInputError) as caught:
        Experiment.from_json(plain)  # type: ignore[arg-type]  # wrong on purpose
    assert str(caught.value).startswith(problem)


@pytest.mark.parametrize(
    "wrong",
    [
        {"budget": 0}, {"budget": 2.5}, {"slots": 0}, {"timeout_s": 0.0},
        {"time_limit_s": -1.0}, {"prune": "often"}, {"prune": -3.0}, {"prune": "default", "objectives": "memory"},
        {"prune": "median", "objectives": "max:wall"}, {"prune": "chance", "objectives": "returned"},
        {"resample": "static:0"}, {"resample": "often"}, {"estimator": "mode"}, {"stop": ("soon",)}, {"stop": 3},
        {"stop": ("gain < cost for 9 runs",), "objectives": "cpu"}, {"verify_pairs": -1}, {"seed": -1}, {"after": 0},
        {"objectives": ("wall", "memory"), "resample": "evadyr"}, {"objectives": ()}, {"objectives": 3},
        {"objectives": ("wall", "wall")}, {"objectives": ("wall", "returned")},
        {"objectives": ("wall", "memory"), "prune": 3.0}, {"objectives": ("wall", "memory"), "stop": ("target 3",)},
        {"objectives": ("wall", "memory"), "verify_pairs": 3}, {"objectives": ("wall", "memory", "cpu", "user")},
    ],
)  # fmt: skip
def test_wrong_settings_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(InvalidInputError):
        Experiment(space=SPACE, **wrong)  # type: ignore[arg-type]  # wrong on purpose


@pytest.mark.parametrize("stop", ["soon", 3, None, ["soon"], [3]])
def test_broken_criteria_are_refused(stop: object) -> None:
    plain = {**Experiment(space=SPACE).to_json(), "stop": stop}
    with pytest.raises(InvalidInputError):
        Experiment.from_json(plain)  # type: ignore[arg-type]  # wrong on purpose


def test_unknown_settings_are_refused() -> None:
    plain = {**Experiment(space=SPACE).to_json(), "colour": "red"}
    with pytest.raises(InvalidInputError, match="colour"):
        Experiment.from_json(plain)


@pytest.mark.parametrize(("budget", "pairs"), [(1, 0), (9, 0), (10, 3), (31, 3), (32, 4), (60, 7), (1000, 10)])
def test_the_verification_takes_a_small_share(budget: int, pairs: int) -> None:
    assert Experiment(space=SPACE, budget=budget).reserved_pairs == pairs
    assert budget - 2 * pairs >= 1
    assert (
        Experiment(space=SPACE, budget=budget, objectives=(Objective("wall"), Objective("memory"))).reserved_pairs == 0
    )


@pytest.mark.parametrize("objectives", [[], [{"measure": "memory"}], [3], [{"measure": "memory", "goal": "win"}]])
def test_broken_objectives_are_refused(objectives: object) -> None:
    plain = {**Experiment(space=SPACE).to_json(), "objectives": objectives}
    with pytest.raises(InvalidInputError):
        Experiment.from_json(plain)  # type: ignore[arg-type]  # wrong on purpose
