"""What luthier says to Slurm and how it reads the answers: pure functions over text."""

import math
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

from luthier.runners.supervisor import inherited
from luthier.trial import Failed, Lost, Problem, Pruned, TimedOut

State: TypeAlias = str
"""A job state by Slurm's long name, such as `RUNNING`."""

FINAL_STATES = frozenset(
    {
        "BOOT_FAIL",
        "CANCELLED",
        "COMPLETED",
        "DEADLINE",
        "FAILED",
        "NODE_FAIL",
        "OUT_OF_MEMORY",
        "PREEMPTED",
        "REVOKED",
        "TIMEOUT",
    }
)
"""Final states; in every other state a job waits, runs or is being cleaned up."""

WAITING_STATES = frozenset({"PENDING", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "SPECIAL_EXIT"})
"""States in which a job has not begun, or will begin again."""

_NOT_BEGUN_STATES = WAITING_STATES | {"SUBMITTED", "CONFIGURING"}  # the first is luthier's, before Slurm was asked
_HOPELESS_REASONS = frozenset(
    {
        "AccountNotAllowed",
        "BadConstraints",
        "DeadLine",
        "DependencyNeverSatisfied",
        "InvalidAccount",
        "InvalidQOS",
        "MaxMemPerLimit",
        "PartitionConfig",
        "PartitionNodeLimit",
        "PartitionTimeLimit",
        "QOSNotAllowed",
        "ReservationDeleted",
    }
)
# What one job asks for is above a maximum or below a minimum; limits on all jobs of somebody (Grp, PerUser, PerAccount)
# give way when other jobs end.
_HOPELESS_LIMIT = re.compile(r"(QOS|Assoc)Max\w+Per(Job|Node)(Limit)?|QOSMin\w+")
_SHOWN_LABEL = 40
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9._]+")
_LOST_STATES = {
    "BOOT_FAIL": "its node could not be booted",
    "DEADLINE": "Slurm ended it at its deadline",
    "NODE_FAIL": "its node failed",
    "PREEMPTED": "it was preempted by another job",
    "REQUEUED": "it was requeued after it had begun",
    "REVOKED": "its start was revoked",
}
_OUT_OF_MEMORY = re.compile(r"oom.kill|exceeded\b.{0,200}\bmemory limit|out of memory", re.IGNORECASE)
_TRY_LATER = re.compile(
    r"connect|contact|controller|timed out|temporarily|communicat|transmi|authenti|I/O error|"
    r"partition not available|maintenance|disabled",
    re.IGNORECASE,
)
_LIMIT = re.compile(r"\blimit", re.IGNORECASE)
_FILTERS = ("SQUEUE_", "SACCT_", "SCANCEL_")
_NOT_ONE_JOB = ("SBATCH_ARRAY_INX", "SBATCH_WAIT")
_REFUSED_OPTIONS = {"--array": "-a", "--clusters": "-M", "--test-only": "--test-only", "--wait": "-W"}


@dataclass(frozen=True, slots=True)
class ListedJob:
    """A job as Slurm lists it; times are seconds since the epoch, None while unknown."""

    number: int
    state: State
    name: str = ""
    reason: str = ""
    started_at: float | None = None
    ended_at: float | None = None

    @property
    def is_over(self) -> bool:
        """Whether nothing of this job will run any more."""
        return self.state in FINAL_STATES

    @property
    def has_begun(self) -> bool:
        """Whether it has left the queue; the start of a job that waits is an estimate."""
        return self.state not in _NOT_BEGUN_STATES

    @property
    def is_hopeless(self) -> bool:
        """Whether it waits for something that can never come."""
        if self.state != "PENDING":
            return False
        return self.reason in _HOPELESS_REASONS or _HOPELESS_LIMIT.fullmatch(self.reason) is not None


def environment_for_slurm(environment: Mapping[str, str]) -> dict[str, str]:
    """An environment without the user's own filters and formats, for commands whose answers are read."""
    kept = {name: value for name, value in inherited(environment).items() if not name.startswith(_FILTERS)}
    return kept | {"SLURM_TIME_FORMAT": "%s"}


def environment_for_sbatch(environment: Mapping[str, str], folder: str) -> dict[str, str]:
    """What a job inherits: nothing of luthier's own, and nothing that makes sbatch wait or start many jobs."""
    kept = {name: value for name, value in inherited(environment).items() if name not in _NOT_ONE_JOB}
    return kept | ({"PWD": folder} if "PWD" in kept else {})


def head_of(script: str) -> str:
    """The lines in which sbatch looks for options: all after the first, up to the first command."""
    head = []
    for line in script.split("\n")[1:]:
        if line.strip() and not line.lstrip().startswith("#"):
            break
        head.append(line)
    return "\n".join(head)


def refused_option(script: str, options: Iterable[str]) -> str | None:
    """An option with which sbatch would not start one job here and return, if there is one."""
    for word in [*options, *words_of(script)]:
        for option, letter in _REFUSED_OPTIONS.items():
            if word.partition("=")[0] == option or word.startswith(letter):
                return word
    return None


def words_of(script: str) -> list[str]:
    """The words of all #SBATCH lines of a script."""
    return list(_words_of(script))


@lru_cache(maxsize=16)  # several questions about one script follow each other
def _words_of(script: str) -> tuple[str, ...]:
    lines = (line.removeprefix("#SBATCH") for line in head_of(script).split("\n") if line.startswith("#SBATCH"))
    return tuple(word for line in lines for word in _words(line))


def _words(line: str) -> list[str]:
    try:
        return shlex.split(line, comments=True)
    except ValueError:
        return line.split()  # a quote without its other half; sbatch will say so


def batch_script(script: str, folder: str, python: str, limit_s: float | None) -> str:
    """The script that is submitted: it has the options of the user's script, and runs that under the supervisor.

    Nothing happens if the run was claimed before (a requeued job, or one submitted twice) or cancelled. The time limit
    goes first, so that a limit of the user's own wins; it is a safety net, the supervisor is exact. The environment is
    kept in a file, because dash drops the functions that bash exports; the shell then replaces itself by the
    supervisor, which gets Slurm's signals directly.
    """
    limit = "" if limit_s is None else f"#SBATCH --time={math.ceil(limit_s / 60) + 1}\n"
    return f"""#!/bin/sh
{limit}{head_of(script)}
folder={shlex.quote(folder)}
if [ -e "$folder/claimed" ] || [ -e "$folder/cancel" ]; then exit 0; fi
cat "/proc/$$/environ" >"$folder/environ"
echo "$SLURM_JOB_ID" >"$folder/taken"
python={shlex.quote(python)}
[ -x "$python" ] || python=$(command -v python3) || {{ echo "no Python on $(uname -n)" >&2; exit 127; }}
exec "$python" -I -S -B "$folder/slurm_supervisor.py" "$folder"
"""


def job_name(label: str, token: str) -> str:
    """The name of a job, from a text for people and a token that makes it unique.

    The text comes first: squeue shows eight characters of a name unless it is told otherwise.
    """
    return f"{_NOT_IN_NAMES.sub('-', label).strip('-')[:_SHOWN_LABEL]}-luthier-{token}"


def sbatch_command(batch: str, name: str, log: str, options: Sequence[str]) -> list[str]:
    """The command that submits the file `batch`; Slurm's own messages about the job go to the file `log`."""
    log = log.replace("%", "%%")  # sbatch puts the job's number and the like in place of %j and its kin
    own = ["--parsable", "--no-requeue", f"--job-name={name}", f"--output={log}", f"--error={log}"]
    return ["sbatch", *options, *own, batch]


def squeue_command(user: int) -> list[str]:
    """The command that lists every job of a user that Slurm still knows, also those that ended recently.

    Single jobs are not named: a number that Slurm has forgotten would be an error.
    """
    return ["squeue", "--noheader", "--states=all", f"--user={user}", "--format=%A|%T|%S|%e|%r|%j"]


def sacct_command(numbers: Sequence[int]) -> list[str]:
    """The command that asks the accounting, where there is one, about jobs that Slurm does not know any more.

    It lists all jobs that ever had one of these numbers, and every start of a job that was requeued; the oldest first.
    """
    jobs = ",".join(map(str, numbers))
    columns = "--format=JobIDRaw,State,Start,End,JobName"
    return ["sacct", "--noheader", "--parsable2", "--allocations", "--duplicates", f"--jobs={jobs}", columns]


def scancel_command(numbers: Sequence[int]) -> list[str]:
    """The command that ends jobs; those that have ended are no error."""
    return ["scancel", "--quiet", *map(str, numbers)]


def parse_submitted(text: str) -> int | None:
    """The number of the job that `sbatch --parsable` started."""
    number = text.strip().splitlines()[-1].partition(";")[0] if text.strip() else ""
    return int(number) if number.isdecimal() else None


def parse_squeue(text: str) -> list[ListedJob]:
    """The jobs in the answer to `squeue_command`; other lines are ignored."""
    return [job for line in text.split("\n") if (job := _listed(line.split("|", 5)))]


def parse_sacct(text: str) -> list[ListedJob]:
    """The jobs in the answer to `sacct_command`."""
    rows = (line.split("|", 4) for line in text.split("\n"))
    return [job for row in rows if len(row) == 5 and (job := _listed([*row[:4], "", row[4]]))]


def _listed(fields: Sequence[str]) -> ListedJob | None:
    if len(fields) != 6 or not fields[0].isdecimal() or not fields[1].strip():
        return None
    number, state, started, ended, reason, name = fields
    return ListedJob(int(number), state.split()[0], name, reason, _time(started), _time(ended))  # "CANCELLED by 1000"


def _time(text: str) -> float | None:
    return float(text) if text.isdecimal() else None


def is_refusal(message: str, *, others_queued: bool) -> bool:
    """Whether sbatch will never take this job, judged by what it said; else it is worth another try.

    A limit may be one of the job's own or one on the number of jobs, and Slurm does not tell which: as long as the user
    has other jobs there, it may be that.
    """
    if _TRY_LATER.search(message):
        return False
    return not (others_queued and _LIMIT.search(message))


def problem_of(
    state: State | None, seen: Problem | None, *, by_itself: bool, cancelled: bool, log: str
) -> Problem | None:
    """How a run ended, from Slurm's last word (None: it has forgotten the job) and what its supervisor saw.

    `by_itself`: there is a result, and nobody told the job to stop before; then a controller that thinks otherwise has
    lost its memory, or its view of the node. `cancelled`: luthier wanted it stopped. `log` is what Slurm itself wrote.
    """
    if state == "OUT_OF_MEMORY" or (seen is not None and state == "FAILED" and _OUT_OF_MEMORY.search(log)):
        return Failed("out of memory")
    if by_itself or isinstance(seen, TimedOut):
        return seen
    if state == "TIMEOUT":
        return TimedOut("Slurm ended it at its time limit")
    if state == "CANCELLED":
        return Pruned("cancelled") if cancelled else Lost("it was cancelled, but not by luthier")
    if state in _LOST_STATES:
        return Lost(_LOST_STATES[state])
    if state is None and seen is None:
        return Lost("it was stopped, and Slurm has forgotten why")
    return seen
