"""The time that the shell's `time` printed."""

import shutil
import subprocess
from pathlib import Path

import pytest

from luthier.measures.registry import measure_from
from luthier.trial import Completed, Execution, Failed, Outcome


def measured(folder: Path, stderr: bytes, stdout: bytes = b"") -> Outcome:
    (folder / "stderr").write_bytes(stderr)
    (folder / "stdout").write_bytes(stdout)
    return measure_from("time")(Execution("k", 0.0, 1.0, logs=str(folder)))


@pytest.mark.parametrize(
    ("printed", "seconds"),
    [
        (b"\nreal\t25m8.085s\nuser\t74m53.073s\nsys\t1m36.652s\n", 1508.085),
        (b"real\t0m1,25s\n", 1.25),
        (b"real 1.23\nuser 0.00\nsys 0.00\n", 1.23),
        (b"real\t0m0.000s\nreal\t0m2.500s\nreal\t0m9.000s", 2.5),
        (b"really 5\nreal time: 3\nreal 4s apart\n real 7\nreal\t0m6.000s\r\n", 6.0),
        (b"x" * 100 + b"real 5\nreal 6\n", 6.0),
    ],
)
def test_the_first_time_above_zero_counts(tmp_path: Path, printed: bytes, seconds: float) -> None:
    assert measured(tmp_path, printed) == Completed(seconds)
    assert measured(tmp_path, b"a warning\n", printed) == Completed(seconds)


@pytest.mark.parametrize("printed", [b"", b"0.00user 0.00system 0:01.00elapsed\n", b"real 0\n", b"real 9999999999\n"])
def test_without_a_time_the_run_has_failed(tmp_path: Path, printed: bytes) -> None:
    outcome = measured(tmp_path, printed)
    assert isinstance(outcome, Failed)
    assert "no line of the shell's time" in outcome.reason


@pytest.mark.parametrize("call", [["bash", "-c", "time ( sleep 0.01 )"], ["bash", "-c", "time -p sleep 0.01"]])
def test_what_a_shell_really_prints(tmp_path: Path, call: list[str]) -> None:
    if shutil.which(call[0]) is None:
        pytest.skip("bash is not installed")
    done = subprocess.run(call, capture_output=True, check=True)
    outcome = measured(tmp_path, done.stderr)
    assert isinstance(outcome, Completed)
    assert outcome.value >= 0.01
