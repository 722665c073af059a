"""A program that writes at random places of a file and reports what was acknowledged; for `sbb_kills.py`.

    python sbb_writer.py PATH SEED SYNC_EVERY

prints the number of a write as soon as that is acknowledged (of every SYNC_EVERY-th, after an fsync; 0: of every one,
without), and ends with code 3 at the first error. It needs the standard library only.
"""

import os
import random
import sys

FILE_BYTES, LARGEST = 3 << 20, 200 << 10
MOST_WRITES = 1_000_000
DIED = 3


def write_of(seed: int, number: int) -> tuple[int, bytes]:
    """Offset and data of a write; the same in the program that writes and in the one that checks."""
    rng = random.Random(seed * 1_000_003 + number)  # noqa: S311 - no secret
    return rng.randrange(FILE_BYTES), rng.randbytes(rng.randint(1, LARGEST))


def write_until_refused(path: str, seed: int, sync_every: int) -> int:
    """Write, and report on stdout what is acknowledged."""
    try:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
        for number in range(MOST_WRITES):
            offset, data = write_of(seed, number)
            while data:
                written = os.pwrite(fd, data, offset)
                offset, data = offset + written, data[written:]
            if sync_every == 0 or number % sync_every == sync_every - 1:
                if sync_every:
                    os.fsync(fd)
                os.write(1, b"%d\n" % number)
    except OSError:
        return DIED
    return 0


if __name__ == "__main__":
    sys.exit(write_until_refused(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
