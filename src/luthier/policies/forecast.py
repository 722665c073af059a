"""What a search that goes on is expected to find, learned from generated searches.

The weights of the network are in `forecast.json`; `python -m benchmarks.train_stop` makes them.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from luthier.arrays import FloatArray
from luthier.learn.network import Network

WEIGHTS = Path(__file__).with_name("forecast.json")

HORIZONS = (1, 2, 4, 8, 16, 32, 64)
"""The forecast is for this many further steps."""

FEWEST_STEPS = 5
"""Fewer steps say too little about what further ones would bring."""

_TINY = 1e-5  # smaller gains count as this one
_LOWEST = math.log(1e-7)  # the network may not forecast less than this


def features(best: FloatArray) -> FloatArray:
    """What the network knows of a search: how the best value so far, above 0, fell from step to step.

    Only ratios of values count, so the unit does not matter.
    """
    steps, now = len(best), float(best[-1])

    def gain(back: int) -> float:
        return _size(math.log(best[max(steps - 1 - back, 0)] / now))

    # The steps that brought a better value.
    falls = np.flatnonzero(best[1:] < best[:-1]) + 1
    last = int(falls[-1]) if falls.size else 0
    since = steps - 1 - last
    return np.array(
        [
            # Logarithms of steps and of gains: both span orders of magnitude.
            math.log(steps),
            math.log1p(since),
            since / steps,
            math.log1p(falls.size),
            _size(math.log(best[last - 1] / best[last]) if last else 0.0),
            gain(steps),
            *(gain(back) for back in HORIZONS),
            *(gain(part * steps // 4) for part in (1, 2, 3)),
        ]
    )


def _size(gain: float) -> float:
    """The order of magnitude of a gain."""
    return math.log10(max(gain, 0.0) + _TINY)


@dataclass(frozen=True, slots=True)
class Forecast:
    """A network with the mean and the standard deviation of each of its features."""

    network: Network
    mean: FloatArray
    deviation: FloatArray

    def gains(self, rows: FloatArray) -> FloatArray:
        """For each row of features the expected gain after each of `HORIZONS`, as a share of the best value."""
        # The network forecasts logarithms; a value above 0 cannot gain more than all of itself.
        return np.exp(np.clip(self.network((rows - self.mean) / self.deviation), _LOWEST, 0.0))

    def to_json(self) -> dict[str, object]:
        """Everything as plain numbers, to six digits."""
        return {
            "mean": _plain(self.mean),
            "deviation": _plain(self.deviation),
            "weights": [_plain(weight) for weight in self.network.weights],
        }

    @classmethod
    def from_json(cls, plain: Mapping[str, Sequence[object]]) -> "Forecast":
        """Rebuild what `to_json` wrote."""
        weights = [np.array(weight, dtype=np.float64) for weight in plain["weights"]]
        mean, deviation = (np.array(plain[name], dtype=np.float64) for name in ("mean", "deviation"))
        return cls(Network(weights), mean, deviation)


def _plain(numbers: FloatArray) -> object:
    """The numbers as nested lists."""
    return [_plain(row) if row.ndim else float(f"{row:.6g}") for row in numbers]


@cache
def shipped() -> Forecast:
    """The forecast that comes with luthier."""
    return Forecast.from_json(json.loads(WEIGHTS.read_text(encoding="utf-8")))


@dataclass(frozen=True, slots=True)
class Outlook:
    """The expected saving in production by `steps` further steps, and their expected cost."""

    steps: int
    saved_s: float
    cost_s: float

    @property
    def pays(self) -> bool:
        """Whether to go on."""
        return self.saved_s > self.cost_s

    def text(self, step: str, production_runs: int) -> str:
        """The figures in one line; `step` is the word for a step."""
        steps = f"the next {step}" if self.steps == 1 else f"the next {self.steps} {step}s"
        are = "is" if self.steps == 1 else "are"
        runs = f"{production_runs} run{'' if production_runs == 1 else 's'}"
        return f"{steps} {are} expected to save {self.saved_s:.3g} s in {runs} and to cost {self.cost_s:.3g} s"


def outlook(best: FloatArray, step_s: float, production_s: float, left: float, forecast: Forecast) -> Outlook | None:
    """The number of further steps with the best relation of saving to cost; None if no step is left.

    `best` is the best value after each step so far, `step_s` the cost of a step, `production_s` the time that all
    production runs would take with the present best, and `left` how many steps can still be made.
    """
    # TunIO learns the decision (Rajesh et al. 2024, III-D); here the gain is learned, and the decision compares it with
    # the cost: docs/research/2026-11-18-learned-stopping.md.
    (gains,) = forecast.gains(features(best)[None, :])
    # The first horizon beyond what is left stands for the rest, as long as it is less than twice as far.
    possible = [(min(horizon, left), gain) for horizon, gain in zip(HORIZONS, gains, strict=True) if horizon / 2 < left]
    looks = [Outlook(max(round(steps), 1), production_s * float(gain), steps * step_s) for steps, gain in possible]
    return max(looks, key=lambda look: look.saved_s / look.cost_s if look.cost_s else math.inf, default=None)
