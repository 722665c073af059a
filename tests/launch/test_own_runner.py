"""Tuning a function through a runner of one's own."""

from collections.abc import Sequence
from pathlib import Path

import pytest

import luthier as lt
from luthier.errors import InvalidInputError, UnavailableError
from luthier.runners.function import FunctionRunner
from luthier.trial import Config, Execution

SPACE = lt.Space(lt.Integer("n", 1, 9, default=9))


def never(config: Config) -> float:
    raise AssertionError("the runner has its own function")


def value(config: Config) -> float:
    return float(config["n"])


class Dying(FunctionRunner):
    """Cannot tell how the third run ended."""

    def poll(self, many: Sequence[str], wait_s: float) -> Sequence[Execution]:
        if len(self._reported) == 2:
            raise UnavailableError("the cluster is away")
        return super().poll(many, wait_s)


def test_a_runner_or_a_function_that_makes_one() -> None:
    assert lt.tune(never, SPACE, budget=30, runner=FunctionRunner(value)).best.config == {"n": 1}
    slots: list[int] = []

    def make(count: int) -> FunctionRunner:
        slots.append(count)
        return FunctionRunner(value, count)

    assert lt.tune(never, SPACE, budget=30, slots=3, runner=make).best.config == {"n": 1}
    assert slots == [3]


def test_an_experiment_is_resumed_with_another_runner(tmp_path: Path) -> None:
    store = str(tmp_path / "history.sqlite")
    with pytest.raises(UnavailableError):
        lt.tune(never, SPACE, budget=30, store=store, runner=Dying(value))
    result = lt.resume(never, 1, store=store, runner=FunctionRunner(value))
    assert result.best.config == {"n": 1}
    assert all(run.outcome is not None for run in result.runs)


@pytest.mark.parametrize("runner", [3, "local", lambda slots: None])
def test_what_is_no_runner_is_refused_before_anything_is_stored(runner: object, tmp_path: Path) -> None:
    store = str(tmp_path / "history.sqlite")
    with pytest.raises(InvalidInputError, match="is not a runner"):
        lt.tune(value, SPACE, budget=3, store=store, runner=runner)  # type: ignore[arg-type]  # that is the point
    assert not Path(store).exists()
