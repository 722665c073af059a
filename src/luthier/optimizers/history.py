"""The trials an optimizer was told, as arrays."""

import math
from collections.abc import Iterable, Sequence

import numpy as np

from luthier.arrays import FloatArray
from luthier.errors import InvalidInputError
from luthier.space import Space
from luthier.trial import Config, Trial

_GROWTH = 5  # a snapshot is taken when the number of trials has grown by a fifth


class History:
    """The trials told so far: the latest one of each configuration, in order of first appearance.

    `snapshot` is a copy of them for fitting models. It is renewed when the number of trials with an estimate, or of
    those without, has grown by a fifth. So it depends on what was told in which order and not on the times of asks, and
    models fitted to it are the same after a resume.
    """

    def __init__(self, space: Space) -> None:
        self.space = space
        self.trials: list[Trial] = []
        self.snapshot: tuple[Trial, ...] = ()
        self._row: dict[Config, int] = {}
        self._codes: list[FloatArray] = []
        self._units: list[FloatArray] = []
        self._measured = 0
        self._next_snapshot = (1, 1)  # numbers of trials with and without an estimate

    def tell(self, finished: Sequence[Trial]) -> None:
        """Add trials; one of a known configuration replaces the earlier one."""
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
                self._measured -= self.trials[row].estimate is not None
                self.trials[row] = trial
            self._measured += trial.estimate is not None
            self._take_snapshot_if_due()

    def _take_snapshot_if_due(self) -> None:
        counts = (self._measured, len(self.trials) - self._measured)
        if any(count >= due for count, due in zip(counts, self._next_snapshot, strict=True)):
            self.snapshot = tuple(self.trials)
            measured, unmeasured = (count + max(1, count // _GROWTH) for count in counts)
            self._next_snapshot = measured, unmeasured

    @property
    def has_estimates(self) -> bool:
        """Whether anything was measured."""
        return self._measured > 0

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

    def generator(self, seed: int, running: Iterable[Config]) -> np.random.Generator:
        """Random numbers for one ask: they depend on the seed and on how many configurations are told or running."""
        return np.random.default_rng([seed, len(self.taken(running))])

    def _stack(self, rows: list[FloatArray]) -> FloatArray:
        return np.array(rows) if rows else np.empty((0, len(self.space.names)))
