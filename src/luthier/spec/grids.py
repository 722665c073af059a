"""Turns the values to try, as a file gives them, into the parameters of a search space."""

from typing import Literal

from luthier.errors import SpaceError
from luthier.space import Choice, Integer, Parameter, Real
from luthier.spec.component import ComponentParameter, Grid, as_text, misfit
from luthier.trial import Value

_MOST_LISTED = 10_000


def parameter_of(name: str, described: ComponentParameter, grid: Grid) -> Parameter:
    """The parameter of a search space; a default that is not among the values to try is added to them."""
    if grid.values is not None:
        return _choice(name, described, list(grid.values))
    if described.type == "bool":
        raise SpaceError("a range needs numbers, and the type is bool; give a list")
    if described.type == "str":
        return _texts(name, described, grid)
    every = _range(name, described, grid, None)
    default = described.default
    if default is None:
        return every
    if isinstance(default, str) or every.contains(default):
        return _range(name, described, grid, default)
    if every.size is None or every.size > _MOST_LISTED:
        raise SpaceError(f"the default {default!r} is not one of its values; expected {every.describe()}")
    return _choice(name, described, [every.value(index) for index in range(every.size)])


def _range(name: str, described: ComponentParameter, grid: Grid, default: Value | None) -> Parameter:
    scale: Literal["log", "linear"] = "log" if grid.step_type == "multiplicative" else "linear"
    if scale == "log" and grid.step in (None, 1):
        raise SpaceError("a multiplicative range needs a step above 1")
    ends = (grid.min, grid.max)
    if described.type == "int":
        step = 1 if grid.step is None else grid.step
        return Integer(name, *ends, step, scale, default)  # type: ignore[arg-type]  # Integer checks each of them
    return Real(name, *ends, grid.step, scale, default)  # type: ignore[arg-type]  # Real checks each of them


def _texts(name: str, described: ComponentParameter, grid: Grid) -> Choice:
    """A range of whole numbers for a parameter that is a text, as files of SHAMan have it: each number as a text."""
    numbers = described.model_copy(update={"type": "int"})
    every = _range(name, numbers, grid, None)
    if every.size is None or every.size > _MOST_LISTED:
        raise SpaceError(f"a range of texts has at most {_MOST_LISTED} values; give a larger step, or a list")
    return _choice(name, described, [every.value(index) for index in range(every.size)])


def _choice(name: str, described: ComponentParameter, values: list[Value]) -> Choice:
    if described.type == "str":
        values = [as_text(value) for value in values]
    for value in values:
        if problem := misfit(described.type, value):
            raise SpaceError(problem)
    if described.default is not None and described.default not in values:
        values = [*values, described.default]
    numbers = [value for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
    if len(numbers) < len(values):
        return Choice(name, values, described.default, described.ordered)
    return Choice(name, sorted(numbers), described.default, ordered=True)
