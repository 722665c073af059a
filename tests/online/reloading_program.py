"""A program that reads its configuration again on SIGHUP: `reloading_program.py CONF LOG`.

Every few milliseconds it writes how long something took: `t=...`, least with x = 4, and after SIGUSR2 with x = 8. It
ends if x is not a number.
"""

import json
import random
import signal
import sys
import time
from pathlib import Path


def main(conf: Path, log: Path) -> None:
    noise = random.Random(7)
    x, best = 0.0, 4.0

    def reload(*_: object) -> None:
        nonlocal x
        x = float(json.loads(conf.read_text())["x"])

    def change(*_: object) -> None:
        nonlocal best
        best = 8.0

    reload()
    signal.signal(signal.SIGHUP, reload)
    signal.signal(signal.SIGUSR2, change)
    with log.open("a") as file:
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        while True:
            file.write(f"t={(1 + abs(x - best)) * noise.uniform(0.95, 1.05):.6f}\n")
            file.flush()
            time.sleep(0.004)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
