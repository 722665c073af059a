"""What every subset picker promises, as a test suite that plug-in authors can run too.

Subclass `SubsetPickerContract` in a test file and name the registered pickers to be tested:

    class TestMine(SubsetPickerContract):
        pickers = ("mine",)
"""

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from typing import ClassVar

import numpy as np
import pytest

from luthier.policies import make_picker
from luthier.policies.base import SearchSoFar, SubsetPicker, TunedStep
from luthier.space import Choice, Integer, Real, Space
from luthier.trial import Completed, Config, Estimate, Failed, Trial

SPACES: Mapping[str, Callable[[], Space]] = {
    "one parameter": lambda: Space(Integer("a", 0, 6)),
    "one value": lambda: Space(Integer("a", 5, 5), Integer("b", 1, 2)),
    "mixed": lambda: Space(
        Integer("threads", 1, 8),
        Real("ratio", 0.0, 1.0),
        Choice("engine", ["sync", "aio", "mmap"]),
        Integer("d", 1, 64),
    ),
    "constrained": lambda: Space(Integer("a", 1, 12), Integer("b", 1, 12), constraints=["a <= b"]),
    "many": lambda: Space(*(Integer(f"p{at}", 1, 5) for at in range(40))),
}

_VALUES: Mapping[str, Callable[[int], float | None]] = {
    "usual": lambda at: 1.0 + (at * 7919 % 101) / 100.0,
    "all equal": lambda _: 3.0,
    "none": lambda _: None,
    "some failed": lambda at: None if at % 3 == 1 else float(at),
    "huge and negative": lambda at: [1e300, -1e300, 1e-300, 0.0][at % 4],
}


def searches(space: Space, values: Callable[[int], float | None]) -> list[SearchSoFar]:
    """A search at several moments: nothing known, one value, few, and many values."""
    configs = space.sample(60, np.random.default_rng(3))
    trials = [_trial(config, values(at)) for at, config in enumerate(configs)]
    found = []
    for count in (0, 1, 7, 30, len(trials)):
        known = trials[:count]
        bests = [trial.estimate.value for trial in known if trial.estimate is not None]
        steps = [TunedStep(space.names[: 1 + at % len(space.names)], 5 * at, None) for at in range(count // 5 + 1)]
        found.append(SearchSoFar(space, known, steps, len(known), min(bests, default=None), 1))
    return found


def _trial(config: Config, value: float | None) -> Trial:
    if value is None:
        return Trial(config, (Failed("exit 1"),), None)
    return Trial(config, (Completed(value),), Estimate(value, 1))


class SubsetPickerContract:
    """The promises of a subset picker."""

    pickers: ClassVar[Sequence[str]] = ()

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Run each test for every picker, space and kind of values."""
        metafunc.parametrize("picker_name", self.pickers)
        metafunc.parametrize("kind", SPACES)
        metafunc.parametrize("values", _VALUES)

    def test_promises(self, picker_name: str, kind: str, values: str) -> None:
        """At least one parameter of the space, none twice, a reason; the same question has the same answer."""
        space = SPACES[kind]()
        for search in searches(space, _VALUES[values]):
            before = deepcopy(search)
            subset = make_picker(picker_name)(search)
            assert search == before, "the picker changed what it was given"
            assert 1 <= len(subset.names) <= len(space.names)
            assert len(set(subset.names)) == len(subset.names)
            assert set(subset.names) <= set(space.names)
            assert subset.reason
            picker: SubsetPicker = make_picker(picker_name)
            picker(searches(space, _VALUES["usual"])[-1])  # what it was asked before does not matter
            assert picker(search) == subset
