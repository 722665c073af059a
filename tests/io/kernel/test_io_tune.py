"""`luthier io tune`: a search on the kernel, and a comparison on the application."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PROGRAM = """\
#include <stdio.h>
#include <stdlib.h>
#include <math.h>
int main(int argc, char **argv)
{
    int lines = argc > 1 ? atoi(argv[1]) : 10;
    char text[100];
    double sum = 0;
    FILE *in = fopen("size.txt", "r");
    if (in == NULL || fscanf(in, "%99s", text) != 1)
        return 1;
    fclose(in);
    in = fopen("size.txt", "w"); /* a second run in the same folder would read another size */
    fprintf(in, "0\\n");
    fclose(in);
    FILE *out = fopen("out.txt", "wx"); /* ... and this would fail */
    if (out == NULL)
        return 2;
    for (int i = 0; i < lines * atoi(text); i++) {
        for (int j = 0; j < 1000; j++)
            sum += sqrt(i + j);
        fprintf(out, "line %d\\n", i);
    }
    fclose(out);
    printf("%g\\n", sum);
    return 0;
}
"""
COMPONENT = """\
components:
  buffers:
    parameters:
      SIZE:
        env_var: true
        type: int
        default: 1
        values: [1, 2, 3, 4]
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "program.c").write_text(PROGRAM)
    (tmp_path / "buffers.yaml").write_text(COMPONENT)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "size.txt").write_text("20\n")
    return tmp_path


def tune(project: Path, *options: str, source: str = "program.c", code: int = 0) -> "subprocess.CompletedProcess[str]":
    words = ["io", "tune", source, "--component", "buffers.yaml", "--build", "cc -O2 -lm", "--folder", "data", *options]
    done = subprocess.run(
        [sys.executable, "-m", "luthier", *words, "--quiet", "--", "{program}", "3"],
        cwd=project,
        env={**os.environ, "LUTHIER_STORE": str(project / "store.db")},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == code, done.stderr
    return done


def told(project: Path, *options: str, source: str = "program.c") -> dict[str, Any]:
    found: dict[str, Any] = json.loads(tune(project, "--json", "-m", "io:posix_writes", *options, source=source).stdout)
    return found


def test_the_kernel_is_searched_in_new_copies_of_the_inputs(project: Path) -> None:
    found = told(project, "-n", "5")
    assert found["kernel"]["is_used"]
    assert "verified on one input: same I/O as the application" in found["kernel"]["sentence"]
    assert found["search"]["status"] == "finished"
    assert found["search"]["best"]["estimate"]["value"] == 2  # one write of each file: the same in every run
    assert "io-tuning/kernel/program" in found["search"]["command"]
    assert (project / "data" / "size.txt").read_text() == "20\n"
    assert not (project / "data" / "out.txt").exists()


def test_without_a_kernel_the_application_is_searched(project: Path) -> None:
    found = told(project, "-n", "3", "--without", "kernel")
    assert not found["kernel"]["is_used"]
    assert "io-tuning/application/program" in found["search"]["command"]


def test_a_refused_kernel_is_not_used(project: Path) -> None:
    text = PROGRAM.replace("#include <math.h>", "#include <math.h>\n#include <signal.h>")
    text = text.replace(
        "    double sum = 0;", "    double sum = 0;\n    signal(SIGUSR1, SIG_IGN);\n    raise(SIGUSR1);"
    )
    text = text.replace("    double sum", '    __asm__("nop");\n    double sum')
    (project / "other.c").write_text(text)
    found = told(project, "-n", "3", source="other.c")
    assert not found["kernel"]["is_used"]
    assert "tune the program itself" in found["kernel"]["sentence"]
    assert found["search"]["best"]["estimate"]["value"] == 2


def test_the_best_configuration_is_compared_on_the_application(project: Path) -> None:
    text = PROGRAM.replace(
        'FILE *out = fopen("out.txt", "wx");',
        'FILE *out = fopen("out.txt", "wx"); '
        "static char buffer[1024]; "
        'setvbuf(out, buffer, _IOFBF, getenv("SIZE") ? 64 * (size_t)atoi(getenv("SIZE")) : 64);',
    )
    (project / "program.c").write_text(text)
    found = told(project, "-n", "6", "--verify", "3")
    assert found["search"]["best"]["config"] == {"SIZE": 4}
    assert found["search"]["number"] != found["verification"]["number"]
    assert found["verification"]["compared"]["config"] == {"SIZE": 4}
    assert "io-tuning/application/program" in found["verification"]["command"]
    assert found["verification"]["improved"]


def test_loops_are_reduced_and_files_kept_in_memory_in_the_search_only(project: Path) -> None:
    text = PROGRAM.replace('fprintf(out, "line %d\\n", i);', 'fprintf(out, "line %4d\\n", i); fflush(out);')
    (project / "program.c").write_text(text)
    found = told(project, "-n", "3", "--reduce", "10%", "--in-memory", "*.txt", "--verify", "1")
    assert found["kernel"]["is_used"]
    [loop] = found["kernel"]["reduction"]["loops"]
    assert (loop["kept_executions"], loop["executions"], loop["factor"]) == (6, 60, 10)
    assert found["search"]["best"]["estimate"]["value"] == 61  # what the whole program would do
    assert not (project / "io-tuning" / "run" / "out.txt").exists()
    assert json.loads((project / "io-tuning" / "kernel" / "sources" / "loops.json").read_text())["share"] == 0.1
    assert not list(Path("/dev/shm").glob("luthier-files-*"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--reduce", "none"), "--reduce"),
        (("--reduce", "0%"), "--reduce"),
        (("--reduce", "10%", "-m", "wall"), "choose a measure io:"),
        (("--in-memory", "*.txt", "-m", "wall"), "choose a measure io:"),
        (("--in-memory", "a:b"), "--in-memory"),
        (("--component", "none.yaml"), "none.yaml"),
        (("--build", "cc 'x"), "--build"),
        (("--build", "sh -c true"), "is not a C compiler"),
        (("--folder", "nowhere"), "is not a folder"),
        (("--buffers", "some"), "buffer_content"),
        (("--output", "data"), "already exists"),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(project: Path, options: tuple[str, ...], message: str) -> None:
    before = {path: path.read_bytes() for path in project.rglob("*") if path.is_file()}
    said = tune(project, *options, code=2).stderr
    assert message in said
    assert said.count("\n") == 1
    assert {
        path: path.read_bytes() for path in project.rglob("*") if path.is_file() and path.name != "store.db"
    } == before
