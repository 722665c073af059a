"""The experiment files of `examples/openmpi/` run as documented: in a plain shell, on any number of processors."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.conftest import missing
from tests.slurm.cluster import Cluster

from luthier.result.open_mpi import PREFIX, RULES_FILE, SWITCH, parse_rules
from luthier.store import open_store

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def clone(collbench: Path, tmp_path: Path) -> Path:
    """A folder like a clone of the project in which `make -C testbeds/native` was called."""
    (tmp_path / "examples").symlink_to(EXAMPLES)
    (tmp_path / "build").mkdir()
    (tmp_path / "build" / "native").symlink_to(collbench.parent)
    return tmp_path


def plain_shell(folder: Path) -> dict[str, str]:
    """The environment without any setting for Open MPI."""
    kept = {name: text for name, text in os.environ.items() if not name.startswith("OMPI_")}
    return {**kept, "XDG_DATA_HOME": str(folder)}


@pytest.mark.parametrize(("name", "program"), [("experiment", "mpirun"), ("espresso", "pw.x")])
def test_an_example_runs_in_a_plain_shell(clone: Path, name: str, program: str) -> None:
    if shutil.which(program) is None:
        missing(f"{program} is not installed; as root: sh tests/services.sh")
    few = ["--set", "budget=3", "--set", "verify=0"]
    command = [sys.executable, "-m", "luthier", "run", f"examples/openmpi/{name}.yaml", "-q", "--json", *few]
    ended = subprocess.run(command, env=plain_shell(clone), cwd=clone, capture_output=True, text=True, check=False)
    assert ended.returncode in (0, 1), ended.stderr
    answer = json.loads(ended.stdout)
    assert answer["default"]["estimate"]["value"] > 0.0
    assert answer["best"] is not None


def test_the_application_uses_the_algorithms_that_are_tuned(clone: Path) -> None:
    if shutil.which("pw.x") is None:
        missing("pw.x is not installed; as root: sh tests/services.sh")
    command = [sys.executable, "-m", "luthier", "render", "examples/openmpi/espresso.yaml", "--json"]
    script = json.loads(subprocess.run(command, cwd=clone, capture_output=True, check=True).stdout)["script"]

    def messages(**algorithms: str) -> int:
        monitoring = {"enable": "2", "enable_output": "3", "filename": str(clone / "messages")}
        environment = {
            **plain_shell(clone),
            SWITCH: "1",
            "POOLS": "1",
            **{f"OMPI_MCA_pml_monitoring_{name}": value for name, value in monitoring.items()},
            **{f"{PREFIX}{collective}_algorithm": name for collective, name in algorithms.items()},
        }
        ended = subprocess.run(
            ["sh", "-c", script], env=environment, cwd=clone, capture_output=True, text=True, check=False
        )
        assert ended.returncode == 0, ended.stdout + ended.stderr
        counted = 0
        for path in clone.glob("messages.*.prof"):
            counted += sum(map(int, re.findall(r"^[EI]\t.*bytes\t(\d+) msgs", path.read_text(), re.MULTILINE)))
            path.unlink()
        return counted

    bruck, pairwise = (messages(alltoall=name, allreduce="ring") for name in ("modified_bruck", "pairwise"))
    assert pairwise > 1.03 * bruck  # 12 messages for each of some ten thousand calls, instead of 8
    assert messages(alltoall="pairwise", allreduce="basic_linear") < pairwise  # 6 for each call instead of 24


# The emulated nodes are one host: mpirun starts all ranks here instead of asking Slurm for daemons on each node.
SCRIPT = """\
#!/bin/bash
#SBATCH --time=00:05:00
. examples/openmpi/one-machine.sh
export OMPI_MCA_plm=isolated OMPI_MCA_ras=^slurm OMPI_MCA_mpi_yield_when_idle=1
echo "# $SLURM_NNODES nodes"
mpirun --host "localhost:$SLURM_NTASKS" -n "$SLURM_NTASKS" build/native/collbench "$COLLECTIVE" -m "$SIZE" -r "$CALLS"
"""


def swept(clone: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "examples/openmpi/sweep.py", *words, "--store", "sweep.db", "-o", "rules.conf"]
    return subprocess.run(command, env=plain_shell(clone), cwd=clone, capture_output=True, text=True, check=False)


def test_the_sweep_writes_rules_that_are_read_and_measures_nothing_twice(clone: Path) -> None:
    words = ["gather,alltoall", "-n", "2", "--sizes", "1k,4k", "--budget", "3"]
    ended = swept(clone, *words)
    assert ended.returncode == 0, ended.stderr
    assert f"{RULES_FILE}={clone / 'rules.conf'}" in ended.stdout
    rules = parse_rules((clone / "rules.conf").read_text())
    sizes = {(rule.collective, rule.size_bytes) for rule in rules if rule.ranks == 2}
    assert sizes == {(name, size) for name in ("alltoall", "gather") for size in (0, 2048, 8192)}
    stored = open_store(str(clone / "sweep.db"))
    assert [(one.name, one.status) for one in stored.experiments()][::3] == [
        ("alltoall, 2 ranks, 1024 bytes", "finished"),
        ("gather, 2 ranks, 4096 bytes", "finished"),
    ]
    again = swept(clone, *words)
    assert (again.returncode, again.stdout, len(stored.experiments())) == (0, ended.stdout, 4)


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["scan"], "'scan' is not a supported collective; give some of allgather"),
        (["bcast", "-n", "1"], "--ranks: 1 ranks have nothing to send"),
        (["bcast", "--nodes", "2"], "--nodes needs --runner slurm"),
        (["bcast", "--script", "absent"], "--script: there is no file absent"),
    ],
)
def test_the_sweep_says_what_is_wrong(clone: Path, words: list[str], problem: str) -> None:
    ended = swept(clone, *words)
    assert ended.returncode == 1
    assert ended.stderr.startswith(f"sweep.py: {problem}")


def test_the_sweep_ends_where_the_default_fails(clone: Path) -> None:
    (clone / "broken").write_text("#!/bin/sh\nexit 3\n")
    ended = swept(clone, "bcast", "--budget", "3", "--script", "broken")
    assert ended.returncode == 1
    assert "bcast, 4 ranks, 1024 bytes: no run of the default gave a number; see: luthier show 1" in ended.stderr
    assert not (clone / "rules.conf").exists()


def test_the_sweep_on_slurm_over_two_nodes_and_several_numbers_of_ranks(slurm: Cluster, clone: Path) -> None:
    (clone / "site.sbatch").write_text(SCRIPT)
    where = ["--runner", "slurm", "--nodes", "2", "--slots", "2", "--script", "site.sbatch"]
    ended = swept(clone, "allgather", "-n", "2,4", "--sizes", "1k", "--budget", "3", *where)
    assert ended.returncode == 0, ended.stderr
    assert {rule.ranks for rule in parse_rules((clone / "rules.conf").read_text()) if rule.size_bytes} == {2, 4}
    stored = open_store(str(clone / "sweep.db"))
    for record, ranks in zip(stored.experiments(), (2, 4), strict=True):
        assert record.name == f"allgather, {ranks} ranks on 2 nodes, 1024 bytes"
        runs = stored.runs(record.id)
        assert len(runs) == 3
        for run in runs:
            assert run.logs is not None
            printed = (Path(run.logs) / "stdout").read_text()
            assert printed.startswith(f"# 2 nodes\n# allgather, {ranks} ranks,")
