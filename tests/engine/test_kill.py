from pathlib import Path

from benchmarks.kill import Torture


def test_killed_at_random_moments_nothing_completed_is_lost_or_run_again(tmp_path: Path) -> None:
    report = Torture(tmp_path, seed=11).run(kills=20)
    assert report.kills == 20
    assert report.executed >= 20
    assert (report.lost, report.unrecorded, report.invented) == (0, 0, 0)
