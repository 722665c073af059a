"""Which parameters are tuned now, decided by networks that were trained on many searches, and learn on."""

import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files

import numpy as np

from luthier.arrays import FloatArray
from luthier.policies.base import SearchSoFar, Subset
from luthier.policies.picker_networks import PARAMETER_INPUTS, SIZES, STATE_INPUTS, Decision, Networks, copied, learn
from luthier.policies.statistical_subset import KnownEffects, fruitless_steps, with_room
from luthier.trial import Config, Json

_ROOM = 3  # free configurations that a part needs at least
_FADING = 0.7  # of a gain with every step that has passed since
_LATER_STEPS, _LATER_RATE = 20, 3e-4  # of learning after each experiment


@cache
def shipped() -> Networks:
    """The networks that come with the package; `benchmarks/train_subset_picker.py` makes them."""
    return Networks.from_json(json.loads((files(__package__) / "subset_picker.json").read_text(encoding="utf-8")))


@dataclass(frozen=True, slots=True)
class LearnedPicker:
    """Tunes the parameters that a trained network expects to gain most, as many as another one finds best."""

    networks: Networks

    def __call__(self, search: SearchSoFar) -> Subset:
        """Return the parameters to tune now, the most promising first."""
        view = View.of(search)
        expected, _, action = self.observed(view)
        return chosen(view, expected, action)

    def observed(self, view: "View") -> tuple[FloatArray, FloatArray, int]:
        """What the observer expects of each parameter, the state that the second network sees, and its choice."""
        expected = self.networks.observer(view.parameters)[:, 0]
        state = view.state(expected)
        return expected, state, int(np.argmax(self.networks.values(state[None, :])[0]))


@dataclass(frozen=True, slots=True)
class View:
    """A search as the networks see it: a row of inputs for each parameter."""

    search: SearchSoFar
    findings: KnownEffects | None
    parameters: FloatArray

    @staticmethod
    def of(search: SearchSoFar) -> "View":
        """Compute the inputs."""
        findings = KnownEffects.of(search.space, [trial for trial in search.trials if trial.estimate is not None])
        return View(search, findings, _parameter_inputs(search, findings))

    def state(self, expected: FloatArray) -> FloatArray:
        """The state of the search and what the observer expects, for the second network."""
        names, steps = self.search.space.names, self.search.steps
        # The inputs are brought to about 0 to 1 by hand; the constants below belong to the shipped weights.
        top = np.zeros(4)
        ranked = np.sort(expected)[::-1][:4]
        top[: len(ranked)] = ranked
        shares = np.exp(expected - expected.max())
        shares /= shares.sum()
        # 1: the observer expects the same of all; 0: everything of one.
        entropy = float(-np.sum(shares * np.log(shares + 1e-12))) / max(np.log(len(names)), 1e-9)
        last = _gains(self.search)[-1] if len(steps) > 1 else 0.0
        values = [
            *top,
            entropy,
            min(fruitless_steps(self.search), 6) / 6.0,
            len(names) / 20.0,
            len(steps[-1].names) / len(names) if steps else 1.0,
            np.log1p(self.search.count) / 6.0,
            last,
            0.0 if self.findings is None else min(float(self.findings.effects.shares().sum()), 1.0),
        ]
        return np.array(values, dtype=np.float64).reshape(STATE_INPUTS)


def chosen(view: View, expected: FloatArray, action: int) -> Subset:
    """The first parameters in the order of what is expected of them, as many as the action says."""
    names = view.search.space.names
    ranked = [names[at] for at in np.argsort(-expected, kind="stable")]
    count = max(1, round(SIZES[action] * len(names)))
    if view.findings is not None:
        count = with_room(view.search, view.findings.best, ranked, count, _ROOM)
    if count == len(names):
        return Subset(tuple(ranked), "the network expects more from all of them than from a part")
    columns = np.array([names.index(name) for name in ranked[:count]])
    why = "the network expects most from them" if count > 1 else "the network expects most from it"
    return Subset(tuple(ranked[:count]), why if view.findings is None else view.findings.explained(columns, why))


def _parameter_inputs(search: SearchSoFar, findings: KnownEffects | None) -> FloatArray:
    """A row for each parameter: what tuning it brought so far, and what a model of the values says."""
    space, steps = search.space, search.steps
    gains = _gains(search)
    x = np.zeros((len(space.names), PARAMETER_INPUTS))
    for row, (name, parameter) in enumerate(zip(space.names, space.parameters, strict=True)):
        tuned = np.array([name in step.names for step in steps], dtype=np.float64)
        sizes = np.array([len(step.names) for step in steps], dtype=np.float64)
        since = next((back for back, was in enumerate(reversed(tuned)) if was), len(tuned))
        # Parameters that were tuned together share a gain equally.
        credit = gains * tuned / np.maximum(sizes, 1.0)
        # Columns 0 to 4: how often it was tuned, what that brought, and how long ago it was.
        x[row, 0] = tuned[-1] if len(tuned) else 0.0
        x[row, 1] = tuned.mean() if len(tuned) else 0.0
        x[row, 2] = credit.sum()
        x[row, 3] = float(np.sum(credit * _FADING ** np.arange(len(credit))[::-1]))
        x[row, 4] = np.log1p(since) / 3.0
        # Columns 5 and 6: the parameter; a continuous one counts as 64 values.
        x[row, 5] = np.log2(parameter.size or 64) / 6.0
        x[row, 6] = float(parameter.ordered)
    # Columns 7 to 9: the search as a whole.
    x[:, 7] = min(fruitless_steps(search), 6) / 6.0
    x[:, 8] = np.log1p(search.count) / 6.0
    x[:, 9] = 3.0 / len(space.names)
    if findings is not None:
        # Columns 10 to 13: the model of main effects, and whether there is one.
        total = findings.gains.sum()
        x[:, 10] = findings.gains / total if total > 0.0 else 0.0
        x[:, 11] = findings.gains
        x[:, 12] = findings.effects.shares()
        x[:, 13] = 1.0
    return x


def _gains(search: SearchSoFar) -> FloatArray:
    """What each step brought, as a share of the improvement so far; the first one, with the default, is not counted."""
    bests = [*(step.best for step in search.steps), search.best]
    known = [best for best in bests if best is not None]
    whole = known[0] - known[-1] if known else 0.0
    if not whole > 0.0:
        return np.zeros(len(search.steps))
    pairs = itertools.pairwise(bests)
    return np.array([0.0 if a is None or b is None else (a - b) / whole for a, b in pairs])


class Recorder:
    """A learned picker that keeps its decisions, to learn from them later; `explore` makes some of them at random."""

    def __init__(self, networks: Networks, *, explore: float = 0.0, rng: np.random.Generator | None = None) -> None:
        self._picker, self._explore, self._rng = LearnedPicker(networks), explore, rng
        self._seen: list[tuple[View, Decision, Config | None, float | None]] = []

    def __call__(self, search: SearchSoFar) -> Subset:
        """Decide as a learned picker does, and keep the decision."""
        view = View.of(search)
        expected, state, action = self._picker.observed(view)
        if self._rng is not None and self._rng.random() < self._explore:
            action = int(self._rng.integers(len(SIZES)))
            expected = expected + self._rng.standard_normal(len(expected)) * float(np.std(expected) + 0.02)
        subset = chosen(view, expected, action)
        names = search.space.names
        tuned = np.array([name in subset.names for name in names])
        # Where the part was too small, more were tuned than the action said: learn from what was done.
        made = int(np.argmin([abs(max(1, round(share * len(names))) - len(subset.names)) for share in SIZES]))
        decision = Decision(view.parameters, state, made, tuned, 0.0, np.full(len(names), np.nan))
        best = None if view.findings is None else view.findings.best
        self._seen.append((view, decision, best, search.best))
        return subset

    def decisions(self, best_known: float | None = None) -> list[Decision]:
        """The decisions with their performances; `best_known` is the best value there is, if that is known."""
        bests = [best for *_, best in self._seen]
        known = [best for best in bests if best is not None]
        if not known:
            return []
        first, lowest = known[0], min(known) if best_known is None else best_known
        scale = first - lowest if first > lowest else 1.0
        found = []
        for at, (view, decision, config, best) in enumerate(self._seen):
            # Rajesh et al. 2024, III-C, divide by the bandwidth of the nodes; here it is the best improvement known.
            level = 0.0 if best is None else (first - best) / scale
            found.append(replace(decision, level=level, gained=self._gained(at, view, decision, config, scale)))
        return found

    def _gained(self, at: int, view: View, decision: Decision, config: Config | None, scale: float) -> FloatArray:
        """What each tuned parameter brought until the next decision: those that changed in the best one share it."""
        gained = np.where(decision.tuned, 0.0, np.nan)
        if at + 1 == len(self._seen):
            return gained
        _, _, later, best_later = self._seen[at + 1]
        best = self._seen[at][3]
        if best is None or best_later is None or config is None or later is None or not best_later < best:
            return gained
        names = view.search.space.names
        changed = np.array([config[name] != later[name] for name in names]) & decision.tuned
        if changed.any():
            gained[changed] = min((best - best_later) / scale, 1.0)
        return gained


def learned_from(networks: Networks, decisions: Sequence[Decision], *, seed: int) -> Networks:
    """The networks after a training step on one more search."""
    better = copied(networks)
    learn(better, [decisions], steps=_LATER_STEPS, rate=_LATER_RATE, seed=seed)
    return better


def picker_with(weights: Mapping[str, Json]) -> LearnedPicker:
    """The learned picker with these weights."""
    return LearnedPicker(Networks.from_json(weights))


def shipped_picker() -> LearnedPicker:
    """The learned picker with the weights of the package."""
    return LearnedPicker(shipped())
