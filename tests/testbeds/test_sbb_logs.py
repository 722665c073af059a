"""Damaged logs of the burst buffer: recovery applies whole records or nothing, ends, and says what it left out."""

import os
import random
import re
import shutil
import struct
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.torture import IS_TORTURE, repeats

from testbeds.real.sbb import Programs, daemon

NATIVE = Path(__file__).resolve().parents[2] / "testbeds" / "native" / "sbb"
BOUND_S = 60
ALIGN, HEADER = 512, struct.Struct("<6QqQ6I")  # struct log_header of testbeds/native/sbb/log.h
DONE_AT = 80
WRITER = """
import os, sys
for number in range(6):
    fd = os.open(f"{sys.argv[1]}/file{number}", os.O_RDWR | os.O_CREAT)
    for place in range(8):
        os.pwrite(fd, bytes([65 + number]) * (300 + 911 * place), 10_000 * place)
    os.pwrite(fd, b"new" * 100, 10_000 * number + 100)
"""


@dataclass(frozen=True, slots=True)
class Log:
    """A log of which nothing is in the target yet, and what belongs there."""

    sbbd: Path
    folder: Path
    target: Path
    segment: str
    content: bytes
    instance: int
    whole: dict[str, bytes]

    def recover(self, change: Callable[[Path], object]) -> tuple[list[str], dict[str, bytes]]:
        """Put the log back, change it, and recover: what was said, and the files."""
        log = self.folder / "log"
        shutil.rmtree(log)
        log.mkdir()
        shutil.rmtree(self.folder / "left-out", ignore_errors=True)
        (log / self.segment).write_bytes(self.content)
        (self.folder / "pending").write_text(f"{self.instance:016x}\n")
        for name, whole in self.whole.items():
            os.truncate(self.target / name, 0)
            os.truncate(self.target / name, len(whole))
        change(log)
        command: list[str | Path] = [self.sbbd, "--folder", self.folder, "--target", self.target, "--recover"]
        ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=BOUND_S)
        assert ended.returncode == 0, ended.stderr
        assert list(log.iterdir()) == []
        return ended.stderr.splitlines(), {name: (self.target / name).read_bytes() for name in self.whole}

    def records(self) -> Iterator[tuple[int, tuple[int, ...]]]:
        """Places and headers."""
        for place in range(ALIGN, len(self.content) - HEADER.size, ALIGN):
            header = HEADER.unpack_from(self.content, place)
            if header[0] == 0x31676F6C2D626273:
                yield place, header

    def ends_at(self, cut: int) -> bool:
        """A log that was cut off between two records looks like one that never had more."""
        ends = [place + HEADER.size + header[8] + header[9] for place, header in self.records()]
        return any(end <= cut <= -(-end // ALIGN) * ALIGN for end in [0, *ends]) or cut <= ALIGN

    def is_made_of_records(self, files: dict[str, bytes]) -> bool:
        """Every record is there as a whole or not at all; the last one of each file lies over another."""
        for name, whole in self.whole.items():
            number = int(name[-1])
            below = bytes([65 + number]) * (300 + 911 * number)
            for place in range(8):
                part = slice(10_000 * place, 10_000 * place + 300 + 911 * place)
                allowed = [whole[part], bytes(300 + 911 * place)]
                if place == number:
                    allowed += [below, bytes(100) + b"new" * 100 + bytes(len(below))]
                if not any(files[name][part] == one[: len(files[name][part])] for one in allowed):
                    return False
        return True


@pytest.fixture(scope="module")
def log(sbb_programs: Programs, tmp_path_factory: pytest.TempPathFactory) -> Log:
    sbbd, folder = sbb_programs.sbbd, tmp_path_factory.mktemp("logs")
    target = folder / "target"
    target.mkdir()
    if IS_TORTURE:
        subprocess.run(["make", "-s", "-C", NATIVE, f"BUILD={folder}", folder / "sbbd-address"], check=True)
        sbbd = folder / "sbbd-address"
    with daemon(sbbd, folder / "f", target) as running:
        variables = [f"{name}={value}" for name, value in running.preload(sbb_programs.libsbb).items()]
        subprocess.run(["env", *variables, "python3", "-S", "-c", WRITER, target], check=True)
        [segment] = (folder / "f" / "log").iterdir()
        shutil.copy(segment, folder / "copy")
    content = bytearray((folder / "copy").read_bytes())
    instance = struct.unpack_from("<3Q", content)[1]
    whole = {path.name: path.read_bytes() for path in target.iterdir()}
    found = Log(sbbd, folder / "f", target, segment.name, bytes(content), instance, whole)
    for place, _ in found.records():
        content[place + DONE_AT : place + DONE_AT + 4] = bytes(4)  # nothing of it is done
    return Log(sbbd, folder / "f", target, segment.name, bytes(content), instance, whole)


def nothing(_: Path) -> None:
    """No damage."""


def test_an_undamaged_log_is_recovered_as_a_whole(log: Log) -> None:
    said, files = log.recover(nothing)
    assert len(list(log.records())) == 54
    assert files == log.whole
    assert said == ["sbbd: recovered 169248 bytes from the log"]


@pytest.mark.parametrize("seed", range(repeats(25, 1000)))
def test_flipped_bytes_and_lost_ends(log: Log, seed: int) -> None:
    draw = random.Random(seed)

    cut = draw.randrange(len(log.content)) if seed % 4 == 0 else len(log.content)

    def damage(folder: Path) -> None:
        content = bytearray(log.content)
        for _ in range(draw.choice([1, 1, 1, 5, 200])):
            content[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
        (folder / log.segment).write_bytes(content[:cut])

    said, files = log.recover(damage)
    assert log.is_made_of_records(files)
    assert len(said) <= 2
    assert files == log.whole or log.ends_at(cut) or "left out of the log" in said[0]


def test_a_damaged_header_of_the_segment_loses_nothing(log: Log) -> None:
    for at in (0, 9, 17):

        def damage(folder: Path, at: int = at) -> None:
            content = bytearray(log.content)
            content[at] ^= 4
            (folder / log.segment).write_bytes(content)

        assert log.recover(damage)[1] == log.whole


@pytest.mark.parametrize("bit", range(0, 32, repeats(5, 1)))
def test_a_damaged_mark_does_not_bring_back_what_was_done(log: Log, bit: int) -> None:
    """Newer data may be in the target since."""
    places = [place for place, _ in log.records()]

    def damage(folder: Path) -> None:
        content = bytearray(log.content)
        for place in places:
            done = int.from_bytes(b"done", "little") ^ 1 << bit
            content[place + DONE_AT : place + DONE_AT + 4] = done.to_bytes(4, "little")
        (folder / log.segment).write_bytes(content)

    said, files = log.recover(damage)
    assert all(not any(content) for content in files.values())
    assert f"{len(places)} records that are damaged" in said[0]


def test_exchanged_and_copied_records_are_not_applied(log: Log) -> None:
    places = [place for place, header in log.records()]

    def damage(folder: Path) -> None:
        content = bytearray(log.content)
        first, second = (slice(place, place + ALIGN) for place in (places[0], places[9]))  # of the same length
        content[first], content[second] = content[second], content[first]
        copied = slice(places[18], places[18] + ALIGN)
        (folder / log.segment).write_bytes(bytes(content) + content[copied])

    said, files = log.recover(damage)
    assert log.is_made_of_records(files)
    assert sum(files[name] == log.whole[name] for name in files) == 4
    assert re.match("sbbd: left out of the log: 3 records", said[0])


def test_files_that_are_not_part_of_the_log(log: Log) -> None:
    """A copy of a segment, one of another daemon, rubbish, a folder, a FIFO and a link to somewhere else."""

    def damage(folder: Path) -> None:
        (folder / f"{int(log.segment) + 1:020}").write_bytes(log.content)
        foreign = log.content.replace(struct.pack("<Q", log.instance), struct.pack("<Q", log.instance ^ 1))
        (folder / f"{int(log.segment) + 2:020}").write_bytes(foreign)
        (folder / "00000000000000000009").write_bytes(os.urandom(5000))
        (folder / "7").write_bytes(log.content)
        (folder / "notes.txt").write_text("a file of somebody else")
        (folder / "00000000000000000010").mkdir()
        os.mkfifo(folder / "00000000000000000011")
        (folder / "00000000000000000012").symlink_to("/etc/passwd")

    said, files = log.recover(damage)
    assert files == log.whole
    assert "and 8 files that are not part of it and are kept in" in said[0]
    assert len(list((log.folder / "left-out").iterdir())) == 8


@pytest.mark.parametrize("text", ["", "rubbish", "0123456789abcdef\n" * 9])
def test_without_a_valid_marker_the_segments_are_believed(log: Log, text: str) -> None:
    assert log.recover(lambda folder: (folder.parent / "pending").write_text(text))[1] == log.whole


def test_the_daemon_starts_after_a_damaged_log(log: Log, sbb_programs: Programs) -> None:
    log.recover(lambda folder: (folder / log.segment).write_bytes(os.urandom(9000)))
    with daemon(log.sbbd, log.folder, log.target) as running:
        variables = [f"{name}={value}" for name, value in running.preload(sbb_programs.libsbb).items()]
        subprocess.run(["env", *variables, "python3", "-S", "-c", WRITER, log.target], check=True)
    assert {name: (log.target / name).read_bytes() for name in log.whole} == log.whole
