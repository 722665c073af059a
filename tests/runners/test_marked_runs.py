"""Of a script that says when its application begins, only the time from there on counts."""

import os
import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.slurm.cluster import Cluster, wait_until

from luthier.measures.registry import measure_from
from luthier.runners.base import Runner
from luthier.runners.command import Command, CommandRunner
from luthier.runners.contract import collect
from luthier.runners.psij import Allocation, PsijRunner
from luthier.runners.slurm import SlurmRunner
from luthier.space import Integer, Space
from luthier.spec.component import Component
from luthier.spec.script import JobScript
from luthier.trial import Completed, Config, Execution, Failed, Job, Pruned, TimedOut

SPACE = Space(Integer("LEVEL", 1, 9))
CONFIG = Config({"LEVEL": 3})
BEFORE_S, APPLICATION_S = 0.5, 0.1


def script(header: str, application: str = f"sleep {APPLICATION_S}\n", shell: str = "/bin/bash") -> JobScript:
    keys = {"header": header, "parameters": {"LEVEL": {"type": "int", "default": 1, "env_var": True}}}
    return JobScript(Component.model_validate(keys), f"#!{shell}\n{application}", "app.sh")


def command(job: JobScript, folder: Path) -> Command:
    return Command(*job.render(SPACE, CONFIG), str(folder), job.is_timed_apart)


def local(job: JobScript, folder: Path) -> CommandRunner:
    return CommandRunner(lambda config: command(job, folder), folder / "runs", grace_s=0.2)


def run(folder: Path, job: JobScript, timeout_s: float | None = None) -> Execution:
    return ended(local(job, folder), timeout_s)


def ended(runner: Runner, timeout_s: float | None = None) -> Execution:
    runner.submit(Job("k", CONFIG, timeout_s))
    return collect(runner, ["k"])["k"]


def output(execution: Execution, name: str) -> str:
    assert execution.logs is not None
    return (Path(execution.logs) / name).read_text()


def wait_running(folder: Path) -> int:
    """Wait until the script runs; return the pid of its supervisor."""
    claimed = folder / "runs" / "k" / "claimed"
    wait_until(lambda: claimed.exists() and len(claimed.read_text().splitlines()) == 2, "it runs")
    return int(claimed.read_text().split()[0])


def assert_only_the_application_counts(execution: Execution) -> None:
    assert execution.problem is None
    assert execution.duration_s >= BEFORE_S + APPLICATION_S
    assert APPLICATION_S <= execution.metrics["wall_s"] <= execution.duration_s - BEFORE_S


SHELLS = [path for path in map(shutil.which, ("bash", "dash", "ksh", "sh", "zsh")) if path is not None]
HEADERS = {
    "plain": "",
    "no end of the line": "printf 'warming up... ' >&2",
    "much output": "head -c 3000000 /dev/zero | tr '\\0' '\\n' >&2",
    "the mark of old": "echo 'luthier: the application began at 1.0' >&2",
    "closed": "exec >&- 2>&- <&-",
    "redirected": "exec >/dev/null 2>&1",
    "full disk": "exec >/dev/full",
    "a lock": "exec 9>lock",
    "another folder": "cd /",
    "strict": "set -eu",
    "no overwriting": "set -C",
    "traced": "set -x",
}


@pytest.mark.parametrize("header", HEADERS.values(), ids=HEADERS)
@pytest.mark.parametrize("shell", SHELLS)
def test_nothing_that_a_script_prints_closes_or_redirects_changes_its_time(
    shell: str, header: str, tmp_path: Path
) -> None:
    assert_only_the_application_counts(run(tmp_path, script(f"sleep {BEFORE_S}\n{header}", shell=shell)))


def test_the_mark_is_not_in_the_output(tmp_path: Path) -> None:
    execution = run(tmp_path, script("echo before; echo trouble >&2", "env; echo application\n"))
    assert output(execution, "stdout").startswith("before\n")
    assert "LUTHIER_" not in output(execution, "stdout")
    assert output(execution, "stderr") == "trouble\n"


@pytest.mark.parametrize("header", ["exit 0", "exec true", "cat <<END", "unset LUTHIER_BEGAN", "LUTHIER_BEGAN=null"])
@pytest.mark.parametrize("measure", ["wall", "user"])
def test_without_a_mark_there_is_no_number(header: str, measure: str, tmp_path: Path) -> None:
    execution = run(tmp_path, script(header, "true\n"))
    assert "wall_s" not in execution.metrics
    outcome = measure_from(measure)(execution)
    assert isinstance(outcome, Failed)
    assert "before its application began" in outcome.reason
    assert not (tmp_path / "runs" / "k" / "began").exists()


def test_a_header_that_fails_is_told_by_its_own_message(tmp_path: Path) -> None:
    assert run(tmp_path, script("echo no such file system >&2; exit 4")).problem == Failed(
        "exit code 4 before the application began: no such file system"
    )


LOADS = 'module() { echo "no module $2" >&2; return 5; }; module load mpi; export X=1'
FAILING = {
    "in the middle": ("echo no licence >&2; (exit 4)\necho on", 4, "no licence"),
    "at the end": ("echo on; ls /nowhere/at/all", 2, "No such file or directory"),
    "a function": (LOADS, 5, "no module mpi"),
    "no such program": ("nosuchprogram -x\n# done\n", 127, "not found"),
    "a file that is missing": (". /nowhere/setup.sh; echo on", None, "/nowhere/setup.sh"),
    "a redirection": ("echo 3 > /nowhere/drop_caches\necho on", None, "/nowhere/drop_caches"),
    "its own strictness": ("set -eu\n(echo strict >&2; exit 6)\necho on", 6, "strict"),
}


@pytest.mark.parametrize(("header", "code", "message"), FAILING.values(), ids=FAILING)
@pytest.mark.parametrize("shell", SHELLS)
def test_no_application_is_timed_after_a_header_that_failed(
    shell: str, header: str, code: int | None, message: str, tmp_path: Path
) -> None:
    problem = run(tmp_path, script(header, "touch application\n", shell)).problem
    assert isinstance(problem, Failed)
    assert f"exit code {'' if code is None else code}" in problem.reason
    assert " before the application began: " in problem.reason
    assert message in problem.reason
    assert not (tmp_path / "application").exists()


HARMLESS = {
    "a test": "[ -f /nowhere ] && rm /nowhere",
    "a condition": "if grep -q x /dev/null; then echo yes; fi",
    "handled": "grep -q x /dev/null || true",
    "negated": "! grep -q x /dev/null",
    "a function that goes on": "setup() { false || true; export READY=1; }; setup",
    "not checked": "set +e; false",
    "nothing": ":",
}


@pytest.mark.parametrize("header", HARMLESS.values(), ids=HARMLESS)
@pytest.mark.parametrize("shell", SHELLS)
def test_what_does_no_harm_is_no_failure(shell: str, header: str, tmp_path: Path) -> None:
    application = "echo $-; false; trap; set | grep ^luthier_ || echo none\n"
    execution = run(tmp_path, script(header, application, shell))
    assert execution.problem is None
    flags, *left = output(execution, "stdout").splitlines()
    assert ("e" not in flags, left) == (True, ["none"])


@pytest.mark.parametrize("shell", SHELLS)
def test_the_application_keeps_the_strictness_of_its_first_line(shell: str, tmp_path: Path) -> None:
    problem = run(tmp_path, script("true", "false\ntrue\n", f"{shell} -e")).problem
    assert problem == Failed("exit code 1")


def test_what_fails_inside_a_file_that_bash_sources_is_its_own_matter(tmp_path: Path) -> None:
    (tmp_path / "setup.sh").write_text("false\nexport READY=1\n")
    execution = run(tmp_path, script(". ./setup.sh", "echo $READY\n"))
    assert (execution.problem, output(execution, "stdout")) == (None, "1\n")


def test_a_second_mark_does_not_move_the_first(tmp_path: Path) -> None:
    again = f"sleep {APPLICATION_S}\nprintf . 1<>{tmp_path}/runs/k/began\nsleep {APPLICATION_S}\n"
    execution = run(tmp_path, script("true", again))
    assert execution.problem is None
    assert execution.metrics["wall_s"] >= 2 * APPLICATION_S


def test_the_shortest_application_takes_longer_than_nothing(tmp_path: Path) -> None:
    for number in range(20):
        execution = run(tmp_path / str(number), script("true", "exit 0\n"))
        assert isinstance(measure_from("wall")(execution), Completed)


def test_a_run_has_started_when_its_application_has(tmp_path: Path) -> None:
    runner = local(script('until [ -e "$0.go" ]; do sleep 0.02; done', "exec sleep 3600\n"), tmp_path)
    runner.submit(Job("k", CONFIG))
    wait_running(tmp_path)
    assert not runner.poll(["k"], 0.1)
    assert runner.started_at("k") is None
    before = time.time()
    (tmp_path / "app.sh.go").touch()
    wait_until(lambda: runner.started_at("k") is not None, "the application has begun")
    began_at = runner.started_at("k")
    assert began_at is not None
    assert before - 0.1 <= began_at <= time.time()
    runner.cancel(["k"])
    stopped = collect(runner, ["k"])["k"]
    outcome = measure_from("wall")(stopped)
    assert outcome == Pruned("cancelled", at_least=stopped.metrics["wall_s"])
    assert stopped.metrics["wall_s"] < stopped.duration_s


def test_a_run_that_is_stopped_before_its_application_has_no_bound(tmp_path: Path) -> None:
    execution = run(tmp_path, script("sleep 3600"), timeout_s=0.2)
    assert measure_from("wall")(execution) == TimedOut("took longer than 0.2 s", at_least=None)
    assert execution.duration_s >= 0.2


def test_a_supervisor_that_died_is_not_waited_for_without_end(tmp_path: Path) -> None:
    pipe = tmp_path / "began"
    os.mkfifo(pipe)
    argv, environment = script("true", "echo application\n").render(SPACE, CONFIG)
    variables = {**os.environ, **environment, "LUTHIER_BEGAN": str(pipe)}
    done = subprocess.run(argv, env=variables, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 1
    assert done.stdout == ""
    assert "supervisor of this run does not answer" in done.stderr


def test_a_supervisor_that_is_late_takes_no_time_off(tmp_path: Path) -> None:
    """The script waits for a supervisor that gets no processor for a while."""
    gate = tmp_path / "app.sh.go"
    runner = local(script(f'until [ -e "{gate}" ]; do sleep 0.02; done', f"sleep {APPLICATION_S}\n"), tmp_path)
    runner.submit(Job("k", CONFIG))
    supervisor = wait_running(tmp_path)
    os.kill(supervisor, signal.SIGSTOP)
    gate.touch()
    time.sleep(2 * APPLICATION_S)
    os.kill(supervisor, signal.SIGCONT)
    execution = collect(runner, ["k"])["k"]
    assert execution.problem is None
    assert execution.metrics["wall_s"] >= APPLICATION_S


@pytest.fixture(params=["psij:local", "slurm", "psij:slurm"])
def batch_runner(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Runner]:
    where, job = str(request.param), script(f"sleep {BEFORE_S}; echo '# odd \"' >&2")
    if where != "psij:local":
        slurm: Cluster = request.getfixturevalue("slurm")
        assert slurm.nodes
    if where == "slurm":
        yield SlurmRunner(lambda config: job.batch(SPACE, config), tmp_path / "runs", ask_every_s=0.2, settle_s=1.0)
        return
    yield PsijRunner(
        lambda config: command(job, tmp_path),
        where.removeprefix("psij:"),
        tmp_path / "runs",
        allocation=Allocation(walltime_s=3600.0),
        ask_every_s=1,
    )
    if where == "psij:local":
        from psij.executors.local import _ProcessReaper

        wait_until(lambda: not _ProcessReaper.get_instance()._jobs, "PSI/J has let go of all processes")


@pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")
def test_batch_jobs_count_from_the_mark_too(batch_runner: Runner) -> None:
    assert_only_the_application_counts(ended(batch_runner))


def test_values_reach_a_marked_script(tmp_path: Path) -> None:
    job = script("true", f"test $LEVEL = 3 && echo {shlex.quote('it is')}\n")
    assert output(run(tmp_path, job), "stdout") == "it is\n"
