"""What the preload library counts, and that every way for a process to start and end leaves one report."""

import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.conftest import missing
from tests.io.io_runs import NATIVE, SOURCES, Libraries, compile_c

from luthier.compiled import part


@pytest.fixture(scope="session")
def processes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`io/processes.c`."""
    return compile_c(
        SOURCES / "processes.c", tmp_path_factory.mktemp("io") / "processes", "-pthread", "-Wno-unused-result"
    )


@pytest.mark.parametrize("options", [["-O0"], ["-O2", "-D_FORTIFY_SOURCE=2"], ["-O2", "-D_FILE_OFFSET_BITS=64"]])
def test_counts_each_call(io: Libraries, tmp_path: Path, options: list[str]) -> None:
    """Also the checked and the 64-bit variants that distributions build with."""
    file = tmp_path / "x"
    processes = compile_c(SOURCES / "processes.c", tmp_path / "processes", "-Wno-unused-result", "-pthread", *options)
    ended = io.run([processes, "calls", file], tmp_path)
    assert ended.returncode == 0
    [report] = ended.reports
    [counted] = [entry for entry in report["files"] if entry["path"] == str(file)]
    assert counted == {
        **counted,
        "layer": "posix",
        "opens": 1,
        "writes": 6,
        "write_bytes": 50 + 50 + 30 + 100 + 30 + 1,
        "reads": 4,
        "read_bytes": 100 + 30 + 10 + 30,
        "seeks": 1,
        "syncs": 2,
        "sequential_writes": 4,
        "sequential_reads": 3,
        "smallest_write": 1,
        "largest_write": 100,
        "write_sizes": [6, 0, 0, 0, 0, 0, 0, 0, 0, 0],
    }
    for name, value in report["layers"]["posix"].items():
        if isinstance(value, int):
            assert value == sum(entry[name] for entry in report["files"] if entry["layer"] == "posix") or "est" in name
    assert 0 < counted["write_s"] < report["wall_s"]


def test_copies_inside_the_kernel_are_a_read_and_a_write(io: Libraries, tmp_path: Path) -> None:
    code = """
import os
one, other = os.open("one", os.O_RDONLY), os.open("other", os.O_WRONLY | os.O_CREAT)
assert os.copy_file_range(one, other, 1000, 5, 7) == 1000
assert os.sendfile(other, one, 100, 50) == 50
assert os.sendfile(other, one, None, 20) == 20
try:
    os.copy_file_range(one, 999, 10)
except OSError as error:
    assert error.errno == 9
"""
    (tmp_path / "one").write_bytes(bytes(3000))
    ended = io.run([sys.executable, "-c", code], tmp_path)
    assert ended.returncode == 0
    [report] = ended.reports
    files = {Path(entry["path"]).name: entry for entry in report["files"]}
    assert (files["one"]["reads"], files["one"]["read_bytes"]) == (3, 1070)
    assert (files["other"]["writes"], files["other"]["write_bytes"]) == (3, 1070)
    assert files["other"]["write_s"] > files["one"]["read_s"]  # the time counts once


def test_counts_are_those_that_the_kernel_sees(io: Libraries, tmp_path: Path) -> None:
    if shutil.which("strace") is None:
        missing("strace is not installed; as root: sh tests/services.sh")
    (tmp_path / "in").write_text("".join(f"{number * 7919 % 100_000}\n" for number in range(50_000)))
    trace = tmp_path / "trace"
    sort: list[str | Path] = [
        "sort",
        "-n",
        "--buffer-size=100k",
        "-T",
        tmp_path,
        "-o",
        tmp_path / "out",
        tmp_path / "in",
    ]
    subprocess.run(
        ["strace", "-o", trace, "-e", "trace=write", *sort], check=True, env={"LC_ALL": "C", "PATH": os.defpath}
    )
    seen = [int(size) for size in re.findall(r"write\(\d+, .* = (\d+)$", trace.read_text(), re.MULTILINE)]
    ended = io.run(sort, tmp_path, env={"LC_ALL": "C"})
    counted = ended.of("sort")["layers"]["posix"]
    assert counted["write_bytes"] == sum(seen)
    assert counted["writes"] == pytest.approx(len(seen), rel=0.1)  # stdio writes large data in two pieces at times


def test_streams_count_as_what_reaches_the_file(io: Libraries, tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(b"line of text\n" * 10_000)
    ended = io.run(["sh", "-c", "sed s/line/row/ in > out; awk '{print}' < in > copy"], tmp_path)
    assert ended.posix(tmp_path / "out")["write_bytes"] == (tmp_path / "out").stat().st_size
    assert ended.posix(tmp_path / "copy")["write_bytes"] == 130_000
    assert ended.posix(tmp_path / "in")["read_bytes"] == 260_000


def test_streams_are_counted_at_exit_and_numbers_are_used_again(io: Libraries, processes: Path, tmp_path: Path) -> None:
    ended = io.run([processes, "streams", tmp_path / "x"], tmp_path)
    assert ended.returncode == 0
    assert ended.posix(tmp_path / "x")["write_bytes"] == (tmp_path / "x").stat().st_size == 100
    other = ended.posix(tmp_path / "x.other")
    assert (other["opens"], other["writes"], other["reads"]) == (1, 1, 0)  # not what went through the pipe


def test_threads_lose_no_count(io: Libraries, processes: Path, tmp_path: Path) -> None:
    ended = io.run([processes, "threads", tmp_path / "x"], tmp_path)
    counted = ended.posix(tmp_path / "x")
    assert (counted["writes"], counted["reads"], counted["opens"]) == (16_000, 16_000, 8)
    assert counted["write_bytes"] == counted["read_bytes"] == 1_600_000


def test_a_forked_child_counts_its_own(io: Libraries, processes: Path, tmp_path: Path) -> None:
    ended = io.run([processes, "fork", tmp_path / "x"], tmp_path)
    assert sorted(report["layers"]["posix"]["writes"] for report in ended.reports) == [1, 3]
    assert len({report["pid"] for report in ended.reports}) == 2


def test_a_child_of_vfork_leaves_its_parent_alone(io: Libraries, processes: Path, tmp_path: Path) -> None:
    ended = io.run([processes, "vfork", tmp_path / "x"], tmp_path)
    assert ended.returncode == 0
    assert [Path(report["program"]).name for report in ended.reports].count("processes") == 1
    assert ended.posix(tmp_path / "x")["writes"] == 2


def test_a_spawned_child_has_its_own_report(io: Libraries, processes: Path, tmp_path: Path) -> None:
    ended = io.run([processes, "spawn", tmp_path / "x"], tmp_path)
    assert ended.returncode == 0
    counted = ended.posix(tmp_path / "x")
    assert (counted["write_bytes"], counted["read_bytes"]) == (100, 100)
    assert "cat" in {Path(report["program"]).name for report in ended.reports}


@pytest.mark.parametrize(("piece", "output", "writes"), [("exec", "heard\n", 1), ("execlp", "\0" * 100, 2)])
def test_exec_keeps_the_report_of_the_program_before(
    io: Libraries, processes: Path, tmp_path: Path, piece: str, output: str, writes: int
) -> None:
    ended = io.run([processes, piece, tmp_path / "x"], tmp_path)
    assert (ended.returncode, ended.stdout) == (0, output)
    assert ended.of("processes")["layers"]["posix"]["writes"] == writes
    if piece == "execlp":  # the environment stays: the next program has a report with the same process number
        assert ended.of("cat")["pid"] == ended.of("processes")["pid"]


def test_a_program_may_close_every_descriptor(io: Libraries, processes: Path, tmp_path: Path) -> None:
    ended = io.run([processes, "closes_all", tmp_path / "x"], tmp_path, "unknown=1,alignment=1M")
    assert ended.returncode == 0
    assert (tmp_path / "x").read_bytes() == bytes(300)  # nothing but what the program wrote
    assert ended.posix(tmp_path / "x")["write_bytes"] == 300


@pytest.mark.parametrize(
    ("piece", "number"), [("terminated", signal.SIGTERM), ("aborted", signal.SIGABRT), ("crashed", signal.SIGSEGV)]
)
def test_fatal_signals_end_the_program_as_before(
    io: Libraries, processes: Path, tmp_path: Path, piece: str, number: int
) -> None:
    ended = io.run([processes, piece, tmp_path / "x"], tmp_path)
    assert ended.returncode == -number
    assert ended.of("processes")["layers"]["posix"]["writes"] == 1


@pytest.mark.parametrize(("piece", "code"), [("quick", 0), ("at_once", 7)])
def test_exits_without_cleaning_up_leave_a_report(
    io: Libraries, processes: Path, tmp_path: Path, piece: str, code: int
) -> None:
    ended = io.run([processes, piece, tmp_path / "x"], tmp_path)
    assert ended.returncode == code
    assert ended.of("processes")["layers"]["posix"]["writes"] == 1


def test_a_daemon_may_close_all_numbers_one_by_one(io: Libraries, tmp_path: Path) -> None:
    if shutil.which("strace") is None:
        missing("strace is not installed; as root: sh tests/services.sh")
    program = "import os\nfor fd in range(3, 3000):\n try: os.close(fd)\n except OSError: pass\nprint(1)"
    command = [
        "strace",
        "-f",
        "-c",
        "-e",
        "trace=close,fstat,newfstatat",
        "-o",
        tmp_path / "trace",
        "python3",
        "-c",
        program,
    ]
    assert io.run(command, tmp_path, preload=False).stdout == "1\n"
    plain = (tmp_path / "trace").read_text()
    assert io.run(command, tmp_path).stdout == "1\n"
    calls = [int(re.findall(r"(\d+)(?: +\d+)? total", text)[0]) for text in (plain, (tmp_path / "trace").read_text())]
    assert calls[1] < calls[0] * 1.5  # the library asks nothing about numbers that it does not know


def test_handlers_of_the_program_may_use_files(io: Libraries, processes: Path, tmp_path: Path) -> None:
    ended = io.run([processes, "handler", tmp_path / "x"], tmp_path)
    assert ended.returncode == 0
    assert ended.posix(tmp_path / "x")["writes"] == 2020


def test_files_beyond_the_limit_count_in_the_layer(io: Libraries, processes: Path, tmp_path: Path) -> None:
    ended = io.run([processes, "many_files", tmp_path / "x"], tmp_path)
    [report] = ended.reports
    assert len(report["files"]) == 1000
    assert report["layers"]["posix"]["opens"] == 1500
    assert report["layers"]["posix"]["write_bytes"] == 150_000


def test_names_of_files_are_escaped(io: Libraries, tmp_path: Path) -> None:
    names = [
        b'quote".txt',
        b"back\\slash",
        b"new\nline",
        b"tab\t\x7f\x01",
        "größe".encode(),
        b"\xff\xfe\xed\xa0\x80",
        b"a b",
    ]
    for name in names:
        (tmp_path / os.fsdecode(name)).write_text("x")
    ended = io.run(["cat", *(os.fsdecode(name) for name in names)], tmp_path)
    assert ended.returncode == 0
    listed = {entry["path"] for entry in ended.of("cat")["files"]}
    for name in names:
        assert f"{tmp_path}/{name.decode(errors='replace')}" in listed


def test_a_missing_or_forbidden_folder_changes_nothing(io: Libraries, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for folder in ("/proc/nothing", str(tmp_path / "file"), "/nonexistent/a/b"):
        ended = io.run(["cat", "file"], tmp_path, env={"LUTHIER_IO_COUNT": folder})
        assert (ended.returncode, ended.stdout, ended.stderr) == (0, "x", "")


def test_reports_follow_a_program_that_changes_its_folder(io: Libraries, tmp_path: Path) -> None:
    ended = io.run(["sh", "-c", "cd / && exec cat /dev/null"], tmp_path, env={"LUTHIER_IO_COUNT": "reports"})
    assert ended.of("cat")["layers"]["posix"]["opens"] == 0
    assert not list((tmp_path / "reports").glob(".*"))


def test_valgrind_finds_no_error(io: Libraries, hdf5_program: Path, processes: Path, tmp_path: Path) -> None:
    if shutil.which("valgrind") is None:
        missing("valgrind is not installed; as root: sh tests/services.sh")
    settings = "alignment=64k,chunk=1k,chunk_cache_bytes=4M,fill_time=never,sieve_buffer=1M,metadata_cache=1M"
    for command in ([hdf5_program, "lists"], [hdf5_program, "layouts"], [processes, "calls"], [processes, "fork"]):
        valgrind = ["valgrind", "-q", "--error-exitcode=99", *command, tmp_path / "x"]
        plain = io.run(valgrind, tmp_path, preload=False)
        if plain.returncode == 0:  # HDF5 has errors of its own in some versions
            ended = io.run(valgrind, tmp_path, settings)
            assert ended.returncode == 0, ended.stderr


@pytest.mark.parametrize("sanitizer", ["address,undefined", "thread"])
def test_sanitizers_find_no_error(io: Libraries, tmp_path: Path, sanitizer: str) -> None:
    """The library is linked into the program, so that the sanitizers see it."""
    sources = [str(NATIVE / "io" / name) for name in part("io").sources]
    flags = f"-std=gnu11 -fvisibility=hidden -pthread -rdynamic -Wno-unused-result -fsanitize={sanitizer} "
    flags += "-fno-sanitize-recover=all"
    program = compile_c(SOURCES / "processes.c", tmp_path / "processes", *sources, *flags.split(), "-ldl")
    for piece in ("calls", "threads", "fork", "handler", "many_files"):
        env = {"LD_PRELOAD": "", "TSAN_OPTIONS": "halt_on_error=1"}
        ended = io.run([program, piece, tmp_path / "x"], tmp_path, "cb_nodes=1,bad=1", env)
        assert ended.returncode == 0, ended.stderr
        assert sum(report["layers"]["posix"]["writes"] for report in ended.reports) > 0
