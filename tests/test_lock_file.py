"""The lock file, from which the environment of the tests is installed, belongs to pyproject.toml."""

import re
import tomllib
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]


def test_the_lock_file_satisfies_every_requirement() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    wanted = [Requirement(text) for text in (*project["dependencies"], *extras["dev"])]
    locked = _locked()
    assert [str(one) for one in wanted if not any(map(one.specifier.contains, locked.get(_key(one.name), [])))] == []
    users = {_key(Requirement(text).name) for name, texts in extras.items() if name != "dev" for text in texts}
    assert users - locked.keys() == set()  # what users can install is tested


def test_every_locked_version_has_hashes_and_no_address() -> None:
    text = (ROOT / "requirements.lock").read_text()
    assert "://" not in text
    parts = re.split(r"\n(?=[\w.-]+==)", text.strip())
    assert len(parts) > 50
    assert [part.split()[0] for part in parts if "--hash=sha256:" not in part] == []


def _locked() -> dict[str, list[str]]:
    """The locked versions of each package; one has several if they depend on the version of Python."""
    found: dict[str, list[str]] = {}
    for line in (ROOT / "requirements.lock").read_text().splitlines():
        if (entry := re.match(r"([\w.-]+)==([^ ]+)", line)) is not None:
            found.setdefault(_key(entry[1]), []).append(entry[2])
    return found


def _key(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
