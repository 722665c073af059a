import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from luthier.errors import InvalidInputError
from testbeds.fakeapp import GIB, KIB, MIB, PATTERNS, Pattern


@st.composite
def patterns(draw: st.DrawFn) -> Pattern:
    scatter = sorted(draw(st.tuples(st.integers(0, MIB), st.integers(0, MIB))))
    repeat = sorted(draw(st.tuples(st.integers(1, 9), st.integers(1, 9))))
    return Pattern(
        leads=draw(st.integers(1, 8)),
        rounds=draw(st.integers(1, 5)),
        scatter_bytes=(scatter[0], scatter[1]),
        repeat=(repeat[0], repeat[1]),
        advance_bytes=draw(st.integers(0, MIB)),
        file_bytes=GIB,
    )


@given(patterns(), st.integers(0, 2**32))
def test_reads_stay_by_their_lead_and_come_again_with_the_seed(pattern: Pattern, seed: int) -> None:
    reads = pattern.reads(seed=seed)
    again = pattern.reads(seed=seed)
    assert np.array_equal(reads.offset_bytes, again.offset_bytes)
    part = pattern.file_bytes // pattern.leads
    behind = reads.offset_bytes % part - part // 2
    assert (reads.offset_bytes % pattern.size_bytes == 0).all()
    assert (reads.offset_bytes + reads.size_bytes <= pattern.file_bytes).all()
    assert behind.min() > -pattern.size_bytes - 1
    assert behind.max() <= pattern.scatter_bytes[1] + pattern.rounds * pattern.advance_bytes
    low, high = (pattern.leads * pattern.rounds * times for times in pattern.repeat)
    assert low <= len(reads.offset_bytes) <= high


def test_leads_take_turns_and_advance_after_each_round() -> None:
    pattern = Pattern(2, 3, (0, 0), (2, 2), advance_bytes=64 * KIB, file_bytes=GIB)
    places = pattern.reads(seed=0).offset_bytes // (64 * KIB)
    first, second = GIB // 4 // (64 * KIB), 3 * GIB // 4 // (64 * KIB)
    expected = [lead + passed for passed in range(3) for lead in (first, first, second, second)]
    assert places.tolist() == expected


def test_patterns_scatter_as_published() -> None:
    spreads = {}
    for name, pattern in PATTERNS.items():
        part = pattern.file_bytes // pattern.leads
        spreads[name] = int(np.ptp(pattern.reads(seed=1).offset_bytes % part))
    assert 98 * 128 * KIB < spreads["a"] < 100 * 128 * KIB
    assert 95 * MIB < spreads["b"] < 101 * MIB
    assert spreads["c"] < 2.1 * MIB
    assert 300 * MIB < spreads["d"] < 501 * MIB
    assert 49 * MIB < spreads["hotspots"] < 51 * MIB


@pytest.mark.parametrize(
    ("pattern", "complaint"),
    [
        ({"leads": 0}, "leads, rounds and size_bytes"),
        ({"scatter_bytes": (2, 1)}, "scatter_bytes goes from 2 to 1"),
        ({"repeat": (0, 4)}, "repeat goes from 0 to 4"),
        ({"scatter_bytes": (0, GIB)}, "give a larger file_bytes"),
        ({"advance_bytes": -1}, "give a larger file_bytes"),
    ],
)
def test_patterns_that_make_no_sense_are_refused(pattern: dict[str, int], complaint: str) -> None:
    good = {"leads": 2, "rounds": 2, "scatter_bytes": (0, 1), "repeat": (1, 1), "file_bytes": GIB}
    with pytest.raises(InvalidInputError, match=complaint):
        Pattern(**(good | pattern))  # type: ignore[arg-type]  # the values are wrong on purpose
