"""A measure: how many lines a run printed."""

from pathlib import Path

from luthier.trial import Execution


def lines(execution: Execution) -> float:
    return len(Path(execution.logs or "", "stdout").read_text().splitlines())
