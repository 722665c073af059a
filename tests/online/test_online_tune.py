"""`luthier tune --online` as a user runs it, on a small program that reads its configuration on SIGHUP."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

import luthier as lt
import luthier.online as luthier_online
from luthier.__main__ import main
from luthier.errors import InvalidInputError
from luthier.online.change import REFERENCE
from luthier.online.commands.tune_options import OnlineChoices
from luthier.online.records import OnlineRecord
from luthier.online.server.summaries import phase_of
from luthier.online.store import online_sessions_in
from luthier.store import open_server_store
from luthier.trial import Sample

PROGRAM = Path(__file__).parent.parent / "online" / "reloading_program.py"
ORIGINAL = '{"x": 9, "by": "hand"}\n'
WAIT_S = 120.0


class Site:
    """A program with its files, and a user of luthier with a data folder of their own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.started: list[subprocess.Popen[str]] = []
        self.parameter = "x=1..9@9"
        self.conf, self.log = folder / "app.json", folder / "app.log"
        self.conf.write_text(ORIGINAL)
        (folder / "app.json.in").write_text('{"x": {x}}\n')
        self.environment = {**os.environ, "XDG_DATA_HOME": str(folder / "data"), "COLUMNS": "200"}
        self.environment.pop("LUTHIER_STORE", None)

    def command(self, *options: str) -> list[str]:
        return [
            *(sys.executable, "-m", "luthier", "tune", "--online", "-p", self.parameter, "--every", "0.1s", "--json"),
            *("--write", f"{self.folder}/app.json.in:{self.conf}", "--read", f"log:{self.log}:t=([0-9.]+)"),
            *options,
        ]

    def start(self, *options: str) -> "subprocess.Popen[str]":
        process = subprocess.Popen(
            ["env", "--default-signal=HUP", *self.command(*options)],  # also if the tests run under nohup
            env=self.environment,
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.started.append(process)
        return process

    def run(self, *options: str) -> "subprocess.CompletedProcess[str]":
        process = self.start(*options)
        out, errors = process.communicate(timeout=WAIT_S)
        return subprocess.CompletedProcess([], process.returncode, out, errors)

    def record(self, name: str) -> tuple[OnlineRecord, list[Sample]]:
        sessions = online_sessions_in(open_server_store(str(self.folder / "data" / "luthier" / "luthier.db")))
        found = sessions.find("local", name)
        assert found is not None
        return found, list(sessions.samples(found.id))

    def request_stop(self, name: str) -> None:
        sessions = online_sessions_in(open_server_store(str(self.folder / "data" / "luthier" / "luthier.db")))
        sessions.request_stop(self.record(name)[0].id)


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    made = Site(tmp_path)
    yield made
    for process in made.started:
        process.kill()
        process.communicate()


@pytest.fixture
def program(site: Site) -> Iterator[list[str]]:
    """The program runs; these options say how to reach it."""
    process = subprocess.Popen(
        [sys.executable, PROGRAM, site.conf, site.log], stdout=subprocess.PIPE, text=True, cwd=site.folder
    )
    try:
        assert process.stdout is not None
        process.stdout.readline()
        (site.folder / "app.pid").write_text(f"{process.pid}\n")
        yield ["--signal", "HUP", "--pid-file", str(site.folder / "app.pid")]
        assert process.poll() is None, "the program must not have been harmed"
    finally:
        process.kill()
        process.communicate()


def wait_until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_a_running_program_is_tuned_and_the_winner_stays(site: Site, program: list[str]) -> None:
    done = site.run(*program, "--name", "app", "--budget", "60")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["improved"], result
    assert abs(result["best"]["config"]["x"] - 4) <= 2
    assert json.loads(site.conf.read_text()) == result["in_place"] == result["best"]["config"]
    record, samples = site.record("app")
    assert record.status == "stopped"
    assert record.view is not None
    assert record.view["phase"] == "stopped"
    assert samples[0].config == {"x": 9}
    assert "window   1" in done.stderr
    assert not list((site.folder / "data" / "luthier" / "running-programs").iterdir())
    again = site.run(*program, "--name", "app")
    assert again.returncode == 2
    assert "this tuning has ended" in again.stderr


def test_the_same_in_python(site: Site, program: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(site.folder / "data"))
    lines: list[str] = []
    done = luthier_online.tune(
        lt.Space(lt.Integer("x", 1, 9, default=9)),
        read=f"log:{site.log}:t=([0-9.]+)",
        write=[f"{site.folder}/app.json.in:{site.conf}"],
        signal=program[1],
        pid_file=Path(program[3]),
        every="0.1s",
        store=str(site.folder / "online.db"),
        say=lines.append,
        budget=6,
        verify_pairs=0,
    )
    assert (done.name, done.was_cut_short) == ("app.json", False)
    assert json.loads(site.conf.read_text()) == (done.result.best if done.result.improved else json.loads(ORIGINAL))
    assert lines[0] == "on-line session app.json"
    assert lines[1].startswith("window   1")


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({}, "add --read"),
        ({"read": "command:echo 1"}, "--reload"),
        ({"slots": 2}, "slots is not for a running program"),
    ],
)
def test_what_python_cannot_ask_for(given: dict[str, Any], reason: str) -> None:
    with pytest.raises(InvalidInputError, match=reason):
        luthier_online.tune(lt.Space(lt.Integer("x", 1, 9)), store="memory:", **given)


def test_a_program_that_luthier_starts_and_stops(site: Site) -> None:
    done = site.run("--signal", "HUP", "--budget", "12", "--", sys.executable, str(PROGRAM), "app.json", "app.log")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["name"] == "app.json"
    assert result["windows"] <= 12
    size = site.log.stat().st_size
    assert size > 0
    second = site.run("--signal", "HUP", "--budget", "3", "--", sys.executable, str(PROGRAM), "app.json", "app.log")
    assert json.loads(second.stdout)["name"] == "app.json-2", "the first has ended"


def test_a_program_that_dies_of_a_configuration_is_started_again(site: Site) -> None:
    (site.folder / "app.json.in").write_text('{"x": "{x}"}\n')
    site.parameter = "x=4,nonsense"
    done = site.run("-n", "10", "--signal", "HUP", "--", sys.executable, str(PROGRAM), "app.json", "app.log")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["silent"] >= 1, "it ended with nonsense"
    assert result["in_place"] == {"x": "4"}
    assert site.conf.read_text() == ORIGINAL


def test_ctrl_c_verifies_and_a_second_one_restores_the_original(site: Site, program: list[str]) -> None:
    process = site.start(*program, "--name", "app", "--budget", "1000", "--every", "0.3s")
    assert process.stderr is not None
    lines = iter(process.stderr.readline, "")
    for line in lines:
        if (best := re.search(r"\[best: ([0-9.]+)\]", line)) and float(best[1]) < 5.5:  # the default has 6
            break
    assert site.conf.read_text() != ORIGINAL
    process.send_signal(signal.SIGINT)
    for line in lines:
        if "press Ctrl-C again" in line:
            break
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=WAIT_S)
    assert process.returncode == 130
    assert not json.loads(out)["improved"]
    assert site.conf.read_text() == ORIGINAL
    assert site.record("app")[0].status == "running", "it can be continued"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_sigterm_and_a_closed_terminal_restore_the_original(
    site: Site, program: list[str], number: signal.Signals
) -> None:
    process = site.start(*program, "--budget", "1000")
    wait_until(lambda: site.conf.read_text() != ORIGINAL)
    process.send_signal(number)
    process.communicate(timeout=WAIT_S)
    assert process.returncode == 130
    assert site.conf.read_text() == ORIGINAL


def test_a_stop_on_the_page_ends_the_search_and_verifies(site: Site, program: list[str]) -> None:
    process = site.start(*program, "--name", "page", "--budget", "1000", "--every", "0.4s")
    assert process.stderr is not None
    for line in iter(process.stderr.readline, ""):
        if "window   4" in line:
            break
    process.send_signal(signal.SIGSTOP)  # the search must not end meanwhile
    record, samples = site.record("page")
    assert phase_of(record, time.time()) in ("baseline", "searching")
    assert len(samples) >= 4
    site.request_stop("page")
    process.send_signal(signal.SIGCONT)
    out, errors = process.communicate(timeout=WAIT_S)
    assert process.returncode == 0, errors
    assert json.loads(out)["ending"] == "it was stopped"


def test_killed_and_continued_and_never_two_at_once(site: Site, program: list[str]) -> None:
    first = site.start(*program, "--name", "app", "--budget", "40", "--every", "0.2s")
    assert first.stderr is not None
    for line in iter(first.stderr.readline, ""):
        if "window   5" in line:
            break
    first.send_signal(signal.SIGSTOP)  # it must not end meanwhile
    other = site.run(*program, "--name", "app", "--budget", "40")
    assert other.returncode == 2
    assert "in use by another luthier process" in other.stderr
    first.kill()
    first.communicate()
    before = site.record("app")[1]
    assert len(before) >= 4
    assert site.conf.read_text() != ORIGINAL, "nobody was there to put it back"
    changed = site.run(*program, "--name", "app", "-p", "y=1,2")
    assert changed.returncode == 2
    done = site.run(*program, "--name", "app", "--budget", "40", "--every", "0.2s")
    assert done.returncode == 0, done.stderr
    after = site.record("app")[1]
    assert after[: len(before)] == before
    assert [sample.number for sample in after] == list(range(1, len(after) + 1))
    result = json.loads(done.stdout)
    assert len(re.findall(r"^window ", done.stderr, re.MULTILINE)) <= result["windows"] - len(before)
    expected = json.dumps(result["best"]["config"]) if result["improved"] else ORIGINAL.strip()
    assert site.conf.read_text().strip() == expected


def test_it_watches_and_searches_again(site: Site, program: list[str]) -> None:
    process = site.start(*program, "--name", "app", "--budget", "20", "--keep-watching")
    assert process.stderr is not None
    lines = iter(process.stderr.readline, "")
    for line in lines:
        if line.startswith("search 1: "):
            break
    for line, _ in zip(lines, range(REFERENCE), strict=False):
        assert "x=9" not in line
    os.kill(int((site.folder / "app.pid").read_text()), signal.SIGUSR2)
    for line in lines:
        if line.startswith("search 2: "):
            break
    process.send_signal(signal.SIGINT)
    out, errors = process.communicate(timeout=WAIT_S)
    assert process.returncode == 0, errors
    result = json.loads(out)
    assert result["searches"] == 2
    assert result["best"]["config"]["x"] in (7, 8, 9)
    view = site.record("app")[0].view
    assert view is not None
    assert isinstance(view["changes"], list)
    assert len(view["changes"]) == 1


READ = ["--read", "command:echo 1"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--write", "a:b", "--", "true", "{x}"], "--write is for a running program; add --online"),
        (["--guard", "2", "--", "true", "{x}"], "--guard is for a running program; add --online"),
        (["--online"], "needs a number to improve; add --read"),
        (["--online", *READ], "give either --reload COMMAND or --signal NAME"),
        (["--online", *READ, "--reload", "r", "--signal", "HUP"], "give either --reload COMMAND or --signal NAME"),
        (["--online", *READ, "--reload", "true"], "parameter x is not used"),
        (["--online", *READ, "--reload", "set {y} {x}"], "placeholder {y} has no parameter"),
        (["--online", *READ, "--reload", "'set {x}"], "close the quotation marks"),
        (["--online", *READ, "--reload", "a {x}", "--every", "0"], "--every: '0' is not a duration"),
        (["--online", *READ, "--reload", "a {x}", "--every", "1ms"], "too short"),
        (["--online", *READ, "--reload", "a {x}", "--guard", "0.5"], "write a number above 1"),
        (["--online", *READ, "--reload", "a {x}", "--statistic", "p99"], "mean, median, p95"),
        (["--online", *READ, "--reload", "a {x}", "--slots", "2"], "--slots cannot be used with --online"),
        (["--online", *READ, "--reload", "a {x}", "-m", "wall"], "--measure cannot be used with --online"),
        (["--online", *READ, "--reload", "a {x}", "-e", "A=1"], "--env cannot be used with --online"),
        (["--online", *READ, "--reload", "a {x}", "--runner", "slurm"], "--runner cannot be used with --online"),
        (["--online", *READ, "--reload", "a {x}", "--estimator", "trimmed"], "minimum, median, mean"),
        (["--online", *READ, "--reload", "a {x}", "--pid-file", "p"], "--pid-file is for --signal"),
        (["--online", *READ, "--reload", "a {x}", "-o", "none"], "none"),
        (["--online", *READ, "--reload", "a {x}", "--", "serve", "{x}"], "it is started once"),
        (["--online", *READ, "--reload", "a {x}", "--store", "memory:"], "memory:"),
        (["--online", "--read", "url:http://example.org/", "--reload", "a {x}"], "remote-url:"),
    ],
)
def test_what_is_refused(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    options: list[str],
    said: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.delenv("LUTHIER_STORE", raising=False)
    monkeypatch.setattr(sys, "argv", ["luthier", "tune", "-p", "x=1..9@9", *options])
    with pytest.raises(SystemExit) as ended:
        main()
    errors = capsys.readouterr().err
    assert ended.value.code == 2
    assert said in errors
    assert len(errors.splitlines()) == 1, errors
    assert not list(tmp_path.iterdir()), "nothing was created"


def test_every_option_in_the_documentation_exists(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (Path(__file__).parent.parent.parent / "docs" / "online-servers.md").read_text(encoding="utf-8")
    monkeypatch.setattr(sys, "argv", ["luthier", "tune", "--help"])
    with pytest.raises(SystemExit):
        main()
    known = set(re.findall(r"--[a-z][a-z-]*", capsys.readouterr().out))
    shown = set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", text))
    assert len(shown) > 15
    assert shown <= known, shown - known
    ours = {f"--{each.name.replace('_', '-')}" for each in fields(OnlineChoices)}
    assert ours <= shown, ours - shown
