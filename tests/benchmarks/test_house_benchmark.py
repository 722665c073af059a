"""What the counter of the source counts, on a made-up house of three files."""

import subprocess
import sys
from pathlib import Path

from benchmarks.house import counts
from benchmarks.traced import seen_in, traced_environment

FILES = {
    "trial.py": '"""Values."""\n\n\nclass Job:\n    pass\n',
    "space/__init__.py": "# The door.\nfrom luthier.space.grid import Grid\n",
    "space/grid.py": "class Grid:\n    def size(self):\n        return 1\n",
    "engine/loop.py": "from luthier.space.grid import Grid\nfrom luthier.trial import Job\n\n\nclass Job:\n    pass\n",
    "engine/plan.py": "from luthier.space import Grid\n",
}


def test_counts_of_texts() -> None:
    found = counts(FILES)
    assert (found["files"], found["lines"]) == (5, 16)
    assert found["files imported by one other"] == 2  # trial.py and the door of space; grid.py is imported by two
    assert found["own-line comments for 100 lines"] == 6.2
    assert found["public class names that exist twice"] == "1: Job"
    assert found["imports past the door of another room"] == "1 of 2"


def test_a_traced_process_says_which_files_lie_on_its_way(tmp_path: Path) -> None:
    environment = traced_environment(tmp_path)
    subprocess.run(
        [sys.executable, "-m", "luthier", "list", "--store", str(tmp_path / "store.db")],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=True,
    )
    files, functions = seen_in(tmp_path)
    assert any(name.startswith("store/") for name in files)  # statements reached the store
    assert "cli/app.py:list_experiments" in functions
    assert {"cli/app.py", "__main__.py"} <= files
    assert not any(name.startswith("optimizers/") for name in files)
