"""Carries out file operations that stdin gives as JSON and prints what each returned, to compare two runs.

Like file_driver.py, with the operations that matter to a buffer of writes.
"""

import contextlib
import hashlib
import json
import mmap
import os
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

PATTERN = bytes(range(251)) * 8


def pattern(size: int, offset: int) -> bytes:
    """Data that differs from place to place."""
    return (PATTERN[offset % 251 :] * (size // 1000 + 2))[:size]


class Files:
    """Two descriptors of one file, and what can be done with them."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.fds = [os.open(path, os.O_RDWR | os.O_CREAT), os.open(path, os.O_RDWR)]

    def reopen(self, which: int, *_: int) -> int:
        os.close(self.fds[which])
        self.fds[which] = os.open(self.path, os.O_RDWR)
        return 0

    def reopen_empty(self, which: int, *_: int) -> int:
        os.close(self.fds[which])
        self.fds[which] = os.open(self.path, os.O_RDWR | os.O_TRUNC)
        return os.fstat(self.fds[which]).st_size

    def duplicate(self, which: int, *_: int) -> int:
        os.dup2(self.fds[which], self.fds[1 - which])
        return 0

    def append(self, _: int, size: int, offset: int) -> int:
        fd = os.open(self.path, os.O_WRONLY | os.O_APPEND)
        try:
            return os.write(fd, pattern(size, offset))
        finally:
            os.close(fd)

    def gathered(self, which: int, size: int, offset: int) -> int:
        return os.pwritev(self.fds[which], [pattern(size, 1), pattern(size, 2), b"end"], offset)

    def from_child(self, which: int, size: int, offset: int) -> int:
        child = os.fork()
        if child == 0:
            os.lseek(self.fds[which], offset, os.SEEK_SET)
            os.write(self.fds[which], pattern(size, 3))
            os._exit(0)
        return os.waitpid(child, 0)[1]

    def by_program(self, _: int, size: int, offset: int) -> int:
        code = f"import os; f = os.open({self.path!r}, os.O_WRONLY); os.pwrite(f, b'p' * {size}, {offset})"
        return os.spawnv(os.P_WAIT, sys.executable, [sys.executable, "-S", "-c", code])

    def by_threads(self, which: int, size: int, offset: int) -> int:
        places = [offset + number * size for number in range(4)]
        threads = [
            threading.Thread(target=os.pwrite, args=(self.fds[which], pattern(size, number), place))
            for number, place in enumerate(places)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return 0

    def mapped(self, which: int, size: int, offset: int) -> str:
        length = os.fstat(self.fds[which]).st_size
        if length == 0:
            return "empty"
        with mmap.mmap(self.fds[which], length) as memory:
            seen = memory[offset : offset + size]
            memory[: min(3, length)] = b"map"[: min(3, length)]
            memory.flush()
        return seen.hex()

    def without_holes(self, which: int, *_: int) -> str:
        """Where a hole is differs between file systems; what is around it does not."""
        fd = os.open(self.path, os.O_RDONLY)
        try:
            content, place = bytearray(os.fstat(fd).st_size), 0
            with contextlib.suppress(OSError):  # no more data
                while place < len(content):
                    place = os.lseek(fd, place, os.SEEK_DATA)
                    end = os.lseek(fd, place, os.SEEK_HOLE)
                    content[place:end] = os.pread(fd, end - place, place)
                    place = end
        finally:
            os.close(fd)
        return hashlib.sha256(content).hexdigest()

    def renamed(self, *_: int) -> int:
        Path(self.path).rename(self.path + "-other").rename(self.path)
        return 0

    def text(self, _: int, size: int, offset: int) -> str:
        """The C library's streams are used by other programs; Python has its own."""
        with Path(self.path).open("r+b") as file:
            file.seek(offset)
            file.write(pattern(size, 5))
            file.seek(max(0, offset - 10))
            return file.read(size).hex()

    def sent(self, which: int, size: int, offset: int) -> list[object]:
        """From another file by the kernel, or so it seems."""
        with tempfile.TemporaryFile() as source:
            source.write(pattern(size, 6))
            source.flush()
            got = os.sendfile(self.fds[which], source.fileno(), min(offset, size // 2), size)
            return [got, os.lseek(self.fds[which], 0, os.SEEK_CUR)]

    def times(self, which: int, size: int, offset: int) -> list[int]:
        os.utime(self.fds[which], ns=(offset * 1000, size * 1_000_000_000))
        return [os.stat(self.path).st_mtime_ns]  # noqa: PTH116


def main(path: str) -> None:
    """Do what stdin says."""
    files = Files(path)
    fds = files.fds
    actions: dict[str, Callable[[int, int, int], object]] = {
        "read": lambda which, size, _: os.read(fds[which], size).hex(),
        "pread": lambda which, size, offset: os.pread(fds[which], size, offset).hex(),
        "lseek": lambda which, _, offset: os.lseek(fds[which], offset, os.SEEK_SET),
        "end": lambda which, *_: os.lseek(fds[which], 0, os.SEEK_END),
        "holes": files.without_holes,
        "write": lambda which, size, offset: os.write(fds[which], pattern(size, offset)),
        "pwrite": lambda which, size, offset: os.pwrite(fds[which], pattern(size, offset), offset),
        "truncate": lambda which, _, offset: os.ftruncate(fds[which], offset),
        "truncate path": lambda _which, _size, offset: os.truncate(path, offset),
        "size": lambda *_: os.stat(path).st_size,  # noqa: PTH116
        "fsync": lambda which, *_: os.fsync(fds[which]),
        "reopen": files.reopen,
        "reopen empty": files.reopen_empty,
        "dup": files.duplicate,
        "append": files.append,
        "gathered": files.gathered,
        "child": files.from_child,
        "program": files.by_program,
        "threads": files.by_threads,
        "mmap": files.mapped,
        "rename": files.renamed,
        "text": files.text,
        "sendfile": files.sent,
        "times": files.times,
    }
    for name, which, size, offset in json.load(sys.stdin):
        sys.stdout.write(f"{name} {actions[name](which, size, offset)}\n")


if __name__ == "__main__":
    main(sys.argv[1])
