"""The process that runs one player on tables, in the interpreter of that player.

It reads one cell per line, `{"table": ..., "seed": ..., "budget": ..., "limit_s": ...}`
and answers each with one line.
"""

import json
import math
import os
import sys
import time
import traceback
import warnings
from statistics import median

from benchmarks import tables
from benchmarks.peers import INITIAL, MAKERS, Game
from benchmarks.tables import Point, Table

WARM_UP = Table(
    "warm-up",
    {"x": tuple(range(8)), "y": ("a", "b", "c"), "z": tuple(range(4))},
    {(i, j, k): (1.0 + (i - 3) ** 2 + j + k,) for i in range(8) for j in range(3) for k in range(4)},
)


def play(name: str, table: Table, budget: int, seed: int, limit_s: float = math.inf) -> tuple[list[Point], list[float]]:
    """Run a player on a table: the points in order, and the CPU seconds of the player for each.

    A known default is run first and counts. A peer is told the worst value so far for a failure (the middle of the
    table while there is none), as not all of them know failures and those that do treat them in different ways.
    After `limit_s` seconds of wall time it ends with the points so far.
    """
    family, _, variant = name.partition(":")
    player = MAKERS[family](Game(variant, table, budget, seed))
    replay, sign = tables.Replay(table, seed), 1.0 if table.minimise else -1.0
    middle = median(sign * mean for mean in map(table.true, table.runs) if not math.isnan(mean))
    points: list[Point] = []
    costs: list[float] = []
    worst: float | None = None
    deadline = time.monotonic() + limit_s
    while len(points) < budget and time.monotonic() < deadline:
        start = time.process_time()
        point = table.default if table.default and not points else player.ask()
        spent = time.process_time() - start
        if point is None:
            break
        run = replay.run(point)
        value = None if run is None else sign * run
        if value is not None:
            worst = value if worst is None else max(worst, value)
        elif not player.takes_failures:
            value = middle if worst is None else worst
        start = time.process_time()
        player.tell(point, value)
        costs.append(spent + time.process_time() - start)
        points.append(point)
    return points, costs


def serve(name: str) -> None:
    """Run the cells that arrive on standard input until it ends."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # players may print; only answers may reach the parent
    warnings.filterwarnings("ignore")
    warm = False
    for line in sys.stdin:
        cell = json.loads(line)
        try:
            if not warm:  # libraries import parts of themselves at the first suggestions: not the algorithm's cost
                play(name, WARM_UP, INITIAL + 5, 0)
                warm = True
            table = tables.load(cell["table"])
            limit_s, start = cell.get("limit_s", math.inf), time.monotonic()
            points, costs = play(name, table, cell["budget"], cell["seed"], limit_s)
            answer: dict[str, object] = {"points": [table.number(point) for point in points], "cpu_s": costs}
            if len(points) < cell["budget"] and time.monotonic() - start >= limit_s:
                answer["timeout"] = f"cut off after {limit_s:.0f} s with {len(points)} evaluations"
        except Exception as error:  # noqa: BLE001 - whatever breaks in a player is a result, not the end of the play
            traceback.print_exc()
            answer = {"error": f"{type(error).__name__}: {error}".splitlines()[0][:300]}
        answers.write(json.dumps(answer) + "\n")


if __name__ == "__main__":
    serve(sys.argv[1])
