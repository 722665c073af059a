"""Searches that learn from earlier experiments: the contract, what is gained, and that a wrong prior is given up."""

from typing import ClassVar

import numpy as np
import pytest

from luthier.errors import InvalidInputError
from luthier.optimizers import make_optimizer
from luthier.optimizers.contract import OptimizerContract, measured, unmeasured
from luthier.optimizers.earlier import TRANSFER_KINDS, Earlier, EarlierTrial, TransferKind, read_transfer, units_of
from luthier.optimizers.head_start import InformedSampler
from luthier.space import Choice, Integer, Real, Space
from luthier.trial import Config, Failed

SPACE = Space(
    *(Integer(name, 0, 19) for name in "abcd"),
    Choice("mode", ["x", "y", "z"]),
    Choice("engine", ["p", "q", "r", "s"]),
    Real("free", 0.0, 1.0),
)
SEEDS = range(6)


class TestModel(OptimizerContract):
    optimizers: ClassVar = ("auto", "gp")
    transfer: ClassVar = "model"


class TestVae(OptimizerContract):
    optimizers: ClassVar = ("forest",)
    transfer: ClassVar = "vae:30%"


def value(config: Config, shift: float = 0.0) -> float:
    """A bowl with its bottom at (15, 4, 11, 8), three times as high in another mode or engine; `free` has no effect."""
    numbers = np.array([float(config[name]) for name in "abcd"])
    away = float(np.sum((numbers - np.array([15.0, 4.0, 11.0, 8.0]) - shift) ** 2))
    return (1.0 + away) * (1.0 if config["mode"] == "y" else 3.0) * (1.0 if config["engine"] == "r" else 3.0)


def earlier(kind: TransferKind, *, sign: float = 1.0) -> Earlier:
    """Trials of a similar function in a space without `free`; with the sign -1 the worst of them look best."""
    configs = SPACE.sample(120, np.random.default_rng(3))
    logs = np.array([np.log(value(config, shift=1.0)) for config in configs])
    scores = sign * (logs - logs.mean()) / logs.std()
    known = [{name: config[name] for name in SPACE.names if name != "free"} for config in configs]
    return Earlier(tuple(map(EarlierTrial, known, scores.tolist())), kind, 0.1)


def needed(known: Earlier | None, seed: int, enough: float = 20.0, most: int = 60) -> int:
    """After how many evaluations the best value is good enough."""
    optimizer = make_optimizer("auto", SPACE, seed=seed, budget=most, earlier=known)
    config = SPACE.default
    for count in range(1, most + 1):
        found = value(config)
        if found <= enough:
            return count
        optimizer.tell([measured(config, found)])
        config = optimizer.ask(1, [])[0]
    return most + 1


def mean_needed(known: Earlier | None) -> float:
    return float(np.mean([needed(known, seed) for seed in SEEDS]))


def fails(config: Config) -> bool:
    """Half of all configurations, in no simple region."""
    return config["mode"] == "z" or config["engine"] == "s"


@pytest.mark.parametrize(("kind", "share"), [("model", 0.65), ("density", 0.9), ("vae", 0.9), ("best", 0.9)])
def test_a_good_prior_saves_evaluations(kind: TransferKind, share: float) -> None:
    assert mean_needed(earlier(kind)) < share * mean_needed(None)


@pytest.mark.parametrize("kind", ["model", "density", "vae"])
def test_a_misleading_prior_is_given_up(kind: TransferKind) -> None:
    """The search ends about as soon as without it: the first suggestions are wasted, and little more."""
    assert mean_needed(earlier(kind, sign=-1.0)) < 1.5 * mean_needed(None) + 3.0


@pytest.mark.parametrize("kind", TRANSFER_KINDS)
def test_the_best_configurations_come_first(kind: TransferKind) -> None:
    known = earlier(kind)
    best = sorted(known.trials, key=lambda trial: trial.score or 0.0)[:3]
    asked = make_optimizer("auto", SPACE, seed=1, budget=60, earlier=known).ask(3, [])
    assert list(asked) == [Config({**trial.values, "free": SPACE.default["free"]}) for trial in best]


@pytest.mark.parametrize("kind", ["density", "vae"])
def test_trust_falls_when_informed_configurations_turn_out_worse(kind: TransferKind) -> None:
    sampler = InformedSampler(SPACE, earlier(kind), seed=1)
    rng = np.random.default_rng(5)
    informed, others = sampler.codes(12, rng), SPACE.sample_codes(12, rng)
    units = SPACE.to_unit(np.concatenate((informed, others)))
    configs = SPACE.configs(np.concatenate((informed, others)))
    better = [measured(config, 1.0 if at < 12 else 2.0) for at, config in enumerate(configs)]
    worse = [measured(config, 3.0 if at < 12 else 2.0) for at, config in enumerate(configs)]
    assert sampler.trust(units[:0], []) == 1.0
    assert sampler.trust(units, better) > 0.5
    assert sampler.trust(units, worse) < 0.1


def test_what_was_not_known_before_is_drawn_uniformly() -> None:
    codes = InformedSampler(SPACE, earlier("vae"), seed=1).codes(400, np.random.default_rng(6))
    shares = np.histogram(codes[:, 6], bins=4, range=(0.0, 1.0))[0] / len(codes)
    assert np.all(np.abs(shares - 0.25) < 0.1)
    modes = [config["mode"] for config in SPACE.configs(codes)]
    assert modes.count("y") > 0.5 * len(modes)


def failures(known: Earlier | None, seed: int) -> int:
    """How many of the first suggestions fail."""
    optimizer = make_optimizer("auto", SPACE, seed=seed, budget=40, earlier=known)
    asked = [SPACE.default]
    for _ in range(20):
        failed = unmeasured(asked[-1], Failed("no"))
        optimizer.tell([failed if fails(asked[-1]) else measured(asked[-1], value(asked[-1]))])
        asked += optimizer.ask(1, [])
    return sum(map(fails, asked))


@pytest.mark.parametrize("kind", ["model", "density"])
def test_earlier_failures_are_avoided(kind: TransferKind) -> None:
    configs = SPACE.sample(120, np.random.default_rng(7))
    scores = [None if fails(config) else 0.01 * at for at, config in enumerate(configs)]
    known = Earlier(tuple(map(EarlierTrial, configs, scores)), kind)
    counts = [sum(failures(given, seed) for seed in range(4)) for given in (known, None)]
    assert counts[0] < 0.7 * counts[1], counts


def test_many_slots_are_filled_before_anything_is_measured() -> None:
    for kind in TRANSFER_KINDS:
        asked = make_optimizer("auto", SPACE, seed=1, budget=200, earlier=earlier(kind)).ask(40, [])
        assert len(set(asked)) == 40


def test_it_is_stored_as_json() -> None:
    trials = (
        EarlierTrial({"a": 3, "mode": "x"}, -0.5),
        EarlierTrial({"b": 2}, None, source=1),
        EarlierTrial({"a": 1}, 2.0, is_bound=True, source=1),
    )
    known = Earlier(trials, "vae", 0.25, ("experiment 3", "experiment 4"))
    assert Earlier.from_json(known.to_json()) == known
    units = units_of(SPACE, trials)
    assert np.isnan(units[0, 1])
    assert units[0, 0] == pytest.approx(3.5 / 20.0)
    for plain in ({}, {**known.to_json(), "kind": "magic"}, {**known.to_json(), "rows": [[0]]}):
        with pytest.raises(InvalidInputError):
            Earlier.from_json(plain)


def test_nothing_known_changes_nothing() -> None:
    plain, empty = (make_optimizer("auto", SPACE, seed=4, budget=30, earlier=known) for known in (None, Earlier(())))
    for each in (plain, empty):
        each.tell([measured(SPACE.default, 2.0)])
    assert plain.ask(8, []) == empty.ask(8, [])


@pytest.mark.parametrize(
    ("text", "meant"), [("model", ("model", 0.1)), ("vae:20%", ("vae", 0.2)), ("density:2.5%", ("density", 0.025))]
)
def test_kinds_are_read(text: str, meant: tuple[str, float]) -> None:
    assert read_transfer(text) == meant


@pytest.mark.parametrize("text", ["", "magic", "vae:0%", "vae:101%", "model:5%", "best:5%", "vae:x%", "vae:20"])
def test_unknown_kinds_are_refused(text: str) -> None:
    with pytest.raises(InvalidInputError, match=r"unknown|share"):
        read_transfer(text)
