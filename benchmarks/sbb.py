"""The real burst buffer on slow storage: bursts with and without it, tuned, and killed (`docs/sbb.md`).

    python -m benchmarks.sbb [--runs 5] [--seeds 1] [--budget 30] [--kills 50]

Needs root (see `testbeds/real/slow_storage.py`) and takes about a quarter of an hour.
"""

import argparse
import statistics
import sys
import tempfile
from pathlib import Path

import luthier as lt
from testbeds.real.sbb import APPLICATIONS, SPACE, STORAGE, Checkpoints, Programs, build
from testbeds.real.sbb_kills import Kill, kill_once
from testbeds.real.slow_storage import SlowStorage, slow_storage, why_unavailable

SMALL_CACHES = {"SBB_RAM_CACHE": "8M", "SBB_FLASH_CACHE": "32M"}


def compare(checkpoints: Checkpoints, runs: int) -> float:
    """How many times as long the bursts take without the buffer, from alternating runs."""
    plain, buffered = [], []
    for _ in range(runs):
        plain.append(checkpoints.plain())
        buffered.append(checkpoints(SPACE.default))
    print(f"without {statistics.median(plain):.3f} s ({min(plain):.3f} to {max(plain):.3f})")
    print(f"with    {statistics.median(buffered):.3f} s ({min(buffered):.3f} to {max(buffered):.3f})")
    return statistics.median(plain) / statistics.median(buffered)


def tune(checkpoints: Checkpoints, name: str, budget: int, seed: int) -> None:
    """Tune the eight parameters and print what it gained over the defaults."""
    result = lt.tune(checkpoints, SPACE, budget=budget, seed=seed, name=f"sbb {name}")
    gain = "not verified" if result.speedup is None else f"default / found = {result.speedup:.2f}"
    print(f"seed {seed}: {len(result.runs)} runs, {gain}")
    print(f"        {dict(result.best.config)}", flush=True)


def kill(programs: Programs, storage: SlowStorage, kills: int) -> int:
    """Kill the daemon that often, in both modes in turn; print and return the bytes that were lost."""
    done: dict[str, list[Kill]] = {"flash": [], "ram": []}
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        for seed in range(kills):
            mode = "ram" if seed % 5 == 4 else "flash"
            settings = {**SMALL_CACHES, "SBB_MODE": mode}
            place = Path(folder) / "sbb"
            done[mode].append(kill_once(programs, place, storage.folder, settings, seed=seed, storage=storage))
    for mode, each in done.items():
        acknowledged, recovered = sum(one.acknowledged for one in each), sum(one.recovered_bytes for one in each)
        lost = sum(one.lost_bytes for one in each)
        print(
            f"{mode}: {len(each)} kills, {acknowledged} acknowledged writes, {recovered} bytes recovered, {lost} lost"
        )
    return sum(one.lost_bytes for each in done.values() for one in each)


def main() -> int:
    """Measure, tune, kill; fails if anything was lost."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--budget", type=int, default=30)
    parser.add_argument("--kills", type=int, default=50)
    options = parser.parse_args()
    if (reason := why_unavailable()) is not None:
        print(f"not run: {reason}")
        return 0
    with slow_storage(**STORAGE) as storage:
        programs = build()
        lost = kill(programs, storage, options.kills)
        for name, application in APPLICATIONS.items():
            print(f"{name}: burst {' '.join(application)}", flush=True)
            checkpoints = Checkpoints(programs, storage, application)
            if options.runs:
                print(f"{compare(checkpoints, options.runs):.1f} times as fast with the buffer", flush=True)
            for seed in range(options.seeds):
                tune(checkpoints, name, options.budget, seed)
    return int(lost > 0)


if __name__ == "__main__":
    sys.exit(main())
