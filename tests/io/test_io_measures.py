"""Measures of I/O, from what processes counted."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.io.recorded_counts import layer, process, record, sizes

from luthier.errors import InvalidInputError
from luthier.io.counts import Counts, process_from, total
from luthier.measures.registry import measure_from, measures_from
from luthier.result.text import value_text
from luthier.spec.objectives import Objective
from luthier.trial import Completed, Execution, Failed, TimedOut

TWO_RANKS = (
    process(
        1,
        rank=0,
        hdf5=layer(writes=2, write_bytes=6000, write_s=1.0, reads=1, read_bytes=2000, read_s=0.25, other_s=0.4),
        posix=layer(
            writes=30, write_bytes=7000, write_s=0.5, write_sizes=sizes(1, 30), smallest_write=5, largest_write=900
        ),
    ),
    process(
        2,
        rank=1,
        hdf5=layer(writes=2, write_bytes=6000, write_s=1.4, reads=1, read_bytes=2000, read_s=0.3, other_s=0.8),
        posix=layer(
            writes=10, write_bytes=5000, write_s=0.5, write_sizes=sizes(2, 10), smallest_write=3, largest_write=800
        ),
    ),
)


def measured(folder: Path, name: str) -> object:
    outcome = measure_from(name)(Execution("key", 0.0, 1.0, logs=str(folder)))
    return outcome.value if isinstance(outcome, Completed) else outcome


def test_numbers_of_all_ranks(tmp_path: Path) -> None:
    record(tmp_path, *TWO_RANKS)
    # The slower rank takes 1.4 s to write, and three quarters of its 0.8 s belong to writing: 12000 bytes in 2 s.
    assert measured(tmp_path, "io:write_bandwidth") == pytest.approx(6000.0)
    assert measured(tmp_path, "io:read_bandwidth") == pytest.approx(4000 / 0.5)
    assert measured(tmp_path, "io:perf") == pytest.approx(0.25 * 8000 + 0.75 * 6000)
    assert measured(tmp_path, "io:time") == pytest.approx(2.5)
    assert measured(tmp_path, "io:posix_writes") == 40.0
    assert measured(tmp_path, "io:posix_write_bytes") == 12000.0
    assert measured(tmp_path, "io:hdf5_writes") == 4.0
    assert measured(tmp_path, "io:mpiio_writes") == 0.0
    assert measured(tmp_path, "io:posix_write_s") == 1.0


def test_the_layer_is_the_highest_that_was_used(tmp_path: Path) -> None:
    record(tmp_path, process(posix=layer(writes=1, write_bytes=100, write_s=0.5)))
    assert measured(tmp_path, "io:write_bandwidth") == 200.0
    assert measured(tmp_path, "io:perf") == 200.0
    record(
        tmp_path,
        process(posix=layer(write_bytes=100, write_s=0.5), mpiio=layer(write_bytes=50, write_s=0.1)),
    )
    assert measured(tmp_path, "io:write_bandwidth") == pytest.approx(500.0)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("io:read_bandwidth", "io:read_bandwidth: the run read nothing, or in no measurable time"),
        ("io:perf", "io:perf: the run read or wrote nothing, or in no measurable time"),
    ],
)
def test_a_rate_of_nothing_is_no_number(tmp_path: Path, name: str, reason: str) -> None:
    record(tmp_path, process(posix=layer(writes=1, write_bytes=100, write_s=0.0)))
    assert measured(tmp_path, name) == Failed(reason)
    assert measured(tmp_path, "io:posix_reads") == 0.0


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "n1-1.json: Expecting property name"),
        ("[]", "n1-1.json: it is not an object"),
        ('{"version": 2}', "version 2 is not supported, expected 1"),
        ('{"version": 1, "layers": {"posix": {"writes": -1}}}', "writes is -1, expected a number of at least 0"),
        ('{"version": 1, "layers": {"posix": {"write_s": NaN}}}', "write_s is nan, expected a number"),
        ('{"version": 1, "layers": {"posix": {"read_sizes": [1]}}}', "read_sizes has 1 numbers, expected 10"),
        ('{"version": 1, "files": [{"path": "/x", "layer": "tape"}]}', "a file has the layer 'tape'"),
        ("[" * 100_000, "n1-1.json: "),
    ],
)
def test_damaged_counters_fail_the_run(tmp_path: Path, text: str, reason: str) -> None:
    (record(tmp_path) / "io" / "n1-1.json").write_text(text)
    outcome = measured(tmp_path, "io:time")
    assert isinstance(outcome, Failed)
    assert outcome.reason.startswith("the I/O counters of this run are damaged: ")
    assert reason in outcome.reason


def test_runs_without_counters_have_no_number(tmp_path: Path) -> None:
    said = "no process left I/O counters; statically linked programs and runs on Dask workers are not counted"
    assert measured(tmp_path, "io:time") == Failed(said)
    assert isinstance(measure_from("io:time")(Execution("key", 0.0, 1.0)), Failed)
    slow = TimedOut("too slow")
    assert measure_from("io:time")(Execution("key", 0.0, 1.0, slow, logs=str(tmp_path))) is slow


def test_several_measures_of_one_run(tmp_path: Path) -> None:
    record(tmp_path, *TWO_RANKS)
    outcome = measures_from(["io:posix_writes", "io:hdf5_reads"])(Execution("key", 0.0, 1.0, logs=str(tmp_path)))
    assert outcome == Completed(40.0, (2.0,))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("io", "'io' needs what to look for; write io:NAME"),
        ("io:posix_write", "unknown io:posix_write; did you mean 'posix_writes'?"),
    ],
)
def test_names_are_checked_before_anything_runs(text: str, problem: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        measure_from(text)
    assert problem in str(caught.value)


GOALS: Mapping[str, tuple[str, str]] = {
    "io:perf": ("maximize", "max:io:perf"),
    "max:io:write_bandwidth": ("maximize", "max:io:write_bandwidth"),
    "min:io:perf": ("minimize", "min:io:perf"),
    "io:posix_writes": ("minimize", "io:posix_writes"),
    "min:wall": ("minimize", "wall"),
}


@pytest.mark.parametrize("text", GOALS)
def test_bandwidths_are_maximized(text: str) -> None:
    objective = Objective.parse(text)
    assert (objective.goal, objective.text) == GOALS[text]
    assert Objective.parse(objective.text) == objective


def test_values_have_units() -> None:
    shown = [value_text(1.5 * 2**20, name) for name in ("io:perf", "io:posix_write_bytes", "io:posix_writes")]
    assert shown == ["1.5 MiB/s", "1.5 MiB", "1.5729e+06"]
    assert [value_text(0.25, name) for name in ("io:time", "io:hdf5_read_s")] == ["250 ms", "250 ms"]


def test_sums_keep_sizes_and_extremes() -> None:
    both = total(process_from(one).layer("posix") for one in TWO_RANKS)
    assert (both.writes, both.smallest_write, both.largest_write) == (40, 3, 900)
    assert both.write_sizes == (0, 30, 10, 0, 0, 0, 0, 0, 0, 0)
    assert total([]) == Counts()
