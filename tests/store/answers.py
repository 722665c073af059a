"""What the command line says about a store of an earlier version, as JSON.

python -m tests.store.answers      # writes the expected answers anew, after a change that is meant
"""

import contextlib
import io
import json
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

from luthier.__main__ import main as luthier

HERE = Path(__file__).parent
WRITTEN = HERE / "written_by_schema_0011.sql"
"""Searches with and without transfer, with two objectives, resumed, explained; the pipeline of an I/O kernel with its
comparison; an on-line session, a component, an account, a job record and submitted jobs."""

EXPECTED = HERE / "written_by_schema_0011.json"
COMMANDS = (
    "list",
    *(f"show {number} --all" for number in range(1, 7)),
    "explain 4 --stored",
    "online list",
    "online show 1",
    "component list",
    "component show buffers",
)


def restored(folder: Path) -> str:
    """A store with the contents that were written down."""
    path = folder / "old.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(WRITTEN.read_text(encoding="utf-8"))
    return str(path)


def answers(store: str) -> dict[str, object]:
    """The answer of each command."""
    found: dict[str, object] = {command: json.loads(answer(store, f"{command} --json")) for command in COMMANDS}
    found["columns"] = answer(store, "export 4").splitlines()[0].split(",")
    return found


def answer(store: str, command: str) -> str:
    """What a command prints."""
    out = io.StringIO()
    words = ["luthier", *command.split(), "--store", store]
    with patch.object(sys, "argv", words), contextlib.redirect_stdout(out), contextlib.suppress(SystemExit):
        luthier()
    return out.getvalue()


def called(store: str, command: str) -> tuple[object, str]:
    """The exit code of a command in this process, and what it writes to stderr."""
    err, words = io.StringIO(), ["luthier", *command.split(), "--store", store]
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")  # some commands write bytes
    with patch.object(sys, "argv", words), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            luthier()
        except SystemExit as ending:
            return ending.code, err.getvalue()
    return None, err.getvalue()


if __name__ == "__main__":
    with TemporaryDirectory() as place:
        lines = [f" {json.dumps(name)}: {json.dumps(said)}" for name, said in answers(restored(Path(place))).items()]
    EXPECTED.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
