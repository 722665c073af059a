"""Kill luthier's processes with SIGKILL at random moments, and check that no run is lost, doubled or invented.

    python -m benchmarks.kill [--kills 200] [--seed 0] [--only tuner,worker,server,supervisor,program]

A server, a worker and a tuner on the command line share one store. Killed are these three, the tuners that server and
worker start, the supervisors of runs, and the tuned program itself. The program leaves a trace of every execution, and
in the end the store is compared with that trace, run by run.
"""

import argparse
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import cast

from rich.console import Console
from rich.table import Table
from tests.kill.audit import BREACHES, Kind
from tests.kill.kills import KINDS, Report, Torture

_ALL_TOGETHER = "all together"


def main() -> int:
    """Kill, print the table, and return 1 if anything happened that must not."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.kill", description=__doc__)
    parser.add_argument("--kills", type=int, default=200, help="how many in all (default 200)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default=",".join(KINDS), help="kinds of processes, separated by commas")
    options = parser.parse_args()
    kinds = options.only.split(",")
    if unknown := set(kinds) - set(KINDS):
        parser.error(f"--only {','.join(unknown)}: there are {', '.join(KINDS)}")
    reports: dict[str, Report] = {}
    for number, (name, chosen, kills) in enumerate(_rows(cast("list[Kind]", kinds), options.kills)):
        folder = Path(tempfile.mkdtemp(prefix="luthier-kill-"))
        reports[name] = Torture(folder, chosen, seed=1000 * options.seed + number).run(kills)
        print(f"{name}: {reports[name]}", flush=True)
        if reports[name].findings:
            print(f"{name}: store, run folders and messages are in {folder}", flush=True)
        else:
            shutil.rmtree(folder)
    Console(width=160).print(_table(reports))
    return 1 if any(report.findings for report in reports.values()) else 0


def _rows(kinds: Sequence[Kind], kills: int) -> Iterator[tuple[str, Sequence[Kind], int]]:
    """An equal share of the kills for every kind alone and, if there are several, for all together."""
    parts = len(kinds) + (len(kinds) > 1)
    for kind in kinds:
        yield kind, [kind], kills // parts
    if len(kinds) > 1:
        yield _ALL_TOGETHER, kinds, kills - len(kinds) * (kills // parts)


def _table(reports: dict[str, Report]) -> Table:
    table = Table("killed", "kills", "experiments", "executions", *BREACHES, "repeated", "given up", "seconds")
    for name, report in reports.items():
        made = (sum(report.kills.values()), report.experiments, report.executions)
        counts = (*made, *map(report.count, BREACHES), report.repeated, report.given_up, round(report.took_s))
        table.add_row(name, *map(str, counts))
    return table


if __name__ == "__main__":
    sys.exit(main())
