"""What programs printed, and what earlier versions stored, is shown and never obeyed: on terminals, pipes and pages."""

import io
import json
import os
import pty
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from luthier.cli.progress import progress_view
from luthier.space import Choice, Integer, Space
from luthier.spec.experiment import Experiment
from luthier.spec.objectives import Objective
from luthier.spec.template import Template
from luthier.store import open_store
from luthier.store.base import Owner
from luthier.trial import Completed, Config, Failed, Outcome, Purpose, Run

EVIL = "\x1b]0;owned\x07\x1b[31m\r\n\x9b2J\u202eevil"
HALF = "\ud800"
SPACE = Space(Integer("x", 1, 9), Choice("mode", ["plain", f"{EVIL}\udcff"]))
EXPERIMENT = Experiment(
    space=SPACE, command=Template(("prog", "{x}", "{mode}")), objectives=(Objective(f"regex:{EVIL}(.*)"),)
)
COMMANDS = [
    ("list",), ("list", "--json"), ("show", "1"), ("show", "1", "--all"), ("show", "1", "--json"), ("show", "7"),
    ("export", "1"), ("export", "1", "-f", "json"), ("apply", "1", "--best"), ("apply", "1", "--best", "--env"),
    ("apply", "1", "--best", "--json"), ("report", "1"), ("stop", "1"), ("render", f"{EVIL}.yaml"),
]  # fmt: skip


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home whose store holds, as older versions let it, texts of every kind."""
    store = open_store(f"sqlite:///{tmp_path / 'evil.db'}")
    record = store.create(f"{EVIL}{HALF}", EXPERIMENT.to_json(), 1.0)
    owner = Owner("host", 1, "start")
    outcomes: list[Outcome] = [Completed(9.0), Failed(f"{EVIL}{HALF}"), Completed(3.0), Completed(2.0)]
    assert store.claim(record.id, owner, 2.0, None)
    for number, outcome in enumerate(outcomes):
        config = Config({"x": number + 1, "mode": SPACE.parameters[1].value(int(number > 1))})
        purpose: Purpose = "search" if number else "default"
        run = Run(number, number, purpose, config, 3.0, 2 * number)
        store.append(record.id, run)
        done = replace(run, finish_order=2 * number + 1, started_at=3.0, duration_s=1.0, outcome=outcome)
        store.finish(record.id, done)
    store.close(record.id, owner, "finished", {"verdict": f"{EVIL}{HALF}", "improved": False})
    return tmp_path


def environment(home: Path) -> dict[str, str]:
    return {**os.environ, "XDG_DATA_HOME": str(home), "LUTHIER_STORE": str(home / "evil.db"), "COLUMNS": "200"}


def on_a_terminal(home: Path, *arguments: str) -> str:
    """What a command writes to a terminal, both of its streams."""
    ours, theirs = pty.openpty()
    try:
        process = subprocess.Popen(
            [sys.executable, "-m", "luthier", *arguments],
            env={**environment(home), "TERM": "xterm"}, cwd=home, stdin=theirs, stdout=theirs, stderr=theirs,
        )  # fmt: skip
        os.close(theirs)
        written = io.BytesIO()
        while True:
            try:
                part = os.read(ours, 65536)
            except OSError:  # the other side was closed
                break
            if not part:
                break
            written.write(part)
        assert process.wait(timeout=60) in (0, 2)
    finally:
        os.close(ours)
    return written.getvalue().decode("utf-8")


OUR_STYLES = re.compile(r"\x1b\[[0-9;]*m")  # bold and colours, as Rich writes them


@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_a_terminal_gets_no_escape_sequence_of_others(home: Path, arguments: tuple[str, ...]) -> None:
    written = on_a_terminal(home, *arguments)
    assert "Traceback" not in written
    assert "\x1b[31m" not in written
    plain = OUR_STYLES.sub("", written).replace("\r\n", "\n").replace("\n", "").replace("\t", "")
    assert plain.isprintable(), [sign for sign in plain if not sign.isprintable()]


@pytest.mark.parametrize("arguments", COMMANDS[1:6], ids=" ".join)
def test_a_pipe_gets_no_escape_sequence_but_in_data(home: Path, arguments: tuple[str, ...]) -> None:
    answer = subprocess.run(
        [sys.executable, "-m", "luthier", *arguments],
        env=environment(home), cwd=home, capture_output=True, check=False, timeout=60,
    )  # fmt: skip
    assert answer.returncode in (0, 2)
    assert b"Traceback" not in answer.stderr
    told = answer.stderr + (b"" if arguments[0] in ("export", "apply") else answer.stdout)
    assert told.decode("utf-8").replace("\n", "").isprintable()
    if "--json" in arguments:
        json.loads(answer.stdout)


def test_what_is_applied_reaches_a_pipe_byte_for_byte(home: Path) -> None:
    answer = subprocess.run(
        [sys.executable, "-m", "luthier", "apply", "1", "--best", "--env"],
        env=environment(home), cwd=home, capture_output=True, check=True, timeout=60,
    )  # fmt: skip
    echoed = subprocess.run(
        ["sh", "-c", 'eval "$1"; printf %s "$mode"', "sh", os.fsdecode(answer.stdout)],
        capture_output=True, check=True, timeout=60,
    )  # fmt: skip
    assert os.fsdecode(echoed.stdout) == SPACE.parameters[1].value(1)


def test_a_report_shows_what_is_not_printable(home: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "luthier", "report", "1", "-o", "r.html"],
        env=environment(home), cwd=home, capture_output=True, check=True, timeout=120,
    )  # fmt: skip
    page = (home / "r.html").read_text("utf-8")
    body = page[: page.index("<script>")]
    assert not set(body) & set("\x1b\x9b\u202e\ud800\ufffd")
    assert r"\x1b]0;owned\x07" in body
    assert r"\ud800" in body


def test_names_are_checked_where_they_come_in(home: Path) -> None:
    for name in (EVIL, "\udcff", "x" * 999):
        answer = subprocess.run(
            [sys.executable, "-m", "luthier", "tune", "-p", "x=1,2", "--name", name, "--", "true", "{x}"],
            env=environment(home), cwd=home, capture_output=True, text=True, check=False, timeout=60,
        )  # fmt: skip
        assert answer.returncode == 2
        assert answer.stderr.startswith("luthier: --name: ")
        assert answer.stderr.rstrip("\n").isprintable()


def test_progress_is_one_line_a_run() -> None:
    for is_terminal in (False, True):
        stream = io.StringIO()
        stream.isatty = lambda is_terminal=is_terminal: is_terminal  # type: ignore[method-assign,misc]  # for this test
        with progress_view(f"experiment 1: {EVIL}", EXPERIMENT, stream=stream) as view:
            assert callable(view)
        assert "\x1b]0;" not in stream.getvalue()
        assert "\x1b[31m" not in stream.getvalue()
