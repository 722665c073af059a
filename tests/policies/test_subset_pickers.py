"""What every subset picker promises, and what the built-in ones do."""

import json
import math
import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Sequence
from statistics import mean

import numpy as np
import pytest
from benchmarks.picker_systems import generated, principal_impact
from benchmarks.train_subset_picker import search, train

import luthier as lt
from luthier import tunio
from luthier.errors import InvalidInputError, LuthierError
from luthier.optimizers.contract import measured
from luthier.optimizers.impact_first import ImpactFirst, TunedParts
from luthier.optimizers.registry import make_optimizer
from luthier.policies import SUBSET_PICKERS, make_picker
from luthier.policies.base import SearchSoFar, Subset, TunedStep
from luthier.policies.contract import SubsetPickerContract
from luthier.policies.learned_subset import LearnedPicker, Recorder, learned_from, shipped
from luthier.policies.picker_networks import Networks
from luthier.policies.statistical_subset import KnownEffects, StatisticalPicker
from luthier.space import Choice, Integer, Space
from luthier.trial import Config


class TestBuiltIn(SubsetPickerContract):
    pickers = SUBSET_PICKERS.names()


def six() -> Space:
    return Space(*(Integer(name, 0, 7) for name in "abcdef"))


def only_b_and_e(config: Config) -> float:
    return 1.0 + (int(config["b"]) - 5) ** 2 + 2.0 * (int(config["e"]) - 2) ** 2


def parts_after(picker: object, count: int, space: Space) -> TunedParts:
    parts = TunedParts(space, picker, seed=1)  # type: ignore[arg-type]  # a picker
    for config in space.sample(count, np.random.default_rng(5)):
        parts.tell(measured(config, only_b_and_e(config)))
    return parts


def asked_once(picker: StatisticalPicker, value: Callable[[Config], float]) -> Subset:
    """The answer of a picker that is asked about 40 random configurations."""
    configs = six().sample(40, np.random.default_rng(5))
    trials = [measured(config, value(config)) for config in configs]
    start = TunedStep(six().names, 0, None)
    return picker(SearchSoFar(six(), trials, [start], 40, min(map(value, configs))))


def test_the_statistical_picker_knows_what_matters_and_says_how_much_it_explains() -> None:
    space = six()
    trials = [measured(config, only_b_and_e(config)) for config in space.sample(40, np.random.default_rng(5))]
    findings = KnownEffects.of(space, trials)
    assert findings is not None
    shares = findings.effects.shares()
    assert {space.names[at] for at in np.argsort(-shares)[:2]} == {"b", "e"}
    both, others = findings.effects.explained([1, 4]), findings.effects.explained([0, 2, 3, 5])
    assert 0.6 < both <= 1.0
    assert 0.0 <= others < 0.2
    assert f"together they explain {100 * both:.0f} % of the differences between 40" in findings.explained(
        np.array([1, 4]), "why"
    )
    assert {"b", "e"} & set(asked_once(StatisticalPicker(), only_b_and_e).names)


def test_noise_alone_is_not_explained() -> None:
    rng = np.random.default_rng(3)
    drawn: dict[Config, float] = defaultdict(lambda: float(rng.lognormal()))
    found = asked_once(StatisticalPicker(enough=0.3), drawn.__getitem__)
    assert "can be told from chance" in found.reason, found.reason


def test_after_steps_without_improvement_more_parameters_are_tuned_until_all_are() -> None:
    space = six()
    parts = TunedParts(space, StatisticalPicker(), seed=1)
    first, *others = space.sample(80, np.random.default_rng(5))
    parts.tell(measured(first, 0.5))  # nothing is better
    for config in others:
        parts.tell(measured(config, only_b_and_e(config)))
    sizes = [len(step.names) for step in parts.steps[1:]]
    assert sizes[-1] == 6
    assert min(sizes) <= 3


def test_the_second_half_of_the_budget_is_for_all_parameters() -> None:
    space = six()
    parts = TunedParts(space, StatisticalPicker(), seed=1, budget=60)
    for config in space.sample(45, np.random.default_rng(5)):
        parts.tell(measured(config, only_b_and_e(config)))
    assert min(len(step.names) for step in parts.steps if step.begin < 30) < 6
    assert [(step.begin, len(step.names)) for step in parts.steps if step.begin >= 30] == [(30, 6)]
    assert parts.part is None


@pytest.mark.parametrize(
    "text", ["statistical:enough=0", "statistical:most=200%", "statistical:room=0", "learned:networks=3"]
)
def test_wrong_constants_are_refused(text: str) -> None:
    with pytest.raises(LuthierError, match=text.partition(":")[0]):
        lt.tune(lambda _: 1.0, six(), budget=5, impact_first=text)


def test_parameters_left_out_keep_the_values_of_the_best_and_come_back() -> None:
    class Turns:
        def __call__(self, search: SearchSoFar) -> Subset:
            at = len(search.steps) % 3
            return Subset(search.space.names[2 * at : 2 * at + 2], "in turns")

    space = six()
    optimizer = make_optimizer("genetic", space, seed=3, picker=Turns())
    assert isinstance(optimizer, ImpactFirst)
    changed: list[set[str]] = []
    config = space.default
    for _ in range(70):
        optimizer.tell([measured(config, only_b_and_e(config))])
        part = optimizer.tuned.part
        config = optimizer.ask(1, [])[0]
        if part is not None:
            differs = {name for name in space.names if config[name] != part.default[name]}
            assert differs <= set(optimizer.tuned.subset.names)
            changed.append(differs)
    assert set.union(*changed[:5]) != set(space.names)
    assert set.union(*changed) == set(space.names), "a parameter never came back"


@pytest.mark.parametrize("names", [(), ("z",)])
def test_a_picker_that_chooses_nothing_or_something_unknown_is_refused(names: tuple[str, ...]) -> None:
    with pytest.raises(InvalidInputError, match="impact_first: the picker chose"):
        parts_after(lambda _: Subset(names, "wrong"), 12, six())


def test_constraints_hold_between_tuned_and_held_parameters() -> None:
    space = Space(
        Integer("a", 1, 9), Integer("b", 1, 9), Integer("c", 1, 9), Choice("mode", ["x", "y"]),
        constraints=["a <= b", "mode != 'y' or c > 3"],
    )  # fmt: skip
    part = space.narrowed({"a": 4, "b": 6, "c": 2, "mode": "x"}, ["b", "mode"])
    assert part.size == 6
    assert {(c["b"], c["mode"]) for c in part.configs(part.grid())} == {(b, "x") for b in range(4, 10)}
    drawn = part.sample(20, np.random.default_rng(1))
    assert len(drawn) == 6
    assert all(c["a"] == 4 and c["c"] == 2 for c in drawn)
    assert part.contains(space.default), "what lies outside of the part can still be told"
    with pytest.raises(LuthierError):
        space.narrowed({"a": 9, "b": 1, "c": 5, "mode": "x"}, ["a"])


class Unfounded:
    """Random subsets: what a trained picker has to beat."""

    def __call__(self, so_far: SearchSoFar) -> Subset:
        rng, names = np.random.default_rng([so_far.seed, so_far.count]), so_far.space.names
        count = int(rng.integers(1, len(names) + 1))
        return Subset(tuple(names[at] for at in rng.choice(len(names), count, replace=False)), "at random")


def test_learned_is_better_than_random_subsets_on_systems_it_was_not_trained_on() -> None:
    systems = [generated(900_000 + at) for at in range(24)]

    def distance(picker: object) -> float:
        curves = [search(system, picker, seed=7, runs=60) for system in systems]  # type: ignore[arg-type]  # a picker
        return mean(math.log(curve[-1] / system.best) for curve, system in zip(curves, systems, strict=True))

    assert distance(LearnedPicker(shipped())) < distance(Unfounded())


def test_the_same_training_gives_the_same_weights() -> None:
    def trained() -> str:
        return json.dumps(train(seed=4, rounds=1, searches=2, steps=20, with_simulated=False).to_json())

    assert trained() == trained()


def test_principal_components_find_the_strong_parameters() -> None:
    system = generated(31)
    impact = principal_impact(system, 300, np.random.default_rng(1))
    assert len(impact) == len(system.space.names)
    assert impact.sum() == pytest.approx(1.0)
    values = np.log([system.true(c) for c in system.space.sample(300, np.random.default_rng(2))])
    codes = system.space.codes(system.space.sample(300, np.random.default_rng(2)))
    ordered = [at for at, parameter in enumerate(system.space.parameters) if parameter.ordered]
    correlation = [abs(np.corrcoef(codes[:, at], values)[0, 1]) for at in ordered]
    assert impact[ordered[int(np.argmax(correlation))]] > np.median(impact)


def test_it_learns_on_from_a_search_and_only_a_little() -> None:
    recorder = Recorder(shipped())
    parts_after(recorder, 60, six())
    better = learned_from(shipped(), recorder.decisions(), seed=1)
    again = learned_from(shipped(), recorder.decisions(), seed=1)
    moved = [
        float(np.abs(new - old).max())
        for new, old in zip(better.observer.weights, shipped().observer.weights, strict=True)
    ]
    assert 0.0 < max(moved) < 0.1
    assert better.to_json() == again.to_json()


@pytest.mark.parametrize("wrong", [{}, {"observer": [[1.0]], "values": []}, {"observer": "x", "values": 3}])
def test_damaged_weights_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(InvalidInputError, match="weights of the subset picker"):
        Networks.from_json(wrong)  # type: ignore[arg-type]  # damaged


def climb(pick: "lt.policies.foreign.SubsetPicking", *, tells: bool) -> list[Sequence[str]]:
    """A foreign tuner: it tries single changes of the parameters that it was told to tune."""
    space, names = six(), tuple("abcdef")
    best, rng = space.default, np.random.default_rng(2)
    asked: list[Sequence[str]] = []
    for _ in range(12):
        tried = []
        for _ in range(5):
            config = {**best, rng.choice(names): int(rng.integers(8))}
            tried.append((config, -only_b_and_e(Config(config))))
        best = Config(max([(dict(best), -only_b_and_e(best)), *tried], key=lambda pair: pair[1])[0])
        names = pick(-only_b_and_e(best), names, tried if tells else ())
        asked.append(names)
    return asked


@pytest.mark.parametrize("tells", [True, False])
def test_it_can_be_attached_to_a_tuner_of_another_program(tells: bool) -> None:
    asked = climb(tunio.subset_picker(six(), "learned", seed=1), tells=tells)
    assert all(0 < len(names) <= 6 and set(names) <= set("abcdef") for names in asked)
    assert asked == climb(tunio.subset_picker(six(), "learned", seed=1), tells=tells)
    assert min(map(len, asked)) < 6


def test_a_foreign_tuner_that_says_nonsense_is_told_so() -> None:
    pick = tunio.subset_picker(six(), "statistical")
    with pytest.raises(InvalidInputError, match="perf"):
        pick(float("nan"), ["a"])
    with pytest.raises(InvalidInputError, match="current"):
        pick(1.0, ["z"])
    with pytest.raises(InvalidInputError, match="evaluated"):
        pick(1.0, ["a"], [(dict.fromkeys("abcdef", 0), float("inf"))])
    with pytest.raises(LuthierError, match="unknown subset_picker"):
        make_picker("statistcal")


def test_the_answers_are_the_same_in_another_process() -> None:
    code = (
        "import json; from tests.policies.test_subset_pickers import transcript;"
        "print(json.dumps([transcript(name) for name in ('learned', 'statistical')]))"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "4711"}
    found = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert json.loads(found.stdout) == [transcript(name) for name in ("learned", "statistical")]


def transcript(name: str) -> list[list[str]]:
    return [list(step.names) for step in parts_after(make_picker(name), 60, six()).steps]
