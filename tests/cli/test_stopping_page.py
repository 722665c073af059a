"""What docs/stopping.md shows, works."""

import re
import shlex
import sys
from itertools import count
from pathlib import Path

import pytest

from luthier.cli import app as cli
from luthier.space import Integer, Space
from luthier.spec.rules import TunedProblem, stop_from

PAGE = (Path(__file__).parents[2] / "docs" / "stopping.md").read_text(encoding="utf-8")


def test_every_criterion_on_the_page_is_understood() -> None:
    criteria = [shlex.split(text)[1] for text in re.findall(r"^\| `(--stop [^`]+)`", PAGE, re.MULTILINE)]
    assert len(criteria) == 3
    for text in criteria:
        assert stop_from([text], TunedProblem(Space(Integer("x", 1, 9))))


def test_the_command_on_the_page_is_understood(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    (command,) = re.findall(r"^\$ (luthier tune .*)$", PAGE, re.MULTILINE)
    monkeypatch.setattr(sys, "argv", [word.replace("python3", "no-such-program") for word in shlex.split(command)])
    with pytest.raises(SystemExit):
        cli.main()
    assert "no-such-program: no such program" in capsys.readouterr().err


def test_the_python_of_the_page(capsys: pytest.CaptureFixture[str]) -> None:
    (block,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    numbers = count()
    exec(block, {"generation": lambda: 1e-9 * (10.0 - min(next(numbers), 3))})
    assert "expected to save" in capsys.readouterr().out
