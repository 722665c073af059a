"""The trials an optimizer was told, as arrays."""

import math
from collections.abc import Iterable, Sequence

import numpy as np

from luthier.arrays import FloatArray
from luthier.errors import InvalidInputError
from luthier.space import Space
from luthier.trial import Config, Trial

FEW_SLOTS = 8
"""With more slots than this, suggestions must be cheap: docs/decisions/0023-many-workers.md."""

_GROWTH = 5  # a snapshot is taken when the number of trials has grown by a fifth


class History:
    """The trials told so far: the latest one of each configuration, in order of first appearance.

    `snapshot` is a copy of them for fitting models. It is renewed when the number of trials with an estimate, or of
    those without, has grown by a fifth. So it depends on what was told in which order and not on the times of asks, and
    models fitted to it are the same after a resume. `measured` is the number of trials with an estimate.
    """

    def __init__(self, space: Space) -> None:
        self.space = space
        self.trials: list[Trial] = []
        self.snapshot: tuple[Trial, ...] = ()
        self.measured = 0
        self._row: dict[Config, int] = {}
        self._codes = self._units = np.empty((0, len(space.names)))  # with room for more rows
        self._values = np.empty(0)
        self._running: dict[Config, FloatArray] = {}
        self._next_snapshot = (1, 1)  # numbers of trials with and without an estimate

    def tell(self, finished: Sequence[Trial]) -> None:
        """Add trials; one of a known configuration replaces the earlier one."""
        if not finished:
            return
        for trial in finished:
            if trial.estimate is not None and not math.isfinite(trial.estimate.value):
                raise InvalidInputError(
                    f"{trial.config}: estimate {trial.estimate.value}; give a finite number, or no estimate"
                )
        codes = self.space.codes([self.space.check(trial.config) for trial in finished])
        units = self.space.to_unit(codes)
        for trial, code, unit in zip(finished, codes, units, strict=True):
            row = self._row.setdefault(trial.config, len(self.trials))
            if row == len(self.trials):
                self._make_room()
                self.trials.append(trial)
                self._codes[row], self._units[row] = code, unit
            else:
                # The earlier trial of this configuration no longer counts.
                self.measured -= self.trials[row].estimate is not None
                self.trials[row] = trial
            self._values[row] = math.inf if trial.estimate is None else trial.estimate.value
            self.measured += trial.estimate is not None
            self._take_snapshot_if_due()

    def _make_room(self) -> None:
        """Make room for one more row; views of the old rows stay valid."""
        if len(self.trials) == len(self._values):
            # Room in proportion to the rows, so that adding a row costs the same however many there are.
            more = len(self.trials) // 2 + 64
            room = np.empty((more, len(self.space.names)))
            self._codes, self._units = np.concatenate((self._codes, room)), np.concatenate((self._units, room))
            self._values = np.concatenate((self._values, np.full(more, math.inf)))

    def _take_snapshot_if_due(self) -> None:
        counts = (self.measured, len(self.trials) - self.measured)
        if any(count >= due for count, due in zip(counts, self._next_snapshot, strict=True)):
            self.snapshot = tuple(self.trials)
            measured, unmeasured = (count + max(1, count // _GROWTH) for count in counts)
            self._next_snapshot = measured, unmeasured

    def __contains__(self, config: object) -> bool:
        return config in self._row

    def __len__(self) -> int:
        return len(self.trials)

    def codes(self, start: int = 0) -> FloatArray:
        """The codes of the trials, a row for each, from the trial at `start` on."""
        return self._codes[start : len(self.trials)]

    def units(self) -> FloatArray:
        """The coordinates of the trials in the unit cube, a row for each."""
        return self._units[: len(self.trials)]

    def best(self, count: int) -> FloatArray:
        """The coordinates of the trials with the lowest estimates, the lowest first; of equal ones, the earliest."""
        lowest = np.argsort(self._values[: len(self.trials)], kind="stable")[: min(count, self.measured)]
        return self._units[lowest]

    def running_codes(self, running: Sequence[Config]) -> FloatArray:
        """The codes of running configurations; they are kept from one call to the next."""
        new = [config for config in running if config not in self._running]
        self._running.update(zip(new, self.space.codes(new), strict=True))
        self._running = {config: self._running[config] for config in running}
        rows = [self._running[config] for config in running]
        return np.array(rows) if rows else np.empty((0, len(self.space.names)))

    def taken(self, running: Iterable[Config]) -> set[Config]:
        """Every configuration that must not be suggested: told, or running now."""
        return {*self._row, *running}

    def generator(self, seed: int, running: Iterable[Config]) -> np.random.Generator:
        """Random numbers for one ask: they depend on the seed and on how many configurations are told or running."""
        return np.random.default_rng([seed, len(self.taken(running))])
