from collections import Counter, deque

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from luthier.trial import Config
from testbeds import sro
from testbeds.fakeapp import MIB, PATTERNS, Reads
from testbeds.testbed import TESTBEDS

OWN_S = sro.LUSTRE.hit_s + 100 * sro.LUSTRE.record_s
READ_S = sro.LUSTRE.latency_s + 4096 / sro.LUSTRE.bytes_per_s
CHUNK_S = sro.CHUNK_BYTES / sro.LUSTRE.bytes_per_s

offsets = st.lists(st.integers(0, 40).map(lambda place: place * MIB // 4), min_size=1, max_size=80)


def reads_at(places: list[int]) -> Reads:
    return Reads(np.array(places, dtype=np.int64), 4096, 0.0)


def config(threshold: int = 2, bin_bytes: int = MIB, prefetch_bytes: int = MIB, length: int = 100) -> Config:
    return Config(
        {
            "cluster_threshold": threshold,
            "binsize": bin_bytes,
            "prefetch_size": prefetch_bytes,
            "sequence_length": length,
        }
    )


def seconds(places: list[int], chosen: Config) -> float:
    return float(sro.Sro(reads_at(places), sro.LUSTRE)([chosen])[0])


@example([0, 10 * MIB, 20 * MIB, 0], 2, 3, MIB)
@given(offsets, st.integers(1, 6), st.integers(1, 30), st.sampled_from([MIB // 4, MIB]))
def test_hot_reads_are_those_a_plain_count_over_the_window_finds(
    places: list[int], threshold: int, length: int, bin_bytes: int
) -> None:
    window: deque[int] = deque(maxlen=length)
    expected = []
    for place in places:
        window.append(place // bin_bytes)
        expected.append(Counter(window)[place // bin_bytes] >= threshold)
    assert sro.Sro(reads_at(places), sro.LUSTRE).hot(bin_bytes, threshold, length).tolist() == expected


@given(offsets, st.integers(1, 6), st.integers(1, 40))
def test_a_read_costs_at_least_its_bookkeeping_and_at_most_two_from_storage(
    places: list[int], threshold: int, prefetch_mib: int
) -> None:
    taken_s = seconds(places, config(threshold, prefetch_bytes=prefetch_mib * MIB))
    assert taken_s == seconds(places, config(threshold, prefetch_bytes=prefetch_mib * MIB))
    assert len(places) * OWN_S <= taken_s <= len(places) * (OWN_S + 2 * READ_S) * (1 + 1e-9)


def test_nothing_hot_means_plain_reads_and_a_longer_memory_costs() -> None:
    apart = [place * 10 * MIB for place in range(50)]
    assert seconds(apart, config()) == pytest.approx(50 * (OWN_S + READ_S))
    assert seconds(apart, config(length=750)) > seconds(apart, config(length=50))


def test_a_threshold_above_the_window_never_prefetches() -> None:
    assert seconds([0] * 300, config(threshold=102, length=50)) == seconds([0] * 300, config(threshold=62, length=50))


def test_one_hot_chunk_by_hand() -> None:
    # the second read makes the bin hot and its chunk is on the way; storage is shared until it has arrived
    many = 200
    by_hand_s = 2 * (OWN_S + READ_S)
    arrival_s = by_hand_s + sro.LUSTRE.latency_s + CHUNK_S
    left = many - 2
    while by_hand_s + OWN_S < arrival_s:
        by_hand_s += OWN_S
        left -= 1
        if arrival_s - by_hand_s <= 2 * READ_S:
            by_hand_s = arrival_s
        else:
            by_hand_s += 2 * READ_S
            arrival_s += READ_S
    assert seconds([0] * many, config()) == pytest.approx(by_hand_s + left * OWN_S)


def test_memory_that_is_too_small_is_no_help() -> None:
    # two zones in turn, each larger than half of the memory: one always drives out the other
    places = [place for _ in range(20) for place in [0] * 300 + [2000 * MIB] * 300]
    small = sro.Storage(sro.LUSTRE.latency_s, sro.LUSTRE.bytes_per_s, memory_bytes=15 * MIB)
    chosen = config(prefetch_bytes=10 * MIB)
    thrashing_s = sro.Sro(reads_at(places), small)([chosen])[0]
    assert thrashing_s > 5 * seconds(places, chosen)


@pytest.mark.parametrize("name", ["b", "c", "hotspots"])
def test_a_good_prefetcher_beats_none_by_far(name: str) -> None:
    # a threshold of 102 within 50 reads is out of reach: no prefetching
    testbed = TESTBEDS[f"sro/{name}"]
    none_s = testbed.seconds({**testbed.grid.default, "cluster_threshold": 102, "sequence_length": 50})
    assert testbed.table().min() < none_s / 3


def test_the_threshold_acts_the_other_way_round_on_c_and_d() -> None:
    # Robert's thesis, figures 2.4 and 2.5
    effects = {}
    for name in "cd":
        by_threshold = TESTBEDS[f"sro/{name}"].table().reshape(6, -1).mean(axis=1)
        effects[name] = by_threshold[0] - by_threshold[1]
    assert effects["c"] < 0 < effects["d"]


def test_the_best_prefetch_size_follows_the_scatter() -> None:
    # 50 MiB are more than the grid offers, so its largest is best; with 2 MiB anything beyond 3 MiB only fills memory
    assert TESTBEDS["sro/b"].optimum["prefetch_size"] == 10 * MIB
    assert TESTBEDS["sro/c"].optimum["prefetch_size"] == 3 * MIB
    assert PATTERNS["c"].scatter_bytes == (2 * MIB, 2 * MIB)
