"""Tuning while a program runs, in simulation: figures 9 and 10 of Tabatabaee et al. 2005, and `auto` beside them.

    python -m benchmarks.online [--part figure9,figure10,strategies,tables,cost] [--simulations 2000]

A program of several processes runs 100 iterations; all wait for the slowest one after each. Times are counted in units
of the best configuration of the surface: NTT is (1 - rho) TotalTime(100), so 100 would be perfect for one process.
Strategies that need more time than simplex searches are simulated a tenth as often.
"""

import argparse
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from statistics import fmean, median

import numpy as np

from benchmarks import online_surfaces, tables
from benchmarks.online_program import Program, RandomStrategy, pareto
from benchmarks.online_surfaces import Surface
from luthier.online.base import Strategy
from luthier.online.registry import make_strategy
from luthier.online.strategies.adaptive_sampling import AdaptiveSampling
from luthier.online.strategies.sampling import FixedSampling

SURFACES = 100
RHOS = tuple(round(0.05 * step, 2) for step in range(9))
COUNTS = (1, 2, 3, 4, 5)
SIZES = (0.05, 0.1, 0.2, 0.3, 0.4, 0.6, 0.8, 1.0)
_RANDOM_STEPS = 10

Make = Callable[[Surface, int], Strategy]
"""Makes a strategy for a surface and a seed."""


def pro(samples: int | None, options: str = "", name: str = "pro") -> Make:
    """A simplex search with a fixed number of samples, or with an adaptive one."""
    sampling = AdaptiveSampling() if samples is None else FixedSampling(samples)
    return lambda surface, seed: make_strategy(name + options, surface.space, seed=seed, sampling=sampling)


def auto(surface: Surface, seed: int) -> Strategy:
    """The default strategy."""
    return make_strategy("auto", surface.space, seed=seed, sampling=AdaptiveSampling())


def at_random(clients: int) -> Make:
    """Random configurations for some steps, then the best of them."""
    return lambda surface, seed: RandomStrategy(surface.space, seed=seed, reports=_RANDOM_STEPS * clients)


@cache
def rough(number: int) -> tuple[Surface, float]:
    """A rough surface and its least time."""
    surface = online_surfaces.rough(number)
    return surface, surface.least()


def ntt(make: Make, surfaces: Sequence[tuple[Surface, float]], rho: float, clients: int, simulations: int) -> float:
    """The mean of (1 - rho) TotalTime(100), in units of the least time of each surface."""
    totals = []
    for number in range(simulations):
        surface, least = surfaces[number % len(surfaces)]
        program = Program(surface, pareto(rho), clients)
        total = program.total_time(make(surface, number), np.random.default_rng([number, round(100 * rho)]))
        totals.append((1.0 - rho) * total / least)
    return fmean(totals)


def figure9(simulations: int) -> None:
    """The shape and the size of the first simplex, without noise."""
    surfaces = [rough(number) for number in range(min(SURFACES, simulations))]
    lines = []
    for size in SIZES:
        found = [
            ntt(pro(1, f":size={size},vertices={shape}"), surfaces, 0.0, 6, len(surfaces)) for shape in ("2N", "N+1")
        ]
        lines.append([f"{size}", *(f"{value:.1f}" for value in found)])
    _show("Figure 9: TotalTime(100), 6 processes, no noise", ["size r", "2N vertices", "N + 1 vertices"], lines)
    print("Published: 2N vertices clearly better than N + 1; neither small nor large r is good; r = 0.2 was chosen.\n")


def figure10(simulations: int) -> None:
    """NTT against the number of samples and rho; adaptive numbers and `auto` beside them."""
    surfaces = [rough(number) for number in range(min(SURFACES, simulations))]
    fewer = max(1, simulations // 10)
    lines = []
    for rho in RHOS:
        fixed = [ntt(pro(count), surfaces, rho, 6, simulations) for count in COUNTS]
        best = min(fixed)
        adaptive = ntt(pro(None), surfaces, rho, 6, simulations)
        own = ntt(auto, surfaces, rho, 6, fewer)
        compared = min(ntt(pro(count), surfaces, rho, 6, fewer) for count in COUNTS)
        row = [*(f"{value:.1f}" for value in fixed), str(COUNTS[fixed.index(best)]), f"{adaptive:.1f}"]
        row += [f"{100.0 * (adaptive / best - 1.0):+.1f} %", f"{own:.1f}", f"{100.0 * (own / compared - 1.0):+.1f} %"]
        lines.append([f"{rho}", *row])
        print(f"rho {rho}: {' '.join(lines[-1][1:])}", file=sys.stderr, flush=True)
    heads = [*(f"K = {count}" for count in COUNTS), "best K", "adaptive", "against best K", "auto", "against best K "]
    _show(f"Figure 10: NTT, 6 processes, {simulations} simulations, `auto` {fewer}", ["rho", *heads], lines)
    print(
        "Published: without noise NTT grows linearly with K; else there is an inner minimum, which moves to larger K as"
    )
    print("rho grows; NTT at rho = 0.05 lies below that at 0. `auto` is compared over the same simulations.\n")


def strategies(simulations: int) -> None:
    """Every strategy on rough and smooth surfaces, with few and many processes."""
    few = max(1, simulations // 20)
    smooth = [(one, one.least()) for one in map(online_surfaces.smooth, range(min(20, few)))]
    rugged = [rough(number) for number in range(min(SURFACES, few))]
    for name, surfaces in (("rough", rugged), ("smooth", smooth)):
        lines = []
        for clients in (1, 6, 16, 64):
            for rho in (0.0, 0.2, 0.4):
                found = compared(surfaces, rho, clients, few)
                lines.append([str(clients), f"{rho}", *(f"{value:.1f}" for value in found.values()), _gain(found)])
                print(f"{name} {' '.join(lines[-1])}", file=sys.stderr, flush=True)
        _show(f"{name} surfaces of three integers: NTT, {few} simulations", ["processes", "rho", *found, "gain"], lines)


def measured_tables(simulations: int) -> None:
    """Every strategy on measured tables."""
    few = max(1, simulations // 100)
    lines = []
    for name in online_surfaces.TABLES:
        surface = online_surfaces.table(name)
        for rho in (0.0, 0.2, 0.4):
            found = compared([(surface, surface.least())], rho, 6, few)
            lines.append([name, f"{rho}", *(f"{value:.1f}" for value in found.values()), _gain(found)])
            print(" ".join(lines[-1]), file=sys.stderr, flush=True)
    _show(f"Measured tables: NTT, 6 processes, {few} simulations", ["table", "rho", *found, "gain"], lines)


def compared(
    surfaces: Sequence[tuple[Surface, float]], rho: float, clients: int, simulations: int
) -> Mapping[str, float]:
    """The NTT of every strategy over the same simulations; PRO with its best fixed number of samples."""
    fixed = [ntt(pro(count), surfaces, rho, clients, simulations) for count in (COUNTS if rho else (1,))]
    makes: Mapping[str, Make] = {
        "PRO adaptive": pro(None),
        "sequential": pro(None, name="sequential"),
        "Nelder-Mead": pro(None, name="nelder-mead"),
        "random": at_random(clients),
        "auto": auto,
    }
    rest = {name: ntt(make, surfaces, rho, clients, simulations) for name, make in makes.items()}
    return {"PRO, best K": min(fixed), **rest}


def _gain(found: Mapping[str, float]) -> str:
    """How much less `auto` takes than PRO with its best K."""
    return f"{100.0 * (found['auto'] / found['PRO, best K'] - 1.0):+.1f} %"


def cost(simulations: int) -> None:
    """How long one `next` and one `report` take, in a search and after it."""
    lines = []
    for name in ("auto", "pro"):
        for clients in (1, 6, 64):
            rounds, after = _timed(name, clients, min(20, simulations))
            lines.append([name, str(clients), f"{median(rounds):.0f}", f"{max(rounds) / 1000:.1f}", f"{after:.1f}"])
    heads = ["strategy", "processes", "median in a search", "longest, ms", "after convergence"]
    _show("next + report of one client, in microseconds", heads, lines)


def _timed(name: str, clients: int, searches: int) -> tuple[list[float], float]:
    """Microseconds of each next + report of searches, those of one step averaged, and after convergence."""
    rounds, after = [], 0.0
    for number in range(searches):
        surface, _ = rough(number)
        strategy = make_strategy(name, surface.space, seed=number, sampling=AdaptiveSampling())
        noise, rng = pareto(0.2), np.random.default_rng(number)
        while not strategy.standing.converged:
            rounds.append(_step(strategy, surface, noise(rng, (clients,)).tolist()))
        after = median(_step(strategy, surface, [1.0] * clients) for _ in range(200))
    return rounds, after


def _step(strategy: Strategy, surface: Surface, factors: Sequence[float]) -> float:
    names = [f"client {number}" for number in range(len(factors))]
    began = time.perf_counter()
    running = [strategy.next(name) for name in names]
    spent = time.perf_counter() - began
    times = [surface.time(config) * factor for config, factor in zip(running, factors, strict=True)]
    began = time.perf_counter()
    for name, config, seconds in zip(names, running, times, strict=True):
        strategy.report(name, config, seconds)
    return 1e6 * (spent + time.perf_counter() - began) / len(factors)


def _show(title: str, heads: Sequence[str], lines: Iterable[Sequence[str]]) -> None:
    print(f"## {title}\n")
    print("| " + " | ".join(heads) + " |\n|" + " --- |" * len(heads))
    for line in lines:
        print("| " + " | ".join(line) + " |")
    print(flush=True)


PARTS: Mapping[str, Callable[[int], None]] = {
    "figure9": figure9,
    "figure10": figure10,
    "strategies": strategies,
    "tables": measured_tables,
    "cost": cost,
}


def main() -> int:
    """Run some of the parts, by default all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", default=",".join(PARTS), help="which parts, separated by commas")
    parser.add_argument("--simulations", type=int, default=2000)
    arguments = parser.parse_args()
    chosen = arguments.part.split(",")
    if unknown := [part for part in chosen if part not in PARTS]:
        parser.error(f"unknown part {unknown[0]!r}; known: {', '.join(PARTS)}")
    if arguments.simulations < 1:
        parser.error("--simulations must be 1 or more")
    if "tables" in chosen and not tables.data_folder().exists():
        print(f"tables left out: {tables.data_folder()} does not exist; set LUTHIER_DATA", file=sys.stderr)
        chosen.remove("tables")
    for part in chosen:
        PARTS[part](arguments.simulations)
    return 0


if __name__ == "__main__":
    sys.exit(main())
