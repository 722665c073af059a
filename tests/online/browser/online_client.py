"""A program that is tuned while it runs; it makes as many steps as it is told, and says what it runs then.

Every line of its input is a number of steps and a factor by which they are slower than usual.
"""

import json
import sys

from luthier import Choice, Integer, RemoteTuner, Space

SPACE = Space(Integer("block", 8, 256, default=8), Choice("mode", ["eager", "lazy"], default="eager"))


def cost(block: int, mode: str) -> float:
    """What a step costs: the best configuration is a block of 100 in the mode lazy."""
    return 0.5 + abs(block - 100) / 100 + (0.25 if mode == "eager" else 0.0)


def main(address: str, name: str) -> None:
    tuner = RemoteTuner(address, name, SPACE, timeout_s=30.0, strategy="pro", samples=2)
    for line in sys.stdin:
        steps, factor = line.split()
        for _ in range(int(steps)):
            config = tuner.fetch()
            tuner.report(float(factor) * cost(int(config["block"]), str(config["mode"])))
        sys.stdout.write(json.dumps({"phase": tuner.phase, "config": dict(tuner.fetch())}) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
