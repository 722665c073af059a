"""`luthier submit`, with an sbatch that shows what it was called with."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.server.server_fixtures import Running, server_of_its_own
from tests.slurm.cluster import wait_until
from tests.submission.strange_server import ANSWERS, KEY, RIGHT, signed, strange_server
from tests.submission.submitting import EXPERIMENT, SCRIPT, with_tuned_job

from luthier.errors import InvalidInputError
from luthier.submission.ask import CONFIG, AnswerToJob, read_answer, server_of, split
from luthier.submission.server.state import submission_of

SBATCH = f"""#!{sys.executable}
import json, os, sys
json.dump({{"words": sys.argv[1:], "environment": dict(os.environ)}}, open("called", "w"))
print("Submitted batch job 7")
"""

SERVER = {"LUTHIER_URL": "http://host:80", "LUTHIER_TOKEN": "t", "LUTHIER_KEY": KEY}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    home = tmp_path / "user"
    (home / "bin").mkdir(parents=True)
    (home / "bin" / "sbatch").write_text(SBATCH)
    (home / "bin" / "sbatch").chmod(0o755)
    (home / "job.sh").write_text(SCRIPT)
    return home


@pytest.fixture(scope="module")
def tuned(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server with a configuration for the jobs of this user."""
    user = subprocess.run(["id", "-un"], capture_output=True, text=True, check=True).stdout.strip()
    with server_of_its_own(tmp_path_factory.mktemp("tuned")) as server:
        with_tuned_job(server.store, server.launch(EXPERIMENT), user)
        job = {"user": user, "script": SCRIPT}
        wait_until(
            lambda: b"KNOB" in server.ask("POST", "/api/v1/submissions", job).body, "the server knows the record"
        )
        yield server


class Called:
    """One call of `luthier submit`, and the call of sbatch that followed."""

    def __init__(self, folder: Path, *words: str, **variables: str) -> None:
        called = folder / "called"
        called.unlink(missing_ok=True)
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("LUTHIER", "SLURM", "SBATCH"))}
        path = f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
        argv = [sys.executable, "-m", "luthier", "submit", *words]
        began = time.monotonic()
        self.done = subprocess.run(
            argv, cwd=folder, env={**kept, "PATH": path, **variables}, capture_output=True, text=True, check=False
        )
        self.took_s = time.monotonic() - began
        said = json.loads(called.read_text()) if called.exists() else {"words": None, "environment": {}}
        self.words: list[str] | None = said["words"]
        self.set = {
            key: said["environment"].get(key) for key in ("KNOB_LEVEL", "KNOB_MODE") if key in said["environment"]
        }


@pytest.fixture
def patient(tuned: Running, folder: Path) -> dict[str, str]:
    """The variables with which a job waits longer for the server: this machine may be busy."""
    (folder / CONFIG).write_text(
        f"url {tuned.url}\ntoken {tuned.token}\nkey {submission_of(tuned.context).signing_key.public}\nlimit_ms 2000\n"
    )
    return {"SLURM_CONF": str(folder / "slurm.conf")}


def test_sbatch_gets_the_script_as_it_is_with_variables(patient: dict[str, str], folder: Path) -> None:
    called = Called(folder, "job.sh", "--nodes=1", "-t", "5", "--", "--size", "4", **patient)
    assert called.done.returncode == 0
    assert called.set == {"KNOB_LEVEL": "42", "KNOB_MODE": "fast"}
    assert called.words is not None
    comment, *others = called.words
    assert comment.startswith("--comment=luthier:")
    assert others == ["--nodes=1", "-t", "5", "job.sh", "--size", "4"]
    assert called.done.stderr.count("\n") == 1
    assert called.done.stdout == "Submitted batch job 7\n"


def test_a_comment_of_the_user_stays(patient: dict[str, str], folder: Path) -> None:
    called = Called(folder, "job.sh", "--comment", "mine", **patient)
    assert called.words == ["--comment", "mine", "job.sh"]
    assert called.set


@pytest.mark.parametrize(
    ("words", "variables"),
    [
        (["--no-tuning"], {}),
        (["--comment=luthier:off"], {}),
        ([], {"LUTHIER": "off"}),
        ([], {"KNOB_MODE": "slow"}),
        (["--export=NONE"], {}),
        ([], {"SBATCH_EXPORT": "NONE"}),
    ],
)
def test_a_job_can_refuse(patient: dict[str, str], folder: Path, words: list[str], variables: dict[str, str]) -> None:
    called = Called(folder, "job.sh", *words, **patient, **variables)
    assert called.words is not None
    assert [word for word in called.words if not word.startswith("--comment=luthier:")][-1] == "job.sh"
    assert "KNOB_LEVEL" not in called.set
    assert "as found" not in called.done.stderr


def test_the_server_can_be_named_by_variables() -> None:
    found = server_of({**SERVER, "SLURM_CONF": "/nonexistent/slurm.conf"})
    assert found == ("host", 80, "t", bytes.fromhex(KEY), 0.2)


@pytest.mark.parametrize(
    "key",
    ["", "x" * 64, KEY[:-1], f"{KEY}0", f"A{KEY[1:]}", f"0x{KEY[2:]}", f"{KEY} ", " "],
    ids=["empty", "no digits", "short", "long", "capital", "prefix", "space after", "space"],
)
def test_without_the_key_of_the_server_nobody_is_asked(key: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no server"):
        server_of({**SERVER, "LUTHIER_KEY": key})
    for text in ("", "token t\n", "url http://h:1\ntoken t\n", f"url http://h:1\ntoken t\nkey {key}\n"):
        (tmp_path / CONFIG).write_text(text)
        with pytest.raises(ValueError, match="no server"):
            server_of({"SLURM_CONF": f"{tmp_path}/slurm.conf"})


def test_an_answer_with_a_right_signature_is_used(folder: Path) -> None:
    """So the answers below are ignored because of what is wrong with each."""
    with strange_server(signed(RIGHT)) as url:
        (folder / CONFIG).write_text(f"url {url}\ntoken x\nkey {KEY}\nlimit_ms 2000\n")
        called = Called(folder, "job.sh", SLURM_CONF=str(folder / "slurm.conf"))
    assert (called.set, called.done.stderr) == ({"KNOB_LEVEL": "42"}, "luthier: hello\n")


@pytest.mark.parametrize("kind", [*ANSWERS, "stopped", "unknown host", "no token", "no key", "no server"])
def test_whatever_the_server_does_sbatch_is_called(folder: Path, kind: str) -> None:
    with strange_server(ANSWERS.get(kind)) as url:
        server = {"LUTHIER_URL": url, "LUTHIER_TOKEN": "x", "LUTHIER_KEY": KEY}
        if kind in ANSWERS and kind != "hanging":  # patiently: the answer must have been read
            (folder / CONFIG).write_text(f"url {url}\ntoken x\nkey {KEY}\nlimit_ms 2000\n")
            server = {"SLURM_CONF": str(folder / "slurm.conf")}
        other = {
            "stopped": {"LUTHIER_URL": "http://127.0.0.1:1"},
            "unknown host": {"LUTHIER_URL": "http://no-such-host.invalid:80"},
            "no token": {"LUTHIER_TOKEN": ""},
            "no key": {"LUTHIER_KEY": ""},
            "no server": {"LUTHIER_URL": ""},
        }
        called = Called(folder, "job.sh", "-N1", **{**server, **other.get(kind, {})})
    assert (called.words, called.set) == (["-N1", "job.sh"], {})
    assert (called.done.returncode, called.done.stderr) == (0, "")
    assert called.took_s < 10.0


def test_a_script_that_is_no_file_is_not_read(patient: dict[str, str], folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    assert Called(folder, "pipe", **patient).words == ["pipe"]
    assert Called(folder, "missing.sh", **patient).words == ["missing.sh"]


def test_hostile_texts_run_nothing(patient: dict[str, str], folder: Path) -> None:
    name = "$(touch pwned);`touch pwned`'\".sh"
    (folder / name).write_text(SCRIPT + "#" * 100_000)
    called = Called(folder, name, "--job-name=$(touch pwned)\n'", **patient)
    assert called.words is not None
    assert called.words[-1] == name
    assert not (folder / "pwned").exists()


def test_without_sbatch_one_line(folder: Path) -> None:
    (folder / "bin" / "sbatch").unlink()
    called = Called(folder, "job.sh", PATH=str(folder / "bin"))
    assert called.done.returncode == 2
    assert (
        called.done.stderr == "luthier: sbatch: No such file or directory; luthier submit needs the commands of Slurm\n"
    )


@pytest.mark.parametrize("words", [[], ["--nodes=4", "job.sh"], ["--", "x"]])
def test_the_script_comes_first(words: list[str]) -> None:
    with pytest.raises(InvalidInputError, match="the script comes first"):
        split(words)


def test_words_after_two_dashes_belong_to_the_script() -> None:
    assert split(["a.sh", "-N1", "--no-tuning", "--", "--no-tuning"]) == ("a.sh", ["-N1"], ["--no-tuning"])


GOOD = "HTTP/1.1 201 Created\r\n\r\nluthier 1\ndecision 5\nset A=1\nsay hello\nend\n"


def read(text: str) -> AnswerToJob:
    return read_answer(text, [], "")


def test_an_answer() -> None:
    answer = read(GOOD)
    assert answer.environment == {"A": "1", "LUTHIER_DECISION": "5"}
    assert answer.said == ["hello"]


@pytest.mark.parametrize(
    ("good", "bad"),
    [
        ("201", "200"),
        ("luthier 1", "luthier 2"),
        ("end\n", ""),
        ("decision 5\n", ""),
        ("decision 5", "decision -1"),
        ("A=1", "LD_PRELOAD=x"),
        ("A=1", "A=$(id)"),
        ("A=1", "PATH=x"),
        ("A=1", "A"),
        ("hello", "\x1b[31m"),
        ("say", "run"),
    ],
)
def test_answers_that_are_ignored_as_a_whole(good: str, bad: str) -> None:
    with pytest.raises(ValueError, match=r"answer|variable"):
        read(GOOD.replace(good, bad))


@pytest.mark.parametrize(
    "url", ["https://host:1", "http://host", "http://a b:1", "http://u@host:1", "file:///etc/passwd", "http://h:1/x"]
)
def test_addresses_that_are_not_used(url: str) -> None:
    with pytest.raises(ValueError, match="no server"):
        server_of({**SERVER, "LUTHIER_URL": url})
