"""What terminal, JSON and report say about the search itself: slots, suggestions, speed-up over a random search."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

TUNED = ["-n", "30", "-p", "x=0..400@0", "-m", "regex:(.+)", "--verify", "0", "--", "expr", "{x}", "-", "300"]
OVER = "search speed-up over random: "


@pytest.fixture
def luthier(tmp_path: Path) -> "Luthier":
    return Luthier(tmp_path)


class Luthier:
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __call__(self, *words: str) -> str:
        command = [sys.executable, "-m", "luthier", *words, "--store", str(self._folder / "history.db")]
        if "--" in words:
            at = command.index("--")
            command = [*command[:at], *command[-2:], *command[at:-2]]
        environment = {"PATH": "/usr/bin:/bin", "XDG_DATA_HOME": str(self._folder), "COLUMNS": "300"}
        ended = subprocess.run(command, env=environment, cwd=self._folder, capture_output=True, text=True, check=False)
        assert ended.returncode == 0, ended.stderr
        return ended.stdout


def test_slots_suggestions_and_the_speedup_over_a_random_search(luthier: Luthier, tmp_path: Path) -> None:
    assert OVER not in luthier("tune", "-q", "-o", "random", *TUNED)
    answer = luthier("tune", "-q", "-j", "2", *TUNED)
    assert f"{OVER}" in answer
    assert "as good as the best value of experiment 1 (random search, 30 runs) after " in answer
    shown = luthier("show", "2")
    for line in answer.splitlines():
        if line.startswith(("search: ", OVER)):
            assert line in shown
    assert "search: 30 runs finished, slots busy " in shown
    found = json.loads(luthier("show", "2", "--json"))
    assert found["activity"]["finished"] == 30
    assert 0.0 < found["activity"]["busy"] <= 1.0
    assert found["activity"]["suggesting_s"] > 0.0
    assert found["search_speedup"]["by_runs"] == pytest.approx(30 / found["search_speedup"]["runs"])
    luthier("report", "2", "-o", str(tmp_path / "report.html"))
    report = (tmp_path / "report.html").read_text()
    assert OVER.capitalize() in report
    assert "suggestions took" in report
    assert OVER not in luthier("show", "1")
