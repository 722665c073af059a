"""The whole pipeline of `luthier io tune` on a program with HDF5: its story, steps left out, interrupts, more runs."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tests.io.io_runs import MPI_ENVIRONMENT

from luthier.io.comparison import search_step
from luthier.io.kernel_verification import BuiltProgram, build_from
from luthier.io.tuning import Tuning, component_named, prepare
from luthier.result.result import conclude
from luthier.result.tuning_return import return_lines, tuning_return
from luthier.spec.experiment import Experiment
from luthier.spec.objectives import Objective
from luthier.store import open_store

SOURCE = Path(__file__).parents[3] / "testbeds" / "io_apps" / "columns.c"
COMPONENT = """\
components:
  chunks:
    ld_preload: luthier:io
    parameters:
      LUTHIER_IO_CHUNK_CACHE_BYTES: {env_var: true, type: str, ordered: true, default: default, values: [default, 4M]}
      LUTHIER_IO_CHUNK: {env_var: true, type: str, ordered: true, default: default, values: [default, 64x64, 256x256]}
      LUTHIER_IO_METADATA_BLOCK: {env_var: true, type: str, ordered: true, default: default, values: [default, 2k]}
"""
LINES = """\
#include <stdio.h>
#include <stdlib.h>
#include <math.h>
int main(int argc, char **argv)
{
    static char buffer[1024];
    double sum = 0;
    FILE *out = fopen("out.txt", "w");
    if (argc < 2 || out == NULL)
        return 1;
    setvbuf(out, buffer, _IOFBF, getenv("SIZE") ? 64 * (size_t)atoi(getenv("SIZE")) : 64);
    for (int i = 0; i < 100 * atoi(argv[1]); i++) {
        for (int j = 0; j < 1000; j++)
            sum += sqrt(i + j);
        fprintf(out, "line %4d\\n", i);
    }
    fclose(out);
    printf("%g\\n", sum);
    return 0;
}
"""
SIZES = """\
components:
  sizes:
    header: LD_PRELOAD= sleep 0.2
    parameters:
      SIZE: {env_var: true, type: int, default: 1, values: [1, 2, 3, 4]}
"""
needs_hdf5 = pytest.mark.skipif(
    shutil.which("h5cc") is None, reason="h5cc is not installed: apt-get install libhdf5-dev"
)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "chunks.yaml").write_text(COMPONENT)
    return tmp_path


@pytest.fixture
def lines(tmp_path: Path) -> Path:
    """A program that makes fewer writes with a larger buffer: the same number in every run."""
    (tmp_path / "lines.c").write_text(LINES)
    (tmp_path / "sizes.yaml").write_text(SIZES)
    return tmp_path


def lines_words(*options: str) -> list[str]:
    words = ["io", "tune", "lines.c", "--component", "sizes.yaml", "--build", "cc -O2 -lm", "-m", "io:posix_writes"]
    return [*words, "--verify", "3", "--json", "--quiet", *options, "--", "{program}", "3"]


def started(project: Path, *words: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "luthier", *words],
        cwd=project,
        env={**os.environ, "LUTHIER_STORE": str(project / "store.db"), "COLUMNS": "200"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def done(project: Path, *words: str, code: int = 0) -> str:
    process = started(project, *words)
    out, errors = process.communicate(timeout=300)
    assert process.returncode == code, errors
    return out


def tune_words(*options: str, source: str = str(SOURCE)) -> list[str]:
    words = ["io", "tune", source, "--component", "chunks.yaml", "--build", "h5cc -shlib -O2 -lm", *options]
    return [*words, "--", "{program}", "300", "100"]


def stored(project: Path, number: int) -> Any:
    store = open_store(str(project / "store.db"))
    record = store.experiment(number)
    return store, record, conclude(Experiment.from_json(record.settings), store.runs(number))


@needs_hdf5
def test_the_report_tells_the_whole_story(project: Path) -> None:
    words = tune_words("-n", "14", "--stop", "after 13 runs", "--verify", "3", "--production-runs", "50")
    for _ in range(6):  # the times are real: now and then the default looks best, and nothing is compared
        told = done(project, *words)
        if "nothing to compare" not in told:
            break
        for old in project.glob("store.db*"):
            old.unlink()
        shutil.rmtree(project / "io-tuning")
    for text in (
        "kernel: the search runs the I/O kernel, verified on one input: same I/O as the application",
        "search: experiment 1, on the I/O kernel, not verified:",
        "search: tuned first, after 3 configurations:",
        "search: ended: 13 runs made",
        "time of the whole tuning:",
        "return on tuning (RoTI):",
        "to continue the search: luthier resume 1 --budget +30",
    ):
        assert text in told
    _, record, result = stored(project, 2)
    found = tuning_return(result)
    _, searched, search = stored(project, 1)
    assert found is not None
    pipeline = result.experiment.origin
    assert [step.name for step in pipeline.steps] == ["kernel", "search"]
    assert found.tuning_s == pytest.approx(pipeline.steps[0].seconds + search.cost_s + result.cost_s)
    assert found.over_time[-1][0] == pytest.approx(pipeline.steps[0].seconds + search.cost_s)
    assert pipeline.steps[1] == search_step(searched, search, "the I/O kernel")
    assert record.name == "chunks: verification"
    shown = json.loads(done(project, "show", "2", "--json"))
    assert [step["name"] for step in shown["steps"]] == ["kernel", "search", "comparison"]
    done(project, "report", "2", "-o", "report.html")
    page = (project / "report.html").read_text()
    assert "How it was tuned" in page
    assert "whole tuning" in page
    assert "application/program" in json.dumps(result.experiment.to_json()["command"])
    assert Experiment.from_json(result.experiment.to_json()) == result.experiment


@needs_hdf5
def test_every_step_can_be_left_out(project: Path) -> None:
    steps = ("--without", "kernel,impact-first", "--without", "stop", "--without", "verify")
    found = json.loads(done(project, *tune_words("-n", "3", "--json", "--quiet", *steps)))
    assert not found["kernel"]["is_used"]
    assert found["verification"] is None
    assert found["search"]["runs"] == 3
    experiment = stored(project, 1)[2].experiment
    assert (experiment.impact_first, experiment.stop) == ("off", ())
    assert "application/program" in found["search"]["command"]
    assert [step["name"] for step in found["search"]["steps"]] == ["preparation", "search"]


@needs_hdf5
def test_the_steps_are_there_by_default(project: Path) -> None:
    found = json.loads(done(project, *tune_words("-n", "3", "--json", "--quiet", "--verify", "0")))
    experiment = stored(project, 1)[2].experiment
    assert found["kernel"]["is_used"]
    assert (experiment.impact_first, experiment.stop) == ("auto", ("learned",))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--without", "kernels"), "unknown step"),
        (("--without", "kernel", "--reduce", "10%"), "--reduce"),
        (("--without", "stop", "--stop", "learned"), "--without stop and --stop"),
        (("--without", "verify", "--verify", "3"), "--without verify and --verify"),
        (("-m", "io:time", "-m", "io:perf"), "single measure"),
    ],
)
def test_steps_that_exclude_each_other_are_one_line(project: Path, options: tuple[str, ...], message: str) -> None:
    process = started(project, *tune_words(*options))
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 2
    assert message in errors
    assert errors.count("\n") == 1
    assert not (project / "io-tuning").exists()


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_search_goes_on_and_its_best_is_compared(lines: Path, how: signal.Signals) -> None:
    process = started(lines, *lines_words("-n", "4"))
    _wait_for_runs(process, lines, 2)
    os.killpg(process.pid, how) if how == signal.SIGKILL else process.send_signal(how)
    process.communicate(timeout=120)
    assert process.returncode in (130, -9)
    found = json.loads(done(lines, "resume", "1", "--json", "--quiet"))
    assert found["search"]["runs"] >= 4
    assert found["kernel"]["is_used"]
    assert found["verification"]["compared"]["config"] == {"SIZE": 4}
    assert found["verification"]["improved"]


def test_more_runs_for_the_search_count_in_the_next_comparison(lines: Path) -> None:
    done(lines, *lines_words("-n", "2", "--first", "SIZE=2"))
    before = stored(lines, 1)[2]
    found = json.loads(done(lines, "resume", "1", "--budget", "4", "--json", "--quiet"))
    after = stored(lines, 1)[2]
    assert (before.winner.config["SIZE"], after.winner.config["SIZE"]) == (2, 4)
    assert found["verification"]["number"] == 3
    assert found["verification"]["compared"]["config"] == {"SIZE": 4}
    pipeline = stored(lines, 3)[2].experiment.origin
    assert [step.name for step in pipeline.steps] == ["kernel", "search", "comparison"]
    costs = [after.cost_s, stored(lines, 2)[2].cost_s]
    assert [step.seconds for step in pipeline.steps[1:]] == pytest.approx(costs)
    again = json.loads(done(lines, "resume", "1", "--budget", "+1", "--json", "--quiet"))
    assert again["verification"]["number"] == 3  # the best is the same, and is not compared again
    assert len(open_store(str(lines / "store.db")).experiments()) == 3
    refused = started(lines, "resume", "3", "--budget", "+5")
    _, errors = refused.communicate(timeout=60)
    assert refused.returncode == 2
    assert "luthier resume 1 --budget +30" in errors


def test_a_search_that_was_not_compared_is_compared_when_it_is_resumed(lines: Path) -> None:
    """As after a crash between the two experiments."""
    url, words = str(lines / "store.db"), ("{program}", "3")
    program = BuiltProgram(build_from(("cc", "-O2", "-lm")), words)
    prepared = prepare([lines / "lines.c"], program, lines / "io-tuning", None)
    tuning = Tuning(prepared, words, component_named(str(lines / "sizes.yaml"), None), url)
    objectives = (Objective("io:posix_writes"),)
    tuning.search({"budget": 4, "objectives": objectives}, 1).work(lambda *_: None)
    found = json.loads(done(lines, "resume", "1", "--json", "--quiet"))
    assert found["verification"]["compared"]["config"] == {"SIZE": 4}
    again = started(lines, "resume", "1")
    _, errors = again.communicate(timeout=60)
    assert again.returncode == 2
    assert "is finished" in errors
    assert len(open_store(url).experiments()) == 2


@needs_hdf5
def test_a_refused_kernel_leaves_the_rest_of_the_pipeline(project: Path) -> None:
    text = SOURCE.read_text().replace("    double total;", '    double total;\n    __asm__("nop");')
    (project / "other.c").write_text(text)
    told = done(project, *tune_words("-n", "4", "--verify", "1", "--quiet", source="other.c"))
    assert "the search runs the application" in told
    assert not stored(project, 1)[2].experiment.origin.data["kernel"]["is_used"]


@pytest.mark.skipif(shutil.which("h5pcc") is None, reason="h5pcc is missing: apt-get install libhdf5-openmpi-dev")
def test_a_program_with_two_ranks(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in MPI_ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    component = SOURCE.parents[2] / "examples" / "components" / "hdf5-parallel.yaml"
    words = ["--component", str(component), "--build", "h5pcc -shlib -O2 -lm", "-n", "3", "--verify", "1"]
    command = ["mpirun", "-n", "2", "{program}", "64", "20", "10"]
    told = done(project, "io", "tune", str(SOURCE.with_name("stencil.c")), *words, "--timeout", "60", "--", *command)
    pipeline = stored(project, 1)[2].experiment.origin
    assert "2 ranks" in pipeline.data["kernel"]["sentence"]
    assert pipeline.data["kernel"]["is_used"]
    assert "experiment" in told


@needs_hdf5
def test_without_a_gain_there_is_no_return(project: Path) -> None:
    done(project, *tune_words("-n", "2", "-m", "io:posix_opens", "--quiet"))
    _, _, result = stored(project, 1)
    assert result.winner.config == result.experiment.space.default
    assert not return_lines(result)


def _wait_for_runs(process: "subprocess.Popen[str]", project: Path, count: int) -> None:
    """Until so many runs of the first experiment have ended."""
    _wait(process, lambda store: sum(run.outcome is not None for run in store.runs(1)) >= count, project)


def _wait(process: "subprocess.Popen[str]", reached: Any, project: Path) -> None:
    while process.poll() is None:
        if (project / "store.db").exists():
            store = open_store(str(project / "store.db"))
            if store.experiments() and reached(store):
                return
        time.sleep(0.05)
    raise AssertionError(process.communicate()[1])
