"""Simulated annealing: a walk that accepts worse configurations while it is hot."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, TypeAlias

import numpy as np

from luthier.designs.candidates import squared_distances
from luthier.optimizers.history import History
from luthier.optimizers.option_checks import check_count, check_known, check_positive, check_share
from luthier.optimizers.start import Start, start_size
from luthier.optimizers.vicinity import first_free, nearest_free, walk
from luthier.space import Space
from luthier.trial import Config, Lost, Trial

Schedule: TypeAlias = Literal["exponential", "linear", "logarithmic"]
Restart: TypeAlias = Literal["none", "random", "threshold"]

_INITIAL = 10  # points of the initial design
_TRIES = 32  # neighbours drawn at random, before the nearest free configuration is taken
# The first temperature, as a share of the spread of the first values. These lie far apart, and neighbours differ less.
_SHARE = 0.1

# Robert 2022, section 3.3.3: the temperature after k steps, as a share of the first; the linear numerator is T0.
SCHEDULES: Mapping[str, Callable[[float, int], float]] = {
    "exponential": lambda a, k: a**k,
    "linear": lambda a, k: 1.0 / (1.0 + a * k),
    "logarithmic": lambda a, k: 1.0 / (1.0 + a * math.log1p(k)),
}
_COOLING: Mapping[str, float] = {"exponential": 0.95, "linear": 0.1, "logarithmic": 1.0}
_RESTART_AT: Mapping[str, float] = {"none": 0.0, "random": 0.02, "threshold": 0.1}


class Annealing:
    """Walks by small steps, at first also uphill (Kirkpatrick et al. 1983; Robert 2022, section 3.3.3).

    It starts at the best of `initial` points of a Latin hypercube (10, or a third of the budget); trials told before
    count towards them. A step from value y to a worse one, y', is taken with the chance exp(-(y' - y) / T). T starts at
    `temperature`, by default a tenth of the interquartile range of the values known by then, and falls with every step
    by `schedule`, at the rate `cooling` (by default 0.95 exponential, 0.1 linear, 1 logarithmic).

    A `restart` (at most `restarts` of them) heats the walk up again and continues it at a random point: "random" with
    the chance `restart_at` (0.02) after each step, "threshold" when T is below this share (0.1) of its start. Every
    configuration that is told for the first time counts as a step, except one that ends after a restart and lies
    nearer to the end of the walk before.
    """

    def __init__(  # noqa: PLR0913 - options are explicit keywords
        self,
        space: Space,
        *,
        seed: int,
        budget: int | None = None,
        initial: int | None = None,
        temperature: float | None = None,
        schedule: Schedule = "exponential",
        cooling: float | None = None,
        restart: Restart = "none",
        restart_at: float | None = None,
        restarts: int = 3,
    ) -> None:
        check_known("annealing", "schedule", schedule, SCHEDULES)
        check_known("annealing", "restart", restart, _RESTART_AT)
        check_count("annealing", "restarts", restarts, 0)
        self._cooling = _COOLING[schedule] if cooling is None else cooling
        _check_numbers(initial, temperature, self._cooling, restart_at, schedule)
        self._restart = restart
        self._restart_at = _RESTART_AT[restart] if restart_at is None else restart_at
        self._restarts_left = 0 if restart == "none" else restarts
        self._history, self._seed = History(space), seed
        self._start = Start(space, start_size(_INITIAL, budget) if initial is None else initial, seed=seed)
        self._hottest, self._schedule = temperature, schedule
        self._begun = False
        self._values: dict[Config, float] = {}  # of every configuration told; infinite without a number
        self._current: Config | None = None
        self._steps = self._all_steps = 0  # since the last start, and in all
        self._next_start: Config | None = None  # of a walk that waits for its first value
        self._starts = 0
        self._left: Config | None = None  # where the walk before ended

    @property
    def temperature(self) -> float:
        """The temperature now; 0 before the walk begins."""
        return (self._hottest or 0.0) * SCHEDULES[self._schedule](self._cooling, self._steps) if self._begun else 0.0

    def ask(self, count: int, running: Sequence[Config]) -> list[Config]:
        """Suggest up to `count` configurations; an empty answer while nothing runs means that none is left."""
        rng = self._history.generator(self._seed, running)
        taken = self._history.taken(running)
        chosen = self._start.next(count, taken)
        taken.update(chosen)
        while len(chosen) < count and (config := self._next(taken, rng)) is not None:
            chosen.append(config)
            taken.add(config)
        return chosen

    def tell(self, finished: Sequence[Trial]) -> None:
        """Learn from trials; a new configuration is a step of the walk, once that has begun."""
        self._history.tell(finished)
        for trial in finished:
            is_new = trial.config not in self._values
            value = math.inf if trial.estimate is None else trial.estimate.value
            self._values[trial.config] = value
            if not self._begun:
                self._begin()
            elif self._current is None:
                self._begin_again()
            elif is_new and not _lost(trial) and not self._is_late(trial.config, self._current):
                self._accept_or_reject(trial.config, value, self._current)

    def _next(self, taken: set[Config], rng: np.random.Generator) -> Config | None:
        """A free neighbour of the current point; without one, the start of the walk or a random configuration."""
        space = self._history.space
        if self._next_start is not None and self._next_start not in taken:
            return self._next_start
        if self._current is None:
            return next(iter(space.sample(1, rng, exclude=taken)), None)
        codes = space.codes([self._current])[0]
        # After a rejection, another neighbour; in the thesis (algorithm 4, line 12) the current point runs again.
        found = first_free(space, walk(space, codes, _TRIES, rng), taken)
        return nearest_free(space, codes, taken, rng) if found is None else found

    def _begin(self) -> None:
        measured = [value for value in self._values.values() if value < math.inf]
        if len(self._values) < self._start.size or not measured:
            return
        self._begun = True
        self._current = min(self._values, key=self._values.__getitem__)
        if self._hottest is None:
            self._hottest = _SHARE * _spread(measured)

    def _accept_or_reject(self, config: Config, value: float, current: Config) -> None:
        """Accept or reject a step, cool down, and restart if it is time to."""
        # Seeded by the number of the step, so that a resumed walk decides in the same way.
        rng = np.random.default_rng([self._seed, self._all_steps, 2])
        self._all_steps += 1
        # Robert 2022, algorithm 4, lines 7 to 9.
        if rng.random() < acceptance(value, self._values[current], self.temperature):
            self._current = config
        self._steps += 1
        if self._restarts_left and self._is_time(rng):
            self._restarts_left -= 1
            # Without steps since the start, the temperature is the first one again.
            self._steps, self._left, self._current = 0, self._current, None
            self._begin_again()

    def _begin_again(self) -> None:
        """Begin a walk at its start, or choose another start where that one has no value."""
        if self._next_start is not None and self._values.get(self._next_start, math.inf) < math.inf:
            self._current, self._next_start = self._next_start, None
        elif self._next_start is None or self._next_start in self._values:
            rng = np.random.default_rng([self._seed, self._starts, 4])
            self._starts += 1
            drawn = self._history.space.sample(1, rng, exclude=self._values.keys())
            self._next_start = drawn[0] if drawn else None

    def _is_late(self, config: Config, current: Config) -> bool:
        """Whether a result belongs to the walk before: nearer to where that one ended than to where this one is."""
        # With several slots, results of the old walk still arrive after a restart.
        if self._left is None:
            return False
        space = self._history.space
        units = space.to_unit(space.codes([config, current, self._left]))
        ordered = np.asarray(space.ordered, dtype=np.bool_)
        here, before = squared_distances(ordered, units[:1], units[1:])[0]
        return bool(before < here)

    def _is_time(self, rng: np.random.Generator) -> bool:
        if self._restart == "random":
            return rng.random() < self._restart_at
        return self.temperature < self._restart_at * (self._hottest or 0.0)


def _check_numbers(
    initial: object, temperature: object, cooling: object, restart_at: object, schedule: Schedule
) -> None:
    if initial is not None:
        check_count("annealing", "initial", initial, 1)
    if temperature is not None:
        check_positive("annealing", "temperature", temperature)
    if restart_at is not None:
        check_share("annealing", "restart_at", restart_at)
    check_positive("annealing", "cooling", cooling)
    if schedule == "exponential":
        check_share("annealing", "cooling", cooling)  # above 1 it would heat


def acceptance(new: float, old: float, temperature: float) -> float:
    """The chance that a step from `old` to `new` is taken: exp(-(new - old) / T) for a worse value, else 1."""
    # Robert 2022, section 3.3.3, with the minus sign that is missing there (Kirkpatrick et al. 1983).
    if new <= old and new < math.inf:
        return 1.0
    if temperature == 0.0 or new == math.inf:
        return 0.0
    return math.exp(-(new - old) / temperature)


def _spread(values: Sequence[float]) -> float:
    low, high = np.quantile(np.array(values) / 2.0, [0.25, 0.75])  # halves: a difference of two floats may overflow
    return float(high - low) * 2.0 if high - low < 1e307 else 1e307


def _lost(trial: Trial) -> bool:
    """Whether nothing is known of the configuration, so that there was no step."""
    return trial.estimate is None and all(isinstance(outcome, Lost) for outcome in trial.outcomes)
