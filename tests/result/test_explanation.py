"""The comparison of what two configurations do: the largest differences first, in plain sentences."""

import json

import pytest

from luthier.result.explanation import (
    Explanation,
    Observation,
    explanation_json,
    known_quantities,
    perf_counts,
    quantities_of,
)


def explanation(default: dict[str, float], best: dict[str, float], *notes: str) -> Explanation:
    return Explanation(1.0, Observation({"bs": 64}, default), Observation({"bs": 4096}, best), notes)


def test_the_largest_differences_that_matter_come_first() -> None:
    found = explanation(
        {"wall_s": 2.0, "posix_writes": 65536.0, "posix_syncs": 2.0, "system_s": 0.8, "posix_opens": 0.0},
        {"wall_s": 1.5, "posix_writes": 64.0, "posix_syncs": 0.0, "system_s": 0.79, "posix_opens": 0.0},
    )
    names = [one.name for one in found.differences]
    assert names == ["posix_writes", "wall_s", "posix_syncs", "system_s"]  # two syncs are too few to matter
    assert found.sentences == [
        "It makes 64 POSIX writes instead of 65,536: 1,024 times fewer.",
        "It takes 1.5 s instead of 2 s: 25 % less.",
    ]


@pytest.mark.parametrize(
    ("name", "default", "best", "sentence"),
    [
        ("system_calls", 300, 3000, "It makes 3,000 system calls instead of 300: 10 times more."),
        ("peak_memory_bytes", 2**30, 2**28, "It needs 256 MiB of memory at its peak instead of 1 GiB: 4 times less."),
        ("hdf5_read_bytes", 0, 2**20, "It reads 1 MiB through HDF5 instead of 0 B: none before."),
        ("posix_seeks", 500, 0, "It makes 0 POSIX seeks instead of 500: none any more."),
        ("user_s", 1.0, 1.5, "It uses 1.5 s of processor time itself instead of 1 s: 50 % more."),
    ],
)
def test_sentences(name: str, default: float, best: float, sentence: str) -> None:
    assert explanation({name: default}, {name: best}).sentences == [sentence]


def test_two_runs_that_do_the_same() -> None:
    same = explanation({"wall_s": 1.0, "posix_writes": 5.0}, {"wall_s": 1.05, "posix_writes": 1.0})
    assert same.sentences == ["Nothing that was counted differs by 10 % or more between the two runs."]


def test_what_one_run_lacks_is_not_compared() -> None:
    assert explanation({"wall_s": 1.0, "system_calls": 5000.0}, {"wall_s": 1.0}).differences[0].name == "wall_s"


def test_it_is_stored_and_read_back() -> None:
    made = explanation({"wall_s": 1.0}, {"wall_s": 0.5}, "perf is not installed.")
    stored = json.loads(json.dumps(made.to_json(), allow_nan=False))
    assert Explanation.from_json(stored) == made
    plain = explanation_json(made)
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain
    assert Explanation.from_json({"at": None, "default": [], "notes": 3}) == Explanation(
        0.0, Observation({}, {}), Observation({}, {})
    )


def test_every_quantity_has_a_sentence_with_one_value() -> None:
    for quantity in known_quantities().values():
        assert quantity.sentence.count("{}") == 1
        assert quantity.label


def test_quantities_of_a_run() -> None:
    usage = {"wall_s": 1.0, "blocks_read": 8.0, "exit_code": 0.0}
    found = quantities_of(usage, {"posix_writes": 14.0}, {"system_calls": 9.0})
    assert (found["posix_writes"], found["disk_read_bytes"]) == (14.0, 4096.0)
    assert (found["system_calls"], found["wall_s"]) == (9.0, 1.0)
    assert "exit_code" not in found


def test_the_output_of_perf() -> None:
    text = (
        "# started on Wed Nov 18 14:06:20 2026\n\n"
        "1500000000,,duration_time,1500000000,100.00,,\n"
        "<not supported>,,instructions,0,100.00,,\n"
        "1234,,cache-misses:u,1432869,100.00,,\n"
        "144,,raw_syscalls:sys_enter,1432869,100.00,100.498,K/sec\n"
    )
    assert perf_counts(text) == {"wall_s": 1.5, "cache_misses": 1234.0, "system_calls": 144.0}
    assert perf_counts("nonsense\n,,\n") == {}
