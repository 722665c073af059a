"""Carries out file operations that stdin gives as JSON and prints what each returned, to compare two runs."""

import json
import os
import sys
from collections.abc import Callable

Descriptors = list[int]


def child_writes(path: str, offset: int, size: int) -> int:
    """Another process writes to the file."""
    child = os.fork()
    if child == 0:
        fd = os.open(path, os.O_WRONLY)
        os.pwrite(fd, b"child" * size, offset)
        os._exit(0)
    return os.waitpid(child, 0)[1]


def child_reads(fd: int, size: int) -> str:
    """A forked process reads on from the shared position."""
    near, far = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(far, os.read(fd, size))
        os._exit(0)
    os.close(far)
    with os.fdopen(near, "rb") as pipe:
        got = pipe.read()
    os.waitpid(child, 0)
    return got.hex()


def reopened(path: str, fds: Descriptors, which: int) -> int:
    """The number of the descriptor stays, what it stands for is opened anew."""
    os.close(fds[which])
    fds[which] = os.open(path, os.O_RDWR)
    return 0


def duplicated(fds: Descriptors, which: int) -> int:
    """One descriptor becomes a copy of the other, sharing its position."""
    os.dup2(fds[which], fds[1 - which])
    return 0


def vector_read(fd: int, size: int, offset: int | None) -> list[object]:
    """Read into two buffers."""
    parts = [bytearray(size), bytearray(size + 1)]
    got = os.readv(fd, parts) if offset is None else os.preadv(fd, parts, offset)
    return [got, parts[0].hex(), parts[1].hex()]


def main(path: str) -> None:
    """Do what stdin says."""
    fds = [os.open(path, os.O_RDWR), os.open(path, os.O_RDWR)]
    actions: dict[str, Callable[[int, int, int], object]] = {
        "read": lambda which, size, _: os.read(fds[which], size).hex(),
        "pread": lambda which, size, offset: os.pread(fds[which], size, offset).hex(),
        "readv": lambda which, size, _: vector_read(fds[which], size, None),
        "preadv": lambda which, size, offset: vector_read(fds[which], size, offset),
        "lseek": lambda which, _, offset: os.lseek(fds[which], offset, os.SEEK_SET),
        "write": lambda which, size, _: os.write(fds[which], b"write" * size),
        "pwrite": lambda which, size, offset: os.pwrite(fds[which], b"there" * size, offset),
        "truncate": lambda which, _, offset: os.ftruncate(fds[which], offset),
        "reopen": lambda which, *_: reopened(path, fds, which),
        "dup": lambda which, *_: duplicated(fds, which),
        "child reads": lambda which, size, _: child_reads(fds[which], size),
        "child writes": lambda _, size, offset: child_writes(path, offset, size),
    }
    for name, which, size, offset in json.load(sys.stdin):
        sys.stdout.write(f"{name} {actions[name](which, size, offset)}\n")


if __name__ == "__main__":
    main(sys.argv[1])
