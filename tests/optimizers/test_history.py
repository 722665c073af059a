from itertools import pairwise

import numpy as np
import pytest

from luthier.errors import InvalidInputError, SpaceError
from luthier.optimizers.contract import measured, unmeasured
from luthier.optimizers.history import History
from luthier.space import Integer, Space
from luthier.trial import Config, Estimate, Failed, Trial


def test_the_latest_word_on_a_configuration_counts() -> None:
    history = History(Space(Integer("a", 0, 3), Integer("b", 0, 3)))
    first, second = Config({"a": 1, "b": 2}), Config({"a": 3, "b": 0})
    history.tell([measured(first, 5.0), measured(second, 4.0)])
    history.tell([measured(first, 5.0, 1.0)])
    assert history.trials == [measured(first, 5.0, 1.0), measured(second, 4.0)]
    np.testing.assert_array_equal(history.codes(), [[1.0, 2.0], [3.0, 0.0]])
    np.testing.assert_array_equal(history.codes(1), [[3.0, 0.0]])
    np.testing.assert_allclose(history.units(), [[0.375, 0.625], [0.875, 0.125]])
    assert history.taken([Config({"a": 0, "b": 0})]) == {first, second, Config({"a": 0, "b": 0})}


def test_what_cannot_be_is_refused() -> None:
    history = History(Space(Integer("a", 0, 3), constraints=["a <= 2"]))
    with pytest.raises(SpaceError, match="violates"):
        history.tell([measured(Config({"a": 3}), 1.0)])
    with pytest.raises(InvalidInputError, match="nan"):
        history.tell([Trial(Config({"a": 1}), (), Estimate(float("nan"), 1))])
    assert len(history) == 0


def test_a_snapshot_is_taken_when_a_fifth_is_new_whoever_asks_and_however_it_is_told() -> None:
    space = Space(Integer("a", 0, 99))
    told = [
        measured(Config({"a": a}), float(a)) if a % 4 else unmeasured(Config({"a": a}), Failed("exit 1"))
        for a in range(60)
    ]
    told.insert(20, measured(Config({"a": 19}), 19.0, 21.0))  # known already, and no reason for a snapshot
    alone, together = History(space), History(space)
    sizes = []
    for trial in told:
        before = alone.snapshot
        alone.tell([trial])
        if alone.snapshot is not before:
            sizes.append(len(alone.snapshot))
    together.tell(told)
    assert together.snapshot == alone.snapshot == tuple(alone.trials[: sizes[-1]])
    assert sizes[:12] == list(range(1, 13))
    assert all(later <= 1.2 * size + 2 for size, later in pairwise(sizes))
    assert len(sizes) < 35
