"""Runs a command of luthier and prints what it did, as JSON in the last line.

python -m tests.counted tune -n 4 ...
"""

import atexit
import json
import os
import sys
from collections import Counter

from luthier.__main__ import main

_STARTS = frozenset(["subprocess.Popen", "os.posix_spawn", "os.fork", "os.exec"])
_counts: Counter[str] = Counter()


def _count(event: str, arguments: tuple[object, ...]) -> None:
    if event in _STARTS:
        _counts["processes"] += 1
    elif event == "open" and isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR):
        _counts["files"] += 1


def _statements() -> None:
    from sqlalchemy import event
    from sqlalchemy.engine import Engine

    event.listen(Engine, "before_cursor_execute", lambda *_: _counts.update(statements=1))


def _print() -> None:
    modules = sorted(sys.modules)
    sys.stdout.write(json.dumps({**_counts, "modules": modules}) + "\n")


if __name__ == "__main__":
    atexit.register(_print)
    sys.addaudithook(_count)
    if "--with-statements" in sys.argv:
        sys.argv.remove("--with-statements")
        _statements()
    main()
