"""Batch scripts are read as data."""

import time
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from luthier.submission.matching import NewJob, fields_of, job_of_script
from luthier.submission.matching.command_line import LONGEST_COMMAND, invocation

AT = datetime(2021, 11, 12, 14, 30, 0, tzinfo=UTC)


def job_of(text: str, **given: object) -> NewJob:
    return job_of_script(text, "ann", AT, **given)  # type: ignore[arg-type]


def test_a_usual_script() -> None:
    job = job_of(
        """#!/bin/bash
#SBATCH --job-name="angry ant" -N 4
#SBATCH -t 10
# srun ./not-this
module load openmpi
cat > input.nml <<'END' | tr a b
mpirun ./nor-this
END
cd $SLURM_SUBMIT_DIR && mkdir -p out
export SIZE=4
time srun -n 16 --mpi=pmix --cpu-bind cores \\
    numactl -m 0 ./bin/solver --size=4 -v "my file" 2>&1 > out/log | tee copy
srun ./second
""",
        script="/home/ann/job.sh",
    )
    assert (job.name, job.nodes, job.program) == ("angry ant", 4, "solver")
    fields = fields_of(job)
    assert fields.path == "./bin/solver"
    assert dict(fields.options) == {"size": ("4",), "v": ("my file",)}


@pytest.mark.parametrize(
    ("line", "path", "options"),
    [
        ("./solver", "./solver", {}),
        ("OMP_NUM_THREADS=4 MODE='a b' ./solver -x", "./solver", {"x": ("",)}),
        ("/usr/bin/time -v env A=1 mpirun -np 4 -mca pml ucx --bind-to core ./a.out in", "./a.out", {"": ("in",)}),
        ("mpiexec -genv X 1 -n 2 ./a.out", "./a.out", {}),
        ("python3 -u train.py --lr 0.1 --lr 0.2", "train.py", {"lr": ("0.1", "0.2")}),
        ("timeout -k 5 10m nice -n 5 ./a.out", "./a.out", {}),
        ("apptainer exec -B /data my.sif ./solver --n=-3", "./solver", {"n": ("-3",)}),
        ("$HOME/bin/ior -a POSIX -b -5", "$HOME/bin/ior", {"a": ("POSIX",), "b": ("-5",)}),
        ("dd if=/dev/zero of=out bs=1M", "dd", {"if": ("/dev/zero",), "of": ("out",), "bs": ("1M",)}),
        ("if true; then ./solver; fi", "./solver", {}),
        ("for i in 1 2 3; do srun ./step $i; done", "./step", {"": ("$i",)}),
        ('args=(--x 1 --y)\nwork() {\n  ./solver "${args[@]}"\n}\nwork', "./solver", {"": ("${args[@]}",)}),
        ("(cd /tmp && ./solver)", "./solver", {}),
        ("for i in 1 2 3; do ./step $i; done", "./step", {"": ("$i",)}),
        ("case $1 in a) ./solver -x;; esac", "./solver", {"x": ("",)}),
        ("./prepare\nmpirun ./solver -x\n./clean", "./solver", {"x": ("",)}),
        ("./prepare\n./solver -x", "./prepare", {}),
        ("exec ./solver -- -x", "./solver", {"": ("-x",)}),
    ],
)
def test_commands(line: str, path: str, options: dict[str, tuple[str, ...]]) -> None:
    fields = fields_of(job_of(f"#!/bin/sh\ncd /tmp\n{line}\n"))
    assert (fields.path, dict(fields.options)) == (path, options)


def test_the_scheduler_and_options_override_the_script() -> None:
    text = "#!/bin/sh\n#SBATCH -N 2 -J inside\n./a\n"
    assert (job_of(text).name, job_of(text).nodes) == ("inside", 2)
    outside = job_of(text, options=["--nodes=4-8", "--job-name", "outside"])
    assert (outside.name, outside.nodes) == ("outside", 4)
    assert (job_of(text, options=["-N4"], name="set", nodes=9).name, job_of(text, nodes=9).nodes) == ("set", 9)
    assert job_of("#!/bin/sh\n./a\n#SBATCH -N 3\n").nodes == 1  # sbatch ignores lines after the first command
    assert job_of("#!/bin/sh\n./a\n", script="/x/job.sh").name == "job.sh"
    assert job_of("#!/bin/sh\n#SBATCH -N 2k\n./a\n").nodes == 2048
    assert job_of("#!/bin/sh\n#SBATCH -N 999999999M\n./a\n").nodes == 2**31 - 1
    assert job_of("#!/bin/sh\n#SBATCH -N 0\n#SBATCH --nodes=many\n./a\n").nodes == 1


@pytest.mark.parametrize(
    "text", ["", "#!/bin/sh\n", "#!/bin/sh\ncd /tmp\nexport A=1\n", "\n\n\n", "srun", "srun -n", "A=1"]
)
def test_scripts_that_run_nothing(text: str) -> None:
    job = job_of(text)
    fields_of(job)
    assert job.program in ("", "srun")


@given(st.text(st.sampled_from("ab1 \t\n\\'\"`$(){}<>|&;#=-/\0\r💥"), max_size=300))
def test_any_text_is_read(text: str) -> None:
    job = job_of("#!/bin/sh\n" + text)
    assert job.nodes >= 1
    again = invocation(job.command)
    assert again == invocation(job.command[:LONGEST_COMMAND])
    fields_of(job)


@pytest.mark.parametrize(
    "part",
    [
        "$(rm -rf /tmp/x)",
        "'",
        '"',
        "\\",
        "`",
        "$(",
        "$((a)",
        "$(a)(",
        "${",
        "((",
        "<<A\n",
        "<<A B\n",
        "a=",
        "a ",
        "srun ",
        "-- ",
        "\n",
        "#",
        "<",
    ],
)
def test_hostile_scripts_take_time_in_proportion(part: str) -> None:
    def took(size: int) -> float:
        text = ("#!/bin/sh\n" + part * size)[:size]
        start = time.process_time()
        fields_of(job_of(text))
        return time.process_time() - start

    took(1000)
    assert took(60_000) < 30 * max(0.005, took(6000))


def test_nothing_is_expanded_or_run() -> None:
    job = job_of("#!/bin/sh\n$(touch /tmp/never) `touch x` ./solver $((1+1)) ~ *\n")
    assert "touch" in job.command
