from pathlib import Path

from tests.kill.kills import KINDS, Torture

KILLS = 15


def test_killed_at_random_moments_no_run_is_lost_doubled_or_invented(tmp_path: Path) -> None:
    report = Torture(tmp_path, KINDS, seed=11).run(KILLS)
    assert report.findings == []
    assert sum(report.kills.values()) == KILLS
    assert set(report.kills) == set(KINDS)
    assert report.executions >= KILLS
