"""One SVG with a panel per table: median distance to the optimum against evaluations, on a logarithmic scale."""

import math
from collections.abc import Iterable, Mapping, Sequence
from html import escape

WIDTH, HEIGHT, COLUMNS = 360, 240, 3
LEFT, RIGHT, TOP, BOTTOM = 48, 12, 28, 30
FLOOR = 0.01
"""Distances below this percentage are drawn at it: a logarithmic scale has no zero."""
COLOURS = (
    "#d62728", "#1f77b4", "#2ca02c", "#9467bd", "#ff7f0e", "#17becf", "#8c564b", "#e377c2", "#7f7f7f", "#bcbd22",
    "#393b79", "#637939", "#8c6d31", "#843c39", "#7b4173", "#3182bd", "#31a354", "#756bb1",
)  # fmt: skip


def svg(curves: Mapping[tuple[str, str], Sequence[float]]) -> str:
    """Draw curves named by (table, player)."""
    names = list(dict.fromkeys(table for table, _ in curves))
    players = sorted({player for _, player in curves}, key=lambda player: (not player.startswith("luthier"), player))
    colours = {player: COLOURS[i % len(COLOURS)] for i, player in enumerate(players)}
    rows = math.ceil(len(names) / COLUMNS)
    legend = 20 * math.ceil(len(players) / 6) + 10
    width, height = COLUMNS * WIDTH, rows * HEIGHT + legend
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}"',
        ' font-family="sans-serif" font-size="11">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
    ]
    for i, player in enumerate(players):
        x, y = 12 + (i % 6) * (width // 6), 16 + 20 * (i // 6)
        parts.append(f'<rect x="{x}" y="{y - 9}" width="10" height="10" fill="{colours[player]}"/>')
        parts.append(f'<text x="{x + 15}" y="{y}">{escape(player)}</text>')
    for i, name in enumerate(names):
        own = {player: curves[name, player] for player in players if (name, player) in curves}
        parts.append(f'<g transform="translate({i % COLUMNS * WIDTH} {legend + i // COLUMNS * HEIGHT})">')
        parts += _panel(name, own, colours)
        parts.append("</g>")
    return "\n".join([*parts, "</svg>", ""])


def _panel(name: str, curves: Mapping[str, Sequence[float]], colours: Mapping[str, str]) -> Iterable[str]:
    seen = [max(value, FLOOR) for curve in curves.values() for value in curve if math.isfinite(value)] or [1.0]
    low, high = math.floor(math.log10(min(seen))), math.ceil(math.log10(max(seen)))
    high = max(high, low + 1)
    length = max(len(curve) for curve in curves.values())
    across, down = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM

    def x(step: int) -> float:
        return LEFT + across * step / max(length, 1)

    def y(value: float) -> float:
        return TOP + down * (high - math.log10(max(value, FLOOR))) / (high - low)

    yield f'<text x="{LEFT}" y="{TOP - 10}" font-weight="bold">{escape(name)}</text>'
    for power in range(low, high + 1):
        height = y(10.0**power)
        yield f'<line x1="{LEFT}" y1="{height:.1f}" x2="{WIDTH - RIGHT}" y2="{height:.1f}" stroke="#ddd"/>'
        yield f'<text x="{LEFT - 4}" y="{height + 4:.1f}" text-anchor="end">{10.0**power:g} %</text>'
    for step in (15, 30, 60, 100):
        if step <= length:
            yield f'<line x1="{x(step):.1f}" y1="{TOP}" x2="{x(step):.1f}" y2="{TOP + down}" stroke="#eee"/>'
            yield f'<text x="{x(step):.1f}" y="{HEIGHT - BOTTOM + 14}" text-anchor="middle">{step}</text>'
    for player, curve in curves.items():
        dots = " ".join(f"{x(n):.1f},{y(v):.1f}" for n, v in enumerate(curve, 1) if math.isfinite(v))
        wide = 2.2 if player.startswith("luthier") else 1.1
        yield f'<polyline points="{dots}" fill="none" stroke="{colours[player]}" stroke-width="{wide}"/>'
