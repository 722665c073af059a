"""All benchmarks, one after the other: `make bench`."""

import subprocess
import sys

BENCHMARKS = (
    "house",
    "engine_cost",
    "kill",
    "search",
    "parallel_asks",
    "scale",
    "hepnos",
    "transfer",
    "impact_first",
    "noise",
    "search_traces",
    "learned_stop",
    "tunio",
    "false_claims",
    "sro",
    "io_overhead",
    "io_kernels",
    "sbb",
    "matching",
    "allreduce",
    "slurm_survival",
    "slurm_throughput",
    "submission_delay",
    "submissions",
    "live_pages",
    "online",
    "online_service",
)


def main() -> int:
    """Run each benchmark in its own process; the exit code is the number of those that failed."""
    failed = 0
    for name in BENCHMARKS:
        print(f"== {name}", flush=True)
        failed += subprocess.run([sys.executable, "-m", f"benchmarks.{name}"], check=False).returncode != 0
    return failed


if __name__ == "__main__":
    sys.exit(main())
