"""Training of the learned stop rule, and the benchmark that judges it."""

import json
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from benchmarks.heldout_curves import heldout
from benchmarks.learned_stop import from_curve, from_trace, judged
from benchmarks.search_traces import Trace
from benchmarks.stop_curves import STEPS, Curve, curve

from luthier.policies.forecast import Forecast, shipped

ROOT = Path(__file__).parents[2]


def test_the_same_seed_gives_the_same_weights(tmp_path: Path) -> None:
    texts = []
    for name in ("one.json", "other.json"):
        path = tmp_path / name
        command = [sys.executable, "-m", "benchmarks.train_stop", "--curves", "20", "--epochs", "2", "--output"]
        subprocess.run([*command, str(path)], cwd=ROOT, check=True, capture_output=True)
        texts.append(path.read_text(encoding="utf-8"))
    assert texts[0] == texts[1]
    assert Forecast.from_json(json.loads(texts[0])).mean.shape == shipped().mean.shape


def test_generated_searches_are_positive_and_begin_with_the_default() -> None:
    rng = np.random.default_rng(3)
    for make, steps in ((curve, STEPS), (heldout, 100)):
        for _ in range(40):
            one = make(rng)
            assert len(one.true) == len(one.measured) == len(one.cost) == steps + 1
            assert (one.true > 0.0).all()
            assert (one.cost > 0.0).all()
            assert not math.isnan(one.measured[0])
            assert set(one.chosen()) <= set(one.true)


def test_the_best_moment_is_known_to_the_judge() -> None:
    times = np.array([1.0, 0.9, 0.5, *([0.6] * 40)])
    row = judged(from_curve(Curve(times, times, times)), 10)
    assert row.best == pytest.approx(10 * 0.5 - 2.4)
    assert row.gains["no stop"] == pytest.approx(5.0 - times.sum())
    assert row.best_roti == pytest.approx(0.5 / 2.4)
    assert row.runs["5 % over 5"] == 8
    assert row.is_as_good_as("5 % over 5", "no stop")


def test_a_rate_of_a_table_is_turned_into_a_time() -> None:
    trace = Trace(
        table="t",
        optimizer="auto",
        seed=0,
        minimise=False,
        trials=[0, 1, 1, 2],
        values=[10.0, 20.0, 18.0, None],
        costs_s=[1.0, 0.5, 0.5, 1.0],
        true=[10.0, 19.0, 19.0, 5.0],
    )
    search = from_trace(trace)
    assert search is not None
    assert search.chosen == pytest.approx([1.0, 10.0 / 19.0, 10.0 / 19.0, 10.0 / 19.0])
    assert search.costs == pytest.approx([0.1, 0.05, 0.05, 0.1])
