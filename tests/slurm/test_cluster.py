import subprocess
import sys
from pathlib import Path

import pytest
from tests.conftest import missing
from tests.slurm import accounting
from tests.slurm.cluster import missing_program, wait_until

OWNER = """
import sys
from tests.slurm.cluster import cluster
with cluster(nodes=1, accounted=sys.argv[1] == "slurmdbd") as slurm:
    print(slurm.environment["SLURM_CONF"], flush=True)
    sys.stdin.read()
"""


@pytest.mark.parametrize(("daemon", "programs"), [("slurmctld", ()), ("slurmdbd", accounting.PROGRAMS)])
def test_a_cluster_does_not_outlive_its_owner(daemon: str, programs: tuple[str, ...]) -> None:
    if (program := missing_program(*programs)) is not None:
        missing(f"Slurm ({program}) is not installed; as root: sh tests/services.sh")
    root = Path(__file__).parents[2]
    argv = [sys.executable, "-c", OWNER, daemon]
    with subprocess.Popen(argv, cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        folder = Path(owner.stdout.readline().strip()).parent
        process = Path("/proc", (folder / f"{daemon}.pid").read_text().strip())
        assert process.exists()
        owner.kill()
    wait_until(lambda: not folder.exists() and not process.exists(), "the cluster is gone")
