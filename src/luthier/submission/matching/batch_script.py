"""What a batch script runs, read as data."""

import re
import shlex
from collections.abc import Sequence
from datetime import datetime
from pathlib import PurePosixPath

from luthier.submission.job import LONGEST_HEAD, LONGEST_SCRIPT, MOST_NODES, NewJob
from luthier.submission.matching.command_line import LONGEST_COMMAND, Invocation, invocation_of, simple_commands

_KEYWORDS = {"!", "{", "do", "elif", "else", "if", "then", "until", "while"}
_NOT_COMMANDS = {"}", "case", "done", "esac", "fi", "for", "function", "select"}
_PARALLEL = frozenset(["srun", "mpirun", "mpiexec", "mpiexec.hydra", "orterun", "prterun", "aprun", "jsrun", "ibrun"])
_MINOR = frozenset(
    """
    : . [ [[ alias awk basename cat cd chmod conda cp cut date declare df dirname du echo eval exit export false
    find free grep head hostname id kill let ln local ls lscpu mamba mkdir ml module mv nproc nvidia-smi popd
    printenv printf pushd pwd read readlink realpath return rm rmdir rsync sbcast scancel scontrol scp sed seq set
    shift shopt sleep sort source spack squeue ssh stat sync tail tar tee test touch tr trap true type ulimit umask
    uname uniq unset wait wc which xargs
    """.split()  # noqa: SIM905 a list of seventy quoted words is hard to read
)
"""Commands that are in many scripts, and seldom the purpose of a script."""

_NODES = re.compile(r"([0-9]{1,9})([kKmM]?)(?:-.*)?", re.DOTALL)
_FACTORS = {"": 1, "k": 1024, "m": 1024**2}


def job_of_script(
    text: str,
    user: str,
    submitted_at: datetime,
    name: str | None = None,
    nodes: int | None = None,
    options: Sequence[str] = (),
    *,
    script: str = "sbatch",
) -> NewJob:
    """The job that a batch script describes; the script is only read, nothing in it is run or expanded.

    `options` are those of sbatch's command line, which override the #SBATCH lines; `name` and `nodes` override both.
    `script` is the name of the script's file, which is the name of a job without one. The program is the first one
    started by srun or mpirun, else the first that is no minor command such as `cd` or `module`. It is "" if there is
    none.
    """
    from luthier.runners.sbatch_options import asked
    from luthier.runners.slurm_text import words_of

    words, called = main_command(text[:LONGEST_SCRIPT])
    head = text[:LONGEST_HEAD]
    if name is None:
        name = asked(head, options, {}).job_name or PurePosixPath(script).name
    if nodes is None:
        nodes = _node_count(options) or _node_count(words_of(head)) or 1
    return NewJob(user, name, called.program, shlex.join(words)[:LONGEST_COMMAND], submitted_at, nodes)


def main_command(text: str) -> tuple[list[str], Invocation]:
    """The words of the command that a script is for, and how it calls its program."""
    best: tuple[list[str], Invocation] = ([], Invocation("", ()))
    for words in simple_commands(text):
        while words and words[0] in _KEYWORDS:
            words = words[1:]  # noqa: PLW2901 the keyword is not part of the command
        if not words or words[0] in _NOT_COMMANDS:
            continue
        called = invocation_of(words)
        if not called.path or called.program in _MINOR:
            continue
        if _PARALLEL.intersection(called.launchers):
            return words, called
        if not best[0]:
            best = words, called
    return best


def _node_count(words: Sequence[str]) -> int | None:
    """The last node count in options of sbatch; of a range the smallest."""
    found, left = None, iter(words)
    for word in left:
        option, equals, value = word.partition("=")
        if option == "--nodes":
            text = value if equals else next(left, "")
        elif word.startswith("-N"):
            text = word[2:].removeprefix("=") or next(left, "")
        else:
            continue
        match = _NODES.fullmatch(text)
        if match is not None and int(match[1]) > 0:
            found = min(MOST_NODES, int(match[1]) * _FACTORS[match[2].lower()])
    return found
