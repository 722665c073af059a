import json

import pytest

from luthier.errors import InvalidInputError
from luthier.space import Choice, Integer, Space
from luthier.spec import Experiment, Objective, Template
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
    experiment = Experiment(space=SPACE, further=(Objective("memory"), Objective("json:iops", "maximize")))
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
        ([8], "first: 8 is not a configuration; expected a mapping"),
        ({"n": 8}, "first: {'n': 8} is not a list of configurations; give a list, even of one"),
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
        {"budget": 0}, {"budget": 2.5}, {"workers": 0}, {"goal": "win"}, {"timeout_s": 0.0},
        {"time_limit_s": -1.0}, {"prune": "often"}, {"prune": -3.0}, {"prune": "default", "measure": "memory"},
        {"prune": "median", "goal": "maximize"}, {"prune": "chance", "measure": "returned"},
        {"resample": "static:0"}, {"resample": "often"}, {"estimator": "mode"}, {"stop": ("soon",)},
        {"stop": "target 3"},
        {"stop": ("gain < cost for 9 runs",), "measure": "cpu"}, {"verify_pairs": -1}, {"seed": -1},
        {"further": (Objective("memory"),), "resample": "evadyr"},
        {"further": (Objective("wall"),)}, {"further": (Objective("returned"),)},
        {"further": (Objective("memory"),), "prune": 3.0}, {"further": (Objective("memory"),), "stop": ("target 3",)},
        {"further": (Objective("memory"),), "verify_pairs": 3}, {"further": (Objective("cpu"),), "goal": "win"},
        {"further": (Objective("memory"), Objective("cpu"), Objective("user"))},
    ],
)  # fmt: skip
def test_wrong_settings_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(InvalidInputError):
        Experiment(space=SPACE, **wrong)  # type: ignore[arg-type]  # wrong on purpose


def test_settings_of_version_0_1_are_still_read() -> None:
    plain = Experiment(space=SPACE, estimator="mean").to_json()
    for name in ("resample", "stop"):
        del plain[name]
    read = Experiment.from_json({**plain, "repeats": 3, "patience": 9})
    assert (read.resample, read.stop, read.estimator) == ("static:3", ("no improvement over 9",), "mean")
    assert Experiment.from_json({**plain, "repeats": 1, "patience": None}).stop == ()


@pytest.mark.parametrize("stop", ["target 3", 3, None, ["soon"]])
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
    assert Experiment(space=SPACE, budget=budget, further=(Objective("memory"),)).reserved_pairs == 0


@pytest.mark.parametrize("further", ["memory", [{"measure": "memory"}], [3], [{"measure": "memory", "goal": "win"}]])
def test_broken_objectives_are_refused(further: object) -> None:
    plain = {**Experiment(space=SPACE).to_json(), "further": further}
    with pytest.raises(InvalidInputError):
        Experiment.from_json(plain)  # type: ignore[arg-type]  # wrong on purpose
