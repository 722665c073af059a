"""Which functions of luthier a process calls, and which files lie on its way to the store, a process or an output.

Imported at the start of every process below `traced_environment`; each writes what it saw when it ends.
"""

import atexit
import json
import os
import sys
import threading
from inspect import CO_OPTIMIZED
from pathlib import Path
from types import CodeType, FrameType

_FOLDER = "LUTHIER_TRACED"
_OUTWARD = frozenset(
    ["execute", "executemany", "commit", "fork_exec", "posix_spawn", "execve", "write", "writelines", "send", "sendall"]
)
"""Built-in functions through which something leaves the process: statements, processes, texts, messages."""

_root = ""
_called: set[CodeType] = set()
_on_the_way: set[str] = set()


def traced_environment(folder: Path) -> dict[str, str]:
    """The environment in which every process of Python is traced."""
    (folder / "sitecustomize.py").write_text("import benchmarks.traced\nbenchmarks.traced.begin()\n")
    paths = [str(folder), str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, _FOLDER: str(folder), "PYTHONPATH": os.pathsep.join(filter(None, paths))}


def begin() -> None:
    """Trace this process."""
    global _root  # noqa: PLW0603 - the profiler is a function without arguments of its own
    found = [Path(place) / "luthier" for place in sys.path if (Path(place) / "luthier" / "trial.py").is_file()]
    _root = str(found[0] if found else Path(__file__).parents[1] / "src" / "luthier") + os.sep
    atexit.register(_write)
    threading.setprofile(_profile)
    sys.setprofile(_profile)


def _profile(frame: FrameType, event: str, argument: object) -> None:
    if event == "call":
        code = frame.f_code
        if code.co_flags & CO_OPTIMIZED and code.co_filename.startswith(
            _root
        ):  # bodies of modules and classes have no such flag
            _called.add(code)
    elif event == "c_call" and getattr(argument, "__name__", "") in _OUTWARD:
        _note(frame)


def _note(frame: FrameType | None) -> None:
    known = len(_on_the_way)
    while frame is not None:
        if frame.f_code.co_filename.startswith(_root):
            _on_the_way.add(frame.f_code.co_filename.removeprefix(_root))
        frame = frame.f_back
    if len(_on_the_way) > known:  # at once, since a process may be killed or replaced by another program
        _write()


def _write() -> None:
    sys.setprofile(None)
    named = {code for code in set(_called) if code.co_name[0] != "<"}  # without lambdas and comprehensions
    functions = sorted({f"{code.co_filename.removeprefix(_root)}:{code.co_qualname}" for code in named})
    seen = {"files": sorted(_on_the_way), "functions": functions}
    place = Path(os.environ[_FOLDER]) / f"seen-{os.getpid()}.json"
    place.write_text(json.dumps(seen), encoding="utf-8")
    sys.setprofile(_profile)


def seen_in(folder: Path) -> tuple[set[str], set[str]]:
    """The files on the way and the functions called, by all processes together."""
    files: set[str] = set()
    functions: set[str] = set()
    for path in folder.glob("seen-*.json"):
        seen = json.loads(path.read_text(encoding="utf-8"))
        files |= set(seen["files"])
        functions |= set(seen["functions"])
    return files, functions
