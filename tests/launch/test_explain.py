"""`luthier explain`: the default and the best configuration run once more, and the differences are kept."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.native.command_line import Luthier
from tests.slurm.cluster import Cluster

from luthier.store import open_server_store

DD = ["dd", "if=/dev/zero", "of=data", "bs={bs}", "count=262144", "iflag=count_bytes"]
TUNE = ["-p", "bs=64,65536", "--budget", "2", "--verify", "0", "-q"]
FUNCTION = (
    "import luthier as lt; lt.tune(lambda c: c['x'], lt.Space(lt.Integer('x', 1, 3, default=2)), budget=3, store='{}')"
)


def test_a_command_is_explained_in_counts(luthier: Luthier, home: Path) -> None:
    luthier("tune", *TUNE, "-m", "io:posix_writes", "--", *DD)
    shown = luthier("explain", "1").stdout
    assert "default: bs=64\nbest:    bs=65536\n" in shown
    assert "- It makes 4 POSIX writes instead of 4,096: 1,024 times fewer." in shown
    plain = luthier.json("explain", "1", "--stored", "--json")
    writes = next(one for one in plain["differences"] if one["name"] == "posix_writes")
    assert (writes["default"], writes["best"], writes["is_large"]) == (4096.0, 4.0, True)
    quantities = plain["best"]["quantities"]
    assert quantities["peak_memory_bytes"] > 0
    assert {"user_s", "system_s", "voluntary_switches", "minor_page_faults"} <= quantities.keys()
    if not plain["notes"]:  # perf may count system calls here
        calls = next(one for one in plain["differences"] if one["name"] == "system_calls")
        assert calls["default"] > 4096
        assert calls["best"] < 2000
    assert len(list((home / "luthier" / "runs").iterdir())) == 2  # those of the experiment only


def test_it_is_shown_in_the_report(luthier: Luthier, home: Path) -> None:
    luthier("tune", *TUNE, "-m", "io:posix_writes", "--", *DD)
    luthier("report", "1", "-o", "before.html")
    assert "does differently" not in (home / "before.html").read_text()
    luthier("explain", "1", "-q")
    luthier("report", "1", "-o", "after.html")
    report = (home / "after.html").read_text()
    assert "What the best configuration does differently" in report
    assert "It makes 4 POSIX writes instead of 4,096: 1,024 times fewer." in report


def test_a_script_with_a_header_is_explained(luthier: Luthier, home: Path) -> None:
    (home / "e.yaml").write_text(
        "experiment: {script: 'dd if=/dev/zero of=data bs=$BS count=262144 iflag=count_bytes', budget: 2, verify: 0,\n"
        "  measure: io:posix_writes, runner: local}\n"
        "definitions: {knob: {header: dd if=/dev/zero of=other bs=1 count=700,\n"
        "  parameters: {BS: {env_var: true, type: int, default: 64}}}}\n"
        "components: {knob: {BS: [64, 65536]}}\n"
    )
    luthier("run", "e.yaml", "-q")
    plain = luthier.json("explain", "1", "--json", "-q")
    writes = next(one for one in plain["differences"] if one["name"] == "posix_writes")
    assert (writes["default"], writes["best"]) == (4096.0, 4.0)


def test_without_perf_and_compiler_the_rest_is_explained(
    luthier: Luthier, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = "import sys, time; n = int(sys.argv[1]); b = bytearray(n << 20); time.sleep(n / 1000)"
    luthier("tune", "-p", "n=200,1", "--budget", "2", "--verify", "0", "-q", "--", sys.executable, "-c", script, "{n}")
    (home / "luthier" / "native").unlink()  # nothing was built
    monkeypatch.setenv("CC", "no-such-cc")
    (home / "bin").mkdir()
    (home / "bin" / "perf").write_text("#!/bin/sh\nexit 255\n")
    (home / "bin" / "perf").chmod(0o755)
    monkeypatch.setenv("PATH", f"{home / 'bin'}:{Path(shutil.which('true') or '/bin/true').parent}")
    plain = luthier.json("explain", "1", "--json", "-q")
    assert [note.partition(":")[0] for note in plain["notes"]] == [
        "I/O was not counted",
        "System calls were not counted",
    ]
    memory = next(one for one in plain["differences"] if one["name"] == "peak_memory_bytes")
    assert memory["default"] > 200 << 20 > memory["best"]
    assert memory["is_large"]


def test_what_cannot_be_explained_is_one_line(luthier: Luthier, home: Path) -> None:
    store = home / "luthier" / "luthier.db"
    subprocess.run([sys.executable, "-c", FUNCTION.format(store)], check=True)
    assert "experiment 1 tunes a Python function; only commands" in luthier("explain", 1, code=2).stderr
    luthier("tune", *TUNE, "-m", "max:io:posix_writes", "--", *DD)
    assert "experiment 2: its default is the best; there is no difference" in luthier("explain", 2, code=2).stderr
    luthier("tune", *TUNE, "--", "sh", "-c", "exit 3", "{bs}", code=1)
    assert "experiment 3 has no result to explain" in luthier("explain", 3, code=2).stderr
    assert "experiment 9" in luthier("explain", 9, code=2).stderr
    assert "experiment 2 has no explanation yet; make one with" in luthier("explain", 2, "--stored", code=2).stderr


def test_a_run_that_fails_now_is_one_line(luthier: Luthier, home: Path) -> None:
    (home / "ok").touch()
    luthier("tune", "-p", "s=0.2,0", "--budget", "2", "--verify", "0", "-q", "--", "sh", "-c", "sleep {s}; test -e ok")
    (home / "ok").unlink()
    said = luthier("explain", 1, "-q", code=2).stderr
    assert said == "luthier: the run of the default gave nothing to explain: exit code 1; try again\n"
    assert open_server_store().explanations.get(1) is None


def test_slurm_jobs_are_explained(slurm: Cluster, luthier: Luthier, home: Path) -> None:
    (home / "e.yaml").write_text(
        'experiment: {script: "#!/bin/sh\\n#SBATCH -n 1\\ndd if=/dev/zero of=data bs=$BS count=262144 '
        'iflag=count_bytes\\n", budget: 2, verify: 0, measure: io:posix_writes, runner: slurm}\n'
        "definitions: {knob: {parameters: {BS: {env_var: true, type: int, default: 64}}}}\n"
        "components: {knob: {BS: [64, 65536]}}\n"
    )
    luthier("run", "e.yaml", "-q")
    plain = luthier.json("explain", "1", "--json", "-q")
    writes = next(one for one in plain["differences"] if one["name"] == "posix_writes")
    assert (writes["default"], writes["best"]) == (4096.0, 4.0)
    assert plain["notes"] == ["System calls were not counted: perf counts on this machine only."]
