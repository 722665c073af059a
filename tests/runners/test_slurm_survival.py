from pathlib import Path

from tests.slurm.cluster import Cluster
from tests.slurm.survival import Survival


def test_everything_restarted_and_killed_every_job_is_accounted_for_once(slurm: Cluster, tmp_path: Path) -> None:
    survival = Survival(tmp_path, slurm, jobs=24)
    try:
        report = survival.run()
    finally:
        survival.stop()
    assert report.is_flawless, report
    assert report.runs == 24
    assert report.completed >= 12
