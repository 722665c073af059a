"""Two runs are the same only if everything that was counted is, and if the order of the I/O was recorded in both."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pytest

from luthier.io.counts import Counts, FileCounts, ProcessCounts
from luthier.io.kernel_comparison import differences
from luthier.io.prediction import predictions


@dataclass(frozen=True)
class Counted:
    processes: tuple[ProcessCounts, ...]
    files: Mapping[str, int] = field(default_factory=dict)


FILE = FileCounts("out", "posix", Counts(opens=1, writes=9, write_bytes=900), order="aa", operations="bb")
USUAL = ProcessCounts("prog", "node", 1, 1.0, {"posix": FILE.counts}, files=(FILE,), order="cc")


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (replace(USUAL, order=""), "the order of the I/O was not recorded"),
        (replace(USUAL, has_unlisted=True), "more files than can be compared"),
        (replace(USUAL, is_threaded=True), "only one of application and kernel makes I/O in several threads"),
        (replace(USUAL, order="dd"), "the order of operations on several files differs"),
        (replace(USUAL, files=(replace(FILE, operations="dd"),)), "POSIX out: offsets, sizes or modes of operations"),
        (replace(USUAL, files=(replace(FILE, order="dd"),)), "POSIX out: the order of operations differs"),
    ],
)
def test_what_differs_on_either_side_is_told(other: ProcessCounts, said: str) -> None:
    for one, two in ((USUAL, other), (other, USUAL)):
        (found,) = differences(Counted((one,)), Counted((two,)))
        assert found.startswith(said)


def test_runs_that_are_the_same_differ_in_nothing() -> None:
    slower = replace(USUAL, wall_s=9.0, pid=7)
    assert differences(Counted((USUAL,), {"out": 900}), Counted((slower,), {"out": 900})) == ()
    assert differences(Counted((USUAL, USUAL)), Counted((slower, USUAL))) == ()
    unknown = replace(USUAL, order="")
    assert len(differences(Counted((unknown, unknown)), Counted((unknown, unknown)))) == 2, "nothing shows an order"


def test_a_file_of_one_side_and_what_is_left_behind_are_told() -> None:
    more = replace(USUAL, files=(FILE, replace(FILE, path="log")))
    assert differences(Counted((more,)), Counted((USUAL,))) == ("POSIX log: used by the application only",)
    assert differences(Counted((USUAL,)), Counted((more,))) == ("POSIX log: used by the kernel only",)
    left = differences(Counted((USUAL,), {"a": 1, "b": 2}), Counted((USUAL,), {"b": 3, "c": 4}))
    assert left == (
        "a: left behind by the application only",
        "b: 2 bytes left by the application, 3 by the kernel",
        "c: left behind by the kernel only",
    )


@pytest.mark.parametrize(
    ("read", "predicted", "error"),
    [
        (5, 10, 5 / 1005),  # few bytes beside many: relative to all
        (100, 110, 0.1),  # more than 1 % of all: relative to its own number
    ],
)
def test_a_few_bytes_beside_much_data_need_not_be_exact(read: int, predicted: int, error: float) -> None:
    def run(bytes_read: int) -> ProcessCounts:
        counts = Counts(opens=1, reads=1, writes=1, read_bytes=bytes_read, write_bytes=1000)
        return replace(USUAL, files=(replace(FILE, counts=counts),))

    found = {one.name: one for one in predictions([run(read)], [run(predicted)], 0.01)}
    assert found["bytes read"].error == pytest.approx(error)
    assert found["bytes read"].is_good == (error <= 0.01)
    assert found["bytes written"].error == found["operations"].error == 0.0
