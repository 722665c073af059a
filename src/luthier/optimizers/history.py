"""What an optimizer was told, in the form search algorithms read."""

import math
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from luthier.errors import InvalidInputError
from luthier.space import Space
from luthier.trial import Config, Trial

FloatArray = npt.NDArray[np.float64]


class History:
    """The trials told so far: one per configuration, the latest word on each, in order of first appearance."""

    def __init__(self, space: Space) -> None:
        self.space = space
        self.trials: list[Trial] = []
        self._row: dict[Config, int] = {}
        self._codes: list[FloatArray] = []
        self._units: list[FloatArray] = []

    def tell(self, finished: Sequence[Trial]) -> None:
        """Take in trials; one for a configuration that is known replaces the earlier one."""
        if not finished:
            return
        for trial in finished:
            if trial.estimate is not None and not math.isfinite(trial.estimate.value):
                raise InvalidInputError(
                    f"{trial.config}: estimate {trial.estimate.value}; a run without a number has none"
                )
        codes = self.space.codes([self.space.check(trial.config) for trial in finished])
        units = self.space.to_unit(codes)
        for trial, code, unit in zip(finished, codes, units, strict=True):
            row = self._row.get(trial.config)
            if row is None:
                self._row[trial.config] = len(self.trials)
                self.trials.append(trial)
                self._codes.append(code)
                self._units.append(unit)
            else:
                self.trials[row] = trial

    def __contains__(self, config: object) -> bool:
        return config in self._row

    def __len__(self) -> int:
        return len(self.trials)

    def codes(self, start: int = 0) -> FloatArray:
        """The codes of the trials, a row for each, from the trial at `start` on."""
        return self._stack(self._codes[start:])

    def units(self) -> FloatArray:
        """The coordinates of the trials in the unit cube, a row for each."""
        return self._stack(self._units)

    def taken(self, running: Iterable[Config]) -> set[Config]:
        """Every configuration that must not be suggested: told, or running now."""
        return {*self._row, *running}

    def _stack(self, rows: list[FloatArray]) -> FloatArray:
        return np.array(rows) if rows else np.empty((0, len(self.space.names)))
