"""The burst buffer when things go wrong: killed and stopped daemons, full targets, renamed and deleted files."""

import contextlib
import errno
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from luthier.errors import UnavailableError
from testbeds.real.sbb import Daemon, Programs, daemon
from testbeds.real.sbb_kills import kill_once, lost_bytes
from testbeds.real.sbb_writer import write_of

SMALL: dict[str, object] = {"SBB_RAM_CACHE": "4M", "SBB_FLASH_CACHE": "16M"}
BOUND_S = 120
IS_ROOT = os.geteuid() == 0


@pytest.fixture
def target(tmp_path: Path) -> Path:
    path = tmp_path / "target"
    path.mkdir()
    return path


class Writer:
    """A Python program under the library that runs one statement after the other."""

    LOOP = """
    import os, sys
    for line in sys.stdin:
        try:
            result = eval(line)
        except OSError as error:
            result = error.errno
        print(repr(result), flush=True)
    """

    def __init__(self, variables: dict[str, str]) -> None:
        self._process = subprocess.Popen(
            ["env", *(f"{name}={value}" for name, value in variables.items()), sys.executable, "-S", "-c",
             textwrap.dedent(self.LOOP)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )  # fmt: skip

    def __call__(self, expression: str) -> object:
        """The value of an expression, or the errno of its error."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(expression + "\n")
        self._process.stdin.flush()
        return eval(self._process.stdout.readline())  # our own program prints a plain value

    def finish(self) -> list[str]:
        """Let it end; what it said on stderr."""
        _, said = self._process.communicate(timeout=BOUND_S)
        assert self._process.returncode == 0
        return said.splitlines()


@contextlib.contextmanager
def writer(variables: dict[str, str]) -> Iterator[Writer]:
    program = Writer(variables)
    try:
        yield program
    finally:
        program._process.kill()
        program._process.communicate()


def _wait_until_stopped(process: int) -> None:
    """Each thread goes on until it notices the signal."""
    end = time.monotonic() + 60
    tasks = list(Path(f"/proc/{process}/task").iterdir())
    while any((task / "stat").read_text().rpartition(") ")[2][0] != "T" for task in tasks):
        assert time.monotonic() < end


@contextlib.contextmanager
def frozen(running: Daemon) -> Iterator[None]:
    """The daemon is stopped (SIGSTOP) during the block."""
    running.process.send_signal(signal.SIGSTOP)
    try:
        _wait_until_stopped(running.process.pid)
        yield
    finally:
        running.process.send_signal(signal.SIGCONT)


# ---- kill -9 ----


@pytest.mark.parametrize("mode", ["flash", "ram"])
def test_what_was_acknowledged_is_there_after_kills(
    sbb_programs: Programs, tmp_path: Path, target: Path, mode: str
) -> None:
    """In mode ram the promise is made by fsync, and is checked there."""
    settings = {**SMALL, "SBB_MODE": mode}
    kills = [kill_once(sbb_programs, tmp_path / "f", target, settings, seed=seed) for seed in range(4)]
    assert [kill.lost_bytes for kill in kills] == [0, 0, 0, 0]
    assert sum(kill.acknowledged for kill in kills) > 20
    assert sum(kill.recovered_bytes for kill in kills) > 0  # or the log was not needed and nothing was tested


def test_lost_bytes_are_counted(tmp_path: Path) -> None:
    """The check of the test above can fail."""
    content = bytearray(4 << 20)
    size = 0
    for number in range(3):
        offset, data = write_of(1, number)
        content[offset : offset + len(data)] = data
        size = max(size, offset + len(data))
    path = tmp_path / "file"
    path.write_bytes(content[:size])
    assert lost_bytes(path, 1, 2) == 0
    offset, _ = write_of(1, 2)
    content[offset] ^= 1
    path.write_bytes(content[:size])
    assert lost_bytes(path, 1, 2) == 1
    path.write_bytes(content[: size - 10])
    assert lost_bytes(path, 1, 2) >= 10


def test_a_killed_daemon_is_an_error_until_it_is_started_again(
    sbb_programs: Programs, tmp_path: Path, target: Path
) -> None:
    running = Daemon(sbb_programs.sbbd, tmp_path / "f", target)
    with writer(running.preload(sbb_programs.libsbb)) as program:
        program(f"globals().update(fd=os.open({str(target / 'a')!r}, os.O_RDWR | os.O_CREAT))")
        assert program("os.pwrite(fd, b'x' * 3_000_000, 0)") == 3_000_000
        (tmp_path / "f" / "pending").touch()  # as if it was killed before anything was drained
        running.kill()
        assert program("os.pwrite(fd, b'y' * 10, 0)") == errno.EIO
        assert program("os.pread(fd, 10, 0)") == errno.EIO
        assert program("os.fsync(fd)") == errno.EIO
        assert program("os.close(fd)") == errno.EIO
        assert program(f"os.truncate({str(target / 'a')!r}, 0)") == errno.EIO
        with daemon(sbb_programs.sbbd, tmp_path / "f", target):
            program(f"globals().update(fd=os.open({str(target / 'a')!r}, os.O_RDWR))")
            assert program("os.pread(fd, 10, 2_999_995)") == b"xxxxx"
            assert program("os.pwrite(fd, b'new', 0)") == 3
            assert program("os.close(fd)") is None
        assert len(program.finish()) == 1
    assert (target / "a").read_bytes() == b"new" + b"x" * 2_999_997


def test_a_program_may_wait_for_a_killed_daemon(sbb_programs: Programs, tmp_path: Path, target: Path) -> None:
    running = Daemon(sbb_programs.sbbd, tmp_path / "f", target)
    with writer({**running.preload(sbb_programs.libsbb), "SBB_WAIT_S": "60"}) as program:
        program(f"globals().update(fd=os.open({str(target / 'a')!r}, os.O_RDWR | os.O_CREAT))")
        program("os.pwrite(fd, b'before', 0)")
        (tmp_path / "f" / "pending").touch()
        running.kill()
        again = subprocess.Popen([sbb_programs.sbbd, "--folder", tmp_path / "f", "--target", target])
        try:
            assert program("os.pwrite(fd, b'after', 6)") == 5
            assert program("os.fsync(fd)") is None
        finally:
            again.terminate()
            again.wait(BOUND_S)
        program.finish()
    assert (target / "a").read_bytes() == b"beforeafter"


def test_renamed_and_deleted_files_are_recovered(sbb_programs: Programs, tmp_path: Path, target: Path) -> None:
    """The log is copied while it holds everything, and put back as a crash at that moment would leave it."""
    (target / "sub").mkdir()
    running = Daemon(sbb_programs.sbbd, tmp_path / "f", target)
    with writer(running.preload(sbb_programs.libsbb)) as program:
        for name in ("kept", "renamed", "deleted"):
            program(f"globals().update({name}=os.open({str(target / name)!r}, os.O_RDWR | os.O_CREAT))")
            program(f"os.pwrite({name}, b'{name}' * 1000, 5)")
        shutil.copytree(tmp_path / "f" / "log", tmp_path / "log")
        running.drain()
    running.stop()
    for path in (target / "kept", target / "renamed", target / "deleted"):
        os.truncate(path, 0)
        os.truncate(path, 5 + 1000 * len(path.name))
    (target / "renamed").rename(target / "sub" / "other")
    (target / "renamed").write_text("somebody else's")
    (target / "deleted").unlink()
    shutil.rmtree(tmp_path / "f" / "log")
    shutil.copytree(tmp_path / "log", tmp_path / "f" / "log")
    for segment in (tmp_path / "f" / "log").iterdir():  # nothing of it is done
        segment.write_bytes(segment.read_bytes().replace(b"done", bytes(4)))
    command: list[Path | str] = [sbb_programs.sbbd, "--folder", tmp_path / "f", "--target", target, "--recover"]
    ended = subprocess.run(command, capture_output=True, text=True, check=True, timeout=BOUND_S)
    assert (target / "kept").read_bytes() == bytes(5) + b"kept" * 1000
    assert (target / "sub" / "other").read_bytes() == bytes(5) + b"renamed" * 1000
    assert (target / "renamed").read_text() == "somebody else's"
    [orphan] = (tmp_path / "f" / "orphans").iterdir()
    assert orphan.read_bytes() == bytes(5) + b"deleted" * 1000
    assert f"{target}/deleted was deleted; what was written to it last is kept in {orphan}" in ended.stderr


def test_what_was_cut_off_does_not_come_back(sbb_programs: Programs, tmp_path: Path, target: Path) -> None:
    running = Daemon(sbb_programs.sbbd, tmp_path / "f", target)
    with writer(running.preload(sbb_programs.libsbb)) as program:
        program(f"globals().update(fd=os.open({str(target / 'a')!r}, os.O_RDWR | os.O_CREAT))")
        program("[os.pwrite(fd, b'old' * 1000, at * 3000) for at in range(50)] and os.ftruncate(fd, 0)")
        assert program("os.pwrite(fd, b'new', 5)") == 3
        running.kill()
    with daemon(sbb_programs.sbbd, tmp_path / "f", target):
        pass
    assert (target / "a").read_bytes() == bytes(5) + b"new"


def test_a_damaged_record_is_not_recovered(sbb_programs: Programs, tmp_path: Path, target: Path) -> None:
    running = Daemon(sbb_programs.sbbd, tmp_path / "f", target)
    with writer(running.preload(sbb_programs.libsbb)) as program:
        program(f"globals().update(a=os.open({str(target / 'a')!r}, os.O_RDWR | os.O_CREAT))")
        program("os.pwrite(a, b'first-' * 100, 0)")
        program("os.pwrite(a, b'second' * 100, 2000)")
        shutil.copytree(tmp_path / "f" / "log", tmp_path / "log")
    running.stop()
    os.truncate(target / "a", 0)
    [segment] = (tmp_path / "log").iterdir()
    content = segment.read_bytes().replace(b"done", bytes(4))
    (tmp_path / "f" / "log" / segment.name).write_bytes(content.replace(b"second", b"sEcond", 1))
    with daemon(sbb_programs.sbbd, tmp_path / "f", target) as running:
        assert running.counter("recovered_bytes") == 600
    assert (target / "a").read_bytes() == b"first-" * 100


def test_the_wrong_target_is_refused(sbb_programs: Programs, tmp_path: Path, target: Path) -> None:
    with daemon(sbb_programs.sbbd, tmp_path / "f", target):
        pass
    (tmp_path / "f" / "pending").touch()
    target.rename(tmp_path / "unmounted")
    target.mkdir()
    with pytest.raises(UnavailableError, match="is not the folder that the data in the log belongs to; is it mounted"):
        Daemon(sbb_programs.sbbd, tmp_path / "f", target)


# ---- the daemon is missing, stops, or hangs ----


def test_without_a_daemon_files_are_written_directly(sbb_programs: Programs, tmp_path: Path, target: Path) -> None:
    variables = {"LD_PRELOAD": str(sbb_programs.libsbb), "SBB_FOLDER": str(tmp_path / "f"), "SBB_TARGET": str(target)}
    command = ["env", *(f"{name}={value}" for name, value in variables.items()), "cp", str(sbb_programs.burst)]
    ended = subprocess.run(
        [*command, str(target / "copy")], capture_output=True, text=True, check=True, timeout=BOUND_S
    )
    assert ended.stderr == "libsbb: no daemon answers in SBB_FOLDER; files are written directly\n"
    assert (target / "copy").read_bytes() == sbb_programs.burst.read_bytes()


@pytest.mark.parametrize("mode", ["flash", "ram"])
def test_a_program_goes_on_directly_when_the_daemon_is_stopped(
    sbb_programs: Programs, tmp_path: Path, target: Path, mode: str
) -> None:
    running = Daemon(sbb_programs.sbbd, tmp_path / "f", target, {"SBB_MODE": mode})
    with writer(running.preload(sbb_programs.libsbb)) as program:
        program(f"globals().update(fd=os.open({str(target / 'a')!r}, os.O_RDWR | os.O_CREAT))")
        assert program("os.write(fd, b'x' * 3_000_000)") == 3_000_000
        assert running.stop() == 0
        assert program("os.write(fd, b'y' * 10)") == 10
        assert program("os.pread(fd, 11, 2_999_999)") == b"x" + b"y" * 10
        assert program("os.fsync(fd)") is None
        assert program("os.close(fd)") is None
        assert program.finish() == ["libsbb: the daemon has ended; files are written directly"]
    assert (target / "a").read_bytes() == b"x" * 3_000_000 + b"y" * 10


def test_a_daemon_that_hangs_is_an_error_after_a_while(sbb_programs: Programs, tmp_path: Path, target: Path) -> None:
    with (
        daemon(sbb_programs.sbbd, tmp_path / "f", target) as running,
        writer({**running.preload(sbb_programs.libsbb), "SBB_TIMEOUT_S": "1"}) as program,
    ):
        program(f"globals().update(fd=os.open({str(target / 'a')!r}, os.O_RDWR | os.O_CREAT))")
        assert program("os.write(fd, b'x' * 100)") == 100
        with frozen(running):
            assert program("os.write(fd, b'y' * 100)") == errno.EIO
            assert program("os.close(fd)") == errno.EIO
            assert program.finish() == ["libsbb: the daemon does not answer (SBB_TIMEOUT_S)"]


# ---- errors of the target ----


@pytest.fixture
def small_target(tmp_path: Path) -> Iterator[Path]:
    """A file system of 2 MiB."""
    if not IS_ROOT or shutil.which("mount") is None:
        pytest.skip("a full target needs root, to mount a small file system")
    path = tmp_path / "small"
    path.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "sbb-test", path], check=True)
    yield path
    subprocess.run(["umount", "-l", path], check=True)


def wait_for(program: Writer, wanted: object) -> None:
    """Until fsync says so: what the target answers is known only when the daemon has written to it."""
    end = time.monotonic() + 60
    while (result := program("os.fsync(fd)")) != wanted:
        assert time.monotonic() < end, result


@pytest.mark.parametrize("mode", ["flash", "ram"])
def test_a_full_target_is_reported_and_the_data_stays_in_the_log(
    sbb_programs: Programs, tmp_path: Path, small_target: Path, mode: str
) -> None:
    data = os.urandom(8 << 20)
    (tmp_path / "data").write_bytes(data)
    settings = {"SBB_MODE": mode, "SBB_FLASH_CACHE": "64M"}
    running = Daemon(sbb_programs.sbbd, tmp_path / "f", small_target, settings)
    with writer(running.preload(sbb_programs.libsbb)) as program:
        program(f"globals().update(data=open({str(tmp_path / 'data')!r}, 'rb').read())")
        program(f"globals().update(fd=os.open({str(small_target / 'a')!r}, os.O_RDWR | os.O_CREAT))")
        program("os.ftruncate(fd, len(data))")  # a hole: to write into it needs room that the target does not have
        results = [program(f"os.pwrite(fd, data[{at}:{at + 65536}], {at})") for at in range(0, len(data), 65536)]
        acknowledged = next((index for index, result in enumerate(results) if result != 65536), len(results)) * 65536
        wait_for(program, errno.ENOSPC)
        assert program("os.close(fd)") == errno.ENOSPC
        program.finish()
    assert acknowledged > 2 << 20
    assert running.stop() == 1
    assert any("stays in the log for the next start" in line for line in running.messages)
    with pytest.raises(UnavailableError, match="start again when it works"):
        Daemon(sbb_programs.sbbd, tmp_path / "f", small_target, settings)
    subprocess.run(["mount", "-o", "remount,size=32m", small_target], check=True)
    with daemon(sbb_programs.sbbd, tmp_path / "f", small_target, settings):
        pass
    assert (small_target / "a").read_bytes()[:acknowledged] == data[:acknowledged]


def test_a_full_target_that_gets_room_is_written_to_again(
    sbb_programs: Programs, tmp_path: Path, small_target: Path
) -> None:
    with (
        daemon(sbb_programs.sbbd, tmp_path / "f", small_target) as running,
        writer(running.preload(sbb_programs.libsbb)) as program,
    ):
        program(f"globals().update(fd=os.open({str(small_target / 'a')!r}, os.O_RDWR | os.O_CREAT))")
        program("os.ftruncate(fd, 6 << 20)")
        written = program("os.pwrite(fd, b'a' * (6 << 20), 0)")
        assert isinstance(written, int)
        assert written > 2 << 20
        wait_for(program, errno.ENOSPC)
        subprocess.run(["mount", "-o", "remount,size=32m", small_target], check=True)
        wait_for(program, None)  # the daemon tries again five times a second
        assert program("os.pwrite(fd, b'b' * 10, 6 << 20)") == 10
        program.finish()
    assert (small_target / "a").read_bytes()[:written] == b"a" * written
    assert (small_target / "a").read_bytes()[6 << 20 :] == b"b" * 10


def test_a_file_that_may_not_grow_is_an_error_of_the_write(
    sbb_programs: Programs, tmp_path: Path, target: Path
) -> None:
    limited = tmp_path / "limited"
    limited.write_text(f'#!/bin/sh\nulimit -f 2048\nexec {sbb_programs.sbbd} "$@"\n')
    limited.chmod(0o755)
    with (
        daemon(limited, tmp_path / "f", target) as running,
        writer(running.preload(sbb_programs.libsbb)) as program,
    ):
        program(f"globals().update(fd=os.open({str(target / 'a')!r}, os.O_RDWR | os.O_CREAT))")
        assert program("os.pwrite(fd, b'a', 50 << 20)") == errno.EFBIG
        assert program("os.pwrite(fd, b'a', 100)") == 1
        assert program("os.close(fd)") is None
        program.finish()
    assert (target / "a").read_bytes() == bytes(100) + b"a"
