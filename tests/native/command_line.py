"""The command line of luthier, as a user runs it."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any


class Luthier:
    """The command line, run as a user runs it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, *words: object, code: int = 0) -> subprocess.CompletedProcess[str]:
        ended = subprocess.run(
            [sys.executable, "-m", "luthier", *map(str, words)],
            cwd=self.folder,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=300,
            check=False,
        )
        assert ended.returncode == code, (ended.stdout[-2000:], ended.stderr[-2000:])
        return ended

    def json(self, *words: object) -> dict[str, Any]:
        """What a command prints as JSON."""
        answer: dict[str, Any] = json.loads(self(*words).stdout)
        return answer
