"""A failed run is told by what went wrong, not by the last line that happens to be there."""

import os
import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.conftest import missing

from luthier.runners.command import Command, CommandRunner
from luthier.runners.contract import collect
from luthier.runners.error_message import error_message
from luthier.trial import Config, Failed, Job

RULE = "-" * 74
CASES = {
    "": "",
    "\n\n": "",
    "one\ntwo\n\n": "two",
    "\x1b[31mred\x1b[0m\n": "red",
    f"{RULE}\n": RULE,
    "Traceback (most recent call last):\n  File x\nValueError: bad input\n": "ValueError: bad input",
    "grep: no pattern\nTry 'grep --help' for more information.\n": "grep: no pattern",
    "bad input\nsrun: error: n1: task 0: Exited with exit code 3\n": "bad input",
    "srun: error: n1: task 0: Exited with exit code 3\n": "srun: error: n1: task 0: Exited with exit code 3",
    f"title\n{RULE}\nlast\n": "last",
    f"title\n{RULE}\n": "title",
    f"{RULE}\nFirst sentence of\nthe  banner. Second.\n\nMore text.\n\n  Exit code:    3\n{RULE}\n": (
        "First sentence of the banner. Exit code: 3"
    ),
    f"{RULE}\nPrimary job terminated, but 1 process returned\na non-zero exit code.\n{RULE}\n{RULE}\n"
    f"mpirun noticed that process rank 0 exited on signal 11 (Segmentation fault).\n{RULE}\n": (
        "mpirun noticed that process rank 0 exited on signal 11 (Segmentation fault)."
    ),
    f"{RULE}\n{RULE}\n\nx" + "\n" * 300 + f"{RULE}\n": "x",
}


@pytest.mark.parametrize(("text", "message"), CASES.items())
def test_the_message(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "stderr").write_text(text)
    assert error_message(tmp_path / "stderr") == message


def test_without_a_file_there_is_no_message(tmp_path: Path) -> None:
    assert error_message(tmp_path / "stderr") == ""


@given(lines=st.lists(st.sampled_from(["", RULE, "=" * 20, "text", "Key: value", "Try x --help", "\0"]), max_size=20))
def test_whatever_is_there_one_short_line_comes_out(lines: list[str], tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("message") / "stderr"
    path.write_text("\n".join(lines))
    message = error_message(path)
    assert message.isprintable()
    assert len(message) <= 200
    assert bool(message) == any(line.strip("\0") for line in lines)


MPIRUN = {
    "-n 1 ./nowhere": "Executable: ./nowhere",
    "-n 1 sh -c 'echo bad input >&2; exit 3'": "exit code 3: bad input",
    "-n 99 hostname": "There are not enough slots available in the system to satisfy the 99 slots",
    "--nonsense hostname": 'unknown option "--nonsense"',
    "-n 1 sh -c 'exit 4'": "non-zero",
}


@pytest.mark.parametrize(("words", "reason"), MPIRUN.items())
def test_mpirun_is_told_by_its_message(words: str, reason: str, tmp_path: Path) -> None:
    if shutil.which("mpirun") is None:
        missing("Open MPI (mpirun) is not installed; as root: sh tests/services.sh")
    as_root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"} if os.geteuid() == 0 else {}
    command = Command(("sh", "-c", f"exec mpirun {words}"), as_root, str(tmp_path))
    runner = CommandRunner(lambda _: command, tmp_path / "runs")
    runner.submit(Job("k", Config({})))
    problem = collect(runner, ["k"])["k"].problem
    assert isinstance(problem, Failed)
    assert reason in problem.reason
