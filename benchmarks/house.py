"""How large and how crowded the source is, and how many files a command crosses on its way to a result.

    python -m benchmarks.house [--without-ways]

Lines are counted without comments. A file is on the way if it is on the stack when a statement reaches the store, a
process starts, or something is written or sent. The way of a YAML file needs Slurm, that of a kernel libclang.
"""

import argparse
import ast
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from benchmarks.traced import seen_in, traced_environment
from benchmarks.ways import WAYS, Traced

SOURCES = Path(__file__).parents[1] / "src" / "luthier"
FACES = ("cli", "server", "__init__", "__main__", "tunio")
WINGS = ("online", "submission", "io")
"""Each is one room. Before the move they lay in many; see docs/research/2026-11-19-size-of-the-house.md."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--without-ways", action="store_true", help="count only; run nothing")
    options = parser.parse_args()
    files = {str(path.relative_to(SOURCES)): path.read_text(encoding="utf-8") for path in SOURCES.rglob("*.py")}
    for name, value in counts(files).items():
        print(f"{name:55} {value}")
    if not options.without_ways:
        for name, way in WAYS.items():
            print(f"{name:55} {_crossed(way)}", flush=True)


def counts(files: dict[str, str]) -> dict[str, object]:
    """Everything that can be read off the texts."""
    lines = {name: _lines(text) for name, text in files.items()}
    trees = {name: ast.parse(text) for name, text in files.items()}
    importers = _importers(trees)
    lonely = [name for name in files if len(importers[name]) == 1]
    functions = sum(isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) for node in _nodes(trees.values()))
    classes = Counter(node.name for node in _nodes(trees.values()) if isinstance(node, ast.ClassDef))
    twice = sorted(name for name, count in classes.items() if count > 1 and not name.startswith("_"))
    total = sum(lines.values())
    found: dict[str, object] = {
        "files": len(files),
        "lines": total,
        "lines of the core, without wings and faces": sum(
            lines[name] for name in files if _room(name) not in FACES + WINGS
        ),
        "files imported by one other": len(lonely),
        "files imported by one other, below 70 lines": sum(lines[name] < 70 for name in lonely),
        "functions for 1,000 lines": round(1000 * functions / total),
        "own-line comments for 100 lines": round(100 * sum(map(_comments, files.values())) / total, 1),
        "public class names that exist twice": f"{len(twice)}: {' '.join(twice)}",
        "imports past the door of another room": _past_doors(trees),
    }
    for wing in WINGS:
        found[f"{wing}: files"] = sum(_room(name) == wing for name in files)
    return found


def _crossed(way: Callable[[Traced], None]) -> str:
    """The files and functions of a way, by all processes that it starts."""
    with tempfile.TemporaryDirectory(prefix="luthier-way-") as path:
        folder = Path(path)
        (folder / "seen").mkdir()
        way(Traced(folder, traced_environment(folder / "seen")))
        files, functions = seen_in(folder / "seen")
    called = {name.split(":")[0] for name in functions}
    return f"{len(files)} files on the way; {len(called)} files, {len(functions)} functions called"


def _lines(text: str) -> int:
    return len(text.splitlines()) - _comments(text)


def _comments(text: str) -> int:
    return sum(line.lstrip().startswith("#") for line in text.splitlines())


def _room(name: str) -> str:
    return name.partition("/")[0].removesuffix(".py")


def _nodes(trees: Iterable[ast.Module]) -> Iterator[ast.AST]:
    for tree in trees:
        yield from ast.walk(tree)


def _imports(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Each module of luthier that is imported from, and the name that is taken out of it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("luthier"):
            yield from ((str(node.module), alias.name) for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names if alias.name.startswith("luthier"))


def _file_of(module: str, files: dict[str, ast.Module]) -> str | None:
    place = module.removeprefix("luthier").removeprefix(".").replace(".", "/")
    return next((name for name in (f"{place}.py", f"{place}/__init__.py".lstrip("/")) if name in files), None)


def _importers(trees: dict[str, ast.Module]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = defaultdict(set)
    for name, tree in trees.items():
        for module, attribute in _imports(tree):
            target = _file_of(f"{module}.{attribute}", trees) or _file_of(module, trees)
            if target is not None and target != name:
                found[target].add(name)
    return found


def _past_doors(trees: dict[str, ast.Module]) -> str:
    """How many imports from another room name a module inside it, of all imports from another room."""
    inside = outside = 0
    for name, tree in trees.items():
        for module, attribute in _imports(tree):
            target = _file_of(f"{module}.{attribute}", trees) or _file_of(module, trees) or ""
            if "/" in target and _room(target) != _room(name):
                inside += not target.endswith("/__init__.py") or target.count("/") > 1
                outside += 1
    return f"{inside} of {outside}"


if __name__ == "__main__":
    main()
