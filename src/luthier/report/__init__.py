"""Reports: one experiment as one HTML file that needs no network and no server."""

import base64
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

from luthier.errors import InvalidInputError
from luthier.figures import DARK, FIGURES, LIGHT, SCRIPT, Figure, plotly_js, to_plotly
from luthier.report import contents
from luthier.result.facts import FACTS, by_topic, find_facts
from luthier.result.findings import Findings
from luthier.result.setting_rows import settings_texts
from luthier.result.text import sentence_text
from luthier.store.ownership import status_text
from luthier.texts import visible_json, visible_lines
from luthier.trial import Json

HEADING = ("recommendation", "verdict", "cost")
"""The facts whose sentences stand above all others."""


def report_html(findings: Findings, figures: Mapping[str, Figure]) -> str:
    """The report of an experiment as HTML text, with the given figures."""
    try:
        import jinja2
    except ImportError:
        raise InvalidInputError("a report needs jinja2: pip install 'luthier[serve]'") from None
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=_finalized,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["sentence"] = sentence_text
    record, result = findings.record, findings.result
    found = find_facts(findings)
    scripts = [plotly_js().read_text(encoding="utf-8"), f"{SCRIPT.read_text(encoding='utf-8')}\n{_START}"]
    return environment.get_template("report.html.j2").render(
        record=record,
        result=result,
        facts=by_topic(found),
        heading={name: " ".join(map(sentence_text, found[FACTS.get(name)].sentences)) for name in HEADING},
        contents=contents,
        status=status_text(record),
        settings=settings_texts(result),
        settings_json=visible_json(json.dumps(result.experiment.to_json(), indent=1, ensure_ascii=False)),
        drawings=FIGURES,
        figures=figures,
        data={name: inline_json(to_plotly(figure)) for name, figure in figures.items()},
        palettes={"light": LIGHT, "dark": DARK},
        scripts=scripts,
        hashes=[base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in scripts],
    )


def _finalized(value: object) -> object:
    """The text for a placeholder, with control characters and direction marks written as escapes."""
    return visible_lines(value) if isinstance(value, str) and not hasattr(value, "__html__") else value


def inline_json(value: Json) -> str:
    """JSON for a script element, without characters that could end the element or start a comment."""
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


_START = """
const figures = [...document.querySelectorAll("[data-figure]")].map((element) => [
  element,
  JSON.parse(document.getElementById(element.dataset.figure).textContent),
]);
const show = () => figures.forEach(([element, figure]) => showFigure(element, figure));
show();
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", show);
matchMedia("print").addEventListener("change", show);
for (const button of document.querySelectorAll("[data-copy]")) {
  button.hidden = !navigator.clipboard;
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent);
    button.textContent = "copied";
  });
}
"""
