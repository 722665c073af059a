"""What every optimizer promises, as a test suite that plug-in authors can run too.

Subclass `OptimizerContract` in a test file and name the registered optimizers to be tested:

    class TestMine(OptimizerContract):
        optimizers = ("mine",)
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import pytest

from luthier.errors import InvalidInputError
from luthier.optimizers.base import Optimizer
from luthier.optimizers.earlier import Earlier, EarlierTrial, read_transfer
from luthier.optimizers.registry import make_optimizer
from luthier.policies import SUBSET_PICKERS, SubsetPicker
from luthier.space import Choice, Integer, Real, Space
from luthier.trial import Completed, Config, Estimate, Failed, Lost, Outcome, Pruned, TimedOut, Trial

SPACES: Mapping[str, Callable[[], Space]] = {
    "tiny": lambda: Space(Integer("a", 1, 3), Choice("b", ["x", "y"])),
    "one value": lambda: Space(Integer("a", 5, 5)),
    "one parameter": lambda: Space(Integer("a", 0, 6)),
    "two-valued": lambda: Space(*(Choice(f"flag{i}", [False, True]) for i in range(4))),
    "mixed": lambda: Space(
        Integer("threads", 1, 8),
        Integer("block", 1024, 16384, step=2, scale="log"),
        Real("ratio", 0.0, 1.0, step=0.25),
        Choice("engine", ["sync", "aio", "mmap"]),
    ),
    "constrained": lambda: Space(Integer("a", 1, 12), Integer("b", 1, 12), constraints=["a <= b"]),
    "vast": lambda: Space(*(Integer(f"p{i}", 1, 100) for i in range(6))),
    "continuous": lambda: Space(Real("x", -1.0, 1.0), Real("y", 1e-3, 1e3, scale="log"), Choice("c", ["u", "v"])),
}
"""One space of each kind that has caused an error in some optimizer."""

_EXHAUSTIBLE = ("tiny", "one value", "one parameter", "two-valued", "constrained")
_STEPS, _LONG = 12, 24


@dataclass(slots=True)
class CheckedSearch:
    """A search in progress: what was asked and told so far; every promise is checked at each step."""

    optimizer: Optimizer
    space: Space
    running: list[Config] = field(default_factory=list)
    told: dict[Config, Trial] = field(default_factory=dict)
    log: list[Trial] = field(default_factory=list)
    asked: list[list[Config]] = field(default_factory=list)

    def ask(self, count: int) -> list[Config]:
        """Ask, and check the answer."""
        given = list(self.running)
        answer = list(self.optimizer.ask(count, given))
        assert given == self.running, "ask changed the list of running configurations"
        assert len(answer) <= count
        assert len(set(answer)) == len(answer), "one answer holds a configuration twice"
        assert not set(answer) & {*self.told, *self.running}, "a configuration told or running was suggested again"
        codes = self.space.codes(answer)
        assert self.space.feasible(codes).all(), "a suggestion breaks a constraint"
        self.asked.append(answer)
        self.running += answer
        return answer

    def tell(self, *trials: Trial) -> None:
        """Tell, and check that the trials stay as they are."""
        given = list(trials)
        before = deepcopy(given)
        self.optimizer.tell(given)
        assert given == before, "tell changed what it was given"
        self.log += given
        for trial in trials:
            self.told[trial.config] = trial
            if trial.config in self.running:
                self.running.remove(trial.config)


def value_at(space: Space, config: Config) -> float:
    """A bowl with its bottom off centre, plus a step for every other category."""
    unit = space.to_unit(space.codes([config]))[0]
    return 1.0 + float(np.sum((unit - 0.3) ** 2))


def measured(config: Config, *values: float) -> Trial:
    """A trial whose runs all completed."""
    deviation = float(np.std(values, ddof=1)) if len(values) > 1 else None
    return Trial(config, tuple(map(Completed, values)), Estimate(float(np.mean(values)), len(values), deviation))


def unmeasured(config: Config, outcome: Outcome) -> Trial:
    """A trial whose only run gave no number."""
    return Trial(config, (outcome,), None)


def eventful_search(optimizer: Optimizer, space: Space, steps: int = _STEPS) -> CheckedSearch:
    """A search in which everything happens: failures, late and repeated results, and trials that were not suggested."""
    search = CheckedSearch(optimizer, space)
    for _ in eventful_steps(search, steps):
        pass
    return search


def eventful_steps(search: CheckedSearch, steps: int) -> Iterator[int]:
    """Run an eventful search; pauses after every step, with some configurations running."""
    space = search.space
    search.tell(measured(space.default, value_at(space, space.default)))
    for step in range(steps):
        search.ask(1 + step % 3)
        if step == 4:
            strangers = [
                c for c in space.sample(3, np.random.default_rng(7)) if c not in search.told and c not in search.running
            ]
            search.tell(*(measured(config, value_at(space, config)) for config in strangers))
        # The latest comes first, and now and then one is left for later.
        for turn, config in enumerate(reversed(search.running[step % 2 :])):
            value = value_at(space, config)
            search.tell(_what_happens(config, value, step + turn))
            if step % 4 == 3 and search.told[config].estimate is not None:
                search.tell(measured(config, value, value * 1.02, value * 0.99))
        yield step


def _what_happens(config: Config, value: float, turn: int) -> Trial:
    problems: Sequence[Outcome] = (
        Failed("exit 1"),
        TimedOut("10 s", at_least=value),
        Pruned("slow"),
        Lost("node"),
        TimedOut("10 s"),
    )
    return unmeasured(config, problems[turn // 3 % 5]) if turn % 3 == 1 else measured(config, value)


def earlier_in(space: Space, transfer: str | None) -> Earlier | None:
    """What an earlier search of a similar space knows, with failures, bounds and missing values; None without one."""
    if transfer is None:
        return None
    trials = []
    for at, config in enumerate(space.sample(30, np.random.default_rng(17))):
        values = dict(config)
        if at % 5 == 4 and len(values) > 1:
            values.pop(space.names[-1])
        score = None if at % 7 == 3 else value_at(space, config) - 1.5
        trials.append(EarlierTrial(values, score, is_bound=at % 7 == 5, source=at % 2))
    return Earlier(tuple(trials), *read_transfer(transfer))


def picker_called(name: str | None) -> SubsetPicker | None:
    """The subset picker of this name."""
    return None if name is None else SUBSET_PICKERS.get(name)()


def transcripts(name: str, *, seed: int, transfer: str | None = None, impact_first: str | None = None) -> str:
    """What the optimizer suggests in an eventful search in every space it accepts, as text."""
    lines = {}
    for kind, make_space in SPACES.items():
        space = make_space()
        try:
            earlier, picker = earlier_in(space, transfer), picker_called(impact_first)
            optimizer = make_optimizer(name, space, seed=seed, budget=40, earlier=earlier, picker=picker)
        except InvalidInputError:
            continue
        lines[kind] = [[dict(config) for config in answer] for answer in eventful_search(optimizer, space).asked]
    return json.dumps(lines)


def _accepts(name: str, kind: str) -> bool:
    try:
        make_optimizer(name, SPACES[kind](), seed=0, budget=40)
    except InvalidInputError:
        return False
    return True


class OptimizerContract:
    """The promises. An optimizer may refuse a space, but only when it is made, and by an `InvalidInputError`."""

    optimizers: ClassVar[Sequence[str]] = ()
    transfer: ClassVar[str | None] = None
    """How the optimizers learn from an earlier experiment; None without one."""
    impact_first: ClassVar[str | None] = None
    """The subset picker that decides which parameters are tuned; None if all are."""

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Run each test for every optimizer, and in every space it accepts."""
        if "kind" in metafunc.fixturenames:
            pairs = [(name, kind) for name in self.optimizers for kind in SPACES if _accepts(name, kind)]
            metafunc.parametrize(("optimizer_name", "kind"), pairs)
        elif "optimizer_name" in metafunc.fixturenames:
            metafunc.parametrize("optimizer_name", self.optimizers)

    @pytest.fixture
    def space(self, kind: str) -> Space:
        """The space of this kind."""
        return SPACES[kind]()

    @pytest.fixture
    def make(self, optimizer_name: str, space: Space) -> Callable[[int], Optimizer]:
        """Makes the optimizer with a seed."""
        earlier, picker = earlier_in(space, self.transfer), picker_called(self.impact_first)
        return lambda seed: make_optimizer(optimizer_name, space, seed=seed, budget=40, earlier=earlier, picker=picker)

    def test_accepts_a_small_space(self, optimizer_name: str) -> None:
        """There is a space it can search; whatever else it refuses, it refuses by an `InvalidInputError`."""
        assert True in [_accepts(optimizer_name, kind) for kind in SPACES]

    def test_survives_everything_that_can_happen_to_a_trial(
        self, make: Callable[[int], Optimizer], space: Space
    ) -> None:
        """Everything that can happen to a trial, with the promises of `ask` checked at every step."""
        search = eventful_search(make(1), space)
        assert len(search.told) >= min(10, space.size or 10)

    def test_same_seed_same_answers(self, make: Callable[[int], Optimizer], space: Space) -> None:
        """Two optimizers with one seed agree."""
        assert eventful_search(make(3), space).asked == eventful_search(make(3), space).asked

    def test_same_answers_in_another_process(self, optimizer_name: str) -> None:
        """Neither the process nor the order of its hashes shows in the answers."""
        how = f"transfer={self.transfer!r}, impact_first={self.impact_first!r}"
        call = f"transcripts({optimizer_name!r}, seed=5, {how})"
        code = f"from luthier.optimizers.contract import transcripts; print({call})"
        environment = {**os.environ, "PYTHONHASHSEED": "12345"}
        answer = subprocess.run(
            [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
        )
        here = transcripts(optimizer_name, seed=5, transfer=self.transfer, impact_first=self.impact_first)
        assert json.loads(answer.stdout) == json.loads(here)

    def test_ends_after_every_configuration(self, optimizer_name: str) -> None:
        """A small space is exhausted: each configuration once, then an empty answer."""
        for kind in filter(lambda kind: _accepts(optimizer_name, kind), _EXHAUSTIBLE):
            space = SPACES[kind]()
            earlier, picker = earlier_in(space, self.transfer), picker_called(self.impact_first)
            optimizer = make_optimizer(optimizer_name, space, seed=2, budget=10, earlier=earlier, picker=picker)
            search = CheckedSearch(optimizer, space)
            while search.ask(1):
                search.tell(measured(search.running[0], value_at(space, search.running[0])))
                assert len(search.told) <= (space.size or 0)
            assert len(search.told) == space.size, f"{kind}: ended too early"
            assert list(search.optimizer.ask(3, [])) == []

    def test_asks_in_a_row_are_distinct(self, make: Callable[[int], Optimizer], space: Space) -> None:
        """Many answers at once, and many asks without a tell in between, repeat nothing."""
        search = CheckedSearch(make(4), space)
        search.ask(5)
        search.ask(1)
        search.ask(4)
        assert len(search.running) == min(10, space.size or 10)

    def test_results_all_at_once_and_out_of_order(self, make: Callable[[int], Optimizer], space: Space) -> None:
        """Several trials in one tell, the latest first."""
        search = CheckedSearch(make(6), space)
        for _ in range(3):
            search.ask(4)
            search.tell(*(measured(config, value_at(space, config)) for config in reversed(search.running)))
        assert len(search.told) == min(12, space.size or 12)

    @pytest.mark.parametrize("scale", [1e-300, -1e-300, 1e300, -1e300, 0.0], ids=str)
    def test_any_finite_values(self, make: Callable[[int], Optimizer], space: Space, scale: float) -> None:
        """Huge, tiny, negative and all equal values are accepted."""
        search = CheckedSearch(make(8), space)
        for _ in range(9):
            search.ask(1)
            search.tell(*(measured(config, scale * value_at(space, config)) for config in search.running))
        assert len(search.told) == min(9, space.size or 9)

    def test_values_of_every_size_together(self, make: Callable[[int], Optimizer], space: Space) -> None:
        """Extreme outliers do not stop the search."""
        search = CheckedSearch(make(9), space)
        for step in range(9):
            search.ask(1)
            search.tell(*(measured(config, [1.0, 1e300, 1e-300, -1e300][step % 4]) for config in search.running))
        assert len(search.told) == min(9, space.size or 9)

    def test_all_failed(self, make: Callable[[int], Optimizer], space: Space) -> None:
        """The search goes on, and repeats no failed configuration."""
        search = CheckedSearch(make(10), space)
        for _ in range(9):
            search.ask(1)
            search.tell(*(unmeasured(config, Failed("exit 1")) for config in search.running))
        assert len(search.told) == min(9, space.size or 9)

    def test_goes_on_in_the_same_way_after_it_was_told_the_same_history(
        self, make: Callable[[int], Optimizer], space: Space
    ) -> None:
        """A new optimizer that was told the same trials in the same order gives the same answer, whatever was asked."""
        search = CheckedSearch(make(11), space)
        for step in eventful_steps(search, _LONG):
            count = 1 + step % 4
            if step % 4 != 3:
                continue
            expected = list(search.optimizer.ask(count, search.running))  # never run: the search continues without it
            for size in (len(search.log), 1 + step % 5):  # told all at once, or in parts
                other = make(11)
                for start in range(0, len(search.log), size):
                    other.tell(search.log[start : start + size])
                assert list(other.ask(count, search.running)) == expected, f"step {step}, told {size} at a time"

    def test_the_answer_depends_on_what_is_running_and_not_on_what_was_asked(
        self, make: Callable[[int], Optimizer], space: Space
    ) -> None:
        """The same question twice has one answer; what runs is not suggested, and what was only asked for may be."""
        search, other = CheckedSearch(make(12), space), CheckedSearch(make(12), space)
        for _ in range(4):
            question = 2, list(search.running)
            for _ in range(2):
                assert list(search.optimizer.ask(*question)) == list(search.optimizer.ask(*question))
            assert search.ask(2) == other.ask(2)
            for each in (search, other):
                each.tell(*(measured(config, value_at(space, config)) for config in each.running[:1]))
