"""Data flows one way: a package imports lower levels only, never a peer."""

import ast
from collections.abc import Iterator
from pathlib import Path

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
TOP = ("__init__", "__main__")


def room(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def imports_of(source: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative imports hide the flow"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def violations(own: str, source: str) -> list[str]:
    rooms = [name.split(".")[1] for name in imports_of(source) if name.startswith("luthier.")]
    return [other for other in rooms if other in LEVELS and other != own and LEVELS[other] >= LEVELS[own] > 0]


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
