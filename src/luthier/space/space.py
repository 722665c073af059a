"""The space of configurations."""

from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import cast

import numpy as np

from luthier.arrays import BoolArray, FloatArray
from luthier.errors import SpaceError
from luthier.space.constraints import parse_constraint
from luthier.space.feasible import LARGEST_LISTING
from luthier.space.parameters import Choice, Integer, Parameter, Real
from luthier.space.region import Region
from luthier.space.serial import check_keys, parameter_from_json, parameter_to_json
from luthier.space.syntax import suggest
from luthier.texts import shown
from luthier.trial import Config, Json, Value

_STRIDE = 0.1
_FRUITLESS_ROUNDS = 12
_LARGEST_BATCH = 1024


@dataclass(frozen=True, init=False, repr=False)
class Space:
    """Parameters and the constraints between them.

    Arrays hold *codes*, a row for each configuration: the index of a value of a finite parameter, the value itself of a
    continuous one. In the *unit* encoding every parameter spans 0 to 1.
    """

    parameters: tuple[Parameter, ...]
    constraints: tuple[str, ...]
    _region: Region = field(compare=False)

    def __init__(self, *parameters: Parameter, constraints: Iterable[str] = ()) -> None:
        _check_parameters(parameters)
        if isinstance(constraints, str) or not isinstance(constraints, Iterable):
            raise SpaceError(f"constraints {shown(constraints)} is not a list; write [{shown(constraints)}]")
        texts = tuple(constraints)
        region = Region(parameters, [parse_constraint(text, parameters) for text in texts])
        object.__setattr__(self, "parameters", parameters)
        object.__setattr__(self, "constraints", texts)
        object.__setattr__(self, "_region", region)

    def __repr__(self) -> str:
        rules = f", constraints={list(self.constraints)!r}" if self.constraints else ""
        return f"Space({', '.join(map(repr, self.parameters))}{rules})"

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the parameters, in order."""
        return tuple(parameter.name for parameter in self.parameters)

    @property
    def ordered(self) -> BoolArray:
        """Which parameters have an order."""
        return np.array([parameter.ordered for parameter in self.parameters])

    @property
    def movable(self) -> BoolArray:
        """Which parameters can have more than one value."""
        return np.array([parameter.size != 1 for parameter in self.parameters])

    @property
    def size(self) -> int | None:
        """How many valid configurations there are; None where they cannot be counted."""
        return self._region.count

    @property
    def default(self) -> Config:
        """The configuration in which every parameter has its default."""
        return Config({parameter.name: parameter.default for parameter in self.parameters})

    def contains(self, config: Mapping[str, Value]) -> bool:
        """Whether `check` would accept the configuration."""
        try:
            self.check(config)
        except SpaceError:
            return False
        return True

    def check(self, config: Mapping[str, Value]) -> Config:
        """Return the configuration in the order of the parameters, or raise a `SpaceError` that says what is wrong."""
        if not isinstance(config, Mapping):
            raise SpaceError(f"{shown(config)} is not a configuration; expected a mapping from names to values")
        for name in config:
            if name not in self.names:
                raise SpaceError(f"there is no parameter {shown(name)}; {suggest(str(name), self.names)}")
        for parameter in self.parameters:
            if parameter.name not in config:
                raise SpaceError(f"{parameter.name}: has no value; expected {parameter.describe()}")
        codes = self.codes([config])
        self._region.check(codes[0])
        return self.decode(codes[0])

    def codes(self, configs: Sequence[Mapping[str, Value]]) -> FloatArray:
        """Turn configurations into codes; their values are checked, constraints are not."""
        try:
            rows = [[parameter.code(config[parameter.name]) for parameter in self.parameters] for config in configs]
        except KeyError as error:
            raise SpaceError(f"{error.args[0]}: has no value in a configuration") from None
        return np.array(rows, dtype=np.float64).reshape(len(rows), len(self.parameters))

    def configs(self, codes: FloatArray) -> list[Config]:
        """Turn rows of codes into configurations."""
        columns = [
            column if parameter.size is None else [parameter.value(int(code)) for code in column]
            for parameter, column in zip(self.parameters, codes.T.tolist(), strict=True)
        ]
        names = self.names
        return [Config(dict(zip(names, row, strict=True))) for row in zip(*columns, strict=True)]

    def decode(self, codes_row: FloatArray) -> Config:
        """Turn one row of codes into a configuration."""
        return self.configs(codes_row[None, :])[0]

    def to_unit(self, codes: FloatArray) -> FloatArray:
        """Map codes to the unit cube."""
        columns = [parameter.to_unit(codes[:, column]) for column, parameter in enumerate(self.parameters)]
        return np.stack(columns, axis=1)

    def from_unit(self, unit: FloatArray) -> FloatArray:
        """Map the unit cube to the nearest codes, which may violate constraints."""
        columns = [parameter.from_unit(unit[:, column]) for column, parameter in enumerate(self.parameters)]
        return np.stack(columns, axis=1)

    def within(self, codes: FloatArray) -> FloatArray:
        """Codes with the values that a narrowed space holds; in any other space, the codes themselves."""
        return codes

    def narrowed(self, config: Mapping[str, Value], names: Collection[str]) -> "Space":
        """The part of the space in which only the parameters `names` differ from a valid configuration.

        Codes and coordinates are those of the whole space, and so is what `check` and `contains` accept; but only the
        part is counted, listed, sampled and `feasible`, and its default is `config`.
        """
        checked = self.check(config)
        codes = self.codes([checked])[0]
        held = [position for position, name in enumerate(self.names) if name not in names]
        return NarrowedSpace(self, self._region.narrowed(codes, held), checked, held)

    def is_used_up(self, taken: Collection[Config]) -> bool:
        """Whether every configuration is among those that are taken; a narrowed space ignores others."""
        size = self.size
        return size is not None and len(taken) >= size and int(self.feasible(self.codes(list(taken))).sum()) >= size

    def feasible(self, codes: FloatArray) -> BoolArray:
        """Which rows satisfy the constraints."""
        return self._region.satisfied(codes)

    def sample_codes(self, count: int, rng: np.random.Generator) -> FloatArray:
        """Draw valid configurations, uniformly where they can be counted; some may repeat."""
        return self._region.sample(count, rng)

    def sample(self, count: int, rng: np.random.Generator, exclude: Collection[Config] = frozenset()) -> list[Config]:
        """Draw distinct valid configurations that are not excluded; fewer only where no more are found."""
        found: dict[Config, None] = {}
        size, exclude = self.size, exclude if isinstance(exclude, Set) else frozenset(exclude)
        batch, fruitless, patience = max(count, 1), 0, _FRUITLESS_ROUNDS if size is None else 10 * _FRUITLESS_ROUNDS
        while len(found) < count and fruitless < patience:
            before = len(found)
            drawn = self.configs(self._region.sample(min(batch, _LARGEST_BATCH), rng))
            found.update(dict.fromkeys(config for config in drawn if config not in exclude))
            fruitless += len(found) == before
            batch *= 2
            if size is not None and size <= min(LARGEST_LISTING, 4 * batch):
                self._add_rest(found, count, rng, exclude)
                break
        return list(found)[:count]

    def grid(self) -> FloatArray:
        """The codes of every valid configuration, in the order of `at`."""
        size = self._countable()
        if size > LARGEST_LISTING:
            raise SpaceError(f"the space has {size} configurations, too many to list; sample it instead")
        return self._region.at(np.arange(size))

    def at(self, index: int) -> Config:
        """The valid configuration with a number from 0 to size - 1."""
        size = self._countable()
        if not 0 <= index < size:
            raise SpaceError(f"configuration number {index} does not exist; numbers go from 0 to {size - 1}")
        return self.decode(self._region.at(np.array([index], dtype=object))[0])

    def neighbours(self, config: Mapping[str, Value]) -> list[Config]:
        """The valid configurations one step away: a grid step, a tenth of a continuous range, or another choice."""
        codes = self.codes([self.check(config)])[0]
        rows = []
        for column, parameter in enumerate(self.parameters):
            for code in _steps_from(parameter, float(codes[column])):
                rows.append(codes.copy())
                rows[-1][column] = code
        if not rows:
            return []
        near = np.stack(rows)
        return self.configs(near[self.feasible(near)])

    def to_json(self) -> dict[str, Json]:
        """Write the space as JSON."""
        return {"parameters": [parameter_to_json(p) for p in self.parameters], "constraints": list(self.constraints)}

    @classmethod
    def from_json(cls, mapping: Mapping[str, Json]) -> "Space":
        """Read what `to_json` wrote."""
        if not isinstance(mapping, Mapping):
            raise SpaceError(f"{shown(mapping)} is not a space; expected an object with parameters and constraints")
        check_keys(mapping, ("parameters", "constraints"), "space")
        listed, constraints = mapping["parameters"], mapping["constraints"]
        if isinstance(listed, str) or not isinstance(listed, Sequence):
            raise SpaceError(f"space: parameters {shown(listed)} is not a list")
        return cls(*map(parameter_from_json, listed), constraints=cast("Iterable[str]", constraints))

    def _countable(self) -> int:
        size = self.size
        if size is None:
            raise SpaceError("the configurations of this space cannot be counted; give steps to its Real parameters")
        return size

    def _add_rest(
        self, found: dict[Config, None], count: int, rng: np.random.Generator, exclude: Collection[Config]
    ) -> None:
        """Walk the whole space in random order until enough is found."""
        order = rng.permutation(self._countable())
        for start in range(0, len(order), _LARGEST_BATCH):
            if len(found) >= count:
                return
            walked = self.configs(self._region.at(order[start : start + _LARGEST_BATCH]))
            found.update(dict.fromkeys(config for config in walked if config not in exclude))


@dataclass(frozen=True, init=False, repr=False)
class NarrowedSpace(Space):
    """A part of a space; made by `Space.narrowed`."""

    _config: Config
    _held: tuple[int, ...]

    def __init__(self, whole: Space, region: Region, config: Config, held: Sequence[int]) -> None:
        object.__setattr__(self, "parameters", whole.parameters)
        object.__setattr__(self, "constraints", whole.constraints)
        object.__setattr__(self, "_region", region)
        object.__setattr__(self, "_config", config)
        object.__setattr__(self, "_held", tuple(held))

    @property
    def default(self) -> Config:
        """The configuration that the part is around."""
        return self._config

    @property
    def movable(self) -> BoolArray:
        """Which parameters can have more than one value."""
        moves = super().movable
        moves[list(self._held)] = False
        return moves

    def within(self, codes: FloatArray) -> FloatArray:
        """Codes with the values that this space holds."""
        columns, result = list(self._held), codes.copy()
        result[:, columns] = self.codes([self._config])[0][columns]
        return result

    def from_unit(self, unit: FloatArray) -> FloatArray:
        """Map the unit cube to the nearest codes of this part, which may violate constraints."""
        return self.within(super().from_unit(unit))


def _check_parameters(parameters: Sequence[Parameter]) -> None:
    if not parameters:
        raise SpaceError("a space needs at least one parameter")
    names: set[str] = set()
    for parameter in parameters:
        if not isinstance(parameter, Integer | Real | Choice):
            raise SpaceError(f"{shown(parameter)} is not a parameter; expected Integer, Real or Choice")
        if parameter.name in names:
            raise SpaceError(f"{parameter.name}: two parameters have this name; rename one")
        names.add(parameter.name)


def _steps_from(parameter: Parameter, code: float) -> list[float]:
    """The codes one step away from a code."""
    if parameter.size is None:
        here = parameter.to_unit(np.array([code]))
        ends = parameter.from_unit(np.clip(np.concatenate([here - _STRIDE, here + _STRIDE]), 0.0, 1.0))
        return [float(end) for end in ends if end != code]
    steps = (code - 1.0, code + 1.0) if parameter.ordered else map(float, range(parameter.size))
    return [step for step in steps if 0.0 <= step < parameter.size and step != code]
