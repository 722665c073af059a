import subprocess
import sys
from pathlib import Path

from tests.conftest import missing
from tests.slurm.cluster import missing_program, wait_until

OWNER = """
import sys
from tests.slurm.cluster import cluster
with cluster(nodes=1) as slurm:
    print(slurm.environment["SLURM_CONF"], flush=True)
    sys.stdin.read()
"""


def test_a_cluster_does_not_outlive_its_owner() -> None:
    if (program := missing_program()) is not None:
        missing(f"Slurm ({program}) is not installed; as root: sh tests/services.sh")
    root = Path(__file__).parents[2]
    argv = [sys.executable, "-c", OWNER]
    with subprocess.Popen(argv, cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        folder = Path(owner.stdout.readline().strip()).parent
        controller = Path("/proc", (folder / "slurmctld.pid").read_text().strip())
        assert controller.exists()
        owner.kill()
    wait_until(lambda: not folder.exists() and not controller.exists(), "the cluster is gone")
