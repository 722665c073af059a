"""Bayesian optimisation of two or three objectives at once."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from luthier.arrays import BoolArray, FloatArray
from luthier.errors import InvalidInputError
from luthier.learn.gaussian_process import FixedPoints, GaussianProcess, Observations
from luthier.learn.linear import one_thread
from luthier.learn.points import PointSet
from luthier.optimizers.candidates import WHOLE_LIMIT, neighbourhood
from luthier.optimizers.front import values_of
from luthier.optimizers.gp import gaussian_process_search
from luthier.optimizers.history import History
from luthier.optimizers.hypervolume import NormalPrediction, log_expected_hypervolume_improvement
from luthier.optimizers.start import Start, start_size
from luthier.space import Space
from luthier.trial import Config, Estimate, Lost, Trial

_FEWEST_INITIAL = 5
_POOL, _CENTRES, _ROUNDS = 2_000, 20, 3
_MARGIN = 0.5  # of the front's width: so far outside of the front a new point still counts
_ORDINARY = 0.75  # quantile: values below this one always count
_LEAST_MARGIN = 0.01
_TIE = 9


class ParetoSearch:
    """Looks for the configuration that is expected to add most hypervolume to the front (Emmerich et al. 2006).

    Every objective has a Gaussian process of its own, on a linear or logarithmic scale, whichever predicts better;
    volumes are measured on the linear one. Running configurations are assumed to end as predicted. While no trial has
    more than one objective, this is the search `gp`.
    """

    most_objectives = 3

    def __init__(self, space: Space, *, seed: int, budget: int | None = None) -> None:
        self._single = gaussian_process_search(space, seed=seed, budget=budget)
        self._history = History(space)
        self._seed, self._budget = seed, budget
        self._start: Start | None = None
        self._objectives: int | None = None
        self._models: _Models | None = None
        self._grid: _Points | None = None

    def ask(self, count: int, running: Sequence[Config]) -> list[Config]:
        """Suggest up to `count` configurations; an empty answer while nothing runs means that none is left."""
        if self._objectives is None or self._objectives == 1:
            return self._single.ask(count, running)
        size, taken = self._history.space.size, self._history.taken(running)
        # Every configuration was told or is running.
        if size is not None and len(taken) >= size:
            return []
        if self._start is None:
            # The design grows with the objectives, but takes no more than a third of the budget.
            wanted = max(_FEWEST_INITIAL, self._objectives * (len(self._history.space.names) + 1))
            self._start = Start(self._history.space, start_size(wanted, self._budget), seed=self._seed)
        chosen = self._start.next(count, taken)
        if len(chosen) < count:
            rng = self._history.generator(self._seed, running)
            with one_thread():
                chosen += self._from_models(count - len(chosen), [*running, *chosen], rng)
        return chosen

    def tell(self, finished: Sequence[Trial]) -> None:
        """Learn from trials; each that was measured must have the same number of objectives."""
        objectives = self._objectives
        for trial in finished:
            values = values_of(trial)
            if values is None:
                continue
            objectives = len(values) if objectives is None else objectives
            if len(values) != objectives or len(values) > self.most_objectives or not all(map(math.isfinite, values)):
                raise InvalidInputError(
                    f"{trial.config}: objectives {values}; expected {objectives} finite numbers, as in every trial, "
                    f"{self.most_objectives} at most"
                )
        self._single.tell(finished)
        self._history.tell(finished)
        self._objectives = objectives

    def _from_models(self, count: int, running: Sequence[Config], rng: np.random.Generator) -> list[Config]:
        space = self._history.space
        if self._models is None:
            self._models = _Models(space, self._objectives or 1)
        self._models.learn(self._history)
        taken = {_key(codes) for codes in self._history.codes()} | {_key(codes) for codes in space.codes(list(running))}
        self._models.assume(space.to_unit(space.codes(list(running))))
        chosen: list[Config] = []
        while len(chosen) < count and (codes := self._best(self._models, taken, rng)) is not None:
            chosen.append(space.decode(codes))
            taken.add(_key(codes))
            self._models.assume(space.to_unit(codes[None, :]))
        self._models.forget_assumed()
        return chosen

    def _best(self, models: "_Models", taken: set[bytes], rng: np.random.Generator) -> FloatArray | None:
        """The codes of the most promising free configuration."""
        space = self._history.space
        if space.size is not None and space.size <= WHOLE_LIMIT:
            if self._grid is None:
                self._grid = _Points(space, space.grid(), once=False)
            found = _most_promising(self._grid, models, taken, rng)
            return None if found is None else found[1]
        # As in the search with one objective: a random pool, and neighbours of the best.
        around = models.front_units(rng)
        codes = np.concatenate((space.sample_codes(_POOL, rng), neighbourhood(space, around, rng)))
        found = _most_promising(_Points(space, codes, once=True), models, taken, rng)
        for _ in range(_ROUNDS):
            if found is None:
                break
            near = neighbourhood(space, space.to_unit(found[1][None, :]), rng)
            better = _most_promising(_Points(space, near, once=True), models, taken, rng)
            if better is None or better[0] <= found[0]:
                break
            found = better
        if found is not None:
            return found[1]
        left = space.sample(1, rng, exclude={space.decode(np.frombuffer(key)) for key in taken})
        return space.codes(left)[0] if left else None


class _Points:
    """Configurations to choose from; what each model computes for them is kept, unless they are needed `once` only."""

    def __init__(self, space: Space, codes: FloatArray, *, once: bool) -> None:
        self.codes, self._points, self._once = codes, PointSet(space.to_unit(codes)), once
        self.keys = [_key(row) for row in codes]
        self._known: dict[int, tuple[GaussianProcess, FixedPoints]] = {}

    def under(self, place: int, process: GaussianProcess) -> tuple[FloatArray, FloatArray]:
        """What one model predicts."""
        if place not in self._known or self._known[place][0] is not process:
            self._known[place] = process, FixedPoints(self._points, in_blocks=not self._once)
        return self._known[place][1].predict(process)


class _Models:
    """A model for each objective, and one for whether a run yields numbers at all."""

    def __init__(self, space: Space, objectives: int) -> None:
        self._ordered, self._count = np.asarray(space.ordered, dtype=np.bool_), objectives
        self._snapshot: Sequence[Trial] | None = None
        self._failures = 0
        self._units = np.empty((0, len(self._ordered)))
        self._assumed = self._units
        self._forget_fit()

    def _forget_fit(self) -> None:
        self._objectives = [_Objective(self._ordered) for _ in range(self._count)]
        self._success = GaussianProcess(self._ordered)

    def learn(self, history: History) -> None:
        """Replace all that is known by `history`."""
        units = history.units()
        if history.snapshot is not self._snapshot:
            self._snapshot = history.snapshot
            self._forget_fit()
            self._learn(units, history.snapshot, fit=True)
        self._learn(units, history.trials, fit=False)

    def _learn(self, units: FloatArray, trials: Sequence[Trial], *, fit: bool) -> None:
        """Replace all that is known by `trials`, and `fit` the models to them if asked to."""
        units = units[: len(trials)]
        measured = np.array([trial.estimate is not None for trial in trials], dtype=np.bool_)
        self._units = units[measured]
        for place, objective in enumerate(self._objectives if measured.any() else []):
            known = [(trial.estimate, *trial.others)[place] for trial in trials if trial.estimate is not None]
            objective.learn(self._units, [guess for guess in known if guess is not None], fit=fit)
        failed = np.array([trial.estimate is None and not _lost(trial) for trial in trials], dtype=np.bool_)
        self._failures = int(failed.sum())
        if self._failures:
            told = failed | measured
            data = Observations.single(units[told], measured[told].astype(np.float64))
            if fit:
                self._success.fit(data, from_prior=True)
            else:
                self._success.condition(data)

    def assume(self, units: FloatArray) -> None:
        """Assume that each row of `units` was measured as predicted."""
        self._assumed = np.concatenate((self._assumed, units))
        for objective in self._objectives:
            objective.process.assume(units)

    def forget_assumed(self) -> None:
        """Undo every `assume`."""
        self._assumed = self._assumed[:0]
        for objective in self._objectives:
            objective.process.forget_assumed()

    def means(self) -> FloatArray:
        """The predicted means of the configurations measured or assumed, so that no lucky run counts."""
        units = np.concatenate((self._units, self._assumed))
        columns = [(objective, objective.process.predict(units)[0]) for objective in self._objectives]
        return np.stack([np.exp(mean) if objective.logarithmic else mean for objective, mean in columns], axis=1)

    def front_units(self, rng: np.random.Generator) -> FloatArray:
        """Points of the front, or some of them."""
        rows = np.flatnonzero(_is_front(self.means()))
        chosen = rows if len(rows) <= _CENTRES else rng.choice(rows, _CENTRES, replace=False)
        return np.asarray(np.concatenate((self._units, self._assumed))[chosen], dtype=np.float64)

    def log_promise(self, points: _Points) -> FloatArray:
        """The log expected hypervolume improvement at each point, plus the log odds that it yields numbers."""
        means = self.means()
        front = means[_is_front(means)]
        # A front of few points says little about the ends of the whole one; the other points show how large values get.
        ends = front.max(axis=0) + np.maximum(_MARGIN * np.ptp(front, axis=0), _LEAST_MARGIN * np.ptp(means, axis=0))
        reference = np.maximum(ends, np.quantile(means, _ORDINARY, axis=0))
        predictions = [
            NormalPrediction(*points.under(place, objective.process), objective.logarithmic)
            for place, objective in enumerate(self._objectives)
        ]
        promise = log_expected_hypervolume_improvement(predictions, front, reference)
        if not self._failures:
            return promise
        from scipy.special import log_ndtr

        # Least-squares classification (Rasmussen & Williams 2006, section 6.5).
        mean, deviation = points.under(-1, self._success)
        return promise + log_ndtr((mean - 0.5) / np.hypot(deviation, self._success.noise_deviation()))


class _Objective:
    """A Gaussian process over one objective, or over its logarithm where that is predicted better.

    Values are shares of the largest: volumes of three objectives then stay within the range of floats.
    """

    def __init__(self, ordered: BoolArray) -> None:
        self._plain, self._logarithms = GaussianProcess(ordered), GaussianProcess(ordered)
        self._prefers_logarithms = self.logarithmic = False

    @property
    def process(self) -> GaussianProcess:
        """The model in use."""
        return self._logarithms if self.logarithmic else self._plain

    def learn(self, x: FloatArray, estimates: Sequence[Estimate], *, fit: bool) -> None:
        """Replace all that is known by `estimates` at the rows of `x`; `fit`: fit the models and choose one."""
        values = np.array([guess.value for guess in estimates])
        share = np.array([1.0 / guess.count for guess in estimates])
        largest = float(np.max(np.abs(values))) or 1.0
        plain = Observations(x, values / largest, share, np.zeros(len(values)))
        positive = bool(np.all(plain.y > 0.0))
        logarithms = replace(plain, y=np.log(plain.y)) if positive else plain
        if fit:
            self._plain.fit(plain, from_prior=True)
            if positive:
                self._logarithms.fit(logarithms, from_prior=True)
                # Densities of y itself: that of log y times the Jacobian 1/y.
                density = self._logarithms.leave_one_out_log_density() - float(logarithms.y.sum())
                self._prefers_logarithms = density >= self._plain.leave_one_out_log_density()
        self.logarithmic = self._prefers_logarithms and positive
        self.process.condition(logarithms if self.logarithmic else plain)


def _most_promising(
    points: _Points, models: _Models, taken: set[bytes], rng: np.random.Generator
) -> tuple[float, FloatArray] | None:
    free = np.array([key not in taken for key in points.keys], dtype=np.bool_)
    if not free.any():
        return None
    # Promises that differ by rounding only are equal, and one of them is drawn.
    promise = np.round(np.where(free, models.log_promise(points), -np.inf), _TIE)
    row = int(rng.choice(np.flatnonzero(promise == promise.max())))
    return float(promise[row]), points.codes[row]


def _is_front(values: FloatArray) -> BoolArray:
    """Which rows no other row dominates; of equal ones each."""
    no_worse: BoolArray = np.all(values[None, :, :] <= values[:, None, :], axis=2)
    better: BoolArray = np.any(values[None, :, :] < values[:, None, :], axis=2)
    dominated: BoolArray = np.any(no_worse & better, axis=1)
    return ~dominated


def _lost(trial: Trial) -> bool:
    return all(isinstance(outcome, Lost) for outcome in trial.outcomes)


def _key(codes: FloatArray) -> bytes:
    return (codes + 0.0).tobytes()
