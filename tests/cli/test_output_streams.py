"""What arrives on stdout and stderr of a real process: nothing but the answer, in any encoding."""

import json
import os
import pty
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.conftest import missing


def luthier(home: Path, *arguments: str, encoding: str = "utf-8") -> subprocess.CompletedProcess[bytes]:
    environment = {**os.environ, "XDG_DATA_HOME": str(home), "PYTHONIOENCODING": encoding, "COLUMNS": "120"}
    environment.pop("LUTHIER_STORE", None)
    return subprocess.run(
        [sys.executable, "-m", "luthier", *arguments],
        env=environment, cwd=home, capture_output=True, stdin=subprocess.DEVNULL, check=False, timeout=300,
    )  # fmt: skip


def test_json_is_alone_on_stdout_with_more_slots_than_observations(tmp_path: Path) -> None:
    arguments = ["-n", "9", "-p", "x=1..20", "-p", "k=a,b", "--", "sh", "-c", "sleep 0.00{x}; : {k}"]
    answer = luthier(tmp_path, "tune", "-q", "--json", "-j", "4", *arguments)
    assert answer.stdout.startswith(b"{")
    assert json.loads(answer.stdout)["runs"] == 9
    assert answer.stderr == b""


def test_noise_is_called_noise_everywhere(tmp_path: Path) -> None:
    luthier(tmp_path, "tune", "-q", "-n", "30", "--seed", "1", "-m", "regex:(.+)", "-p", "x=1..20", "-p", "y=a,b,c",
            "--", "sh", "-c", "cksum <<E | cut -c1-4\n{x}{y}{y}{x}\nE")  # fmt: skip
    assert (
        b"parameter importance: no effect of any parameter can be told from noise"
        in luthier(tmp_path, "show", "1").stdout
    )
    importance = json.loads(luthier(tmp_path, "show", "1", "--json").stdout)["importance"]
    assert (importance["parameters"], importance["unexplained"]) == ([], 1.0)
    assert importance["note"].startswith("no effect of any parameter")
    assert luthier(tmp_path, "report", "1", "-o", "page.html").returncode == 0
    assert "no effect of any parameter can be told from noise" in (tmp_path / "page.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("encoding", ["latin-1", "ascii"])
def test_no_traceback_on_a_terminal_that_is_not_utf_8(tmp_path: Path, encoding: str) -> None:
    script = "echo $(( {x} * {x} )); : {mode}"
    commands = [
        ("tune", "-n", "24", "--name", "größe → 1", "-m", "regex:(.+)", "-p", "x=1..9@5", "-p", "mode=é,→", "--",
         "sh", "-c", script),
        ("show", "1"), ("show", "1", "--json"), ("list",), ("list", "--json"), ("apply", "1"), ("export", "1"),
        ("report", "1"), ("component", "list"), ("tune", "--help"), ("show", "77"),
    ]  # fmt: skip
    for command in commands:
        answer = luthier(tmp_path, *command, encoding=encoding)
        assert b"Traceback" not in answer.stderr, (command, answer.stderr)
        assert answer.returncode == (2 if command == ("show", "77") else 0), answer.stderr
        assert answer.stdout or answer.stderr


COMMANDS = [
    ("tune", "-n", "2", "-p", "x=1..3", "--", "echo", "{x}"),
    ("show", "1"),
    ("list",),
    ("export", "1"),
    ("component",),
    ("--help",),
    ("show", "77"),
]
WAYS = {"stdout closed": ">&-", "stderr closed": "2>&-", "both closed": ">&- 2>&-", "full": ">/dev/full", "pipe": "| :"}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS.keys())
def test_no_traceback_where_nothing_can_be_written(tmp_path: Path, way: str) -> None:
    luthier(tmp_path, "tune", "-q", "-n", "3", "-p", "x=1..3", "--", "echo", "{x}")
    environment = {**os.environ, "XDG_DATA_HOME": str(tmp_path), "ERR": str(tmp_path / "err")}
    environment.pop("LUTHIER_STORE", None)
    for words in COMMANDS:
        line = shlex.join([sys.executable, "-m", "luthier", *words])
        script = f'exec 2>"$ERR"; {line} {way}'
        subprocess.run(["bash", "-c", script], env=environment, cwd=tmp_path, check=False, timeout=300)
        said = (tmp_path / "err").read_text(encoding="utf-8", errors="replace")
        assert "Traceback" not in said, (words, said)
        assert "Exception ignored" not in said, (words, said)


@pytest.mark.parametrize("words", [(), ("component",), ("user",), ("shaman",)])
def test_without_arguments_the_help_is_printed(tmp_path: Path, words: tuple[str, ...]) -> None:
    bare, asked = luthier(tmp_path, *words), luthier(tmp_path, *words, "--help")
    assert (bare.returncode, bare.stderr) == (0, b"")
    assert bare.stdout == asked.stdout
    assert bare.stdout.startswith(b"Usage: luthier")


def test_the_live_view_on_a_terminal_with_iso_8859_1(tmp_path: Path) -> None:
    """A real locale of this kind, and a real terminal."""
    if shutil.which("localedef") is None:
        missing("localedef is not installed; on Debian it is in libc-bin")
    locale = tmp_path / "locales" / "en_US.ISO-8859-1"
    locale.parent.mkdir()
    subprocess.run(["localedef", "-i", "en_US", "-f", "ISO-8859-1", str(locale)], check=False, capture_output=True)
    if not locale.exists():
        missing("localedef has no sources of locales; on Debian they are in locales")
    environment = {**os.environ, "XDG_DATA_HOME": str(tmp_path), "LC_ALL": locale.name, "LOCPATH": str(locale.parent)}
    for name in ("LUTHIER_STORE", "PYTHONIOENCODING", "PYTHONUTF8"):
        environment.pop(name, None)
    commands = [
        ("tune", "-n", "12", "--name", "größe", "-m", "regex:(.+)", "-p", "x=1..9@5", "-p", "mode=é,è", "--",
         "sh", "-c", "sleep 0.05; echo {x}; : {mode}"),
        ("show", "1"), ("list",),
    ]  # fmt: skip
    for words in commands:
        typed = [word.encode("latin-1") for word in (sys.executable, "-m", "luthier", *words)]
        code, said = on_a_terminal(typed, {**environment, "TERM": "xterm"})
        assert code == 0, said
        assert b"Traceback" not in said
        assert said
    assert "größe".encode("latin-1") in said


def on_a_terminal(argv: list[bytes], environment: dict[str, str]) -> tuple[int, bytes]:
    """The exit code of a program and everything that it wrote to a terminal of its own."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(argv, env=environment, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    said = b""
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:  # the program has ended, and closed its side
            break
        if not part:
            break
        said += part
    os.close(ours)
    return process.wait(60), said
