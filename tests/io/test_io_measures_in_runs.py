"""Runs that are measured by their I/O: local commands, scripts with components, Slurm jobs."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.native.command_line import Luthier
from tests.slurm.cluster import Cluster

DD = "dd if=/dev/zero of=data bs=$BLOCK count=65536 iflag=count_bytes"
COMPONENT = """\
definitions:
  knob:
    {more}
    parameters: {{BLOCK: {{env_var: true, type: int, default: 64}}}}
components:
  knob: {{BLOCK: [64, 4096, 65536]}}
"""


def experiment(folder: Path, settings: str, more: str) -> Path:
    path = folder / "experiment.yaml"
    path.write_text(f"experiment:\n{settings}\n  budget: 3\n  verify: 0\n" + COMPONENT.format(more=more))
    return path


def values(luthier: Luthier, number: int) -> dict[int, float]:
    """The measured value of every block size."""
    runs = json.loads(luthier("export", number, "--format", "json").stdout)
    return {run["config"]["BLOCK" if "BLOCK" in run["config"] else "bs"]: run["value"] for run in runs}


def test_a_command_is_measured_by_its_writes(luthier: Luthier) -> None:
    words = ["-p", "bs=64,4096,65536", "-m", "io:posix_writes", "--budget", "3", "--verify", "0", "-q", "--json"]
    command = ["dd", "if=/dev/zero", "of=data", "bs={bs}", "count=65536", "iflag=count_bytes"]
    answer = luthier.json("tune", *words, "--", *command)
    assert answer["best"]["config"] == {"bs": 65536}
    assert values(luthier, 1) == {64: 1024.0, 4096: 16.0, 65536: 1.0}


def test_a_bandwidth_is_maximized_and_shown_with_its_unit(luthier: Luthier) -> None:
    words = ["-p", "bs=64,65536", "-m", "io:perf", "--budget", "2", "--verify", "0", "-q"]
    command = ["dd", "if=/dev/zero", "of=data", "bs={bs}", "count=4194304", "iflag=count_bytes"]
    shown = luthier("tune", *words, "--", *command).stdout
    assert "iB/s" in shown
    assert "io:perf" in shown.split("configuration")[0].splitlines()[-1]
    plain = json.loads(luthier("show", 1, "--json").stdout)
    assert plain["best"]["config"] == {"bs": 65536}
    rates = values(luthier, 1)
    assert rates[65536] > rates[64]


def test_other_libraries_are_preloaded_as_well(luthier: Luthier, built: Callable[[str], Path], home: Path) -> None:
    sro = built("sro")
    words = ["-p", "bs=64,4096", "-m", "io:posix_reads", "--budget", "2", "--verify", "0", "-q", "--json"]
    (home / "data").write_bytes(bytes(65536))
    own = ["-e", f"LD_PRELOAD={sro}", "-e", "SRO_STATS=stats"]
    luthier("tune", *words, *own, "--", "dd", "if=data", "of=/dev/null", "bs={bs}")
    assert values(luthier, 1) == {64: 1025.0, 4096: 17.0}  # the last one finds the end of the file
    reads = [json.loads(line)["reads"] for line in (home / "stats").read_text().splitlines()]
    assert sorted(reads) == [16, 1024]  # without the end of the file


def test_a_script_with_a_component_of_its_own_libraries(luthier: Luthier, home: Path) -> None:
    settings = f"  script: |\n    #!/bin/sh\n    {DD}\n  measure: io:posix_writes"
    more = "header: dd if=/dev/zero of=other bs=1 count=500\n    ld_preload: luthier:sro"
    answer = luthier.json("run", experiment(home, settings, more), "-q", "--json")
    assert answer["best"]["config"] == {"BLOCK": 65536}
    assert values(luthier, 1) == {64: 1024.0, 4096: 16.0, 65536: 1.0}  # without the writes of the header


def test_a_component_without_an_application_is_counted(luthier: Luthier, home: Path) -> None:
    answer = luthier.json("run", experiment(home, "  measure: io:posix_writes", f"command: {DD}"), "-q", "--json")
    assert answer["default"]["estimate"]["value"] == 1024.0


def test_an_unknown_library_is_refused_before_anything_runs(luthier: Luthier, home: Path) -> None:
    path = experiment(home, "  script: 'true'", "ld_preload: luthier:io-mpl")
    for command in ("validate", "run"):
        said = luthier(command, path, code=2).stderr
        assert "unknown native part 'io-mpl'; did you mean 'io-mpi'?" in said
    assert luthier("list").stdout == "no experiments yet; start with: luthier tune --help\n"


def test_without_a_compiler_nothing_starts(
    luthier: Luthier, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "luthier" / "native").unlink()  # nothing was built
    monkeypatch.setenv("CC", "no-such-cc")
    words = ["-p", "bs=64,4096", "-m", "io:posix_reads", "--budget", "2", "--", "dd", "if=data", "bs={bs}"]
    said = luthier("tune", *words, code=2).stderr
    assert "io: needs a C compiler, and CC names 'no-such-cc', which is not installed" in said
    assert "no experiments yet" in luthier("list").stdout


def test_the_script_to_use_asks_for_the_path_where_it_runs(luthier: Luthier, home: Path) -> None:
    settings = f"  script: |\n    #!/bin/sh\n    {DD}\n  measure: io:posix_writes"
    luthier("run", experiment(home, settings, "ld_preload: luthier:io"), "-q")
    script = luthier("apply", 1, "--best").stdout
    assert 'export LD_PRELOAD="$(luthier native path io)${LD_PRELOAD:+:$LD_PRELOAD}"' in script
    assert str(home) not in script


def test_a_slurm_job_is_measured_by_its_writes(slurm: Cluster, luthier: Luthier, home: Path) -> None:
    assert shutil.which("sbatch") is not None
    settings = (
        f"  script: |\n    #!/bin/sh\n    #SBATCH -n 1\n    srun {DD}\n  runner: slurm\n  measure: io:posix_writes"
    )
    answer = luthier.json("run", experiment(home, settings, "ld_preload: luthier:sro"), "-q", "--json")
    assert answer["best"]["config"] == {"BLOCK": 65536}
    assert answer["default"]["estimate"]["value"] >= 1024.0
