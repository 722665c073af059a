"""An experiment of many Slurm jobs while Slurm and the tuner are restarted and killed: each is accounted for once.

    python -m benchmarks.slurm_survival [--jobs 200]

Brings up a throw-away Slurm with two emulated nodes; `tests/slurm/survival.py` says what is done to it.
"""

import argparse
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path

from tests.slurm.cluster import cluster, missing_program
from tests.slurm.survival import Survival


def main() -> None:
    """Survive, and print the report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=200)
    options = parser.parse_args()
    if (program := missing_program()) is not None:
        sys.exit(f"Slurm ({program}) is not installed; as root: sh tests/services.sh")
    with tempfile.TemporaryDirectory() as folder, cluster() as slurm:
        began = time.monotonic()
        survival = Survival(Path(folder), slurm, options.jobs)
        try:
            report = survival.run()
        finally:
            survival.stop()
        print(asdict(report), f"in {time.monotonic() - began:.0f} s")
        sys.exit(0 if report.is_flawless else 1)


if __name__ == "__main__":
    main()
