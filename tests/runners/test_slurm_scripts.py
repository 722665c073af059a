"""A script means what it means to plain sbatch: each is run once by that and once through the runner."""

import os
import re
import resource
import shlex
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest
from tests.slurm.cluster import Cluster, wait_until

from luthier.runners.contract import collect
from luthier.runners.slurm import Batch, SlurmRunner
from luthier.trial import Config, Execution, Failed, Job, Lost, Problem, Pruned

MODULE = '() { echo "module $*"; export LOADED=$2; }'
LIMITS = """
ulimit -Sa >{record}/soft; ulimit -Ha >{record}/hard; umask >{record}/umask; nice >{record}/nice
grep -E 'Sig(Blk|Ign|Cgt)|Cap|NoNewPrivs|Cpus_allowed|Mems_allowed' /proc/$$/status >{record}/status
ls /proc/$$/fd >{record}/descriptors; readlink /proc/$$/fd/0 >{record}/input; tail -n +1 - >{record}/stdin
test "$(ps -o pgid= -p $$)" -eq $$ && echo leader >{record}/group
"""
FOLDER = "{ pwd; pwd -P; echo $PWD; echo $SLURM_SUBMIT_DIR; } >{record}/folder"
ENVIRONMENT = "env -0 >{record}/env"
PYTHON = """
import os, sys
open("{record}/env", "wb").write(b"".join(name + b"=" + text + b"\\0" for name, text in os.environb.items()))
open("{record}/folder", "w").write(f"{os.getcwd()} {sys.argv[1:]}")
"""
BOTH = "echo to stdout; echo to stderr >&2"
CASES = {
    "the folder where it was submitted": ("/bin/bash", "", FOLDER),
    "--chdir": ("/bin/bash", "--chdir={there}", FOLDER),
    "--chdir, relative": ("/bin/bash", "--chdir=below", FOLDER),
    "-D": ("/bin/sh", "-D below", FOLDER),
    "environment": ("/bin/bash", "", ENVIRONMENT),
    "environment of sh": ("/bin/sh", "", ENVIRONMENT),
    "environment of Python": ("/usr/bin/env python3", "--chdir={there}", PYTHON),
    "--export=NONE": ("/bin/bash", "--export=NONE", ENVIRONMENT),
    "--export=NAME=value": ("/bin/bash", '--export=NAME="a value",HOME', ENVIRONMENT),
    "--job-name": ("/bin/bash", "-J solver", f"{ENVIRONMENT}; echo $SLURM_JOB_NAME >{{record}}/name"),
    "exported functions": (
        "/bin/bash",
        "",
        "{ module load mpi; echo $LOADED; type module; bash -c 'module list'; } >{record}/said",
    ),
    "limits": ("/bin/bash", "--input={there}/input", LIMITS),
    "no input": ("/bin/bash", "", LIMITS),
    "options of the interpreter": ("/bin/bash -e", "", "echo $- >{record}/options; false; echo on >{record}/on"),
    "exit code 3": ("/bin/sh", "", "exit 3"),
    "death by a signal": ("/bin/bash", "", "kill -USR1 $$"),
    "death by SIGKILL": ("/bin/bash", "", "kill -9 $$"),
    "no such interpreter": ("/nowhere/bash", "", "true"),
    "steps": (
        "/bin/bash",
        "--ntasks=2",
        "srun sh -c 'echo $SLURM_PROCID; pwd; echo $SLURM_SUBMIT_DIR' | sort >{record}/said; srun -n1 sh -c 'exit 4'",
    ),
    "functions in steps": ("/bin/bash", "", "srun bash -c 'module load mpi' >{record}/said"),
    "--output": ("/bin/bash", "--output=job-%j.out", BOTH),
    "--output and --error": ("/bin/bash", "-J name -o %x.%j.%%.out --error=below/%8j-%N.%u.%s.%t.err", BOTH),
    "--output below --chdir": ("/bin/bash", "--chdir={there} -o out", BOTH),
    "--output in a fixed place": ("/bin/bash", "-o{there}/out -e none", "echo once; exit 3"),
    "--open-mode=append": ("/bin/bash", "--open-mode=a --output=old", "echo new"),
    "--open-mode=truncate": ("/bin/bash", "--open-mode=truncate --output=old", "echo new"),
    "much output": ("/bin/bash", "--output=out", "head -c 3000000 /dev/zero | tr '\\0' x"),
}
OWN = ("SLURM_JOB_ID", "SLURM_JOBID", "SLURM_TASK_PID", "SLURM_JOB_NAME")
"""Variables that differ between any two jobs, and the name, which is luthier's if the script gives none."""


@dataclass(frozen=True, slots=True)
class Told:
    """What is known of a job when it is over: its files by name, and how Slurm says that it ended."""

    files: dict[str, str]
    state: str
    execution: Execution | None = None

    @property
    def problem(self) -> Problem | None:
        assert self.execution is not None
        return self.execution.problem


@dataclass(slots=True)
class Pair:
    """One script as two jobs, with a folder for each of them that looks the same."""

    root: Path
    slurm: Cluster
    text: str
    numbers: dict[str, str] = field(default_factory=dict)
    runner: SlurmRunner | None = None

    def start(self) -> "Pair":
        for which in ("plain", "luthier"):
            for name in ("start/below", "there", "record"):
                (self.root / which / name).mkdir(parents=True)
            (self.root / which / "start" / "old").write_text("old\n")
            (self.root / which / "there" / "input").write_text("what is read\n")
        self._submit_plainly()
        batch = Batch(self._script("luthier"), cwd=str(self.root / "luthier" / "start"))
        self.runner = SlurmRunner(lambda _: batch, self.root / "runs", grace_s=0.5, ask_every_s=0.2, settle_s=1.0)
        self.runner.submit(Job("k", Config({})))
        self.numbers["luthier"] = (self.root / "runs" / "k" / "id").read_text().strip()
        return self

    def both(self, name: str) -> None:
        """Wait until both jobs have made a file."""
        for which in self.numbers:
            wait_until((self.root / which / "record" / name).exists, f"the job of {which} has written {name}")

    def lines(self, which: str, name: str = "log") -> list[str]:
        path = self.root / which / "record" / name
        return sorted(path.read_text().splitlines()) if path.exists() else []

    def wait_lines(self, count: int) -> None:
        """Wait until both jobs have logged so many lines."""
        for which in self.numbers:
            wait_until(partial(self._has_lines, which, count), f"the job of {which} has {count} lines")

    def signal(self, *words: str) -> None:
        self.slurm.run("scancel", *words, *self.numbers.values())

    def let_go(self) -> None:
        for which in self.numbers:
            (self.root / which / "record" / "gate").touch()

    def told(self) -> tuple[Told, Told]:
        """How both ended."""
        assert self.runner is not None
        execution = collect(self.runner, ["k"])["k"]
        wait_until(lambda: self._listed("plain", "JobState") not in ("PENDING", "RUNNING", "COMPLETING"), "it is over")
        plain, by_luthier = (
            Told(self._files(which), f"{self._listed(which, 'JobState')} {self._listed(which, 'ExitCode')}")
            for which in ("plain", "luthier")
        )
        return plain, Told(by_luthier.files, by_luthier.state, execution)

    def _has_lines(self, which: str, count: int) -> bool:
        return len(self.lines(which)) >= count

    def _submit_plainly(self) -> None:
        start = self.root / "plain" / "start"
        path = self.root / "plain" / "script"
        path.write_text(self._script("plain"))
        default = () if re.search(r"^#SBATCH.* (-o|--output)", self.text, re.MULTILINE) else ("--output=/dev/null",)
        done = subprocess.run(
            ["sbatch", "--parsable", *default, path],
            cwd=start,
            env={**os.environ, "PWD": str(start)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=True,
        )
        self.numbers["plain"] = done.stdout.decode().strip()

    def _script(self, which: str) -> str:
        return self.text.replace("{record}", f"{self.root}/{which}/record").replace(
            "{there}", f"{self.root}/{which}/there"
        )

    def _listed(self, which: str, name: str) -> str:
        found = re.search(rf"\b{name}=(\S+)", self.slurm.run("scontrol", "show", "job", self.numbers[which]))
        assert found is not None
        return found[1]

    def _files(self, which: str) -> dict[str, str]:
        root, number = self.root / which, self.numbers[which]

        def plain(text: str) -> str:
            return re.sub(rf"\b0*{number}\b", "NUMBER", text.replace(str(root), "ROOT"))

        found = {}
        for path in sorted(root.rglob("*")):
            if path.is_file() and path.name != "script":
                text = path.read_text()
                if path.name == "env":
                    text = "\n".join(sorted(pair for pair in text.split("\0") if pair.partition("=")[0] not in OWN))
                    found["env"] = text.replace(str(root), "ROOT")
                else:
                    found[plain(str(path.relative_to(root)))] = plain(text)
        return found


def script(interpreter: str, options: str, body: str, node: str) -> str:
    head = "".join(f"#SBATCH {line}\n" for line in (f"--nodelist={node} --ntasks=1 --time=5", options) if line)
    return f"#!{interpreter}\n{head}{body}\n"


@pytest.fixture(scope="module")
def pairs(slurm_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, tuple[Told, Told]]]:
    """All cases, run at once."""
    root = tmp_path_factory.mktemp("scripts")
    node, limits, mask = slurm_cluster.nodes[0], resource.getrlimit(resource.RLIMIT_NOFILE), os.umask(0o027)
    with pytest.MonkeyPatch.context() as patch:
        variables = {"BASH_FUNC_module%%": MODULE, "ODD": "a\nb ' \" $x", "SQUEUE_FORMAT": "%i", "EMPTY": ""}
        for name, value in {**slurm_cluster.environment, **variables}.items():
            patch.setenv(name, value)
        resource.setrlimit(resource.RLIMIT_NOFILE, (1000, limits[1]))
        try:
            started = {
                name: Pair(root / f"case-{number}", slurm_cluster, script(*case, node)).start()
                for number, (name, case) in enumerate(CASES.items())
            }
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, limits)
            os.umask(mask)
        yield {name: pair.told() for name, pair in started.items()}


@pytest.mark.parametrize("case", CASES)
def test_a_script_means_what_it_means_to_sbatch(pairs: dict[str, tuple[Told, Told]], case: str) -> None:
    plain, by_luthier = pairs[case]
    assert by_luthier.files == plain.files
    assert by_luthier.state == plain.state
    assert (by_luthier.problem is None) == (plain.state == "COMPLETED 0:0")


def test_without_the_folder_of_its_output_file_nothing_runs(slurm: Cluster, tmp_path: Path) -> None:
    pair = Pair(tmp_path, slurm, script("/bin/bash", "--output=nowhere/out", "touch {record}/ran", slurm.nodes[0]))
    plain, by_luthier = pair.start().told()
    assert by_luthier.files == plain.files
    assert plain.state.startswith("FAILED")
    problem = by_luthier.problem
    assert isinstance(problem, Failed)
    assert problem.reason == f"cannot open {tmp_path}/luthier/start/nowhere/out: No such file or directory"


def test_the_output_is_there_while_the_job_runs(slurm: Cluster, tmp_path: Path) -> None:
    body = f"echo early; until [ -e {{record}}/gate ]; do sleep 0.05; done; {BOTH}"
    pair = Pair(tmp_path, slurm, script("/bin/bash", "-o out -e err", body, slurm.nodes[0])).start()
    outs = [tmp_path / which / "start" / "out" for which in pair.numbers]
    wait_until(lambda: all(out.exists() and out.read_text() == "early\n" for out in outs), "both have the first line")
    pair.let_go()
    plain, by_luthier = pair.told()
    assert by_luthier.files == plain.files
    assert (tmp_path / "runs" / "k" / "stdout").read_text() == "early\nto stdout\n"
    assert (tmp_path / "runs" / "k" / "stderr").read_text() == "to stderr\n"


TRAPS = "; ".join(
    f"trap 'echo NAME {name} >>{{record}}/log' {name}" for name in ("USR1", "USR2", "HUP", "ALRM", "TERM", "WINCH")
)
WAITS = "touch {record}/NAME; until [ -e {record}/gate ]; do sleep 0.05; done"
LISTENER = f"{TRAPS}; {WAITS}"
LISTENERS = f"""
bash -c {shlex.quote(LISTENER.replace("NAME", "child"))} &
srun bash -c {shlex.quote(LISTENER.replace("NAME", "step"))} &
{LISTENER.replace("NAME", "script")}
wait
"""
SIGNALS = [
    (("--batch", "--signal=USR1"), ["script USR1"]),
    (("--batch", "--signal=TERM"), ["script TERM"]),
    (("--batch", "--signal=HUP"), ["script HUP"]),
    (("--batch", "--signal=ALRM"), ["script ALRM"]),
    (("--batch", "--signal=USR2"), ["script USR2"]),
    (("--batch", f"--signal={signal.SIGWINCH.value}"), ["script WINCH"]),
    (("--signal=USR1",), ["step USR1"]),
    (("--full", "--signal=USR2"), ["child USR2", "script USR2", "step USR2"]),
    (("--batch", "--signal=USR2"), ["script USR2"]),
]


def test_signals_reach_those_that_slurm_sends_them_to(slurm: Cluster, tmp_path: Path) -> None:
    pair = Pair(tmp_path, slurm, script("/bin/bash", "", LISTENERS, slurm.nodes[0])).start()
    for name in ("script", "child", "step"):
        pair.both(name)
    expected: list[str] = []
    for words, who in SIGNALS:
        pair.signal(*words)
        expected = sorted(expected + who)
        pair.wait_lines(len(expected))
    pair.let_go()
    plain, by_luthier = pair.told()
    assert pair.lines("plain") == expected
    assert pair.lines("luthier") == expected
    assert (by_luthier.state, by_luthier.problem) == (plain.state, None)


CHECKPOINT = "echo begin >>{record}/log; sleep 1; echo written >>{record}/log; exit 0"
"""It takes longer than the grace that luthier gives to runs it stops itself, and less than Slurm's KillWait."""


def test_a_script_that_slurm_stops_has_time_for_its_checkpoint(slurm: Cluster, tmp_path: Path) -> None:
    body = f"trap '{CHECKPOINT}' TERM; {WAITS.replace('NAME', 'script')}"
    pair = Pair(tmp_path, slurm, script("/bin/bash", "", body, slurm.nodes[0])).start()
    pair.both("script")
    pair.signal()
    plain, by_luthier = pair.told()
    assert pair.lines("plain") == pair.lines("luthier") == ["begin", "written"]
    assert by_luthier.state == plain.state
    assert by_luthier.problem == Lost("it was cancelled, but not by luthier")


def test_a_script_that_luthier_stops_in_vain_is_killed(slurm: Cluster, tmp_path: Path) -> None:
    body = f"trap 'echo told >>{{record}}/log' TERM; {WAITS.replace('NAME', 'script')}"
    pair = Pair(tmp_path, slurm, script("/bin/bash", "", body, slurm.nodes[0])).start()
    pair.both("script")
    assert pair.runner is not None
    pair.runner.cancel(["k"])
    execution = collect(pair.runner, ["k"])["k"]
    assert execution.problem == Pruned("cancelled")
    assert execution.metrics["exit_code"] == -signal.SIGKILL
    assert pair.lines("luthier") == ["told"]


def test_a_job_that_is_suspended_goes_on(slurm: Cluster, tmp_path: Path) -> None:
    body = f"echo $$ >{{record}}/pid; {WAITS.replace('NAME', 'script')}"
    pair = Pair(tmp_path, slurm, script("/bin/bash", "", body, slurm.nodes[0])).start()
    pair.both("script")
    stats = [Path("/proc", pair.lines(which, "pid")[0], "stat") for which in pair.numbers]
    for number in pair.numbers.values():
        slurm.run("scontrol", "suspend", number)
    wait_until(lambda: all(" T " in stat.read_text() for stat in stats), "both are stopped")
    for number in pair.numbers.values():
        slurm.run("scontrol", "resume", number)
    pair.let_go()
    plain, by_luthier = pair.told()
    assert (plain.state, by_luthier.state, by_luthier.problem) == ("COMPLETED 0:0", "COMPLETED 0:0", None)


def test_the_warning_before_a_time_limit_reaches_the_script(slurm: Cluster, tmp_path: Path) -> None:
    """One script ends at the signal, the other goes on; both at once, because Slurm looks at limits now and then."""
    bodies = {
        name: f"trap 'echo checkpoint >>{{record}}/log; {then}' USR1; {WAITS.replace('NAME', 'script')}; exit 3"
        for name, then in (("ends", "exit 0"), ("goes_on", "true"))
    }
    options = "--time=1 --signal=B:USR1@55"
    ends, goes_on = (
        Pair(tmp_path / name, slurm, script("/bin/bash", options, body, slurm.nodes[0])).start()
        for name, body in bodies.items()
    )
    goes_on.wait_lines(1)
    goes_on.let_go()
    for pair, state, problem in ((ends, "COMPLETED 0:0", None), (goes_on, "FAILED 3:0", Failed("exit code 3"))):
        plain, by_luthier = pair.told()
        assert pair.lines("plain") == pair.lines("luthier") == ["checkpoint"]
        assert (plain.state, by_luthier.state, by_luthier.problem) == (state, state, problem)
