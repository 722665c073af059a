"""Pack a file: compress it in chunks with several threads, and fail if the result is too large.

A small program with four parameters that are hard to set by hand, for `make demo`.
"""

import argparse
import bz2
import lzma
import sys
import zlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

CODECS: dict[str, Callable[[bytes, int], bytes]] = {
    "zlib": zlib.compress,
    "bz2": bz2.compress,
    "lzma": lambda data, level: lzma.compress(data, preset=level),
}


def packed_size(data: bytes, codec: str, level: int, threads: int, chunk_bytes: int) -> int:
    """Compress every chunk and add up the compressed sizes."""
    chunks = [data[start : start + chunk_bytes] for start in range(0, len(data), chunk_bytes)]
    with ThreadPoolExecutor(threads) as pool:
        return sum(pool.map(lambda chunk: len(CODECS[codec](chunk, level)), chunks))


def main() -> int:
    """Read the options, pack, and report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--codec", choices=CODECS, default="lzma")
    parser.add_argument("--level", type=int, default=6)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--chunk-kib", type=int, default=64)
    parser.add_argument(
        "--at-most", type=float, default=1.0, help="largest allowed compressed size, as a part of the original"
    )
    options = parser.parse_args()
    data = options.file.read_bytes()
    left = packed_size(data, options.codec, options.level, options.threads, options.chunk_kib * 1024) / len(data)
    print(f"{left:.1%} of the size left")
    if left > options.at_most:
        print(f"too large: {left:.1%}, at most {options.at_most:.1%} allowed", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
