"""Reports: one file that opens anywhere, says what to use, and takes no text for code."""

import base64
import csv
import hashlib
import importlib.util
import json
import re
import shlex
import shutil
import sys
from html.parser import HTMLParser
from io import StringIO
from pathlib import Path
from typing import NoReturn

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.conftest import missing

from luthier import launch
from luthier.cli import app as cli
from luthier.figures import FIGURES, Figure
from luthier.report import inline_json, report_html
from luthier.report.commands import parameter_text, tune_command
from luthier.report.export import write_runs
from luthier.result.findings import Findings
from luthier.result.result import Result, conclude
from luthier.space import Choice, Integer, Parameter, Real, Space
from luthier.spec.experiment import Experiment
from luthier.spec.notation import parse_parameter
from luthier.spec.objectives import Objective
from luthier.spec.template import Template
from luthier.store import open_store
from luthier.store.base import Machine, Owner, Record
from luthier.trial import Completed, Config, Failed, Json, Outcome, Run, Value

HOSTILE = '</script><script>window.hacked=1</script><img src=x onerror="window.hacked=1"> \'&amp; $(rm)'
SPACE = Space(Integer("x", 1, 9, default=5), Choice("mode", ["plain", HOSTILE]), constraints=["x < 9"])
COMMAND = Template(("prog", "{x}", "{mode}", HOSTILE), {"NAME": HOSTILE})
OUTCOMES: list[Outcome] = [Completed(9.0), Failed(HOSTILE), *(Completed(5.0 - at / 4.0) for at in range(8))]


def runs_of(outcomes: list[Outcome]) -> list[Run]:
    return [
        Run(
            number=number,
            trial=number,
            purpose="search" if number else "default",
            config=Config({"x": number % 8 + 1, "mode": ("plain", HOSTILE)[number // 8]}) if number else SPACE.default,
            submitted_at=float(number),
            submit_order=2 * number,
            finish_order=2 * number + 1,
            started_at=float(number),
            duration_s=0.5,
            outcome=outcome,
        )
        for number, outcome in enumerate(outcomes)
    ]


EXPERIMENT = Experiment(
    space=SPACE, command=COMMAND, cwd=f"/tmp/{HOSTILE}", objectives=(Objective(f"regex:{HOSTILE}"),)
)
RESULT = conclude(EXPERIMENT, runs_of(OUTCOMES))


def record_of(experiment: Experiment, source: str | None = None) -> Record:
    return Record(
        id=7,
        uid="abc",
        name=HOSTILE,
        created_at=0.0,
        settings=experiment.to_json(),
        status="stopped",
        result={"ending": HOSTILE},
        source=source,
    )


def figures_of(result: Result) -> dict[str, Figure]:
    return {name: figure for name, drawing in FIGURES.items() if (figure := drawing(result)) is not None}


@pytest.fixture(scope="module")
def page() -> str:
    return report_html(Findings(record_of(EXPERIMENT, HOSTILE), RESULT, 0.0), figures_of(RESULT))


class Elements(HTMLParser):
    """The elements of a page, the texts of its scripts, and all other text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag == "script":
            self.scripts.append("")

    def handle_data(self, data: str) -> None:
        if self.cdata_elem == "script":
            self.scripts[-1] += data
        else:
            self.text += data


def test_no_text_becomes_an_element_or_a_script(page: str) -> None:
    seen = Elements(page)
    scripts = [attributes for tag, attributes in seen.elements if tag == "script"]
    data = [attributes["id"] for attributes in scripts if attributes.get("type") == "application/json"]
    assert data == [f"figure-{name}" for name in figures_of(RESULT)]
    assert len(scripts) == len(data) + 2
    assert not [tag for tag, _ in seen.elements if tag in ("img", "link", "iframe", "object")]
    assert not [name for _, attributes in seen.elements for name in attributes if name.startswith("on")]
    for where in ("run 1 (", "variable NAME", f"{HOSTILE} · experiment 7", "failed: "):
        assert where in seen.text
    assert seen.text.count(HOSTILE) > 10
    for text in seen.scripts[: len(data)]:
        json.loads(text)


def test_only_the_scripts_of_the_report_may_run(page: str) -> None:
    seen = Elements(page)
    policy = next(attributes["content"] for tag, attributes in seen.elements if "http-equiv" in attributes)
    allowed = re.findall("'sha256-([^']+)'", policy or "")
    own = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in seen.scripts[-2:]]
    assert allowed == own
    assert policy is not None
    assert policy.startswith("default-src 'none';")


def test_the_first_lines_say_what_to_use_how_sure_and_what_it_took(page: str) -> None:
    text = " ".join(Elements(page).text.split())
    first = text.partition("experiment 7 · stopped")[2]
    assert first.startswith(" Keep the default, x=5 mode=plain. Not verified: the best value may be due to chance.")
    assert "10 of 60 runs, 5.0 s of run time. 10 configurations tried (62 % of all)." in first
    assert "luthier resume 7" in text


def test_a_report_of_nothing_is_a_report() -> None:
    result = conclude(EXPERIMENT, [])
    text = Elements(report_html(Findings(record_of(EXPERIMENT), result, 0.0), figures_of(result))).text
    assert "No configuration can be recommended." in text
    assert "Nothing has been measured yet." in text


def test_a_front_is_no_proof() -> None:
    outcomes: list[Outcome] = [Completed(9.0, (9.0,)), Completed(1.0, (1.0,)), Completed(2.0, (0.5,))]
    experiment = Experiment(
        space=SPACE, command=COMMAND, objectives=(Objective("wall"), Objective("memory", "minimize"))
    )
    result = conclude(experiment, runs_of(outcomes))
    text = " ".join(
        Elements(report_html(Findings(record_of(experiment), result, 0.0), figures_of(result))).text.split()
    )
    assert ": not worse than the default in any objective." in text
    assert "2 configurations on the Pareto front, 2 of them better than the default" in text


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@settings(deadline=None)
@given(JSON)
def test_json_in_a_page_reads_back_and_ends_nothing(value: Json) -> None:
    text = inline_json(value)
    assert json.loads(text) == value
    assert not set(text) & set("<>&\u2028\u2029")


NUMBERS = st.floats(-100, 100).map(lambda number: round(number, 3) + 0.0)  # there is one zero


@st.composite
def parameters(draw: st.DrawFn) -> Parameter:
    kind = draw(st.sampled_from(["integer", "factors", "real", "steps", "choice"]))
    low = draw(st.integers(1, 50))
    if kind == "integer":
        step = draw(st.integers(1, 4))
        return Integer(
            "p", low, low + draw(st.integers(0, 9)), step, unit=draw(st.sampled_from(["", "k", "MiB", "ms"]))
        )
    if kind == "factors":
        return Integer("p", low, low * 64, 2, scale="log", default=low * 4)
    if kind == "choice":
        texts, numbers = st.text(min_size=1), st.integers(-1000, 1000)
        kinds: list[st.SearchStrategy[Value]] = [texts, numbers, NUMBERS, texts | numbers]
        values = draw(st.lists(draw(st.sampled_from(kinds)), min_size=1, max_size=4, unique_by=str))
        return Choice("p", values, draw(st.sampled_from(values)), ordered=draw(st.booleans()))
    first = draw(NUMBERS)
    return Real("p", first, first + draw(st.floats(0.5, 9.0)), 0.25 if kind == "steps" else None)


@settings(deadline=None)
@given(parameters())
def test_a_parameter_is_written_so_that_it_reads_back_or_not_at_all(parameter: Parameter) -> None:
    text = parameter_text(parameter)
    assert text is None or parse_parameter(text) == parameter


@pytest.mark.parametrize("text", ["n=1..16@3", "b=4k,16k,1M@16k", "d=1..64:x2@1", "r=0.1..0.9@0.5", "m=a,b\\,c@b\\,c"])
def test_what_was_typed_can_be_written_again(text: str) -> None:
    assert parameter_text(parse_parameter(text)) == text


EXPERIMENTS = [
    EXPERIMENT,
    Experiment(
        space=SPACE,
        command=Template(("prog {x} {mode} | sort",), shell=True),
        objectives=(Objective("wall", "maximize"),),
        prune=0.00001,
    ),
    Experiment(
        space=SPACE,
        command=COMMAND,
        budget=99,
        slots=3,
        seed=4,
        time_limit_s=7200.0,
        timeout_s=1.5,
        prune="median",
        stop=("no improvement over 9", "after 30 runs"),
        resample="static:2",
        estimator="mean",
        verify_pairs=4,
        sentinels=7,
        optimizer="random",
    ),
    Experiment(space=SPACE, command=COMMAND, options={"kernel": "rbf"}, optimizer="gp"),
    Experiment(space=SPACE, command=COMMAND, first=(Config({"x": 2}), Config({"x": 3}))),
    Experiment(space=SPACE, command=COMMAND, objectives=(Objective("json:a"), Objective("json:b", "maximize"))),
]


@pytest.mark.parametrize("number", range(len(EXPERIMENTS)))
def test_the_command_that_does_it_again_asks_for_the_same_experiment(
    number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    experiment = EXPERIMENTS[number]
    line = tune_command(experiment, HOSTILE)
    assert line is not None
    words = shlex.split(line)
    if experiment.cwd is not None:
        assert words[:3] == ["cd", experiment.cwd, "&&"]
        words = words[3:]
    asked: list[tuple[Experiment, str]] = []

    def create(request: launch.LaunchRequest) -> NoReturn:
        asked.append((request.experiment, request.name))
        raise KeyboardInterrupt

    monkeypatch.setattr(launch, "create", create)
    monkeypatch.setattr(sys, "argv", words)
    with pytest.raises(SystemExit):
        cli.main()
    found, name = asked[0]
    assert name == HOSTILE
    assert {**found.to_json(), "cwd": experiment.cwd} == experiment.to_json()


def test_what_no_command_line_says_is_not_written() -> None:
    plain = Experiment(space=SPACE, command=COMMAND)
    assert tune_command(Experiment(space=SPACE), "f") is None
    listed = Space(Integer("x", 1, 9), Choice("mode", ["plain", "a,b"]))
    assert tune_command(Experiment(space=listed, command=COMMAND, first=(Config({"mode": "a,b"}),)), "f") is None
    odd = Space(Integer("x", 1, 9, unit="ms"), Choice("mode", ["plain", "other"]))
    assert tune_command(Experiment(space=odd, command=COMMAND), "f") is None
    assert tune_command(plain, "f") is not None


@pytest.fixture
def store(tmp_path: Path) -> str:
    """A store with one experiment of ten runs."""
    url = str(tmp_path / "history.db")
    history, owner = open_store(url), Owner("host", 1, "now")
    record = history.create(HOSTILE, EXPERIMENT.to_json(), 0.0)
    assert history.claim(record.id, owner, 0.0, None)
    for run in runs_of(OUTCOMES):
        history.append(
            record.id,
            Run(run.number, run.trial, run.purpose, run.config, run.submitted_at, run.submit_order),
        )
        history.finish(record.id, run)
    history.close(record.id, owner, "finished", None)
    return url


def test_the_machine_the_folder_and_the_time_are_in_the_report(tmp_path: Path) -> None:
    url, owner = str(tmp_path / "history.db"), Owner("host", 1, "now")
    history, experiment = open_store(url), Experiment(space=SPACE, command=COMMAND, cwd="/data/of ada")
    record = history.create("x", experiment.to_json(), 0.0)
    history.claim(record.id, owner, 10.0, None, None, Machine("node7", "Xeon é", 64, "9.8.7"))
    history.heartbeat(record.id, owner, 100.0)
    history.close(record.id, owner, "finished", None)
    stored = history.experiment(record.id)
    text = report_html(Findings(stored, conclude(experiment, []), 0.0), {})
    found = dict(re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", text))
    assert "<li>Host: node7; CPU: Xeon é, 64 cores; luthier: 9.8.7.</li>" in text
    assert found["Working folder"] == "/data/of ada"
    assert "<li>1 min 30 s elapsed.</li>" in text


def called(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setattr(sys, "argv", ["luthier", "report", *words])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    return int(str(ended.value.code))


def test_a_report_is_written_to_the_working_folder(
    store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for options in ([], ["--html"]):
        assert called(monkeypatch, "1", "--store", store, *options) == 0
        assert capsys.readouterr().out == "wrote luthier-report-1.html\n"
    text = (tmp_path / "luthier-report-1.html").read_text(encoding="utf-8")
    assert text.startswith("<!doctype html>")
    assert text.endswith("</html>")
    assert not list(tmp_path.glob(".*.part"))


def test_pictures_are_written_to_a_folder(
    store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert called(monkeypatch, "1", "--store", store, "--svg", "new/svg", "--png", "png") == 0
    svg = {path.stem for path in (tmp_path / "new" / "svg").iterdir()}
    assert svg == {path.stem for path in (tmp_path / "png").iterdir()}
    assert {"trajectory", "trials", "gain", "parallel", "scatter"} <= svg
    assert not list(tmp_path.glob("*.html"))
    assert capsys.readouterr().out.startswith(f"wrote {Path('new/svg')}: trajectory.svg, ")


def test_what_cannot_be_written_is_one_line_and_what_was_there_stays(
    store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    old = tmp_path / "report.html"
    old.write_text("old")
    (tmp_path / ".report.html.part").mkdir()  # stands where the new one would be written
    assert called(monkeypatch, "1", "--store", store, "-o", str(old)) == 2
    assert called(monkeypatch, "1", "--store", store, "-o", str(tmp_path / "no" / "report.html")) == 2
    assert called(monkeypatch, "1", "--store", store, "--png", str(old)) == 2
    assert called(monkeypatch, "99", "--store", store) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 4
    assert all("cannot write" in line for line in lines[:3])
    assert old.read_text() == "old"


@pytest.mark.parametrize(
    ("option", "package", "extra"),
    [("-o", "jinja2", "serve"), ("-o", "plotly", "serve"), ("--svg", "matplotlib", "plots")],
)
def test_a_missing_extra_is_named(
    option: str,
    package: str,
    extra: str,
    store: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr("luthier.figures.plotly_format.find_spec", lambda name: None if name == package else find(name))
    monkeypatch.setitem(sys.modules, package, None)
    target = tmp_path / "out"
    assert called(monkeypatch, "1", "--store", store, option, str(target)) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert f"pip install 'luthier[{extra}]'" in lines[0]
    assert not target.is_file()


def test_the_command_has_help_with_an_example(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert called(monkeypatch, "--help") == 0
    assert "luthier report 3" in capsys.readouterr().out.split("Example:")[1]


def test_a_browser_shows_every_figure_in_the_colours_of_the_day_and_asks_no_network(page: str, tmp_path: Path) -> None:
    program = shutil.which("chromium")
    if program is None:
        missing("Chromium is not installed; as root: sh tests/services.sh")
    from playwright.sync_api import sync_playwright

    file = tmp_path / "report.html"
    file.write_text(page, encoding="utf-8")
    said: list[str] = []
    asked: list[str] = []
    colour = "getComputedStyle(document.querySelector('.xtick text')).fill"
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=program, args=["--no-sandbox"])
        tab = browser.new_page(color_scheme="light", viewport={"width": 1280, "height": 900})
        tab.set_default_timeout(300_000)  # on a busy machine
        tab.on("console", lambda message: said.append(message.text))
        tab.on("pageerror", lambda error: said.append(str(error)))
        tab.on("request", lambda request: asked.append(request.url))
        tab.goto(file.as_uri())
        count = len(figures_of(RESULT))
        tab.locator("[data-figure].js-plotly-plot .main-svg").nth(2 * count).wait_for(state="attached")
        light = tab.evaluate(f"() => {colour}")
        tab.emulate_media(color_scheme="dark")
        tab.wait_for_function(f"() => {colour} !== {light!r}")
        tab.emulate_media(media="print")
        tab.wait_for_function(f"() => {colour} === {light!r}")
        tab.emulate_media(media="screen")
        tab.set_viewport_size({"width": 390, "height": 800})
        tab.wait_for_function("() => document.documentElement.scrollWidth <= 390")  # figures follow a little later
        assert tab.evaluate("() => window.hacked") is None
        assert HOSTILE in tab.inner_text("body").replace("\xa0", " ")
        browser.close()
    assert said == []
    assert [url for url in asked if not url.startswith(("file:", "blob:", "data:"))] == []


def test_the_page_about_reports_names_every_figure_and_its_example_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (Path(__file__).parents[2] / "docs" / "reports.md").read_text(encoding="utf-8")
    section = text.partition("## The figures")[2].partition("\n## ")[0]
    assert re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE) == list(FIGURES)
    monkeypatch.chdir(tmp_path)
    example = text.partition("```python\n")[2].partition("```")[0]
    names: dict[str, object] = {}
    exec(compile(example, "reports.md", "exec"), names)
    assert (tmp_path / "trajectory.svg").is_file()
    assert isinstance(names["plain"], dict)


@pytest.mark.parametrize(
    ("text", "cell"),
    [
        ("=1+1", "'=1+1"),
        ("+cmd", "'+cmd"),
        ("-flag", "'-flag"),
        ("@SUM(1)", "'@SUM(1)"),
        ("\t=1", "'\t=1"),
        ("\r=1", "'\r=1"),
        ("'=1", "''=1"),
        ("-1.5e3", "-1.5e3"),
        ("-1.5e3+cmd", "'-1.5e3+cmd"),
        ("'quoted", "'quoted"),
        ("a=1", "a=1"),
    ],
)
def test_no_cell_of_a_csv_file_is_a_formula(text: str, cell: str) -> None:
    space = Space(Choice("flag", ["plain", text]), Real("x", -2.0, 2.0))
    experiment = Experiment(space=space, command=Template(("prog", "{flag}", "{x}")))
    config = Config({"flag": text, "x": -1.5})
    run = Run(0, 0, "default", config, 1.0, 0, 1, 1.0, 2.0, Failed(text))
    written = StringIO()
    write_runs(experiment, [run], "csv", written)
    row = next(csv.DictReader(StringIO(written.getvalue(), newline="")))
    assert (row["param.flag"], row["reason"], row["param.x"]) == (cell, cell, "-1.5")
