"""Suggestions for many slots: distinct, reproducible, and without models that every slot would wait for."""

import hashlib
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest

from luthier.errors import InvalidInputError
from luthier.learn.gaussian_process import GaussianProcess, Observations
from luthier.optimizers import Optimizer, make_optimizer
from luthier.optimizers.forest_bound import forest_bound_search
from luthier.optimizers.history import FEW_SLOTS
from luthier.space import Choice, Integer, Space
from luthier.trial import Completed, Config, Estimate, Failed, Trial

SPACE = Space(
    Integer("a", 1, 64), Integer("b", 1, 64), Integer("size", 1, 2048, scale="log"), Choice("pool", ["x", "y", "z"])
)


def ended(config: Config) -> Trial:
    """A valley with a corner where runs fail."""
    a, b = int(config["a"]), int(config["b"])
    if a + b > 110:
        return Trial(config, (Failed("exit 1"),), None)
    value = 1.0 + abs(a - 20) / 10 + abs(b - 40) / 20 + (config["pool"] != "y") + int(config["size"]) / 500
    return Trial(config, (Completed(value),), Estimate(value, 1))


def busy(name: str, told: int, running: int) -> tuple[Optimizer, list[Config]]:
    """A search that was told some trials, and what is running."""
    configs = SPACE.sample(told + running, np.random.default_rng(5))
    search = make_optimizer(name, SPACE, seed=3)
    search.tell([ended(config) for config in configs[:told]])
    return search, configs[told:]


def digest(configs: Sequence[Config]) -> str:
    return hashlib.sha256(repr([sorted(config.items()) for config in configs]).encode()).hexdigest()


@pytest.mark.parametrize("name", ["auto", "forest", "forest-lcb"])
def test_many_suggestions_at_once_are_distinct_and_new(name: str) -> None:
    search, running = busy(name, told=300, running=100)
    asked = search.ask(128, running)
    assert len(set(asked)) == 128
    assert not set(asked) & set(running)
    assert not set(asked) & set(SPACE.sample(400, np.random.default_rng(5))[:300])
    assert all(SPACE.contains(config) for config in asked)


def test_another_process_suggests_the_same() -> None:
    search, running = busy("auto", told=200, running=60)
    code = (
        "from tests.optimizers.test_many_slots import busy, digest\n"
        "search, running = busy('auto', told=200, running=60)\n"
        "print(digest(search.ask(68, running)))"
    )
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert other.stdout.strip() == digest(search.ask(68, running))


def test_the_first_suggestions_for_many_slots_cover_every_parameter_evenly() -> None:
    asked = make_optimizer("auto", SPACE, seed=1).ask(128, [])
    assert set(Counter(config["a"] for config in asked).values()) == {2}
    assert min(Counter(config["pool"] for config in asked).values()) >= 42


def test_no_slot_waits_for_a_gaussian_process_of_much_data(monkeypatch: pytest.MonkeyPatch) -> None:
    fitted: list[int] = []

    def fit(self: GaussianProcess, data: Observations, *, from_prior: bool = False) -> None:
        fitted.append(len(data.y))
        whole(self, data, from_prior=from_prior)

    whole = GaussianProcess.fit
    monkeypatch.setattr(GaussianProcess, "fit", fit)
    for running, is_used in ((FEW_SLOTS - 1, True), (127, False)):
        fitted.clear()
        search, configs = busy("auto", told=150, running=running)
        search.ask(1, configs)
        assert bool(fitted) == is_used


def test_many_slots_still_find_the_valley() -> None:
    search = make_optimizer("auto", SPACE, seed=2)
    running = list(search.ask(64, []))
    best = np.inf
    for _ in range(300):
        trial = ended(running.pop(0))
        best = min(best, np.inf if trial.estimate is None else trial.estimate.value)
        search.tell([trial])
        running += search.ask(1, running)
    assert best < 1.35


def test_the_published_search_takes_failures_for_the_worst() -> None:
    search, running = busy("forest-lcb", told=300, running=0)
    asked = search.ask(20, running)
    assert sum(int(config["a"]) + int(config["b"]) > 110 for config in asked) <= 2


def test_the_lie_about_running_configurations_decides_where_the_others_go() -> None:
    chosen = {}
    for liar in ("min", "max"):
        configs = SPACE.sample(200, np.random.default_rng(5))
        search = make_optimizer("forest-lcb", SPACE, seed=3, liar=liar, kappa=0.5)
        search.tell([ended(config) for config in configs])
        chosen[liar] = search.ask(16, [])
    spread = {liar: np.std([int(config["a"]) for config in asked]) for liar, asked in chosen.items()}
    assert chosen["min"][0] == chosen["max"][0], "nothing runs yet"
    assert spread["min"] != spread["max"]


def test_options_of_the_published_search_are_checked() -> None:
    with pytest.raises(InvalidInputError, match="liar 'best' is unknown; known: max, mean, min"):
        make_optimizer("forest-lcb", SPACE, seed=1, liar="best")
    with pytest.raises(InvalidInputError, match="kappa"):
        make_optimizer("forest-lcb", SPACE, seed=1, kappa=0.0)
    with pytest.raises(InvalidInputError, match="candidates"):
        forest_bound_search(SPACE, seed=1, candidates=0)
    with pytest.raises(InvalidInputError, match="initial"):
        forest_bound_search(SPACE, seed=1, initial=0)
