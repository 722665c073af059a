"""Results of the search benchmark: distance to the optimum, metrics of Robert's thesis, mean ranks."""

import csv
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean, median

from benchmarks import plot, tables
from benchmarks.tables import Point, Replay, Table

BUDGETS = (15, 30, 60, 100)


@dataclass(frozen=True, slots=True)
class Played:
    """One finished cell; `points` are numbers of grid points in the order they were run."""

    table: str
    player: str
    seed: int
    status: str
    cpu_ms: float
    points: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Figures:
    """The results of one cell; distances in percent of the optimum.

    `best[n]` is the distance of the best mean among the first n+1 points (infinite while all failed). `selected` is
    that of the point a user would pick at the end, the one with the best mean of what was observed. `steps_to_5` is
    None if no point came within 5 %. `average` is over the runs that did not fail; `exploration` sums how far runs fell
    behind the best before them, in optima. `improvement` is the gain of the selected point over the default, in
    percent of the default, and `share` that gain in percent of the possible one; both None without a default.
    """

    best: tuple[float, ...]
    selected: float
    steps_to_5: int | None
    average: float
    exploration: float
    failed: float
    distinct: int
    improvement: float | None
    share: float | None
    cut: bool
    cpu_ms: float


def figures(table: Table, optimum: float, played: Played, budget: int) -> Figures:
    """Evaluate one cell by the means of its table."""
    points = [table.from_number(number) for number in played.points]
    distances = [table.distance(table.true(point), optimum) for point in points]
    best: list[float] = []
    exploration = 0.0
    for distance in distances:
        before = best[-1] if best else math.inf
        if not math.isinf(distance) and distance > before:
            exploration += (distance - before) / 100.0
        best.append(min(before, distance))
    steps = next((n for n, distance in enumerate(best, 1) if distance <= 5.0), None)
    # A player that ran out of points or time keeps its best result; one that never answered has none.
    best += [best[-1] if best else math.inf] * (budget - len(best))
    good = [distance for distance in distances if not math.isinf(distance)]
    picked = _selected(table, points, played.seed)
    improvement, share = _gain(table, optimum, picked)
    return Figures(
        best=tuple(best),
        selected=math.inf if picked is None else table.distance(table.true(picked), optimum),
        steps_to_5=steps,
        average=fmean(good) if good else math.inf,
        exploration=exploration,
        failed=100.0 * (1 - len(good) / len(points)) if points else 100.0,
        distinct=len(set(points)),
        improvement=improvement,
        share=share,
        cut=played.status != "ok",
        cpu_ms=played.cpu_ms,
    )


def _selected(table: Table, points: Iterable[Point], seed: int) -> Point | None:
    """The point with the best mean of its observed runs."""
    replay, seen = Replay(table, seed), defaultdict[Point, list[float]](list)
    for point in points:
        value = replay.run(point)
        if value is not None:
            seen[point].append(value if table.minimise else -value)
    return min(seen, key=lambda point: fmean(seen[point])) if seen else None


def _gain(table: Table, optimum: float, picked: Point | None) -> tuple[float | None, float | None]:
    if table.default is None or picked is None or math.isnan(default := table.true(table.default)):
        return None, None
    sign = 1.0 if table.minimise else -1.0
    gain, possible = sign * (default - table.true(picked)), sign * (default - optimum)
    return 100.0 * gain / abs(default), 100.0 * gain / possible if possible else 100.0


@dataclass(frozen=True, slots=True)
class Summary:
    """A player on a table, over its seeds: `steps_to_5` is a median, the rest are means; `success` is S in percent."""

    table: str
    player: str
    seeds: int
    medians: Mapping[int, float]
    means: Mapping[int, float]
    success: float
    steps_to_5: float
    reached_5: float
    dist_opt: float
    avg_dist: float
    exploration: float
    failed: float
    distinct: float
    improvement: float | None
    share: float | None
    cut: int
    cpu_ms: float
    curve: tuple[float, ...]


def summarise(table: str, player: str, cells: Sequence[Figures], budget: int) -> Summary:
    """Gather the seeds of one player on one table."""
    budgets = [b for b in BUDGETS if b <= budget] or [budget]
    gains = [(f.improvement, f.share) for f in cells if f.improvement is not None and f.share is not None]
    return Summary(
        table=table,
        player=player,
        seeds=len(cells),
        medians={b: median(f.best[b - 1] for f in cells) for b in budgets},
        means={b: fmean(f.best[b - 1] for f in cells) for b in budgets},
        success=100.0 * fmean(f.selected <= 1e-9 for f in cells),
        steps_to_5=median(math.inf if f.steps_to_5 is None else f.steps_to_5 for f in cells),
        reached_5=100.0 * fmean(f.steps_to_5 is not None for f in cells),
        dist_opt=fmean(f.selected for f in cells),
        avg_dist=fmean(f.average for f in cells),
        exploration=fmean(f.exploration for f in cells),
        failed=fmean(f.failed for f in cells),
        distinct=fmean(f.distinct for f in cells),
        improvement=fmean(g for g, _ in gains) if gains else None,
        share=fmean(s for _, s in gains) if gains else None,
        cut=sum(f.cut for f in cells),
        cpu_ms=fmean(f.cpu_ms for f in cells),
        curve=tuple(median(values) for values in zip(*(f.best for f in cells), strict=True)),
    )


def ranks(values: Mapping[str, float]) -> dict[str, float]:
    """The rank of each name by its value, 1 for the smallest; equals (to 1e-6) share the mean of their ranks."""
    rounded = {name: round(value, 6) if math.isfinite(value) else value for name, value in values.items()}
    order = sorted(rounded.values())
    return {
        name: (order.index(value) + 1 + order.index(value) + order.count(value)) / 2 for name, value in rounded.items()
    }


def average_ranks(summaries: Sequence[Summary], budget: int) -> tuple[dict[str, float], list[str]]:
    """Each player's mean rank over the tables that all players have played, and those tables.

    A player with less than half as many tables as others has no rank.
    """
    played = Counter(s.player for s in summaries)
    players = {player for player, count in played.items() if 2 * count >= max(played.values())}
    by_table = defaultdict[str, dict[str, float]](dict)
    for s in summaries:
        if s.player in players:
            by_table[s.table][s.player] = s.medians[budget]
    common = [table for table, values in by_table.items() if values.keys() == players]
    ranked = [ranks(by_table[table]) for table in common]
    return ({player: fmean(r[player] for r in ranked) for player in players} if ranked else {}), common


def publish(played: Sequence[Played], budget: int, results: Path) -> None:
    """Print the report; write the summary (CSV) and the plot (SVG) beside the results."""
    cells = defaultdict[tuple[str, str], list[Figures]](list)
    loaded = {name: tables.load(name) for name in dict.fromkeys(p.table for p in played)}
    optima = {name: table.optimum() for name, table in loaded.items()}
    for p in played:
        cells[p.table, p.player].append(figures(loaded[p.table], optima[p.table], p, budget))
    summaries = [summarise(table, player, found, budget) for (table, player), found in cells.items()]
    if not summaries:
        print("no results yet")
        return
    for name, table in loaded.items():
        print(_about(table, optima[name]))
        chosen = sorted((s for s in summaries if s.table == name), key=lambda s: list(s.medians.values())[::-1])
        print(_grid([_line(s) for s in chosen]), end="\n\n")
    print(_overall(summaries))
    _write(summaries, results.with_name(results.stem + "-summary.csv"))
    picture = results.with_suffix(".svg")
    picture.write_text(plot.svg({(s.table, s.player): s.curve for s in summaries}))
    print(f"written: {picture.with_name(results.stem + '-summary.csv')}, {picture}")


def _about(table: Table, optimum: float) -> str:
    parts = [f"## {table.name}: {table.size:,} points, {len(table.runs):,} measured, optimum {optimum:.6g}"]
    parts.append("smaller is better" if table.minimise else "larger is better")
    if table.default:
        parts.append(f"default {table.distance(table.true(table.default), optimum):.1f} % off")
    return ", ".join(parts)


def _line(s: Summary) -> dict[str, str]:
    distances = {f"% at {b} (mean)": f"{_short(s.medians[b])} ({_short(s.means[b])})" for b in s.medians}
    return {
        "player": s.player,
        "seeds": f"{s.seeds}, {s.cut} cut off" if s.cut else str(s.seeds),
        **distances,
        "S %": f"{s.success:.0f}",
        "5%Opt": "-" if math.isinf(s.steps_to_5) else f"{s.steps_to_5:.0f}",
        "reached %": f"{s.reached_5:.0f}",
        "DistOpt %": _short(s.dist_opt),
        "AvgDist %": _short(s.avg_dist),
        "EC": _short(s.exploration),
        "failed %": f"{s.failed:.0f}",
        "distinct": f"{s.distinct:.0f}",
        "gain %": "" if s.improvement is None else f"{s.improvement:.1f}",
        "of possible %": "" if s.share is None else f"{s.share:.1f}",
        "ET ms": _short(s.cpu_ms),
    }


def _short(value: float) -> str:
    return (
        "-"
        if math.isinf(value)
        else f"{value:.2f}"
        if value < 10
        else f"{value:.1f}"
        if value < 100
        else f"{value:.0f}"
    )


def _grid(lines: Sequence[Mapping[str, str]]) -> str:
    """A Markdown table with padded columns."""
    heads = list(lines[0])
    widths = {head: max(len(head), *(len(line[head]) for line in lines)) for head in heads}
    rows = [{head: head for head in heads}, {head: "-" * widths[head] for head in heads}, *lines]
    return "\n".join("| " + " | ".join(row[head].ljust(widths[head]) for head in heads) + " |" for row in rows)


def _overall(summaries: Sequence[Summary]) -> str:
    """Average rank, middle distance and cost of every player over the tables all of them played."""
    budgets = list(summaries[0].medians)
    ranked = {b: average_ranks(summaries, b) for b in budgets}
    common = ranked[budgets[-1]][1]
    if not common:
        return "No table was played by all players yet: no ranks."
    lines = []
    for player in sorted(ranked[budgets[-1]][0], key=lambda name: [ranked[b][0][name] for b in reversed(budgets)]):
        own = [s for s in summaries if s.player == player and s.table in common]
        lines.append(
            {"player": player, "seeds": str(min(s.seeds for s in own)), "cut off": str(sum(s.cut for s in own))}
            | {f"rank at {b}": f"{ranked[b][0][player]:.2f}" for b in budgets}
            | {f"median % at {b}": _short(median(s.medians[b] for s in own)) for b in budgets}
            | {"reached 5 % in": _short(median(s.steps_to_5 for s in own))}
            | {"DistOpt %": _short(fmean(s.dist_opt for s in own)), "AvgDist %": _short(fmean(s.avg_dist for s in own))}
            | {"ms per suggestion": _short(fmean(s.cpu_ms for s in own))}
        )
    absent = sorted({s.player for s in summaries} - set(ranked[budgets[-1]][0]))
    left_out = f"Too few tables played: {', '.join(absent)}\n" if absent else ""
    return f"## Over {len(common)} tables ({', '.join(common)})\n{_grid(lines)}\n{left_out}"


def _write(summaries: Sequence[Summary], path: Path) -> None:
    budgets = list(summaries[0].medians)
    ranked = {(b, t): ranks({s.player: s.medians[b] for s in summaries if s.table == t}) for b in budgets
              for t in {s.table for s in summaries}}  # fmt: skip
    lines = []
    for s in summaries:
        line = {key: value for key, value in asdict(s).items() if key not in ("medians", "means", "curve")}
        for b in budgets:
            line |= {f"median_{b}": s.medians[b], f"mean_{b}": s.means[b], f"rank_{b}": ranked[b, s.table][s.player]}
        lines.append(line)
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(lines[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(lines)
