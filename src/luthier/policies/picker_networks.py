"""The two networks of the learned picker: their inputs, their answers, and how they learn (Rajesh et al. 2024, III-C).

The observer, a contextual bandit, predicts for each parameter what tuning it next gains. From its answers and the state
of the search, the second network predicts by Q-learning the value of tuning the first few of them.
"""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from luthier.arrays import BoolArray, FloatArray
from luthier.errors import InvalidInputError
from luthier.learn.adam import Adam
from luthier.learn.network import Network, new_network
from luthier.trial import Json

SIZES = (0.0, 0.15, 0.3, 0.5, 1.0)
"""The actions: the share of the parameters to tune, one parameter at least."""

PARAMETER_INPUTS, STATE_INPUTS = 14, 11
# Rajesh et al. 2024, III-C.
DELAY = 5
"""A decision is rewarded by the performance this many steps later."""

_HIDDEN = (16,)  # units of the only hidden layer
_DISCOUNT = 0.7  # of the value of the next state
_FOREIGN = "the weights were written by another program"


@dataclass(frozen=True, slots=True)
class Networks:
    """The observer and the Q-network; the arrays may be changed by `learn`."""

    observer: Network
    values: Network

    def to_json(self) -> dict[str, Json]:
        """The weights as lists of numbers."""
        return {"observer": _plain(self.observer), "values": _plain(self.values)}

    @classmethod
    def from_json(cls, plain: Mapping[str, Json]) -> "Networks":
        """Read what `to_json` wrote."""
        observer = _read(plain.get("observer"), (PARAMETER_INPUTS, *_HIDDEN, 1))
        return cls(observer, _read(plain.get("values"), (STATE_INPUTS, *_HIDDEN, len(SIZES))))


@dataclass(frozen=True, slots=True)
class Decision:
    """What the networks saw when they decided, and what they did; `level` is the performance then.

    `gained` is what each parameter brought until the next decision, NaN for those that were not tuned.
    """

    parameters: FloatArray
    state: FloatArray
    action: int
    tuned: BoolArray
    level: float
    gained: FloatArray


def new_networks(rng: np.random.Generator) -> Networks:
    """Untrained networks."""
    return Networks(
        new_network((PARAMETER_INPUTS, *_HIDDEN, 1), rng), new_network((STATE_INPUTS, *_HIDDEN, len(SIZES)), rng)
    )


def copied(networks: Networks) -> Networks:
    """Networks with arrays of their own."""
    first, second = ([weight.copy() for weight in each.weights] for each in (networks.observer, networks.values))
    return Networks(Network(first), Network(second))


def rewards(decisions: Sequence[Decision]) -> FloatArray:
    """The normalised performance `DELAY` steps later minus the share of the parameters that were tuned."""
    levels = np.array([decision.level for decision in decisions])
    # The delay avoids a bias towards short-term gains; near the end, the last level counts.
    later = levels[np.minimum(np.arange(len(levels)) + DELAY, len(levels) - 1)]
    return np.asarray(later - np.array([decision.tuned.mean() for decision in decisions]), dtype=np.float64)


def learn(networks: Networks, episodes: Sequence[Sequence[Decision]], *, steps: int, rate: float, seed: int) -> None:
    """Train both networks, in place, on the decisions of some searches."""
    usable = [episode for episode in episodes if len(episode) > 1]
    if not usable:
        return
    rng = np.random.default_rng(seed)
    # The last decision of a search has no next state.
    x = np.concatenate([decision.parameters for episode in usable for decision in episode[:-1]])
    gained = np.concatenate([decision.gained for episode in usable for decision in episode[:-1]])[:, None]
    states = np.stack([decision.state for episode in usable for decision in episode[:-1]])
    following = np.stack([decision.state for episode in usable for decision in episode[1:]])
    actions = np.array([decision.action for episode in usable for decision in episode[:-1]])
    reward = np.concatenate([rewards(episode)[:-1] for episode in usable])
    observer, picker = Adam(networks.observer.weights, rate), Adam(networks.values.weights, rate)
    aim = copied(networks).values
    for step in range(steps):
        rows = rng.integers(len(x), size=min(len(x), 256))
        _, slopes = networks.observer.squared_error(x[rows], gained[rows])
        observer.step(slopes)
        # Targets come from older weights, or they would move with every step (Mnih et al. 2015).
        if step % 100 == 0:
            aim = copied(networks).values
        rows = rng.integers(len(states), size=min(len(states), 128))
        # Q-learning (Watkins & Dayan 1992): the reward plus the discounted value of the best next action. Rewards are
        # multiplied by 1 - discount, so that values stay in their range. Of actions not taken (NaN) nothing is learned.
        wanted = np.full((len(rows), len(SIZES)), np.nan)
        best = aim(following[rows]).max(axis=1)
        wanted[np.arange(len(rows)), actions[rows]] = (1.0 - _DISCOUNT) * reward[rows] + _DISCOUNT * best
        _, slopes = networks.values.squared_error(states[rows], wanted)
        picker.step(slopes)


def _plain(network: Network) -> list[Json]:
    return [np.round(weight, 6).tolist() for weight in network.weights]


def _read(plain: Json, sizes: Sequence[int]) -> Network:
    """A network of these sizes."""
    shapes = [shape for a, b in itertools.pairwise(sizes) for shape in ((a, b), (b,))]
    try:
        weights = [np.array(one, dtype=np.float64) for one in plain]  # type: ignore[union-attr]  # checked here
    except (TypeError, ValueError):
        raise InvalidInputError(f"weights of the subset picker: invalid; {_FOREIGN}") from None
    if [weight.shape for weight in weights] != shapes or not all(np.isfinite(weight).all() for weight in weights):
        raise InvalidInputError(f"weights of the subset picker: wrong sizes; {_FOREIGN}")
    return Network(weights)
