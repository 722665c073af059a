"""What docs/noise.md shows, works."""

import re
import shlex
import sys
from pathlib import Path

import pytest

import luthier as lt
from luthier.cli import app as cli
from luthier.space import Integer, Space
from luthier.spec.experiment import Experiment
from luthier.spec.rules import TunedProblem, prune_from, resample_from, stop_from
from luthier.statistics.estimate import AUTO, ESTIMATORS

PAGE = (Path(__file__).parents[2] / "docs" / "noise.md").read_text(encoding="utf-8")
SPACE = Space(Integer("x", 1, 9))


def first_column(option: str) -> list[str]:
    """What stands in backticks in the first column of the table under the heading with this option."""
    section = PAGE.partition(f"`{option}`\n")[2].partition("\n## ")[0]
    cells = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    return [word for cell in cells for word in re.findall("`([^`]+)`", cell)]


def test_every_rule_on_the_page_is_understood() -> None:
    assert set(first_column("--estimator")) == {AUTO, *ESTIMATORS}
    assert [resample_from(text) for text in first_column("--resample")]
    assert [Experiment(space=SPACE, prune=text) for text in first_column("--prune")]
    criteria = [text for text in first_column("--stop") if not text.endswith("...")]
    assert len(criteria) >= 10
    assert [stop_from([text], TunedProblem(SPACE)) for text in criteria]


def test_constants_on_the_page_are_the_defaults() -> None:
    named = [text for text in first_column("--resample") if "=" in text]
    assert len(named) == 7
    for text in named:
        assert resample_from(text) == resample_from(text.partition(":")[0])
    assert "`chance:least=2.5%,margin=10%`" in PAGE
    assert prune_from("chance:least=2.5%,margin=10%") == prune_from("chance")


def test_every_command_on_the_page_is_understood(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With a program that does not exist, the last thing that is looked for."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    commands = re.findall(r"^\$ (luthier tune .*)$", PAGE, re.MULTILINE)
    assert len(commands) >= 3
    for command in commands:
        words = [
            "no-such-program" if word in ("./solver", "./bench", "zstd") else word for word in shlex.split(command)
        ]
        monkeypatch.setattr(sys, "argv", words)
        with pytest.raises(SystemExit):
            cli.main()
        assert "no-such-program: no such program" in capsys.readouterr().err


def test_the_python_of_the_page(capsys: pytest.CaptureFixture[str]) -> None:
    (block,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    exec(block, {"lt": lt, "space": SPACE, "measure": lambda config: 10.0 - config["x"]})
    assert capsys.readouterr().out.split()[2] == "median"
