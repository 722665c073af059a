"""Slow storage for experiments on one machine.

    python -m testbeds.real.slow_storage --read-iops 4000 --read-bytes-s 256M -- COMMAND

runs COMMAND with `SLOW_STORAGE` naming a folder whose reads are throttled for it and its children; with both
`--write-iops` and `--write-bytes-s`, its direct writes and fsync as well. It needs Linux, root and the blkio controller
of cgroup v1; everything is taken down at the end, also if the program is killed.
"""

import argparse
import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from luthier.errors import InvalidInputError, LuthierError, UnavailableError
from luthier.space.units import parse_quantity

KEEPER = Path(__file__).with_name("slow_storage.sh")
THROTTLE = Path("/sys/fs/cgroup/blkio/blkio.throttle.read_iops_device")
PROGRAMS = ("losetup", "mkfs.ext4", "mount", "umount")
# A small request costs 1/4000 s, and 1 MiB as much as 16 of them: about what a network file system does.
SIZE_BYTES, READ_IOPS, READ_BYTES_S = 512 << 20, 4000, 256 << 20
ENTER = 'echo $$ >"$0/cgroup.procs" && exec "$@"'


@dataclass(frozen=True, slots=True)
class SlowStorage:
    """A folder on a throttled device; only processes in its group are slowed down."""

    folder: Path
    group: Path
    device: str

    def inside(self, command: Sequence[str]) -> list[str]:
        """The command line that runs a command inside of the group."""
        return ["sh", "-c", ENTER, str(self.group), *command]

    def read_requests(self) -> int:
        """How many reads the device has completed so far."""
        return int(Path("/sys/block", self.device, "stat").read_text(encoding="ascii").split()[0])


def why_unavailable() -> str | None:
    """What is missing on this machine; None if nothing is."""
    if not sys.platform.startswith("linux") or os.geteuid() != 0:
        return "slow storage needs root on Linux"
    if not THROTTLE.exists():
        return f"slow storage needs the blkio controller of cgroup v1: {THROTTLE} is missing"
    if not Path("/dev/loop-control").exists():
        return "slow storage needs loop devices: /dev/loop-control is missing"
    absent = [program for program in PROGRAMS if shutil.which(program, path=_search_path()) is None]
    return f"slow storage needs {', '.join(absent)}" if absent else None


@contextlib.contextmanager
def slow_storage(
    *,
    size_bytes: int = SIZE_BYTES,
    read_iops: int = READ_IOPS,
    read_bytes_s: int = READ_BYTES_S,
    write_iops: int = 0,
    write_bytes_s: int = 0,
) -> Iterator[SlowStorage]:
    """Slow storage during a `with` block; it is also removed when this process is killed.

    If both are given, `write_iops` and `write_bytes_s` limit what its processes write by fsync or directly.
    """
    if (reason := why_unavailable()) is not None:
        raise UnavailableError(reason)
    writes = (write_iops, write_bytes_s) if write_iops and write_bytes_s else ()
    # A process session of its own: Ctrl-C ends only the owner, and that closes the pipe.
    keeper = subprocess.Popen(
        ["sh", str(KEEPER), *(str(number) for number in (size_bytes, read_iops, read_bytes_s, *writes))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PATH": _search_path()},
        text=True,
        start_new_session=True,
    )
    with keeper:
        assert keeper.stdout is not None  # noqa: S101 - said with PIPE above
        words = keeper.stdout.readline().split()
        if len(words) != 3:
            complaints = keeper.communicate()[1].split("\n")
            raise UnavailableError(
                f"slow storage could not be set up: {next(filter(None, complaints), 'no reason given')}"
            )
        yield SlowStorage(Path(words[0]), Path(words[1]), Path(words[2]).name)


def _search_path() -> str:
    return os.environ.get("PATH", os.defpath) + ":/usr/sbin:/sbin"


def _amount(text: str) -> int:
    try:
        number, _ = parse_quantity(text)
    except InvalidInputError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    if not isinstance(number, int) or number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1")
    return number


def _arguments(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="slow_storage", description="Run a command with slow storage at $SLOW_STORAGE."
    )
    parser.add_argument("--size", type=_amount, default=SIZE_BYTES, help="bytes of the storage (512M)")
    parser.add_argument("--read-iops", type=_amount, default=READ_IOPS, help="requests per second (%(default)s)")
    parser.add_argument("--read-bytes-s", type=_amount, default=READ_BYTES_S, help="bytes per second (256M)")
    parser.add_argument("--write-iops", type=_amount, default=0, help="requests per second (no limit)")
    parser.add_argument("--write-bytes-s", type=_amount, default=0, help="bytes per second (no limit)")
    parser.add_argument("command", nargs="+", metavar="COMMAND")
    options = parser.parse_args(arguments)
    if (options.write_iops == 0) != (options.write_bytes_s == 0):
        parser.error("--write-iops and --write-bytes-s belong together")
    return options


def main(arguments: Sequence[str]) -> int:
    """Run the command inside and return its exit code."""
    options = _arguments(arguments)
    limits = {"read_iops": options.read_iops, "read_bytes_s": options.read_bytes_s}
    limits |= {"write_iops": options.write_iops, "write_bytes_s": options.write_bytes_s}
    with slow_storage(size_bytes=options.size, **limits) as storage:
        environment = {**os.environ, "SLOW_STORAGE": str(storage.folder)}
        return subprocess.run(storage.inside(options.command), env=environment, check=False).returncode


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except LuthierError as error:
        sys.exit(f"slow_storage: {error}")
