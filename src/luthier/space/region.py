"""The valid part of a space, in codes: the product of its groups of linked parameters."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from luthier.arrays import BoolArray, FloatArray, IntArray
from luthier.errors import SpaceError
from luthier.space.constraints import Constraint
from luthier.space.expressions import with_codes
from luthier.space.feasible import Group, HeldParameter, SearchedGroup, make_groups
from luthier.space.parameters import Parameter
from luthier.trial import Value


class Region:
    """Counts, lists and samples what the constraints allow; it is never empty, because the default is valid."""

    def __init__(self, parameters: Sequence[Parameter], constraints: Sequence[Constraint]) -> None:
        self._parameters = parameters
        self._constraints = constraints
        self._groups = make_groups(parameters, constraints)
        self._default = np.array([[parameter.code(parameter.default) for parameter in parameters]])
        self._held: Mapping[int, float] = {}
        self._check_default()

    def narrowed(self, codes: FloatArray, held: Sequence[int]) -> "Region":
        """The part of the region in which the parameters at the positions `held` have the values of a valid row.

        It draws and counts this part only; `check` still accepts the whole region.
        """
        part = object.__new__(Region)
        part._parameters, part._constraints = self._parameters, self._constraints
        part._default, part._held = codes[None, :], {position: float(codes[position]) for position in held}
        left = [
            replace(c, root=with_codes(c.root, part._held), positions=c.positions - set(held))
            for c in self._constraints
            if not c.positions <= set(held)
        ]
        part._groups = tuple(
            HeldParameter(group.positions[0], part._held[group.positions[0]])
            if group.positions[0] in part._held
            else group
            for group in make_groups(self._parameters, left)
        )
        return part

    @property
    def count(self) -> int | None:
        """How many valid configurations there are; None where they cannot be counted."""
        counts = [group.count for group in self._groups]
        finite = [count for count in counts if count is not None]
        return math.prod(finite) if len(finite) == len(counts) else None

    def satisfied(self, codes: FloatArray) -> BoolArray:
        """Which rows satisfy every constraint."""
        columns, mask = dict(enumerate(codes.T)), np.ones(len(codes), dtype=np.bool_)
        for constraint in self._constraints:
            mask &= constraint.satisfied(columns, len(codes))
        for position, code in self._held.items():
            mask &= columns[position] == code
        return mask

    def check(self, codes: FloatArray) -> None:
        """Refuse a row that violates a constraint."""
        broken = self._broken(codes)
        if broken is not None:
            raise SpaceError(f'{self._describe(codes, sorted(broken.positions))} violates "{broken.text}"')

    def sample(self, count: int, rng: np.random.Generator) -> FloatArray:
        """Draw rows, uniformly where they can be counted."""
        codes = np.repeat(self._default, count, axis=0)
        for group in self._groups:
            drawn = group.sample(count, rng)
            # Only where a search for rare combinations finds none does the group keep its default.
            codes[: len(drawn), group.positions] = drawn
        return codes

    def at(self, numbers: IntArray | NDArray[np.object_]) -> FloatArray:
        """The rows with some numbers, in mixed radix: the first group is the most significant digit."""
        codes = np.empty((len(numbers), len(self._parameters)))
        rest = numbers
        for group in reversed(self._groups):
            rest, ranks = rest // (group.count or 1), rest % (group.count or 1)
            codes[:, group.positions] = group.at(ranks.astype(np.int64))
        return codes

    def _broken(self, codes: FloatArray) -> Constraint | None:
        columns = dict(enumerate(codes[None, :].T))
        return next((c for c in self._constraints if not c.satisfied(columns, 1)[0]), None)

    def _describe(self, codes: FloatArray, positions: Sequence[int]) -> str:
        pairs = ((self._parameters[position], float(codes[position])) for position in positions)
        return ", ".join(f"{parameter.name}={_value(parameter, code)!r}" for parameter, code in pairs)

    def _check_default(self) -> None:
        """Refuse a default that violates a constraint, and suggest a valid one."""
        default = self._default[0]
        broken = self._broken(default)
        if broken is None:
            return
        better, changed = default.copy(), list[int]()
        for group in self._groups:
            inside = [c for c in self._constraints if c.positions <= set(group.positions)]
            if all(c.satisfied(dict(enumerate(self._default.T)), 1)[0] for c in inside):
                continue
            better[list(group.positions)] = _find_valid(group, " and ".join(f'"{c.text}"' for c in inside))
            changed.extend(group.positions)
        given = self._describe(default, sorted(broken.positions))
        advice = f"give defaults that do not, such as {self._describe(better, sorted(changed))}"
        raise SpaceError(f'the default {given} violates "{broken.text}"; {advice}')


def _find_valid(group: Group, rules: str) -> FloatArray:
    """Find the codes of one valid combination, or raise an error."""
    if group.count == 0 or (isinstance(group, SearchedGroup) and group.impossible):
        raise SpaceError(f"no configuration satisfies {rules}; relax the constraints or widen the parameters")
    found: FloatArray = group.sample(1, np.random.default_rng(0))
    if len(found) == 0:
        raise SpaceError(f"found no configuration that satisfies {rules}, but one may exist; give it as the default")
    first: FloatArray = found[0]
    return first


def _value(parameter: Parameter, code: float) -> Value:
    return code if parameter.size is None else parameter.value(int(code))
