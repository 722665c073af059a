"""Train the forecast behind the learned stop rule, and write its weights.

    python -m benchmarks.train_stop                                    # the shipped file, in about a minute
    python -m benchmarks.train_stop --curves 50 --epochs 1 --output /tmp/forecast.json

The same seed gives the same file on the same machine. The network learns how much of the best time so far is going to
be saved after a number of further steps. Its loss is the deviance of Tweedie's distribution with power 1.5: values that
are exactly 0 or above, with errors that count in proportion, so that an expected gain of a thousandth counts as well
as one of a half. The expectation of a true gain is wanted, and luck in a noisy measurement is none: targets are the
true times of the configurations that looked best.
"""

import argparse
import json
import sys
from pathlib import Path

import numpy as np

from benchmarks.stop_curves import STEPS, Curve, curve
from luthier.arrays import FloatArray
from luthier.learn.adam import Adam
from luthier.learn.network import new_network
from luthier.policies.forecast import FEWEST_STEPS, HORIZONS, WEIGHTS, Forecast, features

CURVES, MOMENTS, EPOCHS = 8000, 25, 12
HIDDEN, RATE, BATCH = (32, 32), 3e-3, 256
_HALF = 0.5  # 2 - 1.5 and 1.5 - 1
_LOWEST, _HIGHEST = -14.0, 0.5  # of the logarithm of a gain


def moments(one: Curve, rng: np.random.Generator) -> tuple[list[FloatArray], list[list[float]]]:
    """Some moments of a search: the features of each, and the gains after each horizon (NaN beyond the end)."""
    best, chosen = one.best(), one.chosen()
    at = rng.choice(np.arange(FEWEST_STEPS - 1, STEPS), MOMENTS, replace=False)
    gains = [
        [max(1.0 - chosen[now + ahead] / chosen[now], 0.0) if now + ahead <= STEPS else np.nan for ahead in HORIZONS]
        for now in at
    ]
    return [features(best[: now + 1]) for now in at], gains


def examples(count: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Features and gains of `count` searches."""
    rows: list[FloatArray] = []
    wanted: list[list[float]] = []
    for _ in range(count):
        more, gains = moments(curve(rng), rng)
        rows += more
        wanted += gains
    return np.array(rows), np.array(wanted)


def trained(rows: FloatArray, wanted: FloatArray, epochs: int, rng: np.random.Generator) -> Forecast:
    """A network fitted to examples."""
    mean, deviation = rows.mean(axis=0), rows.std(axis=0) + 1e-9
    inputs = (rows - mean) / deviation
    network = new_network((inputs.shape[1], *HIDDEN, len(HORIZONS)), rng)
    network.weights[-1][:] = -4.0
    for epoch in range(epochs):
        adam = Adam(network.weights, RATE * (1.0 - epoch / epochs))
        order = rng.permutation(len(inputs))
        for first in range(0, len(order) - BATCH + 1, BATCH):
            batch = order[first : first + BATCH]
            log_gain = np.clip(network(inputs[batch]), _LOWEST, _HIGHEST)
            slope = np.exp(_HALF * log_gain) - wanted[batch] * np.exp(-_HALF * log_gain)
            slope = np.where(np.isfinite(slope), np.clip(slope, -BATCH, BATCH), 0.0) / BATCH
            adam.step(network.gradients(inputs[batch], slope))
    return Forecast(network, mean, deviation)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--curves", type=int, default=CURVES)
    parser.add_argument("--epochs", type=int, default=EPOCHS)
    parser.add_argument("--output", type=Path, default=WEIGHTS)
    given = parser.parse_args()
    rng = np.random.default_rng(given.seed)
    forecast = trained(*examples(given.curves, rng), given.epochs, rng)
    rows, wanted = examples(max(given.curves // 10, 1), np.random.default_rng(given.seed + 1))
    expected = forecast.gains(rows)
    for at, ahead in enumerate(HORIZONS):
        told = np.isfinite(wanted[:, at])
        ratio = float(np.mean(expected[told, at]) / max(float(np.mean(wanted[told, at])), 1e-12))
        print(f"after {ahead:2d} steps: expected gain / true gain on new searches {ratio:.3f}")
    given.output.write_text(json.dumps(forecast.to_json()) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
