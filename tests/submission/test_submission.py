"""Jobs of an ordinary user on a real Slurm get the configuration of a tuned job, or run as they are."""

import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.conftest import missing
from tests.server.server_fixtures import Running, server_of_its_own
from tests.slurm.cluster import Cluster, missing_program, wait_until
from tests.slurm.cluster import cluster as new_cluster
from tests.submission.strange_server import ANSWERS, KEY, RIGHT, on_the_way, signed, strange_server
from tests.submission.submitting import (
    EXPERIMENT,
    SCRIPT,
    SEEN,
    UNTOUCHED,
    Submitter,
    record_of,
    submitter,
    with_tuned_job,
    wrapper,
)
from tests.torture import IS_TORTURE

from luthier.runners.slurm_text import job_name
from luthier.submission.ask import CONFIG, TIME_LIMIT_MS
from luthier.submission.job_times import JobTimes
from luthier.submission.server.state import submission_of
from luthier.submission.slurm_plugins import carry_out, installation, removal
from luthier.submission.store import submissions_in

PATIENT_MS = 2000  # this machine may be busy; the default limit is measured in benchmarks/submission_delay.py
HOSTILE = "x\"'`touch pwned`$(touch pwned);touch pwned|touch pwned\n$(touch pwned)\n%s%n\\"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with server_of_its_own(tmp_path_factory.mktemp("served")) as running:
        yield running


@pytest.fixture(scope="module")
def cluster(served: Running, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A Slurm with the plug-in, which asks the server."""
    if (program := missing_program()) is not None:
        missing(f"Slurm ({program}) is not installed; as root: sh tests/services.sh")
    with new_cluster(nodes=1) as slurm:
        folder = config_of(slurm)
        folder.chmod(0o755)
        carry_out(
            installation(folder, served.url, served.token, submission_of(served.context).signing_key.public, PATIENT_MS)
        )
        for order in ("stop slurmctld", "start slurmctld"):  # job_submit plug-ins are loaded when it starts
            slurm.order(order)
        yield slurm


@pytest.fixture(scope="module")
def user(cluster: Cluster, served: Running) -> Iterator[Submitter]:
    with submitter(cluster.environment) as somebody:
        somebody.write("job.sh", SCRIPT)
        with_tuned_job(served.store, served.launch(EXPERIMENT), somebody.name)
        wait_until(lambda: is_known(cluster, somebody), "the server knows the record")
        yield somebody


def is_known(cluster: Cluster, user: Submitter) -> bool:
    return "luthier:" in submitted(cluster, user, "sbatch", "job.sh")[1]


def config_of(slurm: Cluster) -> Path:
    return Path(slurm.environment["SLURM_CONF"]).parent


def submitted(slurm: Cluster, user: Submitter, *argv: str, **variables: str) -> tuple[str, str]:
    """Submit a job and wait for its end; what it printed, and what its user was told."""
    done = user.run(*argv, **variables)
    assert done.returncode == 0, done.stderr
    number = re.search(r"Submitted batch job (\d+)", done.stdout)
    assert number is not None, done.stdout
    return output_of(slurm, user, number[1]), done.stderr


def output_of(slurm: Cluster, user: Submitter, number: str) -> str:
    def is_over() -> bool:
        return "COMPLETED" in slurm.run("squeue", "--states=all", "--noheader", f"--jobs={number}", "--format=%T")

    wait_until(is_over, f"job {number} has ended")
    return (user.folder / f"seen.{number}").read_text()


def comment_of(slurm: Cluster, number: str) -> str:
    return slurm.run("scontrol", "show", "job", number)


def test_a_job_gets_the_configuration_through_sbatch_alone(cluster: Cluster, user: Submitter, served: Running) -> None:
    seen, told = submitted(cluster, user, "sbatch", "job.sh")
    assert seen.strip() == SEEN
    assert re.fullmatch(r"luthier: sets KNOB_LEVEL=42 KNOB_MODE=fast as found by experiment 1 .*\n", told)
    newest = submissions_in(served.store).all(limit=1)[0]
    assert (newest.decision, newest.author, newest.job.name) == ("set", user.name, "stencil")


def test_a_job_gets_the_configuration_through_the_wrapper(cluster: Cluster, user: Submitter, served: Running) -> None:
    command, variables = wrapper(user)
    if not command:
        pytest.skip("no Python 3.11 that an ordinary user may run")
    seen, told = submitted(cluster, user, *command, "job.sh", "--nodes=1", **variables)
    assert seen.strip() == SEEN
    assert told.count("luthier:") == 1  # the plug-in does not ask again


def test_the_time_of_a_job_comes_back_by_its_comment(
    cluster: Cluster, user: Submitter, served: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in cluster.environment.items():
        monkeypatch.setenv(name, value)
    submitted(cluster, user, "sbatch", "--comment=of my own", "job.sh")
    newest = submissions_in(served.store).all(limit=1)[0]
    times = JobTimes(served.store)
    assert times.look() > 0
    ended = submissions_in(served.store).get(newest.id)
    assert (ended.state, ended.elapsed_s is not None) == ("COMPLETED", True)
    assert ended.job_id is not None
    assert "Comment=of my own" in comment_of(cluster, ended.job_id)
    assert times.look() == 0


@pytest.mark.parametrize(
    ("options", "variables"),
    [
        ([], {"LUTHIER": "off"}),
        (["--comment=luthier:off"], {}),
        ([], {"KNOB_LEVEL": ""}),
        (["--export=NONE"], {}),
    ],
)
def test_a_job_can_refuse(cluster: Cluster, user: Submitter, options: list[str], variables: dict[str, str]) -> None:
    user.write("plain.sh", SCRIPT.replace("srun ", ""))  # with --export=NONE srun finds no program
    seen, told = submitted(cluster, user, "sbatch", *options, "plain.sh", **variables)
    assert seen.strip() == UNTOUCHED
    assert "as found" not in told


def test_runs_of_experiments_keep_their_configuration(cluster: Cluster, user: Submitter, served: Running) -> None:
    before = submissions_in(served.store).all(limit=1)[0].id
    seen, told = submitted(cluster, user, "sbatch", f"--job-name={job_name('stencil 3', 'a1b2c3')}", "job.sh")
    assert (seen.strip(), told) == (UNTOUCHED, "")
    assert submissions_in(served.store).all(limit=1)[0].id == before


def test_settings_of_the_script_win(cluster: Cluster, user: Submitter) -> None:
    user.write("own.sh", SCRIPT.replace("srun", "export KNOB_LEVEL=7\nsrun"))
    seen, told = submitted(cluster, user, "sbatch", "own.sh")
    assert seen.strip() == "level=7 mode="
    assert "the job sets KNOB_LEVEL itself" in told


def test_a_variable_that_the_script_changes_later_stays_changed_in_srun(cluster: Cluster, user: Submitter) -> None:
    user.write("settings", "KNOB_LEVEL=9\n")
    user.write("later.sh", SCRIPT.replace("srun", ". ./settings\nsrun"))
    seen, _ = submitted(cluster, user, "sbatch", "later.sh")
    assert seen.strip() == "level=9 mode=fast"


def test_hostile_texts_run_nothing_and_arrive(cluster: Cluster, user: Submitter, served: Running) -> None:
    name = "$(touch pwned) `touch pwned` '\" ; touch pwned"
    path = "$(touch pwned);'x.sh"
    user.write(path, SCRIPT + f"# {HOSTILE!r}\n" + "#" * 100_000 + "\n")
    seen, _ = submitted(cluster, user, "sbatch", f"--job-name={name}", f"--comment={HOSTILE}", path)
    assert seen.strip() == SEEN
    newest = submissions_in(served.store).all(limit=1)[0]
    assert newest.job.name == name
    assert not list(user.folder.glob("pwned*"))
    assert not Path("pwned").exists()


def test_a_script_from_a_pipe_runs_as_it_is(cluster: Cluster, user: Submitter) -> None:
    done = user.run("sbatch", given=SCRIPT.replace("srun ", ""))
    assert done.returncode == 0, done.stderr
    assert output_of(cluster, user, done.stdout.split()[-1]).strip() == UNTOUCHED


@pytest.mark.parametrize(("name", "value"), [("OMPI_MCA_orte_fork_agent", "rm"), ("SITE_RUNS_THIS_FIRST", "rm")])
def test_a_variable_that_nobody_approved_reaches_no_job(
    cluster: Cluster, user: Submitter, served: Running, name: str, value: str
) -> None:
    """The attack: one user records a variable that runs a program, for a job like that of another user."""
    script = f"#!/bin/bash\n#SBATCH --job-name={name}\n#SBATCH --output=seen.%j\n./{name}.sh\n"
    record = record_of(served.store, {name: value}, "mallory", script)
    user.write(f"{name}.sh", f'#!/bin/sh\n${name} precious\necho "set=${name} threads=$OMP_NUM_THREADS"\n')
    (user.folder / f"{name}.sh").chmod(0o755)
    user.write("precious", "data")
    user.write("attacked.sh", script)
    seen: list[str] = []

    def is_matched() -> bool:
        seen.append(submitted(cluster, user, "sbatch", "attacked.sh")[0])
        return submissions_in(served.store).all(limit=1)[0].record_id == record

    wait_until(is_matched, "the server knows the record")
    assert {text.splitlines()[-1] for text in seen} == {"set= threads="}
    assert (user.folder / "precious").read_text() == "data"


def test_wrapped_commands_are_asked_about(cluster: Cluster, user: Submitter, served: Running) -> None:
    submitted(cluster, user, "sbatch", "--output=seen.%j", "--wrap", "srun ./solver --steps 4 || true")
    assert submissions_in(served.store).all(limit=1)[0].job.program == "solver"


@pytest.fixture
def another_server(cluster: Cluster) -> Iterator[Path]:
    """The file that names the server, as it was afterwards."""
    config = config_of(cluster) / CONFIG
    before = config.read_text()
    yield config
    config.write_text(before)


# All of them reach the C program and luthier submit alone in tests/native/slurm and tests/cli.
FEW = [
    "unsigned",
    "signed by another",
    "changed",
    "garbage",
    "endless",
    "variable that is a program",
    "shell",
    "hanging",
]


@pytest.mark.parametrize("kind", [*(ANSWERS if IS_TORTURE else FEW), "stopped"])
def test_whatever_the_server_does_the_job_runs_as_it_is(
    cluster: Cluster, user: Submitter, another_server: Path, kind: str
) -> None:
    user.write("plain.sh", SCRIPT.replace("srun ", ""))
    with strange_server(ANSWERS.get(kind)) as url:
        address = url if kind != "stopped" else "http://127.0.0.1:1"
        limit_ms = TIME_LIMIT_MS if kind == "hanging" else PATIENT_MS
        another_server.write_text(f"url {address}\ntoken anything\nkey {KEY}\nlimit_ms {limit_ms}\n")
        began = time.monotonic()
        done = user.run("sbatch", "plain.sh")
        took = time.monotonic() - began
        asked_for = untouched_time(user)
        command, variables = wrapper(user)
        if command:
            server = {"LUTHIER_URL": address, "LUTHIER_TOKEN": "anything", "LUTHIER_KEY": KEY}
            wrapped = user.run(*command, "plain.sh", **variables, **server)
            assert (wrapped.returncode, wrapped.stderr) == (0, "")
    assert (done.returncode, done.stderr) == (0, "")
    assert output_of(cluster, user, done.stdout.split()[-1]).strip() == UNTOUCHED
    assert took < asked_for + TIME_LIMIT_MS / 1000 + GENEROUS_S
    assert not list(user.folder.glob("pwned*"))


def test_a_signed_answer_is_used(cluster: Cluster, user: Submitter, another_server: Path) -> None:
    """So the jobs above run as they are because of what is wrong with each answer."""
    with strange_server(signed(RIGHT)) as url:
        another_server.write_text(f"url {url}\ntoken anything\nkey {KEY}\nlimit_ms {PATIENT_MS}\n")
        seen, told = submitted(cluster, user, "sbatch", "job.sh")
    assert (seen.strip(), told) == ("level=42 mode=", "luthier: hello\n")


class Recorded:
    """Somebody on the way to the server who sends the first answer again to all later questions."""

    first = b""

    def __call__(self, answer: bytes) -> bytes:
        """What is sent instead of this answer."""
        self.first = self.first or answer
        return self.first


MIDDLE: dict[str, tuple[Callable[[], Callable[[bytes], bytes]], list[str]]] = {
    "passes answers on": (lambda: lambda answer: answer, [SEEN, SEEN]),
    "changes a value": (lambda: lambda answer: answer.replace(b"LEVEL=42", b"LEVEL=43"), [UNTOUCHED, UNTOUCHED]),
    "sends an old answer again": (Recorded, [SEEN, UNTOUCHED]),
    "takes a line away": (lambda: lambda answer: re.sub(rb"set KNOB_MODE=.*\n", b"", answer), [UNTOUCHED, UNTOUCHED]),
}


@pytest.mark.parametrize("what", MIDDLE)
@pytest.mark.parametrize("by_wrapper", [False, True], ids=["sbatch", "luthier submit"])
def test_somebody_on_the_way_to_the_server(
    cluster: Cluster, user: Submitter, served: Running, another_server: Path, what: str, *, by_wrapper: bool
) -> None:
    command, variables = wrapper(user) if by_wrapper else (["sbatch"], {})
    if not command:
        pytest.skip("no Python 3.11 that an ordinary user may run")
    change, wanted = MIDDLE[what]
    with strange_server(on_the_way(served.url, change())) as url:
        another_server.write_text(re.sub("url .*", f"url {url}", another_server.read_text()))
        seen = [submitted(cluster, user, *command, "job.sh", **variables) for _ in wanted]
    assert [one.strip() for one, _ in seen] == wanted
    assert [told.count("luthier:") for _, told in seen] == [one == SEEN for one in wanted]


GENEROUS_S = 5.0  # a busy machine; the limit itself is measured in benchmarks/submission_delay.py


def untouched_time(user: Submitter) -> float:
    began = time.monotonic()
    assert user.run("sbatch", "plain.sh", LUTHIER="off").returncode == 0
    return time.monotonic() - began


def test_uninstalled_as_it_was(cluster: Cluster, user: Submitter, served: Running) -> None:
    """The last test here: it removes the plug-in."""
    folder = config_of(cluster)
    carry_out(removal(folder))
    assert not [path for path in folder.iterdir() if "luthier" in path.name or path.suffix == ".lua"]
    cluster.run("scontrol", "reconfigure")
    user.write("plain.sh", SCRIPT.replace("srun ", ""))
    seen, told = submitted(cluster, user, "sbatch", "plain.sh")
    assert (seen.strip(), told) == (UNTOUCHED, "")
