"""What was kept and why, as text and as one HTML file with the source in colours."""

from collections.abc import Sequence
from html import escape
from pathlib import Path

from luthier.io.kernel.discovery import UNVERIFIED, Discovery, KernelFile
from luthier.texts import visible, visible_lines

_STYLE = """\
body { font: 14px/1.45 system-ui, sans-serif; margin: 2em; color: #222; background: #fff }
table { border-collapse: collapse; font: 12.5px/1.4 ui-monospace, monospace }
td { padding: 0 .8em; vertical-align: top; white-space: pre }
td.number, td.why { color: #666 }
td.why { white-space: normal; font-family: system-ui, sans-serif }
tr.kept { background: #e2f4e2 }
tr.dropped { background: #fae5e3; color: #8a4a44 }
.key span { padding: .1em .6em; margin-right: 1em }
.key .kept { background: #e2f4e2 }
.key .dropped { background: #fae5e3 }
"""


def with_verdict(text: str, verdict: Sequence[str]) -> str:
    """The text of a kernel with the lines of a verdict in its head, where UNVERIFIED stands."""
    safe = [visible(line).replace("*/", "* /").replace("/*", "/ *") for line in verdict]
    lines = "".join(f"/* {line.encode('latin-1', 'replace').decode('latin-1')} */\n" for line in safe)
    return text.replace(f"/* {UNVERIFIED} */\n", lines, 1)


def line_states(file: KernelFile) -> list[tuple[str, str]]:
    """For each line of the source: kept, dropped or "" (neither: comments, types, blank lines), and the reason."""
    count = file.source.count("\n") + 1
    states = [("", "")] * (count + 1)
    for first, last in file.dropped:
        for line in range(first, min(last, count) + 1):
            states[line] = ("dropped", "no I/O needs it")
    for first, last, why in reversed(file.why):
        for line in range(first, min(last, count) + 1):
            states[line] = ("kept", why if line == first else "")
    return states[1:]


def _readable(text: str) -> str:
    return text.encode("latin-1").decode("utf-8", "replace")


def text_report(discovery: Discovery, verdict: Sequence[str] = (UNVERIFIED,)) -> str:
    """The kernel in figures, the lines of the verdict on it, then each line of the source with its reason."""
    lines = [_summary(discovery), *map(visible, verdict), ""]
    lines += [f"note: {visible(note)}" for note in all_notes(discovery)]
    for file in discovery.files:
        lines += ["", visible(file.path)]
        sources = _readable(file.source).split("\n")
        for number, (source, (state, why)) in enumerate(zip(sources, line_states(file), strict=False), start=1):
            mark = {"kept": "+", "dropped": "-"}.get(state, " ")
            reason = f"    <- {visible(why)}" if why and state == "kept" else ""
            lines.append(f"{number:5} {mark} {visible_lines(source)}{reason}")
    return "\n".join(lines) + "\n"


def all_notes(discovery: Discovery) -> tuple[str, ...]:
    """The notes, and how the loops were reduced."""
    return (*discovery.notes, *(discovery.reduction.notes if discovery.reduction is not None else ()))


def _summary(discovery: Discovery) -> str:
    return f"{discovery.kept} of {discovery.total} statements kept for {len(discovery.starts)} I/O calls"


def html_report(discovery: Discovery, verdict: Sequence[str] = (UNVERIFIED,)) -> str:
    """One page: the verdict, and the sources with what is kept, what is dropped, and why."""
    parts = [
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>I/O kernel</title>',
        f"<style>{_STYLE}</style></head><body><h1>I/O kernel</h1><p>{escape(_summary(discovery))}.</p>",
        *(f'<p class="verdict">{escape(visible(line))}</p>' for line in verdict),
        '<p class="key"><span class="kept">kept</span><span class="dropped">dropped</span></p>',
    ]
    if all_notes(discovery):
        notes = "".join(f"<li>{escape(visible(note))}</li>" for note in all_notes(discovery))
        parts.append(f"<h2>Notes</h2><ul>{notes}</ul>")
    parts += [_html_file(file) for file in discovery.files]
    return "\n".join([*parts, "</body></html>"]) + "\n"


def _html_file(file: KernelFile) -> str:
    rows = []
    sources = _readable(file.source).split("\n")
    for number, (source, (state, why)) in enumerate(zip(sources, line_states(file), strict=False), start=1):
        rows.append(
            f'<tr class="{state or "other"}"><td class="number">{number}</td>'
            f'<td>{escape(visible_lines(source))}</td><td class="why">{escape(visible(why))}</td></tr>'
        )
    name = escape(visible(Path(file.path).name))
    return f"<h2>{name}</h2>\n<table>\n" + "\n".join(rows) + "\n</table>"
