import json
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.testbeds.models import Pattern, checksum, data_file

from testbeds.real.sro import PATTERNS, Programs

FILE_BYTES = 100_003  # no multiple of anything


@pytest.fixture(scope="module")
def data(programs: Programs, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("fakeapp") / "data"
    subprocess.run([programs.fakeapp, "--create", str(FILE_BYTES), path], check=True)
    return path


def run(programs: Programs, *arguments: str | Path) -> dict[str, object]:
    ended = subprocess.run([programs.fakeapp, *arguments], capture_output=True, text=True, check=True)
    answer: dict[str, object] = json.loads(ended.stdout)
    assert isinstance(answer["seconds"], float)
    return answer


@st.composite
def patterns(draw: st.DrawFn) -> Pattern:
    def between(low: int, high: int) -> tuple[int, int]:
        first, second = sorted((draw(st.integers(low, high)), draw(st.integers(low, high))))
        return first, second

    return Pattern(
        operations=draw(st.none() | st.integers(1, 60)),
        leads=draw(st.integers(1, 9)),
        scatter=between(0, FILE_BYTES),
        repeat=between(1, 7),
        advance=draw(st.integers(0, 3 * FILE_BYTES)),
        sizes=between(1, 300),
        seed=draw(st.integers(0, 2**64 - 1)),
    )


def test_creates_the_same_bytes_everywhere(data: Path) -> None:
    assert data.read_bytes() == data_file(FILE_BYTES)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(pattern=patterns())
def test_reads_what_the_pattern_says(programs: Programs, data: Path, pattern: Pattern) -> None:
    reads = list(pattern.reads(FILE_BYTES))
    answer = run(programs, *pattern.options(), data)
    assert answer["reads"] == len(reads)
    assert answer["bytes"] == sum(size for _, size in reads)
    assert answer["checksum"] == checksum(data.read_bytes(), reads)


def test_named_patterns_are_the_ones_documented(programs: Programs, tmp_path: Path) -> None:
    subprocess.run([programs.fakeapp, "--create", "16M", tmp_path / "data"], check=True)
    written_out = {
        "a": "-N 2000 -L 4 -S 0 -r 1 -l 64k",
        "b": "-N 2000 -L 4 -S 4M -r 250 -l 1M",
        "c": "-N 2000 -L 50 -S 512k -r 1 -l 0",
        "d": "-L 20 -g 64k:8M -G 20:180 -l 0",
    }
    for name, options in written_out.items():
        named = run(programs, "--pattern", name, tmp_path / "data")
        assert named["checksum"] == run(programs, *options.split(), tmp_path / "data")["checksum"]
    assert set(PATTERNS) <= set(written_out)


def test_one_wrong_byte_changes_the_checksum(programs: Programs, tmp_path: Path) -> None:
    content = bytearray(data_file(4096))
    path = tmp_path / "data"
    sums = set()
    for position in (0, 7, 8, 2047, 4090, 4095):
        content[position] ^= 1
        path.write_bytes(content)
        sums.add(run(programs, "-w", "4091", "-W", "4096", "-S", "4096", "-N", "9", "--warm", path)["checksum"])
    assert len(sums) == 6


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("", "one FILE is needed, 0 came"),
        ("data data", "one FILE is needed, 2 came"),
        ("nowhere", "nowhere: No such file"),
        (".", "not a regular file"),
        ("--leads 0 data", "--leads: '0' is not a whole number from 1"),
        ("--operations -5 data", "--operations: '-5'"),
        ("--operations 1e3 data", "--operations: '1e3'"),
        ("--operations 99999999999999999999 data", "--operations"),
        ("--seed 18446744073709551616 data", "--seed"),
        ("--scatter 17179869184G data", "--scatter"),
        ("--scatter 1M data", "--scatter: 1048576 is more than the 100003 bytes"),
        ("--max-size 1M data", "--max-size: 1048576 is more"),
        ("--min-size 8k data", "--min-size 8192 is above --max-size 4096"),
        ("--scatter-range 5 data", "--scatter-range: '5' is not LOW:HIGH"),
        ("--scatter-range 9:5 data", "low 9 is above high 5; swap them"),
        ("--repeat-range 1:x data", "--repeat-range: 'x'"),
        ("--pattern e data", "--pattern: 'e' is none of a, b, c, d"),
        ("--create 0 data", "--create: '0'"),
        ("--create 1M nowhere/data", "nowhere/data: No such file"),
        ("--nonsense data", "unrecognized option '--nonsense'"),
    ],
)
def test_bad_arguments_are_one_clear_line(programs: Programs, data: Path, arguments: str, says: str) -> None:
    before = data.read_bytes()
    ended = subprocess.run(
        [programs.fakeapp, *arguments.split()], cwd=data.parent, capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.count("\n") == 1
    assert says in ended.stderr
    assert data.read_bytes() == before
