"""A NumPy loop that is tuned while it runs: it finds out how many elements to compute at a time.

    python examples/online_loop.py
    python examples/online_loop.py --service unix:/tmp/luthier.sock     # together with other processes

Every step computes the same formula for a long array. With the whole array at once, each intermediate result goes
through memory; with blocks that fit into the processor's cache it does not; with very short blocks Python's own time
counts. Which block is best depends on the machine, so the loop finds out while it does its work.
"""

import argparse
import statistics
import time

import numpy as np
from numpy.typing import NDArray

import luthier as lt


def compute(block: int, data: NDArray[np.float64], result: NDArray[np.float64]) -> None:
    """A damped wave for every element, `block` elements at a time."""
    for start in range(0, len(data), block):
        part = data[start : start + block]
        result[start : start + block] = np.sqrt(part * part + 1.0) * np.exp(-0.1 * part) + 0.5 * part


def main() -> None:
    """Run the loop, and say what the tuning gained."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--steps", type=int, default=150)
    parser.add_argument("--size", type=int, default=1 << 21, help="elements of the array (default 2097152)")
    parser.add_argument("--service", help="address of an on-line service; by default the loop is tuned in this process")
    chosen = parser.parse_args()

    data = np.linspace(0.0, 10.0, chosen.size)
    result = np.empty_like(data)
    block = lt.Integer("block", 1 << 8, 1 << 21, step=2, scale="log", default=1 << 21)
    tuner = (
        lt.RemoteTuner(chosen.service, "online-loop", lt.Space(block))
        if chosen.service
        else lt.OnlineTuner(lt.Space(block))
    )

    began = time.perf_counter()
    for _ in range(chosen.steps):
        with tuner.step() as config:  # fetches a configuration, and reports the time that the block below took
            compute(int(config["block"]), data, result)
    spent_s = time.perf_counter() - began

    best = tuner.best
    times_s, expected = [], np.empty_like(data)
    for _ in range(5):
        began = time.perf_counter()
        compute(1 << 21, data, expected)
        times_s.append(time.perf_counter() - began)
    assert np.array_equal(result, expected)  # noqa: S101 - tuning changes the speed, never the result
    default_s = chosen.steps * statistics.median(times_s)
    print(f"{chosen.steps} steps took {spent_s:.2f} s; with the default they would take about {default_s:.2f} s")
    print(f"best block: {best.best['block']} elements; {'converged' if tuner.converged else 'still searching'}")
    tuner.leave()


if __name__ == "__main__":
    main()
