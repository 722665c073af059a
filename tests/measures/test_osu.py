from pathlib import Path

import pytest

from luthier.errors import InvalidInputError
from luthier.measures.registry import measure_from
from luthier.trial import Completed, Execution, Failed, Lost, Outcome

TABLE = "# OSU MPI Broadcast Latency Test v5.6.3\n# Size          Avg Latency(us)\n{}\n"


def measured(folder: Path, text: str) -> Outcome:
    (folder / "stdout").write_text(text)
    return measure_from("osu")(Execution("k", 0.0, 1.0, logs=str(folder)))


@pytest.mark.parametrize(
    ("rows", "value"),
    [("512              18.71", 512 * 18.71), ("1 2.5\n2   4.0 9.0\n", 10.5), ("  0 3.0\n  4  0.5", 2.0)],
)
def test_latencies_are_weighed_by_size(tmp_path: Path, rows: str, value: float) -> None:
    assert measured(tmp_path, TABLE.format(rows)) == Completed(value)


@pytest.mark.parametrize("rows", ["0 3.0", "8 0.00\n16 0", f"{10**300} {10**300}", f"1 {10**308}.0\n1 {10**308}.0"])
def test_latencies_that_are_no_time_are_a_failed_run(tmp_path: Path, rows: str) -> None:
    outcome = measured(tmp_path, TABLE.format(rows))
    assert isinstance(outcome, Failed)
    assert "expected a time above 0" in outcome.reason


def test_no_table_is_a_failed_run(tmp_path: Path) -> None:
    outcome = measured(tmp_path, "mpirun: not found\n")
    assert isinstance(outcome, Failed)
    assert "mpirun: not found" in outcome.reason


@pytest.mark.parametrize("row", ["4 1,234.5", "4 2.x", "4 nan", "4", "4 -", "4 1_0", f"{'9' * 400} 1"])
def test_a_row_that_cannot_be_read_is_a_failed_run(tmp_path: Path, row: str) -> None:
    outcome = measured(tmp_path, TABLE.format(f"1 2.5\n{row}\n8 4.0"))
    assert isinstance(outcome, Failed)
    assert "this row of the table" in outcome.reason


def test_exponents_count_and_other_lines_do_not(tmp_path: Path) -> None:
    assert measured(tmp_path, TABLE.format("2 processes\n1 2.5e1\n2 4.0")) == Completed(33.0)


def test_problems_stay_what_they_are() -> None:
    assert measure_from("osu")(Execution("k", 0.0, 1.0, Lost("gone"))) == Lost("gone")
    assert isinstance(measure_from("osu")(Execution("k", 0.0, 1.0)), Failed)


@pytest.mark.parametrize(("size", "value"), [("8", 2.5), ("1024", 4.0)])
def test_the_latency_of_one_size(tmp_path: Path, size: str, value: float) -> None:
    (tmp_path / "stdout").write_text(TABLE.format("8   2.5\n1024  4.0\n1024 9.0"))
    assert measure_from(f"osu:{size}")(Execution("k", 0.0, 1.0, logs=str(tmp_path))) == Completed(value)


def test_a_size_that_is_missing_is_a_failed_run(tmp_path: Path) -> None:
    (tmp_path / "stdout").write_text(TABLE.format("8 2.5"))
    outcome = measure_from("osu:16")(Execution("k", 0.0, 1.0, logs=str(tmp_path)))
    assert outcome == Failed("the table in its output has no message size 16")
    with pytest.raises(InvalidInputError, match="osu:1k: is not a message size"):
        measure_from("osu:1k")
