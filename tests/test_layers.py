"""Data flows one way: a package imports lower levels only, never a peer; the core works without its wings."""

import ast
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import luthier

ROOT = Path(luthier.__file__).parent

LEVELS = {
    "answer_signature": 0,
    "arrays": 0,
    "errors": 0,
    "folders": 0,
    "plugins": 0,
    "texts": 0,
    "trial": 0,
    "space": 1,
    "learn": 1,
    "statistics": 1,
    "compiled": 1,
    "designs": 2,
    "measures": 2,
    "policies": 2,
    "runners": 2,
    "store": 2,
    "optimizers": 3,
    "spec": 4,
    "result": 5,
    "transfer": 6,
    "engine": 7,
    "launch": 8,
    "figures": 9,
    "client": 9,
    "report": 10,
    "cli": 11,
    "server": 11,
    "io": 12,
    "online": 12,
    "submission": 12,
}
WINGS = {room for room, level in LEVELS.items() if level == 12}
TOP = ("__init__", "__main__", "tunio")


def room(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


_NAMED = re.compile(r"luthier(\.\w+)+(:\w+)?")
"""A text that names a module or something in it, to be imported when it is used."""


def imports_of(source: str) -> Iterator[str]:
    """Everything that is imported, also by texts such as "luthier.space:Space"."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and _NAMED.fullmatch(node.value):
            yield node.value.replace(":", ".")
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative imports hide the flow"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def violations(own: str, source: str) -> list[str]:
    rooms = [name.split(".")[1] for name in imports_of(source) if name.startswith("luthier.")]
    above = LEVELS[own] or 1  # the modules of level 0 may import each other
    return [other for other in rooms if other in LEVELS and other != own and LEVELS[other] >= above]


def test_every_room_has_a_level() -> None:
    rooms = {room(path) for path in ROOT.rglob("*.py")} - set(TOP)
    assert rooms <= set(LEVELS)


def test_imports_go_downwards_only() -> None:
    found = {
        f"{path.relative_to(ROOT)} imports {other}"
        for path in ROOT.rglob("*.py")
        if room(path) not in TOP
        for other in violations(room(path), path.read_text(encoding="utf-8"))
    }
    assert not found


def test_the_rule_catches_a_peer_and_a_higher_level() -> None:
    assert violations("runners", "from luthier.store import base\nimport luthier.engine.loop") == ["store", "engine"]
    assert violations("runners", "from luthier.trial import Job\nfrom luthier.runners.base import Runner") == []
    assert violations("texts", "from luthier.space import Space") == ["space"]
    assert violations("server", 'PART = "luthier.online.server.serving:PART"') == ["online"]
    assert violations("io", "from luthier.online import base") == ["online"]


@pytest.fixture(scope="module")
def core(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package without its wings."""
    copy = tmp_path_factory.mktemp("core")
    shutil.copytree(ROOT, copy / "luthier", ignore=shutil.ignore_patterns("__pycache__"))
    for wing in WINGS:
        shutil.rmtree(copy / "luthier" / wing)
    return copy


def test_the_core_works_without_wings(core: Path) -> None:
    def run(*words: str) -> str:
        done = subprocess.run(
            [sys.executable, "-P", "-m", "luthier", *words],
            env={**os.environ, "PYTHONPATH": str(core), "LUTHIER_STORE": str(core / "x.db")},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode in (0, 1), done.stderr
        return done.stdout

    options = ["-q", "-o", "random", "--verify", "0", "-n", "3"]
    assert "command to use" in run("tune", *options, "-p", "x=1..9", "--", "true", "{x}")
    assert "true" in run("list")
    assert "--online" not in run("tune", "--help")
    assert "serve" in run("--help")
