import subprocess
import sys
from collections.abc import Mapping
from typing import Any

import pytest

from luthier.errors import ExhaustedError, InvalidInputError, SpaceError
from luthier.optimizers import make_optimizer, optimizer_names
from luthier.optimizers.friendly import AskTell, optimizer
from luthier.space import Choice, Integer, Real, Space
from luthier.trial import Config, Value


@pytest.fixture
def space() -> Space:
    return Space(Integer("a", 1, 4), Choice("b", ["x", "y"]))


def test_the_names() -> None:
    assert {"auto", "exhaustive", "gp", "random"} <= set(optimizer_names())


def test_listing_names_needs_no_numpy() -> None:
    code = "import sys, luthier.optimizers as o; o.optimizer_names(); sys.exit('numpy' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_unknown_name_suggests_the_nearest(space: Space) -> None:
    with pytest.raises(InvalidInputError, match=r"'randon'; did you mean 'random'\? known: .*exhaustive, .*random"):
        make_optimizer("randon", space, seed=1)


def test_misspelt_option_is_refused(space: Space) -> None:
    with pytest.raises(InvalidInputError, match=r"gp: unknown option 'inital'; did you mean 'initial'\?"):
        make_optimizer("gp", space, seed=1, inital=3)
    with pytest.raises(InvalidInputError, match="random: unknown option 'x'; it has no options"):
        make_optimizer("random", space, seed=1, x=3)


@pytest.mark.parametrize("bad", [-1, True, 1.5])
def test_bad_seed_and_budget(space: Space, bad: int) -> None:
    with pytest.raises(InvalidInputError, match="seed is"):
        make_optimizer("random", space, seed=bad)
    with pytest.raises(InvalidInputError, match="budget is"):
        make_optimizer("random", space, seed=1, budget=bad)


@pytest.mark.parametrize("options", [{"initial": 0}, {"initial": "many"}, {"kernel": "cosine"}])
def test_bad_option_values(space: Space, options: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError, match="optimizer gp"):
        make_optimizer("gp", space, seed=1, **options)


def test_exhaustive_goes_in_order(space: Space) -> None:
    opt = make_optimizer("exhaustive", space, seed=1)
    assert list(opt.ask(100, [])) == [space.at(index) for index in range(8)]
    shuffled = make_optimizer("exhaustive", space, seed=1, shuffled=True)
    order = list(shuffled.ask(100, []))
    assert order != [space.at(index) for index in range(8)]
    assert len(set(order)) == 8


def test_exhaustive_refuses_what_has_no_end() -> None:
    with pytest.raises(InvalidInputError, match="step"):
        make_optimizer("exhaustive", Space(Real("x", 0.0, 1.0)), seed=1)


def test_auto_tries_everything_it_can_afford(space: Space) -> None:
    enough = list(make_optimizer("auto", space, seed=1, budget=8).ask(100, []))
    assert set(enough) == {space.at(index) for index in range(8)}


def test_random_search_is_uniform() -> None:
    space = Space(Integer("a", 0, 9))
    firsts = [make_optimizer("random", space, seed=seed).ask(1, [])[0]["a"] for seed in range(400)]
    counts = [firsts.count(value) for value in range(10)]
    assert min(counts) > 15
    assert max(counts) < 75


def test_a_loop_of_ones_own(space: Space) -> None:
    opt = optimizer("auto", space, seed=1)
    for _ in range(8):
        config = opt.ask()
        opt.tell(config, float(str(config["a"])) + (config["b"] == "x"))
    assert opt.best == (Config({"a": 1, "b": "y"}), 1.0)
    with pytest.raises(ExhaustedError, match="every configuration"):
        opt.ask()


def test_asked_counts_as_running(space: Space) -> None:
    opt = optimizer("random", space, seed=1)
    first = [opt.ask(), *opt.ask_many(3), opt.ask()]
    assert len(set(first)) == 5
    assert len(set(first) | set(opt.ask_many(99))) == 8
    with pytest.raises(ExhaustedError, match="8 were not told yet"):
        opt.ask()


def test_plain_dicts_and_repeats(space: Space) -> None:
    opt = optimizer("random", space, seed=1)
    for value in (4.0, None, 1.0, 1):
        opt.tell({"b": "y", "a": 2}, value)
    opt.tell({"a": 3, "b": "x"}, 2.5)
    assert opt.best == (Config({"a": 2, "b": "y"}), 2.0)
    estimate = opt.trials[0].estimate
    assert estimate is not None
    assert estimate.count == 3
    assert estimate.deviation == pytest.approx(3**0.5)
    assert len(opt.trials[0].outcomes) == 4


def test_repeats_of_any_size(space: Space) -> None:
    opt = optimizer("random", space, seed=1)
    for value in (1.7e308, 1.7e308):
        opt.tell(space.default, value)
    assert opt.best[1] == pytest.approx(1.7e308)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf"), "3", True])
def test_no_number_is_no_number(space: Space, value: float) -> None:
    opt = optimizer("random", space, seed=1)
    config = opt.ask()
    with pytest.raises(InvalidInputError, match="tell None"):
        opt.tell(config, value)
    assert config not in opt.ask_many(99)


@pytest.mark.parametrize("config", [{"a": 9, "b": "x"}, {"a": 1}, {"a": 1, "b": "x", "c": 1}])
def test_outside_the_space(space: Space, config: Mapping[str, Value]) -> None:
    with pytest.raises(SpaceError):
        optimizer("random", space, seed=1).tell(config, 1.0)


def test_best_of_nothing(space: Space) -> None:
    opt: AskTell = optimizer("random", space, seed=1)
    opt.tell(space.default, None)
    with pytest.raises(InvalidInputError, match="nothing was measured"):
        opt.best  # noqa: B018 - the property raises


@pytest.mark.parametrize("count", [0, -1, True, 1.0])
def test_bad_count(space: Space, count: int) -> None:
    with pytest.raises(InvalidInputError, match="ask_many"):
        optimizer("random", space, seed=1).ask_many(count)
