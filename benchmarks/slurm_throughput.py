"""Many short jobs on Slurm: the time of an experiment, and that of plain loops of sbatch over the same script.

    python -m benchmarks.slurm_throughput [--jobs 100] [--slots 100] [--sleep-s 1] [--rounds 3]

Brings up a throw-away Slurm with two emulated nodes of four cores each. One loop submits all jobs without waiting; the
other has at most as many jobs in the queue as the experiment has slots. The three ways run in turn, `--rounds` times; a
time ends when all jobs are over.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.slurm.cluster import Cluster, cluster, missing_program, wait_until

SCRIPT = "#!/bin/sh\n#SBATCH --ntasks=1\nsleep {sleep_s}\n"
EXPERIMENT = """\
experiment: {{application: app.sbatch, budget: {jobs}, slots: {slots}, optimizer: random, verify: 0, resample: once}}
definitions: {{number: {{parameters: {{N: {{env_var: true, type: int, default: 1}}}}}}}}
components: {{number: {{N: {{min: 1, max: 1000000}}}}}}
"""
_PATIENCE_S = 900.0
_LOOK_EVERY_S = 0.1


def plain_loop(slurm: Cluster, folder: Path, jobs: int, most: int) -> float:
    """Seconds until `jobs` jobs are over that a loop of sbatch has submitted, at most `most` at a time."""
    began = time.monotonic()
    for number in range(jobs):
        while number >= most and len(slurm.run("squeue", "--noheader").splitlines()) >= most:
            time.sleep(_LOOK_EVERY_S)
        slurm.run("sbatch", "--parsable", "--output=/dev/null", f"--chdir={folder}", str(folder / "app.sbatch"))
    wait_until(lambda: slurm.run("squeue", "--noheader") == "", "the queue is empty", _PATIENCE_S)
    return time.monotonic() - began


def experiment(slurm: Cluster, folder: Path, jobs: int) -> float:
    """Seconds that `luthier run` takes for as many runs, from its start to its end."""
    home = tempfile.mkdtemp(dir=folder)
    words = [sys.executable, "-m", "luthier"]
    environment = {**os.environ, **slurm.environment, "XDG_DATA_HOME": home}
    environment.pop("LUTHIER_STORE", None)
    began = time.monotonic()
    subprocess.run(
        [*words, "run", "e.yaml", "--quiet"],
        cwd=folder,
        env=environment,
        stdout=subprocess.DEVNULL,
        check=True,
        timeout=_PATIENCE_S,
    )
    took_s = time.monotonic() - began
    listed = subprocess.run(
        [*words, "export", "1", "--format", "json"], cwd=folder, env=environment, check=True, capture_output=True
    )
    completed = sum(run["outcome"] == "completed" for run in json.loads(listed.stdout))
    assert completed == jobs, f"{completed} of {jobs} runs were completed"
    return took_s


def main() -> None:
    """Measure both ways in turn, and print their times and the ratio."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=100)
    parser.add_argument("--slots", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--sleep-s", type=float, default=1.0, help="how long a job sleeps")
    options = parser.parse_args()
    if (program := missing_program()) is not None:
        sys.exit(f"Slurm ({program}) is not installed; as root: sh tests/services.sh")
    with tempfile.TemporaryDirectory() as path, cluster() as slurm:
        folder = Path(path)
        (folder / "app.sbatch").write_text(SCRIPT.format(sleep_s=options.sleep_s))
        (folder / "e.yaml").write_text(EXPERIMENT.format(jobs=options.jobs, slots=options.slots))
        ratios = []
        for number in range(options.rounds):
            loops_s = [plain_loop(slurm, folder, options.jobs, most) for most in (options.jobs, options.slots)]
            tuned_s = experiment(slurm, folder, options.jobs)
            ratios.append([tuned_s / loop_s for loop_s in loops_s])
            print(f"round {number + 1}: loops {loops_s[0]:.1f} s and {loops_s[1]:.1f} s, luthier {tuned_s:.1f} s")
        free, bounded = (statistics.median(column) for column in zip(*ratios, strict=True))
        print(f"{options.jobs} jobs, {options.slots} slots, median ratio to a loop that submits all: {free:.2f}")
        print(f"to a loop with at most {options.slots} jobs in the queue: {bounded:.2f}")


if __name__ == "__main__":
    main()
