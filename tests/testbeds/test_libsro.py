"""libsro.so: it counts and loads as documented, and nothing a program reads is changed by it."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.conftest import missing
from tests.testbeds.models import Pattern, Sro

from testbeds.real.sro import Programs

NATIVE = Path(__file__).resolve().parents[2] / "testbeds" / "native"
DRIVER = Path(__file__).with_name("file_driver.py")
FILE_BYTES = 1 << 20
# Prefetches whenever it can: bins of 64 KiB are larger than any read here.
EAGER = Sro(sequence_length=50, bin_size=64 << 10, cluster_threshold=1, prefetch_size=8192)
NOTHING: Mapping[str, object] = MappingProxyType({})
FIXTURES = [HealthCheck.function_scoped_fixture]


def run(
    command: Sequence[object], preload: Programs | None = None, stdin: str = "", env: Mapping[str, object] = NOTHING
) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SRO_")}
    environment.update({name: str(value) for name, value in env.items()})
    if preload is not None:  # through env, so that only the program itself is preloaded
        command = ["env", f"LD_PRELOAD={preload.libsro}", *command]
    words = [str(word) for word in command]
    return subprocess.run(words, input=stdin, env=environment, capture_output=True, text=True, check=False)


def lines_of(path: Path) -> list[dict[str, int]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


@pytest.fixture(scope="module")
def data(programs: Programs, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("libsro") / "data"
    subprocess.run([programs.fakeapp, "--create", str(FILE_BYTES), path], check=True)
    return path


powers = st.integers(9, 18).map(lambda power: 1 << power)
sros = st.builds(
    Sro,
    sequence_length=st.integers(1, 60),
    bin_size=powers | st.integers(1, FILE_BYTES),
    cluster_threshold=st.integers(1, 8),
    prefetch_size=powers | st.integers(1000, 2 * FILE_BYTES),
)


@settings(max_examples=60, deadline=None, suppress_health_check=FIXTURES)
@given(sro=sros, leads=st.integers(1, 30), scatter=st.integers(0, 200_000), seed=st.integers(0, 9))
def test_decides_as_documented(
    programs: Programs, data: Path, stats: Path, sro: Sro, leads: int, scatter: int, seed: int
) -> None:
    pattern = Pattern(400, leads, (scatter, scatter), (1, 5), 1000, (512, 2048), seed)
    stats.unlink(missing_ok=True)
    command = [programs.fakeapp, *pattern.options(), data]
    ended = run(command, programs, env={**sro.environment(), "SRO_STATS": stats})
    assert (ended.returncode, ended.stderr) == (0, "")
    [counted] = lines_of(stats)
    del counted["pid"]
    assert counted == sro.counters(list(pattern.reads(FILE_BYTES)), FILE_BYTES)
    assert json.loads(ended.stdout)["checksum"] == json.loads(run(command).stdout)["checksum"]


def test_defaults_are_those_of_the_component_file(programs: Programs, data: Path, stats: Path) -> None:
    pattern = Pattern(300, 5, (50_000, 50_000), (1, 5), 1000, (512, 2048), 1)
    run([programs.fakeapp, *pattern.options(), data], programs, env={"SRO_STATS": stats})
    [counted] = lines_of(stats)
    del counted["pid"]
    assert counted == Sro(100, 1 << 20, 2, 20 << 20).counters(list(pattern.reads(FILE_BYTES)), FILE_BYTES)


places = st.integers(0, 70_000)
names = ["truncate", "reopen", "dup", "child reads", "child writes", *(2 * ["read", "pread", "lseek"])]
operations = st.tuples(
    st.sampled_from([*names, "readv", "preadv", "write", "pwrite"]),
    st.integers(0, 1),
    st.integers(1, 6000),
    places | places.map(lambda place: place - place % 4096),
)


@settings(max_examples=25, deadline=None, suppress_health_check=FIXTURES)
@given(steps=st.lists(operations, min_size=1, max_size=60))
def test_a_program_sees_no_difference(
    programs: Programs, data: Path, tmp_path: Path, steps: list[tuple[str, int, int, int]]
) -> None:
    seen = []
    for preload in (None, programs):
        target = tmp_path / "target"
        target.write_bytes(data.read_bytes()[:60_000])
        ended = run([sys.executable, "-S", DRIVER, target], preload, json.dumps(steps), EAGER.environment())
        assert (ended.returncode, ended.stderr) == (0, "")
        seen.append((ended.stdout, target.read_bytes()))
    assert seen[0] == seen[1]


def test_the_driver_is_prefetched(programs: Programs, data: Path, stats: Path) -> None:
    """Otherwise the test above would compare two plain runs."""
    steps = [("pread", 0, 100, place) for place in range(60_000, 0, -4096)]
    for asked in ([], steps):
        environment = {**EAGER.environment(), "SRO_STATS": stats}
        ended = run([sys.executable, "-S", DRIVER, data], programs, json.dumps(asked), environment)
        assert (ended.returncode, ended.stderr) == (0, "")
    idle, busy = lines_of(stats)
    assert busy["loads"] - idle["loads"] == 60_000 // 8192 + 1
    assert busy["reads"] - idle["reads"] == len(steps)


SQL = """
import sqlite3, sys
with sqlite3.connect(sys.argv[1]) as base:
    base.execute("create table t (a integer primary key, b text)")
    base.executemany("insert into t values (?, ?)", ((i * 7919 % 5000, "x" * (i % 300)) for i in range(5000)))
    base.execute("create index i on t (b)")
    print(base.execute("select count(*), sum(a), max(b) from t where a % 3 = 1").fetchall())
    base.execute("delete from t where a % 2 = 0")
    print(base.execute("select sum(length(b)) from t").fetchall(), base.execute("pragma integrity_check").fetchall())
"""


@pytest.mark.parametrize(
    "command",
    [
        "ls -l --time-style=+ /usr/bin",
        "cat {data}",
        "od -A d -t x8 -j 70001 -N 5000 {data}",
        "tail -c 70000 {data}",
        "tar -cf - -C {native} .",
        "sort -R --random-source={data} {native}/libsro.c",
        "cc -O1 -I{native}/../../native -c -o {scratch}/object {native}/fakeapp.c && cat {scratch}/object",
        '{python} -c "import json, email, decimal; print(decimal.getcontext())"',
        "{python} -c 'SQL' {scratch}/base.db",
        "sh -c 'echo a | while read -r x; do cat {data} | head -c 100; ls {native}; done'",
    ],
    ids=lambda command: command.split(maxsplit=1)[0],
)
def test_real_programs_print_the_same(programs: Programs, data: Path, tmp_path: Path, command: str) -> None:
    program = command.split(maxsplit=1)[0].format(python=sys.executable)
    if shutil.which(program) is None:
        missing(f"not installed: {program}")
    seen = []
    for number, preload in enumerate(({}, {"LD_PRELOAD": str(programs.libsro), **EAGER.environment()})):
        scratch = tmp_path / str(number)
        scratch.mkdir()
        words = {"data": str(data), "native": str(NATIVE), "python": sys.executable, "scratch": str(scratch)}
        ended = subprocess.run(
            command.format(**words).replace("'SQL'", '"$SQL"'),
            shell=True,
            env={**os.environ, "SQL": SQL, **preload},
            capture_output=True,
            check=False,
        )
        seen.append((ended.returncode, ended.stdout, ended.stderr))
    assert seen[0] == seen[1]
    assert seen[0][0] == 0
    assert seen[0][1]


@pytest.mark.parametrize("value", ["", "0", "-1", "x", "1.5", "2x", " 3", "99999999999999999999", "9999999999G"])
@pytest.mark.parametrize("name", sorted(EAGER.environment()))
def test_a_bad_value_is_one_line_and_plain_reading(
    programs: Programs, data: Path, stats: Path, name: str, value: str
) -> None:
    command = [programs.fakeapp, "-S", "100k", data]
    ended = run(command, programs, env={**EAGER.environment(), "SRO_STATS": stats, name: value})
    assert json.loads(ended.stdout)["checksum"] == json.loads(run(command).stdout)["checksum"]
    assert ended.stderr.startswith(f"libsro: {name}: '{value}' is not a whole number from 1 to ")
    assert ended.stderr.count("\n") == 1
    assert not stats.exists()


def test_values_may_have_units(programs: Programs, data: Path, stats: Path) -> None:
    for size in ("8192", "8k", "8K"):
        run([programs.fakeapp, "-S", "100k", data], programs, env={"SRO_STATS": stats, "SRO_PREFETCH_SIZE": size})
    counted = lines_of(stats)
    assert len({line["loads"] for line in counted}) == 1
    assert counted[0]["loads"] > 1


def test_counters_that_cannot_be_written_are_left_out(programs: Programs, data: Path, tmp_path: Path) -> None:
    command = [programs.fakeapp, "-S", "100k", data]
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "nowhere" / "stats", tmp_path / "pipe", "x" * 5000):
        ended = run(command, programs, env={"SRO_STATS": path})
        assert (ended.returncode, ended.stderr) == (0, "")
        assert json.loads(ended.stdout)["checksum"] == json.loads(run(command).stdout)["checksum"]


def python(code: str, programs: Programs, *arguments: object, stats: Path | str = "") -> list[str]:
    command = [sys.executable, "-S", "-c", code, *arguments]
    ended = run(command, programs, env={**EAGER.environment(), "SRO_STATS": stats})
    assert (ended.returncode, ended.stderr) == (0, "")
    return ended.stdout.splitlines()


def test_a_forked_child_counts_for_itself(programs: Programs, data: Path, stats: Path) -> None:
    code = """
import os, sys
fd = os.open(sys.argv[1], os.O_RDONLY)
for i in range(300):
    os.pread(fd, 10, i * 2000 + 7)
child = os.fork()
if child == 0:
    for i in range(20):
        os.pread(fd, 10, i * 2000 + 7)
    sys.exit()
os.waitpid(child, 0)
"""
    python(code, programs, data, stats=stats)
    child, parent = lines_of(stats)
    assert (child["reads"], child["loads"]) == (20, 5)  # 20 reads in 40 kB: five zones of 8 KiB, loaded for the child
    assert parent["reads"] >= 300


def test_more_files_than_are_remembered(programs: Programs, tmp_path: Path, stats: Path) -> None:
    """Files then share their places in turn; what one leaves there must not count for the next."""
    code = """
import os, resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (min(2000, resource.getrlimit(resource.RLIMIT_NOFILE)[1]),) * 2)
fds = []
for i in range(700):
    fds.append(os.open(f"{sys.argv[1]}/{i}", os.O_RDWR | os.O_CREAT))
    os.write(fds[-1], f"{i:05d}".encode() * 4000)
for turn in range(3):
    for i, fd in enumerate(fds):
        place = (i * 35 + turn * 8000) % 20_000
        assert os.pread(fd, 5, place) == f"{i:05d}".encode(), (i, turn)
print("same")
"""
    twice = Sro(sequence_length=50, bin_size=64 << 10, cluster_threshold=2, prefetch_size=8192)
    (tmp_path / "files").mkdir()
    command = [sys.executable, "-S", "-c", code, tmp_path / "files"]
    ended = run(command, programs, env={**twice.environment(), "SRO_STATS": stats})
    assert (ended.stdout, ended.stderr) == ("same\n", "")
    [counted] = lines_of(stats)
    assert counted["reads"] >= 2100
    assert counted["loads"] < 100  # the files of the interpreter itself


def test_offsets_beyond_32_bits(programs: Programs, tmp_path: Path, stats: Path) -> None:
    code = """
import os, sys
fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
base = 1 << 40
for i in range(50):
    os.pwrite(fd, f"{i:04d}".encode(), base + i * 10_000)
for i in reversed(range(50)):
    print(os.pread(fd, 4, base + i * 10_000).decode())
"""
    got = python(code, programs, tmp_path / "sparse", stats=stats)
    assert got == [f"{i:04d}" for i in reversed(range(50))]
    [counted] = lines_of(stats)
    assert counted["loads"] >= 49  # one for each: they are more than a zone of 8 KiB apart


def test_errno_stays_as_the_call_left_it(programs: Programs, data: Path) -> None:
    code = """
import ctypes, os, sys
c = ctypes.CDLL(None, use_errno=True)
near, far = os.pipe()
os.write(far, b"0123456789")
file = os.open(sys.argv[1], os.O_RDONLY)
buffer = ctypes.create_string_buffer(100)
for fd, wanted in ((near, 10), (file, 100), (far, -1), (999, -1)):
    ctypes.set_errno(77)
    print(c.read(fd, buffer, 100) == wanted, ctypes.get_errno())
"""
    assert python(code, programs, data) == ["True 77", "True 77", "True 9", "True 9"]


@pytest.mark.parametrize(
    "name", ["read", "readv", "pread", "pread64", "preadv", "preadv64", "preadv2", "preadv64v2", "preadv2 at position"]
)
def test_every_way_to_read_is_seen(programs: Programs, data: Path, stats: Path, name: str) -> None:
    code = """
import ctypes, os, sys
path, name, where, count = sys.argv[1], *sys.argv[2].partition(" ")[::2], int(sys.argv[3])
call = getattr(ctypes.CDLL(None, use_errno=True), name)
fd = os.open(path, os.O_RDONLY)
room = ctypes.create_string_buffer(100)
vector = (ctypes.c_size_t * 2)(ctypes.addressof(room), 100)
for i in range(count):
    os.lseek(fd, 50_000 * (i + 1), os.SEEK_SET)
    place = -1 if where else 50_000 * (i + 1)
    arguments = [vector, 1] if "v" in name else [room, ctypes.c_size_t(100)]
    arguments += [ctypes.c_int64(place)] if name[0] == "p" else []
    arguments += [0] if name.endswith("v2") or name == "preadv2" else []
    assert call(fd, *arguments) == 100
    assert room.raw == os.pread(fd, 100, 50_000 * (i + 1))
"""
    for count in (0, 7):
        python(code, programs, data, name, count, stats=stats)
    idle, busy = lines_of(stats)
    assert busy["reads"] - idle["reads"] == 14  # seven by that name, seven to compare with
    assert busy["loads"] - idle["loads"] == 7


def test_checked_calls_are_seen_too(programs: Programs, data: Path, stats: Path, tmp_path: Path) -> None:
    """Distributions compile programs with _FORTIFY_SOURCE, which turns read() into __read_chk() and so on."""
    source = tmp_path / "checked.c"
    source.write_text("""
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    char room[64];
    size_t size = 32 + (size_t)argc;
    int fd = open(argv[1], O_RDONLY);
    lseek(fd, 5000, SEEK_SET);
    return read(fd, room, size) != 34 || pread(fd, room, size, 90000) != 34;
}
""")
    program = tmp_path / "checked"
    subprocess.run(["cc", "-O2", "-U_FORTIFY_SOURCE", "-D_FORTIFY_SOURCE=2", "-o", program, source], check=True)
    undefined = subprocess.run(["nm", "-D", program], capture_output=True, text=True, check=True).stdout
    assert "__read_chk" in undefined
    assert "__pread_chk" in undefined or "__pread64_chk" in undefined
    assert run([program, data], programs, env={**EAGER.environment(), "SRO_STATS": stats}).returncode == 0
    [counted] = lines_of(stats)
    assert (counted["reads"], counted["loads"]) == (2, 2)


def test_direct_reads_are_left_alone(programs: Programs, stats: Path, tmp_path: Path) -> None:
    """Reads with O_DIRECT do not come from the page cache; to fill it for them would be waste."""
    code = """
import mmap, os, sys
fd = os.open(sys.argv[1], os.O_RDONLY | (os.O_DIRECT if sys.argv[2] == "direct" else 0))
with mmap.mmap(-1, 4096) as buffer:
    for i in (5, 9, 2, 30):
        os.preadv(fd, [buffer], i * 4096)
"""
    path = tmp_path / "file"
    path.write_bytes(bytes(1 << 18))
    try:
        os.close(os.open(path, os.O_RDONLY | os.O_DIRECT))
    except OSError:
        pytest.skip("the file system of the temporary folder has no O_DIRECT")
    for way in ("direct", "cached"):
        python(code, programs, path, way, stats=stats)
    direct, cached = lines_of(stats)
    assert cached["loads"] - direct["loads"] == 4


@pytest.mark.parametrize("sanitizer", ["address", "thread"])
def test_threads_children_and_signals_under_sanitizers(programs: Programs, tmp_path: Path, sanitizer: str) -> None:
    probe = tmp_path / "probe.c"
    probe.write_text("int main(void) { return 0; }\n")
    flags = [f"-fsanitize={sanitizer}", "-o", str(tmp_path / "probe"), str(probe)]
    built = subprocess.run(["cc", *flags], capture_output=True, check=False).returncode == 0
    if not built or subprocess.run([tmp_path / "probe"], capture_output=True, check=False).returncode != 0:
        pytest.skip(f"-fsanitize={sanitizer} does not work on this machine")
    ended = run(["make", "--silent", "-C", NATIVE, f"BUILD={tmp_path}", f"sanitize-{sanitizer}"])
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "0 wrong\n", "")
