import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from luthier.runners import slurm_text
from luthier.runners.sbatch_options import ScriptOptions, asked
from luthier.runners.slurm_text import ListedJob, problem_of
from luthier.trial import Failed, Lost, Problem, Pruned, TimedOut

SQUEUE = """\
12|PENDING|N/A|N/A|ReqNodeNotAvail, UnavailableNodes:n1|luthier-a-0
13|RUNNING|1794790456|1794790576|None|luthier-a-1
14|OUT_OF_MEMORY|1794790456|1794790457|OutOfMemory|luthier-a-2
15|PENDING|1794790460|1794790520|PartitionConfig|a | name|with bars
slurm_load_jobs error: Socket timed out on send/recv operation
16|COMPLETED
"""
SACCT = """\
7|COMPLETED|1794796000|1794796002|luthier-a-0
8|CANCELLED by 1000|1794796000|1794796003|luthier-a-1
9|PENDING|Unknown|Unknown|luthier-a-2

"""


def test_squeue_is_read() -> None:
    assert slurm_text.parse_squeue(SQUEUE) == [
        ListedJob(12, "PENDING", "luthier-a-0", "ReqNodeNotAvail, UnavailableNodes:n1"),
        ListedJob(13, "RUNNING", "luthier-a-1", "None", 1794790456.0, 1794790576.0),
        ListedJob(14, "OUT_OF_MEMORY", "luthier-a-2", "OutOfMemory", 1794790456.0, 1794790457.0),
        ListedJob(15, "PENDING", "a | name|with bars", "PartitionConfig", 1794790460.0, 1794790520.0),
    ]


def test_sacct_is_read() -> None:
    assert slurm_text.parse_sacct(SACCT) == [
        ListedJob(7, "COMPLETED", "luthier-a-0", "", 1794796000.0, 1794796002.0),
        ListedJob(8, "CANCELLED", "luthier-a-1", "", 1794796000.0, 1794796003.0),
        ListedJob(9, "PENDING", "luthier-a-2"),
    ]


@given(text=st.text())
def test_no_text_is_too_strange_to_read(text: str) -> None:
    slurm_text.parse_squeue(text)
    slurm_text.parse_sacct(text)
    slurm_text.parse_submitted(text)


def test_a_reason_is_hopeless_if_no_other_job_can_change_it() -> None:
    """Reasons of Slurm 22.05 to 24.11."""
    hopeless = [
        "AccountNotAllowed",
        "AssocMaxBBPerNode",
        "AssocMaxCpuMinutesPerJobLimit",
        "AssocMaxCpuPerJobLimit",
        "AssocMaxGRESPerJob",
        "AssocMaxMemPerNode",
        "AssocMaxNodePerJobLimit",
        "AssocMaxWallDurationPerJobLimit",
        "BadConstraints",
        "DeadLine",
        "DependencyNeverSatisfied",
        "InvalidAccount",
        "InvalidQOS",
        "MaxMemPerLimit",
        "PartitionConfig",
        "PartitionNodeLimit",
        "PartitionTimeLimit",
        "QOSMaxCpuPerJobLimit",
        "QOSMaxCpuPerNode",
        "QOSMaxMemoryMinutesPerJob",
        "QOSMaxNodePerJobLimit",
        "QOSMaxWallDurationPerJobLimit",
        "QOSMinCpuNotSatisfied",
        "QOSMinGRES",
        "QOSNotAllowed",
        "ReservationDeleted",
    ]
    passing = [
        "None",
        "Resources",
        "Priority",
        "Dependency",
        "BeginTime",
        "Licenses",
        "Reservation",
        "ReqNodeNotAvail",
        "PartitionDown",
        "JobHeldUser",
        "JobHeldAdmin",
        "AssocGrpCpuLimit",
        "AssocGrpNodeRunMinutes",
        "AssocMaxJobsLimit",
        "AssocGrpWallLimit",
        "MaxCpuPerAccount",
        "QOSGrpCpuLimit",
        "QOSGrpGRES",
        "QOSJobLimit",
        "QOSMaxCpuPerUserLimit",
        "QOSMaxGRESPerUser",
        "QOSMaxJobsPerUserLimit",
        "QOSMaxSubmitJobPerUserLimit",
        "QOSResourceLimit",
        "QOSUsageThreshold",
        "BurstBufferResources",
        "JobArrayTaskLimit",
        "Cleaning",
    ]
    assert [reason for reason in hopeless if not ListedJob(1, "PENDING", reason=reason).is_hopeless] == []
    assert [reason for reason in passing if ListedJob(1, "PENDING", reason=reason).is_hopeless] == []
    assert not ListedJob(1, "RUNNING", reason="QOSMaxWallDurationPerJobLimit").is_hopeless


def test_a_job_that_is_being_allocated_has_not_begun() -> None:
    states = ("PENDING", "CONFIGURING", "RUNNING", "COMPLETING", "SUSPENDED", "FAILED")
    assert [ListedJob(1, state).has_begun for state in states] == [False, False, True, True, True, True]


@pytest.mark.parametrize(
    ("label", "name"),
    [
        ("3-run12", "3-run12-luthier-ab"),
        ("x|y; $(id)\n--wrap=é", "x-y-id-wrap-luthier-ab"),
        ("-" * 10, "-luthier-ab"),
        ("a" * 500, "a" * 40 + "-luthier-ab"),
    ],
)
def test_names_of_jobs_begin_with_what_people_know(label: str, name: str) -> None:
    assert slurm_text.job_name(label, "ab") == name


def test_what_is_over_and_what_is_hopeless() -> None:
    waiting, _, out_of_memory, hopeless = slurm_text.parse_squeue(SQUEUE)
    assert [job.is_over for job in (waiting, out_of_memory)] == [False, True]
    assert [job.is_hopeless for job in (waiting, hopeless)] == [False, True]


@pytest.mark.parametrize(
    ("text", "number"),
    [("17\n", 17), ("17;cluster\n", 17), ("a word from the site\n17\n", 17), ("", None), ("allocation later\n", None)],
)
def test_the_number_of_a_new_job(text: str, number: int | None) -> None:
    assert slurm_text.parse_submitted(text) == number


@pytest.mark.parametrize(
    ("message", "alone", "among_others"),
    [
        ("Unable to contact slurm controller (connect failure)", False, False),
        ("Batch job submission failed: Socket timed out on send/recv operation", False, False),
        ("Slurm temporarily unable to accept job, sleeping and retrying", False, False),
        ("Required partition not available (inactive or drain)", False, False),
        ("sbatch: timed out after 15 s", False, False),
        ("Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)", True, False),
        ("Invalid partition name specified", True, True),
        ("Requested node configuration is not available", True, True),
        ("sbatch: unrecognized option '--foo'", True, True),
        ("Memory specification can not be satisfied", True, True),
    ],
)
def test_what_is_refused_for_good(message: str, *, alone: bool, among_others: bool) -> None:
    assert slurm_text.is_refusal(message, others_queued=False) is alone
    assert slurm_text.is_refusal(message, others_queued=True) is among_others


@pytest.mark.parametrize(
    ("state", "seen", "by_itself", "cancelled", "problem"),
    [
        ("COMPLETED", None, True, False, None),
        ("COMPLETED", None, True, True, None),
        ("FAILED", Failed("exit code 1"), True, False, Failed("exit code 1")),
        ("OUT_OF_MEMORY", None, True, False, Failed("out of memory")),
        ("OUT_OF_MEMORY", Failed("killed by SIGKILL"), True, False, Failed("out of memory")),
        ("FAILED", TimedOut("took longer than 1 s"), True, False, TimedOut("took longer than 1 s")),
        ("TIMEOUT", Lost("told"), False, False, TimedOut("Slurm ended it at its time limit")),
        ("TIMEOUT", None, False, False, TimedOut("Slurm ended it at its time limit")),
        ("CANCELLED", None, False, True, Pruned("cancelled")),
        ("CANCELLED", None, False, False, Lost("it was cancelled, but not by luthier")),
        ("CANCELLED", None, True, False, None),
        ("CANCELLED", Failed("exit code 143"), False, True, Pruned("cancelled")),
        ("NODE_FAIL", Lost("no record"), False, False, Lost("its node failed")),
        ("PREEMPTED", None, False, False, Lost("it was preempted by another job")),
        ("REQUEUED", Pruned("cancelled"), False, True, Lost("it was requeued after it had begun")),
        (None, None, True, False, None),
        (None, None, False, False, Lost("it was stopped, and Slurm has forgotten why")),
        (None, Lost("no record"), False, False, Lost("no record")),
    ],
)
def test_how_a_run_ended(
    state: str | None, seen: Problem | None, *, by_itself: bool, cancelled: bool, problem: Problem | None
) -> None:
    assert problem_of(state, seen, by_itself=by_itself, cancelled=cancelled, log="") == problem


def test_a_memory_limit_without_control_groups_is_known_from_the_log() -> None:
    log = "slurmstepd: error: StepId=12.batch exceeded memory limit (216793088 > 52428800), being killed"
    problem = problem_of("FAILED", Lost("no record"), by_itself=False, cancelled=False, log=log)
    assert problem == Failed("out of memory")


def test_the_head_of_a_script_ends_at_its_first_command() -> None:
    script = "#!/bin/bash\n# why\n#SBATCH -N 2\n\n  # more\n#SBATCH -n 4\nset -e\n#SBATCH -p late\n"
    assert slurm_text.head_of(script) == "# why\n#SBATCH -N 2\n\n  # more\n#SBATCH -n 4"
    assert slurm_text.head_of("#!/bin/bash") == ""


@pytest.mark.parametrize(
    ("script", "options", "refused"),
    [
        ("#!/bin/sh\n#SBATCH --array=1-3\n", (), "--array=1-3"),
        ("#!/bin/sh\n#SBATCH -a 1-3\n", (), "-a"),
        ("#!/bin/sh\ntrue\n#SBATCH --array=1-3\n", (), None),
        ("#!/bin/sh\n#SBATCH --comment='not -W' # nor -a\n", (), None),
        ("#!/bin/sh\n#SBATCH --comment=it's -W\n", (), "-W"),
        ("#!/bin/sh\n", ("-A", "account", "--mem=1G"), None),
        ("#!/bin/sh\n", ("--clusters=other",), "--clusters=other"),
        ("#!/bin/sh\n", ("--wait-all-nodes=1",), None),
    ],
)
def test_options_that_would_not_start_one_job_here(script: str, options: tuple[str, ...], refused: str | None) -> None:
    assert slurm_text.refused_option(script, options) == refused


def test_the_users_own_time_limit_comes_after_ours() -> None:
    script = slurm_text.batch_script("#!/bin/bash\n#SBATCH --time=3\n", "/runs/k", "/bin/python3", 601.0)
    options = [line for line in script.splitlines() if line.startswith("#SBATCH")]
    assert options == ["#SBATCH --time=12", "#SBATCH --time=3"]
    assert "--time" not in slurm_text.batch_script("#!/bin/bash\n", "/runs/k", "/bin/python3", None)


@given(folder=st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20))
def test_any_folder_can_be_named_in_the_script(folder: str) -> None:
    script = slurm_text.batch_script("#!/bin/bash\n", f"/{folder}", "/bin/python3", None)
    assignment = script[script.index("folder=") : script.index("\nif [ -e")]
    command = f'{assignment}\nprintf %s "$folder"'.encode()
    shown = subprocess.run(["sh"], input=command, stdout=subprocess.PIPE, check=True)
    assert shown.stdout.decode() == f"/{folder}"


@pytest.mark.parametrize("mark", ["claimed", "cancel"])
def test_a_run_that_was_taken_on_or_called_off_does_not_start(tmp_path: Path, mark: str) -> None:
    (tmp_path / mark).touch()
    script = slurm_text.batch_script("#!/bin/bash\n", str(tmp_path), "/nowhere/python", None)
    assert subprocess.run(["sh"], input=script.encode(), check=False).returncode == 0
    assert [path.name for path in tmp_path.iterdir()] == [mark]


def test_slurm_is_asked_without_the_users_filters() -> None:
    given_names = {"PATH": "/bin", "SQUEUE_PARTITION": "gpu", "SACCT_FORMAT": "jobid", "LUTHIER_STORE": "x"}
    kept = slurm_text.environment_for_slurm(given_names | {"SBATCH_ACCOUNT": "us", "SLURM_CONF": "/etc/x"})
    assert kept == {"PATH": "/bin", "SBATCH_ACCOUNT": "us", "SLURM_CONF": "/etc/x", "SLURM_TIME_FORMAT": "%s"}


def test_a_job_inherits_what_sbatch_would_hand_on() -> None:
    names = {"PATH": "/bin", "PWD": "/old", "SQUEUE_FORMAT": "%i", "SBATCH_ACCOUNT": "us"}
    own = {"SBATCH_WAIT": "1", "LUTHIER_STORE": "x"}
    assert slurm_text.environment_for_sbatch(names | own, "/here") == names | {"PWD": "/here"}


@pytest.mark.parametrize(
    ("head", "options", "found"),
    [
        ("", (), ScriptOptions()),
        ("#SBATCH --output=a-%j -e b", (), ScriptOptions(output="a-%j", error="b")),
        (
            '#SBATCH --err "b c"\n#SBATCH -oa\n# text\n#SBATCH --open-mode append',
            (),
            ScriptOptions("a", "b c", "append"),
        ),
        ("#SBATCH --output=a\n#SBATCH --output=b", (), ScriptOptions(output="b")),
        ("#SBATCH --output=a -J x", ("--job-name", "y", "-o", "c"), ScriptOptions(output="c", job_name="y")),
        ("#SBATCH --oversubscribe --exclusive --export=ALL\ntrue\n#SBATCH --output=late", (), ScriptOptions()),
    ],
)
def test_what_a_script_asks_for(head: str, options: tuple[str, ...], found: ScriptOptions) -> None:
    assert asked(f"#!/bin/bash\n{head}\n", options, {}) == found


def test_what_a_script_asks_for_by_variables() -> None:
    variables = {"SBATCH_OPEN_MODE": "append", "SBATCH_OUTPUT": "b", "SBATCH_JOB_NAME": "x"}
    assert asked("#!/bin/sh\n#SBATCH -o a\n", ["--job-name=y"], variables) == ScriptOptions("b", "", "append", "y")


def test_the_log_of_a_job_may_lie_anywhere() -> None:
    command = slurm_text.sbatch_command("batch", "name", "/100%/log", ("--mem=1G",))
    assert command[:2] == ["sbatch", "--mem=1G"]
    assert {"--output=/100%%/log", "--error=/100%%/log", "--job-name=name", "--no-requeue"} < set(command)
    assert command[-1] == "batch"
