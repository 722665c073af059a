"""The burst buffer: programs see no difference, caches may be full, settings are checked, nothing is left behind."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.conftest import missing
from tests.testbeds.test_libsro import SQL

from testbeds.real.sbb import Daemon, Programs, daemon

NATIVE = Path(__file__).resolve().parents[2] / "testbeds" / "native" / "sbb"
DRIVER = Path(__file__).with_name("sbb_driver.py")
SMALL = {"SBB_RAM_CACHE": "4M", "SBB_FLASH_CACHE": "8M"}
FEW = {"SBB_WORKERS": 1, "SBB_RAM_DESTAGERS": 1, "SBB_FLASH_DESTAGERS": 1, "SBB_RDMA_POLLERS": 1}
BOUND_S = 120
FIXTURES = [HealthCheck.function_scoped_fixture]


@pytest.fixture
def target(tmp_path: Path) -> Path:
    path = tmp_path / "target"
    path.mkdir()
    return path


def run(
    command: Sequence[object], variables: Mapping[str, object], stdin: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run a program with these variables; the library is preloaded into it alone."""
    words = ["env", *(f"{name}={value}" for name, value in variables.items()), *map(str, command)]
    return subprocess.run(words, input=stdin, capture_output=True, text=True, check=False, timeout=BOUND_S)


@pytest.fixture(scope="module", params=["flash", "ram"])
def buffered(
    request: pytest.FixtureRequest, sbb_programs: Programs, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Daemon]:
    folder = tmp_path_factory.mktemp("sbb")
    (folder / "target").mkdir()
    few = {**SMALL, **FEW, "SBB_RAM_THRESHOLD_PERCENT": 10} if request.param == "ram" else SMALL
    with daemon(sbb_programs.sbbd, folder / "f", folder / "target", {**few, "SBB_MODE": request.param}) as running:
        yield running


places = st.integers(0, 40_000) | st.integers(1_040_000, 1_060_000)  # the second around the end of a stripe
names = [
    *("truncate", "truncate path", "reopen", "reopen empty", "dup", "append", "gathered", "child", "threads", "mmap"),
    *("rename", "text", "times", "sendfile", "end", "holes", "size", "fsync", "lseek"),
    *(3 * ["read", "pread", "write", "pwrite"]),
]
operations = st.tuples(st.sampled_from(names), st.integers(0, 1), st.integers(1, 9000), places)


@settings(max_examples=25, deadline=None, suppress_health_check=FIXTURES)
@given(steps=st.lists(operations, min_size=1, max_size=40))
def test_a_program_sees_no_difference(
    sbb_programs: Programs, buffered: Daemon, tmp_path: Path, steps: list[tuple[str, int, int, int]]
) -> None:
    seen = []
    for variables, folder in (({}, tmp_path), (buffered.preload(sbb_programs.libsbb), buffered.target)):
        path = folder / "file"
        path.unlink(missing_ok=True)
        ended = run([sys.executable, "-S", DRIVER, path], variables, json.dumps(steps))
        assert (ended.returncode, ended.stderr) == (0, "")
        buffered.drain()
        seen.append((ended.stdout.replace(str(folder), ""), path.read_bytes()))
    assert seen[0][0] == seen[1][0]
    assert seen[0] == seen[1]


def test_the_driver_is_buffered(sbb_programs: Programs, buffered: Daemon) -> None:
    """Otherwise the test above would compare two plain runs."""
    before = {name: buffered.counter(name) for name in ("writes", "reads")}
    steps = [("pwrite", 0, 5000, place) for place in range(0, 100_000, 5000)] + [("pread", 1, 100, 700)]
    path = buffered.target / "driven"
    ended = run([sys.executable, "-S", DRIVER, path], buffered.preload(sbb_programs.libsbb), json.dumps(steps))
    assert (ended.returncode, ended.stderr) == (0, "")
    assert buffered.counter("writes") - before["writes"] == 20
    assert buffered.counter("reads") > before["reads"]


def test_data_on_its_way_is_not_a_hole(sbb_programs: Programs, buffered: Daemon) -> None:
    """Programs that copy look for holes, and do not read them."""
    steps = [("pwrite", 0, 100_000, 50_000), ("holes", 0, 1, 0)]
    path = buffered.target / "holes"
    ended = run([sys.executable, "-S", DRIVER, path], buffered.preload(sbb_programs.libsbb), json.dumps(steps))
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.splitlines()[1] == f"holes {hashlib.sha256(path.read_bytes()).hexdigest()}"


def test_programs_that_start_others_and_write_to_one_file(sbb_programs: Programs, buffered: Daemon) -> None:
    steps = [("program", 0, 3000, 100), ("pread", 0, 3000, 100), ("child", 1, 10, 0), ("pread", 0, 50, 0)]
    path = buffered.target / "started"
    ended = run([sys.executable, "-S", DRIVER, path], buffered.preload(sbb_programs.libsbb), json.dumps(steps))
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.splitlines()[1] == "pread " + "70" * 3000


COMMANDS = [
    "cp -r {source} {out}/copy",
    "cp -p {source}/burst.c {out}/copy.c && cat {out}/copy.c",
    "tar -cf {out}/archive.tar -C {source} . && tar -xf {out}/archive.tar -C {out} && rm {out}/archive.tar",
    "dd if={source}/burst.c of={out}/dd bs=100 conv=fsync status=none && dd if={out}/dd of={out}/2 bs=7k status=none",
    "dd if=/dev/zero of={out}/holes bs=4k seek=100 count=3 status=none && cp --sparse=always {out}/holes {out}/holes2",
    "sh -c 'for i in 1 2 3 4 5; do echo line $i >> {out}/log; done; (echo a; cat {source}/log.c; echo b) > {out}/all'",
    "sh -c 'cat {source}/burst.c > {out}/one; sort -o {out}/two {out}/one; head -c 100 < {out}/two; gzip -k {out}/one'",
    "sed -i s/x/y/g {prepared}/text",
    "{python} -c 'SQL' {out}/base.db && rm {out}/base.db",
    '{python} -c \'import shutil; shutil.copytree("{source}", "{out}/tree")\'',
    "cc -o {out}/program {cstreams}.c && {out}/program {out}/1 && cp {out}/program {out}/same && {out}/same {out}/2",
    "{cstreams} {out}/streams",
]


def tree(folder: Path) -> dict[str, object]:
    """Names, contents, modes; times where the program sets them."""
    found: dict[str, object] = {}
    for path in sorted(folder.rglob("*")):
        status = path.stat()
        set_times = "archive" not in path.name and status.st_mtime < status.st_ctime - 60
        content = path.read_bytes() if path.is_file() else b""
        if path.suffix == ".gz":
            content = content[10:]  # after the time stamp
        found[str(path.relative_to(folder))] = (content, status.st_mode, status.st_mtime_ns if set_times else 0)
    return found


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.split(maxsplit=1)[0].strip("{}"))
def test_real_programs_make_the_same_files(
    sbb_programs: Programs, buffered: Daemon, tmp_path: Path, command: str, c_streams: Path
) -> None:
    program = command.split(maxsplit=1)[0].format(python=sys.executable, cstreams=c_streams)
    if shutil.which(program) is None:
        missing(f"not installed: {program}")
    shutil.copytree(NATIVE, tmp_path / "source")
    for path in (tmp_path / "source").iterdir():
        os.utime(path, ns=(1, 1_600_000_000_123_456_789))
    seen = []
    for variables, out in (({}, tmp_path / "plain"), (buffered.preload(sbb_programs.libsbb), buffered.target / "out")):
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir()
        (out / "prepared").mkdir()
        (out / "prepared" / "text").write_text("x marks the spot\n" * 1000)
        words = {"source": tmp_path / "source", "out": out, "prepared": out / "prepared", "python": sys.executable}
        text = command.format(**words, cstreams=c_streams).replace("'SQL'", '"$SQL"')
        ended = subprocess.run(
            ["env", *(f"{name}={value}" for name, value in variables.items()), "sh", "-c", text],
            env={**os.environ, "SQL": SQL},
            capture_output=True,
            check=False,
            timeout=BOUND_S,
        )
        assert (ended.returncode, ended.stderr) == (0, b"")
        buffered.drain()
        seen.append((ended.stdout.replace(str(out).encode(), b""), tree(out)))
    assert seen[0] == seen[1]


C_STREAMS = """
#include <stdio.h>
#include <string.h>
#include <unistd.h>
int main(int count, char **words)
{
    char line[100];
    FILE *file = fopen(words[1], "w+");
    for (int i = 0; i < 5000; i++)
        fprintf(file, "line %d\\n", i);
    if (count != 2 || fseek(file, 0, SEEK_SET) != 0 || fgets(line, 100, file) == NULL || strcmp(line, "line 0\\n") != 0)
        return 1;
    if (fseek(file, 100, SEEK_SET) != 0 || fputs("changed", file) == EOF || fflush(file) != 0)
        return 5;
    if (fsync(fileno(file)) != 0)
        return 2;
    if (ftruncate(fileno(file), 40000) != 0 || fclose(file) != 0)
        return 3;
    file = fopen(words[1], "a");
    if (fputs("end\\n", file) == EOF || fclose(file) != 0)
        return 4;
    file = fopen(words[1], "r");
    long lines = 0;
    while (fgets(line, 100, file) != NULL)
        lines++;
    printf("%ld lines, %ld bytes\\n", lines, ftell(file));
    return fclose(file) != 0;
}
"""


@pytest.fixture(scope="module")
def c_streams(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("streams")
    (folder / "streams.c").write_text(C_STREAMS)
    subprocess.run(["cc", "-O1", "-o", folder / "streams", folder / "streams.c"], check=True)
    return folder / "streams"


def test_streams_of_the_c_library_are_buffered(sbb_programs: Programs, buffered: Daemon, c_streams: Path) -> None:
    before = buffered.counter("written_bytes")
    ended = run([c_streams, buffered.target / "streams"], buffered.preload(sbb_programs.libsbb))
    assert (ended.returncode, ended.stderr) == (0, "")
    assert buffered.counter("written_bytes") - before > 40_000


@pytest.mark.parametrize("mode", ["flash", "ram"])
def test_caches_smaller_than_a_burst_only_slow_it_down(
    sbb_programs: Programs, tmp_path: Path, target: Path, mode: str
) -> None:
    application = ["--processes", "4", "--bursts", "2", "--bytes", "12M", "--block", "300k", "--compute-ms", "0"]
    with daemon(sbb_programs.sbbd, tmp_path / "f", target, {**SMALL, **FEW, "SBB_MODE": mode}) as running:
        ended = run([sbb_programs.burst, *application, target], running.preload(sbb_programs.libsbb))
        assert (ended.returncode, ended.stderr) == (0, "")
        assert running.counter("written_bytes") == 96 << 20
        assert running.counter("flash_waits") > 0
    checked = run([sbb_programs.burst, "--check", *application, target], {})
    assert json.loads(checked.stdout) == {"wrong_bytes": 0}


def test_nothing_is_left_after_a_stop(sbb_programs: Programs, tmp_path: Path, target: Path) -> None:
    with daemon(sbb_programs.sbbd, tmp_path / "f", target) as running:
        run(["cp", sbb_programs.sbbd, target / "copy"], running.preload(sbb_programs.libsbb))
    assert running.process.returncode == 0
    assert sorted(path.name for path in (tmp_path / "f").iterdir()) == ["lock", "log", "target"]
    assert list((tmp_path / "f" / "log").iterdir()) == []
    assert (target / "copy").read_bytes() == sbb_programs.sbbd.read_bytes()


def test_a_program_that_uses_other_files_is_left_alone(
    sbb_programs: Programs, buffered: Daemon, tmp_path: Path
) -> None:
    before = buffered.counter("writes")
    steps = [("pwrite", 0, 5000, 0), ("pread", 0, 10, 0)]
    ended = run(
        [sys.executable, "-S", DRIVER, tmp_path / "x"], buffered.preload(sbb_programs.libsbb), json.dumps(steps)
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    assert buffered.counter("writes") == before


def test_a_detached_daemon(sbb_programs: Programs, tmp_path: Path, target: Path) -> None:
    sbbd = [sbb_programs.sbbd, "--folder", tmp_path / "f"]
    started = run([*sbbd, "--target", target, "--workers", "3", "--detach"], {})
    assert started.returncode == 0
    assert "mode flash" in started.stderr
    second = run([*sbbd, "--target", target], {})
    assert (second.returncode, second.stderr) == (1, f"sbbd: {tmp_path}/f: another daemon is using this folder\n")
    assert json.loads(run([*sbbd, "--status"], {}).stdout)["mode"] == "flash"
    assert run([*sbbd, "--stop"], {}).returncode == 0
    ended = run([*sbbd, "--status"], {})
    assert ended.returncode == 1
    assert ended.stderr.endswith("no daemon is running there\n")


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--workers", "0"], "workers: '0' is not a whole number from 1 to 256 (10, 64M, 1G)"),
        (["--ram-cache", "much"], "ram-cache: 'much' is not a whole number from 4194304 to "),
        (["--mode", "disk"], "mode: 'disk' is neither flash nor ram"),
        (["--target", "/nowhere"], "/nowhere: No such file or directory"),
        (["--folder", "{target}/f"], "{target}/f: the folder of the daemon must be outside of the target"),
        (["extra"], "unexpected argument 'extra'; --help lists the options"),
    ],
)
def test_a_bad_setting_is_one_line(
    sbb_programs: Programs, tmp_path: Path, target: Path, options: list[str], complaint: str
) -> None:
    words = [word.format(target=target) for word in options]
    ended = run([sbb_programs.sbbd, "--folder", tmp_path / "f", "--target", target, *words], {})
    assert ended.returncode == 1
    assert ended.stderr.startswith("sbbd: " + complaint.format(target=target))
    assert ended.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("variables", "complaint"),
    [
        ({"SBB_TARGET": "relative"}, "SBB_TARGET: 'relative' is not the absolute path of a folder; not buffered"),
        ({"SBB_FOLDER": ""}, "SBB_FOLDER must be the absolute path of the daemon's folder; not buffered"),
        ({"SBB_TIMEOUT_S": "soon"}, "SBB_TIMEOUT_S: 'soon' is not a number of seconds; not buffered"),
    ],
)
def test_a_bad_variable_is_one_line_and_plain_writing(
    sbb_programs: Programs, tmp_path: Path, target: Path, variables: dict[str, str], complaint: str
) -> None:
    given = {"LD_PRELOAD": sbb_programs.libsbb, "SBB_FOLDER": tmp_path / "f", "SBB_TARGET": target, **variables}
    ended = run(["cp", sbb_programs.burst, target / "copy"], given)
    assert (ended.returncode, ended.stderr) == (0, f"libsbb: {complaint}\n")
    assert (target / "copy").read_bytes() == sbb_programs.burst.read_bytes()


@pytest.mark.parametrize("sanitizer", ["address", "thread"])
def test_threads_and_children_under_sanitizers(tmp_path: Path, target: Path, sanitizer: str) -> None:
    probe = tmp_path / "probe.c"
    probe.write_text("int main(void) { return 0; }\n")
    flags = [f"-fsanitize={sanitizer}", "-o", str(tmp_path / "probe"), str(probe)]
    built = subprocess.run(["cc", *flags], capture_output=True, check=False).returncode == 0
    if not built or subprocess.run([tmp_path / "probe"], capture_output=True, check=False).returncode != 0:
        pytest.skip(f"-fsanitize={sanitizer} does not work on this machine")
    made = [tmp_path / f"{name}-{sanitizer}" for name in ("sbbd", "exercise")]
    subprocess.run(["make", "--silent", "-C", NATIVE, f"BUILD={tmp_path}", *made], check=True)
    for mode in ("flash", "ram"):
        own = target / mode
        own.mkdir()
        with daemon(tmp_path / f"sbbd-{sanitizer}", tmp_path / mode, own, {**SMALL, "SBB_MODE": mode}) as running:
            # To look for the names of functions, the runtime of the sanitizer would use the calls under test.
            variables = {"SBB_FOLDER": running.folder, "SBB_TARGET": own, "TSAN_OPTIONS": "symbolize=0"}
            ended = run([tmp_path / f"exercise-{sanitizer}", own, 1, 60], variables)
            assert (ended.returncode, ended.stdout, ended.stderr) == (0, "0 wrong\n", "")
            assert running.counter("writes") > 100
        assert (running.process.returncode, running.messages[1:]) == (0, [])
