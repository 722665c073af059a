"""Measures every configuration of a real program, zlib, for the training of the subset picker.

    python -m benchmarks.sweep_compressor benchmarks/results/compressor.json

The value is the time to compress a text plus the time to send the result at 25 MB/s; the best of three runs.
"""

import json
import sys
import time
import zlib
from pathlib import Path

from benchmarks.picker_systems import COMPRESSOR
from luthier.trial import Config

_STRATEGIES = {
    "default": zlib.Z_DEFAULT_STRATEGY,
    "filtered": zlib.Z_FILTERED,
    "huffman": zlib.Z_HUFFMAN_ONLY,
    "rle": zlib.Z_RLE,
}
_BYTES_PER_S = 25e6


def text() -> bytes:
    """About 200 kB of a text like those of logs."""
    lines = (
        f"{at:07d} node{at % 17} write {at * 7919 % 10007} bytes at offset {at * at % 65521}\n" for at in range(4000)
    )
    return "".join(lines).encode()


def seconds(config: Config, data: bytes) -> float:
    """One run."""
    strategy, chunk = _STRATEGIES[str(config["strategy"])], int(config["chunk"])
    began, sent = time.perf_counter(), 0
    packer = zlib.compressobj(
        int(config["level"]), zlib.DEFLATED, int(config["window"]), int(config["memory"]), strategy
    )
    for at in range(0, len(data), chunk):
        part = data[at : at + chunk]
        sent += len(packer.compress(bytes(bytearray(part)) if config["copy"] else part))
        if config["flush"]:
            sent += len(packer.flush(zlib.Z_SYNC_FLUSH))
    sent += len(packer.flush())
    return time.perf_counter() - began + sent / _BYTES_PER_S


def main() -> None:
    """Measure, and write the values in the order of the grid."""
    data = text()
    configs = COMPRESSOR.configs(COMPRESSOR.grid())
    values = [round(min(seconds(config, data) for _ in range(3)), 6) for config in configs]
    Path(sys.argv[1]).write_text(json.dumps({"values": values}) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
