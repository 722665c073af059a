"""What the preload library for I/O costs a program that makes 10,000 calls of HDF5 (`docs/io.md`).

    python -m benchmarks.io_overhead [--repeats 40] [--folder DIRECTORY] [--instructions]

Without the library, with it counting, and with it injecting: interleaved, in one run. Ratios are of CPU time (user and
system), of which the smallest of all repetitions is compared, for that is the least disturbed by other work. With
`--instructions`, valgrind counts the instructions of the program instead, start and end of the process included:
once, for other work does not change them. The kernel's are not in them.
"""

import argparse
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

NATIVE = Path(__file__).parents[1] / "native"
CALLS = 10_000
PATTERNS = (("datasets", 4096), ("datasets", 16384), ("rows", 4096), ("rows", 65536), ("rows", 262144))


def cpu_s(command: list[str], environment: Mapping[str, str]) -> float:
    """The CPU time of one run."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, env=environment, check=True, timeout=600)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def build(folder: Path) -> tuple[Path, Path]:
    """The program and the library."""
    options = subprocess.run(
        ["pkg-config", "--cflags", "--libs", "hdf5-serial"], capture_output=True, text=True, check=True
    ).stdout.split()
    program = folder / "io_overhead"
    source = Path(__file__).with_suffix(".c")
    subprocess.run(["cc", "-O2", "-o", program, source, *options], check=True)
    library = folder / "libluthier_io.so"
    subprocess.run(["make", "-s", "-C", NATIVE / "io", f"BUILD={folder}", library], check=True)
    return program, library


def instructions(command: list[str], environment: Mapping[str, str]) -> float:
    """The instructions of one run."""
    counted = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", *command]
    ended = subprocess.run(counted, env=environment, check=True, timeout=600, capture_output=True, text=True)
    found = re.search(r"Collected : (\d+)", ended.stderr)
    if found is None:
        raise RuntimeError(f"valgrind printed no number of instructions: {ended.stderr[-200:]}")
    return float(found[1])


def ways_to_run(library: Path) -> dict[str, dict[str, str]]:
    """The variables of each way to run the program."""
    plain = {name: value for name, value in os.environ.items() if not name.startswith("LUTHIER_IO")}
    preloaded = {**plain, "LD_PRELOAD": str(library)}
    return {  # what is injected are the defaults, so that nothing but the injection itself costs anything
        "without": plain,
        "counting": {**preloaded, "LUTHIER_IO_COUNT": str(library.parent / "reports")},
        "injecting": {**preloaded, "LUTHIER_IO": "alignment=1,sieve_buffer=64k"},
    }


def measure(command: list[str], library: Path, repeats: int) -> dict[str, float]:
    """The smallest CPU time of each way to run the program."""
    ways = ways_to_run(library)
    times: dict[str, list[float]] = {way: [] for way in ways}
    for _ in range(repeats):
        for way, environment in ways.items():
            times[way].append(cpu_s(command, environment))
    return {way: min(runs) for way, runs in times.items()}


def count(command: list[str], library: Path) -> dict[str, float]:
    """The instructions of each way to run the program."""
    return {way: instructions(command, environment) for way, environment in ways_to_run(library).items()}


def row(pattern: str, size: int, found: Mapping[str, float], unit: str) -> str:
    """A line of the table, for CPU times in seconds or for instructions."""
    plain, scale = found["without"], 1e9 if unit == "ns" else 1.0
    cells = [
        f"{(found[way] / plain - 1) * 100:+.2f} % {(found[way] - plain) / CALLS * scale:+.0f} {unit}"
        for way in ("counting", "injecting")
    ]
    call = f"{plain / CALLS * scale:,.0f} {unit}"
    return f"{pattern:<9} {size:<7} {call:<21} {cells[0]:<28} {cells[1]}"


def main() -> int:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--repeats", type=int, default=40)
    parser.add_argument("--folder", type=Path, default=None, help="where the HDF5 file is written (a temporary folder)")
    parser.add_argument("--instructions", action="store_true", help="count instructions with valgrind instead")
    arguments = parser.parse_args()
    needed = ["pkg-config", "cc", *(["valgrind"] if arguments.instructions else [])]
    if missing := [name for name in needed if shutil.which(name) is None]:
        print(f"io_overhead: {', '.join(missing)} is missing; libhdf5-dev is needed as well", file=sys.stderr)
        return 1
    print("calls on  bytes   one call              counting                     injecting")
    with tempfile.TemporaryDirectory(dir=arguments.folder) as temporary:
        program, library = build(Path(temporary))
        for pattern, size in PATTERNS:
            command = [str(program), pattern, str(Path(temporary) / "x.h5"), str(size)]
            if arguments.instructions:
                print(row(pattern, size, count(command, library), "instructions"), flush=True)
            else:
                print(row(pattern, size, measure(command, library, arguments.repeats), "ns"), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
