"""Names, options and operations change only when that is meant."""

from pathlib import Path

from tests.surface import WRITTEN, surface


def test_the_surface_is_as_written_down(tmp_path: Path) -> None:
    today, written = set(surface(tmp_path)), set(WRITTEN.read_text(encoding="utf-8").splitlines())
    added, removed = sorted(today - written), sorted(written - today)
    assert (added, removed) == ([], []), "if that is meant: python -m tests.surface, and a line in CHANGELOG.md"
