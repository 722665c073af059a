"""Folders of tests have no __init__.py, so pytest imports each module by its bare name."""

from collections import defaultdict
from pathlib import Path

TESTS = Path(__file__).parent


def test_no_two_test_modules_share_a_name() -> None:
    places: dict[str, list[Path]] = defaultdict(list)
    for path in TESTS.rglob("*.py"):
        if path.name != "conftest.py":
            places[path.name].append(path.relative_to(TESTS))
    assert {name: paths for name, paths in places.items() if len(paths) > 1} == {}
