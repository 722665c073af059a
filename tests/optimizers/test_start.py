import pytest

from luthier.designs import DESIGNS
from luthier.optimizers.start import Start
from luthier.space import Integer, Space
from luthier.trial import Config

SPACE = Space(Integer("a", 0, 4), Integer("b", 0, 99), Integer("c", 0, 99))
DEFAULT = Config({"a": 0, "b": 0, "c": 0})


@pytest.mark.parametrize("design", ["latin-hypercube", "maximin-lhd"])
def test_what_is_known_already_takes_no_level_away(design: str) -> None:
    """Of a design of six points that loses one to the default, that one may be the only one of its level."""
    for seed in range(20):
        drawn = Start(SPACE, 6, seed=seed, design=DESIGNS[design]).next(9, {DEFAULT})
        assert {config["a"] for config in drawn} == set(range(5)), seed


def test_one_by_one_or_all_at_once_the_start_is_the_same() -> None:
    start, taken = Start(SPACE, 6, seed=3), {DEFAULT}
    drawn: list[Config] = []
    while one := start.next(1, taken):
        drawn += one
        taken.update(one)
    assert drawn == Start(SPACE, 6, seed=3).next(9, {DEFAULT})
    assert len(drawn) == 5


def test_it_ends_early_where_others_took_its_place() -> None:
    start = Start(SPACE, 6, seed=3)
    first = start.next(2, set())
    others = {Config({"a": 4, "b": b, "c": 0}) for b in range(3)}
    assert len(start.next(9, {*first, *others})) == 1
    assert start.next(9, {*first, *others, DEFAULT}) == []


def test_what_was_asked_before_does_not_matter() -> None:
    """A start that is asked for the first time half-way gives what one that was asked from the beginning gives."""
    known = {Config({"a": a, "b": 7, "c": 9}) for a in range(3)}
    first = Start(SPACE, 9, seed=3)
    taken = {DEFAULT, *first.next(2, {DEFAULT})}
    for others in (set(), {*list(known)[:1]}, known):
        assert first.next(9, taken | others) == Start(SPACE, 9, seed=3).next(9, taken | others)
        assert len(first.next(9, taken | others)) == 9 - len(taken | others)
