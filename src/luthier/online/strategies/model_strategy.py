"""A search by a model of the values, which weighs what a step may gain against what it costs."""

import math
from collections.abc import Sequence

import numpy as np
from scipy import linalg, optimize, special  # noqa: F401 imported when the strategy is made, not in its first plan

from luthier.arrays import FloatArray
from luthier.learn.gaussian_process import Observations
from luthier.learn.linear import one_thread
from luthier.online.base import Standing
from luthier.online.strategies.handouts import Handouts
from luthier.online.strategies.nearby import first_steps, nearby
from luthier.online.strategies.rounds import Rounds
from luthier.online.strategies.sampling import Sampling
from luthier.online.strategies.step_choice import (
    Prospects,
    Trust,
    expected_gain,
    expected_ratios,
    learned_by_sample,
    worthwhile,
)
from luthier.online.strategies.value_model import KnownValues, ValueModel
from luthier.optimizers.simplex import Landscape
from luthier.optimizers.surrogates import CachedPoints, GaussianSurrogate
from luthier.space import Space
from luthier.trial import Config

_FEWEST_MEASURED = 4  # configurations: with fewer, the first steps around the start are taken
_FIRST_SAMPLES = 2  # of the start, so that noise is noticed
_SHORT_LIVED = 8  # clients that began after reports of others while none has reported twice: each runs one iteration
_SURE = 8  # samples of the best before a search ends; they cost nothing, and one outlier in the first ones is noticed
_MOST_ROUNDS = 10  # for each parameter, or the horizon if that is longer: a longer search does not pay off
_STALE = 12  # rounds without a new best configuration that end a search, besides some for every parameter
_MOST_SAMPLES = 40  # of one configuration that are kept
_RESAMPLED = 0.25  # factor of the gain of a further sample, for each sample already planned in the same step
_LEAST_SHARE = 1e-4  # of a step: a smaller expected gain over the whole horizon counts as 0


class ModelStrategy:
    """Plans a step for all clients at once whenever all of them have reported.

    A step is planned with a model of everything measured so far. Clients without a part in the plan run the best known
    configuration. The search has converged when no step is expected to gain more over the horizon than it costs.
    """

    def __init__(self, space: Space, seed: int, sampling: Sampling, centre: Config | None, horizon: float) -> None:
        self._space, self._seed, self._sampling, self._horizon = space, seed, sampling, horizon
        self._best = space.default if centre is None else centre
        self._samples: dict[Config, list[float]] = {}
        self._rows: dict[Config, FloatArray] = {}  # in the unit cube, of everything reported
        self._failed: dict[Config, None] = {}
        self._handouts, self._rounds = Handouts(), Rounds()
        self._model = ValueModel(space.ordered, sampling.value)
        self._works = GaussianSurrogate(space.ordered, "matern52")
        self._trust, self._expected = Trust(), 0.0  # the gain that the last step was expected to bring
        self._reports = self._stale = self._planned = 0
        self._later: set[Config] = set()  # what was planned within the first round
        self._latecomers = 0
        self._look_at = _FEWEST_MEASURED  # the number of reports of the first round that makes a new plan
        self.deferred = False
        self._due: int | None = None  # for how many clients a step is to be planned
        self._converged = False
        rng = np.random.default_rng([seed, 1])
        start, middle = space.codes([self._best])[0], Landscape(space, seed).middle()
        first = space.configs(np.concatenate((middle[None, :], first_steps(space, start, rng))))
        self._first = [config for config in dict.fromkeys(first) if config != self._best]
        self._handouts.plan({self._best: _FIRST_SAMPLES, **self._with_samples(self._first)})

    @property
    def standing(self) -> Standing:
        """The best configuration so far, and whether the search has converged."""
        samples = self._samples.get(self._best)
        value = None if samples is None else self._sampling.value(samples)
        return Standing(self._best, value, len(samples or ()), self._converged)

    def next(self, client: str) -> Config:
        """The next configuration for a client: one that is planned, else the best known."""
        return self._best if self._converged else self._handouts.next(client, self._best)

    def leave(self, client: str) -> None:
        """Forget what a client runs."""
        self._handouts.leave(client)

    def report(self, client: str, config: Config, value: float | None) -> None:
        """Learn from a sample; the last one of a round makes a new plan."""
        if self._converged:
            return
        self._handouts.taken(client, config)
        self._reports += 1
        self._note_short_lived(config)
        if config not in self._rows:
            self._rows[config] = self._space.to_unit(self._space.codes([config]))[0]
        if value is None:
            self._failed[config] = None
            self._samples.pop(config, None)
            self._handouts.missing.pop(config, None)
        elif config not in self._failed:
            values = self._samples.setdefault(config, [])
            if len(values) < _MOST_SAMPLES:
                values.append(value)
        # It has failed, or was not measured yet.
        if self._best not in self._samples:
            self._best = min(
                self._samples, key=lambda one: self._sampling.value(self._samples[one]), default=self._best
            )
        if self._rounds.add(client) or self._is_due_in_first_round():
            self._due = self._rounds.clients or self._rounds.reported
            if not self.deferred:
                self.decide()

    @property
    def is_due(self) -> bool:
        """Whether a step must be planned; see `SlowStrategy`."""
        return self._due is not None

    def decide(self) -> None:
        """Plan a step."""
        clients, self._due = self._due, None
        if clients is not None:
            with one_thread():
                self._plan(clients)

    def _is_due_in_first_round(self) -> bool:
        """Whether to plan again although nobody knows yet how many clients will report before they ask again."""
        if self._rounds.clients is not None or (self._reports < self._look_at and self._handouts.missing):
            return False
        # More and more rarely, because each of many clients would cause a plan.
        self._look_at = math.ceil(1.15 * self._reports)
        return True

    def _note_short_lived(self, config: Config) -> None:
        """End the first round if its clients do not stay: who began after others had reported reports before them."""
        if self._rounds.clients is None and config in self._later:
            self._latecomers += 1
            if self._latecomers >= _SHORT_LIVED:
                self._rounds.end_first(_SHORT_LIVED)
                self._later.clear()

    def _with_samples(self, configs: Sequence[Config]) -> dict[Config, int]:
        """How many samples each configuration needs: one, or what a fixed number says."""
        none: dict[Config, list[float]] = {}
        return {config: max(1, self._sampling.wanted(none, [config], None).get(config, 1)) for config in configs}

    def _plan(self, clients: int) -> None:
        """Decide what the next step measures, or that the search has converged."""
        first = [config for config in self._first if config not in self._rows]
        if len(self._samples) < _FEWEST_MEASURED and (first or not self._samples):
            self._plan_without_model(first, clients)
            return
        is_first = self._rounds.clients is None
        before = self._best
        known = self._model.learn(
            np.array([self._rows[config] for config in self._samples]), list(self._samples.values())
        )
        chosen = self._choose(known, clients)
        self._stale = 0 if is_first or self._best != before else self._stale + 1
        if self._stale > _STALE + 4 * len(self._space.names) / clients:
            chosen = []
        chosen = chosen or self._untried_categories()[:clients]
        # Before the end, all clients sample the best one, which they would run anyway.
        if not chosen and len(self._samples[self._best]) < _SURE:
            chosen = [self._best] * clients
        self._planned += not is_first
        # However promising: a longer search cannot pay off.
        if self._planned > max(self._horizon, _MOST_ROUNDS * len(self._space.names)):
            chosen = []
        # The first round cannot be the last, as nobody knows yet how many clients there are.
        self._converged = not chosen and not is_first
        if is_first:
            self._later.update(config for config in chosen if config not in self._rows)
        self._handouts.plan(self._counted(chosen))

    def _untried_categories(self) -> list[Config]:
        """The best configuration with each category that was never measured: no model can know anything about it."""
        untried = []
        for parameter in self._space.parameters:
            if not parameter.ordered:
                seen = {config[parameter.name] for config in self._rows}
                values = (parameter.value(number) for number in range(parameter.size or 0))
                untried += [Config({**self._best, parameter.name: value}) for value in values if value not in seen]
        return [config for config in untried if self._space.contains(config)]

    def _plan_without_model(self, first: Sequence[Config], clients: int) -> None:
        """The first steps around the start, then anything; give up if nothing of that works."""
        if not self._samples and len(self._failed) >= 10 + 4 * len(self._space.names):
            first = []
        elif len(first) < clients:
            rng = np.random.default_rng([self._seed, self._reports])
            first = [*first, *self._space.sample(clients - len(first), rng, exclude={*self._rows, *first})]
        self._converged = not first
        self._handouts.plan(self._with_samples(first[:clients]))

    def _counted(self, chosen: Sequence[Config]) -> dict[Config, int]:
        counts: dict[Config, int] = {}
        for config in chosen:
            counts[config] = counts.get(config, 0) + 1
        fresh = self._with_samples([config for config in counts if config not in self._samples])
        return {**counts, **fresh}

    def _choose(self, known: KnownValues, clients: int) -> list[Config]:
        """The configurations of the next step, the most promising first; none if no step is worth its cost."""
        configs = [list(self._samples)[row] for row in known.numbers]
        best = int(np.argmin(known.mean))
        before = configs.index(self._best) if self._best in configs else best
        if self._rounds.clients is not None:  # plans of the first round are replaced before they are carried out
            self._trust.add(self._expected, float(known.mean[before] - known.mean[best]))
        self._best = configs[best]
        codes, units = self._new_points(known)
        prospects = self._prospects(units, known, best)
        step = worthwhile(prospects, self._model.noise, clients, self._horizon * self._trust.share)
        self._expected = 0.0 if step is None else step.gain
        if step is None:
            return []
        gains = np.where(expected_ratios(prospects) <= step.limit, prospects.gains(), -1.0)
        picked = self._picked(gains, units, prospects, clients)
        decoded = iter(self._space.configs(codes[[number for number in picked if number < len(codes)]]))
        return [next(decoded) if number < len(codes) else configs[number - len(codes)] for number in picked]

    def _new_points(self, known: KnownValues) -> tuple[FloatArray, FloatArray]:
        """The codes of points near the known ones that were never reported, and their rows in the unit cube."""
        rng = np.random.default_rng([self._seed, self._reports])
        codes = nearby(self._space, known.rows, known.mean, rng)
        units = self._space.to_unit(codes)
        taken = {row.tobytes() for row in self._rows.values()}
        free = np.array([row.tobytes() not in taken for row in units], dtype=np.bool_)
        return codes[free], units[free]

    def _prospects(self, units: FloatArray, known: KnownValues, best: int) -> Prospects:
        """What is predicted relative to the best known value: first of new points, then of the known ones."""
        mean, deviation, chance = np.empty(0), np.empty(0), np.empty(0)
        if len(units):
            mean, deviation = self._model.predict(units)
            chance = self._chance(units)
        prospects = Prospects.of(
            np.concatenate((mean, known.mean)) - known.mean[best],
            np.concatenate((deviation, known.deviation)),
            self._model.single_deviation(),
            np.concatenate((chance, np.ones(len(known.mean)))),
        )
        # A further sample of the best one leads to nothing better.
        prospects.learned[len(mean) + best] = 0.0
        return prospects

    def _picked(self, gains: FloatArray, units: FloatArray, prospects: Prospects, clients: int) -> list[int]:
        """The numbers of those with the largest gains, each after assuming that those before it were measured."""
        fresh, single = len(units), self._model.single_deviation()
        picked: list[int] = []
        while len(picked) < clients:
            number = int(np.argmax(gains))
            # The clients that are left run the best known configuration.
            if gains[number] * self._horizon <= _LEAST_SHARE:
                break
            picked.append(number)
            if number >= fresh:
                gains[number] *= _RESAMPLED
            elif len(picked) < clients:
                # The next one is chosen as if this one were measured as predicted (Ginsbourger et al. 2010).
                learned = learned_by_sample(self._model.assume(units[number]), single)
                left = expected_gain(prospects.mean[:fresh], learned) * prospects.chance[:fresh]
                gains[number] = -1.0
                gains[:fresh] = np.where(gains[:fresh] < 0.0, -1.0, left)
        self._model.forget_assumed()
        return picked

    def _chance(self, units: FloatArray) -> FloatArray:
        """How probable it is that each point works, from those that failed; 1 if none did."""
        if not self._failed:
            return np.ones(len(units))
        rows = np.array([self._rows[config] for config in (*self._samples, *self._failed)])
        works = np.concatenate((np.ones(len(self._samples)), np.zeros(len(self._failed))))
        # Failures come last, so they are among the 200.
        data = Observations.single(rows[-200:], works[-200:])
        self._works.fit(data)
        mean, deviation, _ = self._works.predict(CachedPoints(units, once=True))
        return np.asarray(np.exp(self._works.log_chance(mean, deviation)), dtype=np.float64)
