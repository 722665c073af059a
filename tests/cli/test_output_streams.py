"""What arrives on stdout and stderr of a real process: nothing but the answer, in any encoding."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest


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
