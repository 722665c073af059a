"""How much longer sbatch takes with the plug-in of Slurm, and luthier submit than sbatch, whatever the server does.

python -m benchmarks.submission_delay [--turns 20]

A real Slurm with one node. In each turn a job is submitted without the plug-in's question (LUTHIER=off), with it, and
by the wrapper; so disturbances of the machine meet all three. The jobs are on hold and never run.
"""

import argparse
import os
import pwd
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from tests.server.server_fixtures import server_of_its_own
from tests.slurm.cluster import cluster
from tests.submission.strange_server import strange_server
from tests.submission.submitting import EXPERIMENT, SCRIPT, with_tuned_job

from luthier.submission.ask import CONFIG
from luthier.submission.server.state import submission_of
from luthier.submission.slurm_plugins import carry_out, installation

STATES = ("answers", "stopped", "hanging", "garbage")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=20)
    turns = parser.parse_args().turns
    with tempfile.TemporaryDirectory() as path, server_of_its_own(Path(path)) as served, cluster(nodes=1) as slurm:
        folder = Path(slurm.environment["SLURM_CONF"]).parent
        folder.chmod(0o755)
        (Path(path) / "job.sh").write_text(SCRIPT)
        with_tuned_job(served.store, served.launch(EXPERIMENT), pwd.getpwuid(os.getuid()).pw_name)
        key = submission_of(served.context).signing_key.public
        carry_out(installation(folder, served.url, served.token, key))
        time.sleep(6)  # the server reads new records every few seconds
        print(f"load {os.getloadavg()[0]:.1f}; seconds: median and longest of {turns}, and how much longer than alone")
        for state in STATES:
            with strange_server(None if state == "hanging" else b"garbage") as strange:
                url = {"answers": served.url, "stopped": "http://127.0.0.1:1"}.get(state, strange)
                (folder / CONFIG).write_text(f"url {url}\ntoken {served.token}\nkey {key}\n")
                measure(state, turns, {**os.environ, **slurm.environment}, Path(path) / "job.sh")


def measure(state: str, turns: int, environment: dict[str, str], script: Path) -> None:
    wrapper = [sys.executable, "-m", "luthier", "submit", str(script), "--hold"]
    ways = {
        "sbatch alone": (["sbatch", "--hold", str(script)], {"LUTHIER": "off"}),
        "with the plug-in": (["sbatch", "--hold", str(script)], {}),
        "luthier submit": (wrapper, {}),
    }
    took: dict[str, list[float]] = {name: [] for name in ways}
    set_ = dict.fromkeys(ways, 0)
    for _ in range(turns):
        for name, (argv, more) in ways.items():
            began = time.monotonic()
            done = subprocess.run(argv, env={**environment, **more}, capture_output=True, text=True, check=True)
            took[name].append(time.monotonic() - began)
            set_[name] += "as found by" in done.stderr
    for name, times in took.items():
        more_s = [each - alone for each, alone in zip(times, took["sbatch alone"], strict=True)]
        print(
            f"server {state:8} {name:17} {median(times):.3f} {max(times):.3f}  "
            f"longer by {median(more_s):+.3f} {max(more_s):+.3f}  configured {set_[name]} of {turns}"
        )


if __name__ == "__main__":
    main()
