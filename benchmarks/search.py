"""Run the optimizers of luthier and of its peers on measured tables, and compare them.

    python -m benchmarks.search --players luthier:auto,optuna:tpe --seeds 10 --budget 100

A cell is one player on one table with one seed. Finished cells are kept in `benchmarks/results/search.csv` and skipped
the next time, so a play can be stopped and gone on with at any time, or extended by players, tables and seeds.
"""

import argparse
import csv
import io
import json
import os
import selectors
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from benchmarks import install, report, tables

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "search.csv"
PLAYERS = (
    "luthier:auto",
    "luthier:random",
    "optuna:random",
    "optuna:tpe",
    "optuna:cma",
    "nevergrad:ngopt",
    "nevergrad:oneplusone",
    "hyperopt:tpe",
    "deephyper:et",
    "optuna:gp",
    "skopt:forest",
    "smac:hpo",
    "skopt:gp",
    "smac:bb",
    "hebo:hebo",
)
CELL_LIMIT_S = 600.0
GRACE_S = 120.0
ONE_THREAD = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "MKL", "OPENBLAS", "NUMEXPR")}


@dataclass(frozen=True, slots=True)
class Cell:
    """One player on one table with one seed."""

    table: str
    player: str
    seed: int
    budget: int


@dataclass(frozen=True, slots=True)
class Row:
    """How a cell went: `status` is ok, timeout or error; `points` are the grid points in the order they were run."""

    table: str
    player: str
    seed: int
    budget: int
    status: str
    reason: str
    cpu_ms: float
    last_ms: float
    points: str

    @property
    def cell(self) -> Cell:
        """Which cell this is about."""
        return Cell(self.table, self.player, self.seed, self.budget)


def read_rows(path: Path) -> dict[Cell, Row]:
    """The last row of every cell in a results file."""
    rows: dict[Cell, Row] = {}
    if path.exists():
        with path.open(newline="") as file:
            for raw in csv.DictReader(file):
                row = Row(
                    raw["table"], raw["player"], int(raw["seed"]), int(raw["budget"]), raw["status"], raw["reason"],
                    float(raw["cpu_ms"]), float(raw["last_ms"]), raw["points"],
                )  # fmt: skip
                rows[row.cell] = row
    return rows


def append_row(path: Path, row: Row) -> None:
    """Append a row with one write, so that several processes can share a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = io.StringIO()
    writer = csv.DictWriter(text, [field.name for field in fields(Row)], lineterminator="\n")
    if not path.exists() or path.stat().st_size == 0:
        writer.writeheader()
    writer.writerow(asdict(row))
    with path.open("a") as file:
        file.write(text.getvalue())


class Worker:
    """A process that plays cells for one player.

    It ends a cell by itself at the time limit; if it does not answer within another `GRACE_S`, it is killed.
    """

    def __init__(self, player: str, python: Path, log: Path, limit_s: float, grace_s: float = GRACE_S) -> None:
        self._command = [str(python), "-m", "benchmarks.worker", player]
        self._log, self._limit_s, self._grace_s = log, limit_s, grace_s
        self._process: subprocess.Popen[str] | None = None

    def play(self, cell: Cell) -> Row:
        """Run one cell."""
        process = self._process or self._start()
        order = {"table": cell.table, "seed": cell.seed, "budget": cell.budget, "limit_s": self._limit_s}
        reading, writing = process.stdout, process.stdin
        if reading is None or writing is None:
            raise RuntimeError("the worker was started without pipes")
        with selectors.DefaultSelector() as waiting:
            waiting.register(reading, selectors.EVENT_READ)
            try:
                writing.write(json.dumps(order) + "\n")
                writing.flush()
                line = reading.readline() if waiting.select(self._limit_s + self._grace_s) else None
            except BrokenPipeError:
                line = ""
        if line:
            return _row(cell, json.loads(line))
        self.close()
        if line is None:
            return _row(cell, {"timeout": f"no answer {self._grace_s:.0f} s after the limit of {self._limit_s:.0f} s"})
        return _row(cell, {"error": f"the process died; see {self._log}"})

    def close(self) -> None:
        """End the process, whatever it does."""
        if self._process is not None:
            if self._process.poll() is None:
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.communicate()
            self._process = None

    def _start(self) -> "subprocess.Popen[str]":
        self._log.parent.mkdir(parents=True, exist_ok=True)
        places = [str(HERE.parent), str(HERE.parent / "src"), os.environ.get("PYTHONPATH")]
        path = os.pathsep.join(filter(None, places))
        with self._log.open("a") as log:
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True,
                env={**os.environ, **ONE_THREAD, "PYTHONPATH": path}, start_new_session=True,
            )  # fmt: skip
        return self._process


def _row(cell: Cell, answer: dict[str, object]) -> Row:
    status = next((word for word in ("error", "timeout") if word in answer), "ok")
    points, costs = answer.get("points", []), answer.get("cpu_s", [])
    if not isinstance(points, list) or not isinstance(costs, list):
        raise TypeError(f"{cell}: unexpected answer {answer}")
    late = costs[-10:]
    return Row(
        **asdict(cell),
        status=status,
        reason=str(answer.get(status, "")),
        cpu_ms=round(1000.0 * sum(costs) / max(len(costs), 1), 3),
        last_ms=round(1000.0 * sum(late) / max(len(late), 1), 3),
        points=" ".join(map(str, points)),
    )


@dataclass(frozen=True, slots=True)
class Play:
    """What to play and where to keep it."""

    players: Sequence[str]
    tables: Sequence[str]
    seeds: int
    budget: int
    results: Path = RESULTS
    jobs: int = 1
    again: bool = False
    limit_s: float = CELL_LIMIT_S

    def cells(self) -> list[list[Cell]]:
        """The cells still to play, one list per player and seed; all tables of a seed before the next seed."""
        done = {} if self.again else read_rows(self.results)
        lists = [
            [Cell(table, player, seed, self.budget) for table in self.tables]
            for seed in range(self.seeds)
            for player in self.players
        ]
        # A time-out is a result; an error may not occur again.
        return [
            left
            for cells in lists
            if (left := [cell for cell in cells if cell not in done or done[cell].status == "error"])
        ]

    def run(self) -> dict[str, str]:
        """Run the missing cells; return why some players are absent."""
        lists, absent, lock = self.cells(), {}, threading.Lock()
        pythons: dict[str, Path] = {}
        for player in dict.fromkeys(cell.player for cells in lists for cell in cells):
            try:
                pythons[player] = install.interpreter(player.partition(":")[0])
            except install.AbsentError as error:
                absent[player] = str(error)

        def play(cells: list[Cell]) -> None:
            player = cells[0].player
            worker = Worker(player, pythons[player], self.results.with_name("workers.log"), self.limit_s)
            try:
                for cell in cells:
                    start = time.monotonic()
                    row = worker.play(cell)
                    with lock:
                        append_row(self.results, row)
                        _say(row, time.monotonic() - start)
            finally:
                worker.close()

        with ThreadPoolExecutor(self.jobs) as pool:
            list(pool.map(play, [cells for cells in lists if cells[0].player in pythons]))
        return absent


def _say(row: Row, seconds: float) -> None:
    how = row.reason or f"{row.cpu_ms:.1f} ms per suggestion"
    print(
        f"{row.table} {row.player} seed {row.seed}: {row.status}, {seconds:.1f} s, {how}", file=sys.stderr, flush=True
    )


def _arguments(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="benchmarks.search", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--players", default=",".join(PLAYERS), help="comma-separated family:variant (default: all)")
    parser.add_argument("--tables", nargs="+", default=None, help="names, or testbeds (default: the comparison's)")
    parser.add_argument("--seeds", type=int, default=10, help="seeds 0 to N-1 (default 10)")
    parser.add_argument("--budget", type=int, default=100, help="evaluations per cell (default 100)")
    parser.add_argument("--jobs", type=int, default=1, help="cells at a time (default 1)")
    parser.add_argument("--results", type=Path, default=RESULTS, help="the results file to continue")
    parser.add_argument("--again", action="store_true", help="run the chosen cells again; the new result counts")
    parser.add_argument("--limit", type=float, default=CELL_LIMIT_S, help="seconds for one cell (default 600)")
    parser.add_argument("--report-only", action="store_true", help="run nothing")
    return parser.parse_args(words)


def _known(chosen: Iterable[str]) -> list[str]:
    """The available tables; prints which ones are missing."""
    found = set(tables.names())
    kept = [name for name in chosen if name.partition(":")[0] in found or name in {n.partition("/")[0] for n in found}]
    for name in chosen:
        if name not in kept:
            print(f"{name}: not in {tables.data_folder()}, left out; LUTHIER_DATA names the folder", file=sys.stderr)
    return kept


def main(words: Sequence[str] | None = None) -> int:
    """Run the missing cells, then print the report and write the summary and the plot."""
    chosen = _arguments(words)
    players = chosen.players.split(",")
    known = list(tables.TESTBEDS) if chosen.tables == ["testbeds"] else _known(chosen.tables or list(tables.PLAYED))
    if not known:
        return 2
    play = Play(
        players, known, chosen.seeds, chosen.budget, chosen.results, chosen.jobs, chosen.again, chosen.limit
    )  # fmt: skip
    absent = {} if chosen.report_only else play.run()
    kept = [
        report.Played(row.table, row.player, row.seed, row.status, row.cpu_ms, tuple(map(int, row.points.split())))
        for row in read_rows(chosen.results).values()
        if row.budget == chosen.budget and row.player in players and row.table in known and row.status != "error"
    ]
    report.publish(kept, chosen.budget, chosen.results)
    for player, reason in absent.items():
        print(f"absent: {player}: {reason}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
