"""`luthier io discover`, its reports, and flags from a compile_commands.json."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.io.kernel.tiny import discovered

import luthier.io as luthier_io
from luthier.errors import InvalidInputError
from luthier.io.kernel import compile_commands, source_file
from luthier.io.kernel.report import html_report, line_states, text_report
from luthier.io.kernel_memory import PLACE as MEMORY
from luthier.io.kernel_runs import include_folders, sources_of_database

TEXT = """\
#include <stdio.h>
#include "size.h"
/* <script>alert(1)</script> */
int main(int argc, char **argv)
{
    double e = argc * 0.5;
    FILE *file = fopen("out", "w");
    e += EXTRA;
    fwrite("<b>&", 1, SIZE, file);
    printf("%g %s", e, argv[0]);
    return fclose(file);
}
"""


def luthier(folder: Path, *words: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "luthier", *words]
    environment = {**os.environ, "LUTHIER_HOME": str(folder / "home")}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == code, done.stderr
    return done


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "src").mkdir()
    (tmp_path / "include").mkdir()
    (tmp_path / "src" / "main.c").write_text(TEXT)
    (tmp_path / "include" / "size.h").write_text("#define SIZE 4\n")
    return tmp_path


def test_the_same_in_python(project: Path) -> None:
    flags = [f"-I{project / 'include'}", "-DEXTRA=3"]
    kernel = luthier_io.discover([project / "src" / "main.c"], project / "kernel", flags=flags)
    assert (kernel.found.kept, kernel.found.total, kernel.reduced) == (3, 6, None)
    assert project / "kernel" / "src" / "main.c" in kernel.files
    assert kernel.to_json()["kept"] == 3
    with pytest.raises(InvalidInputError, match="already exists"):
        luthier_io.discover([project / "src" / "main.c"], project / "kernel", flags=flags)


def test_the_command(project: Path) -> None:
    flags = ["-Iinclude", "-DEXTRA=3", "-O2", "-Wall"]
    shown = luthier(project, "io", "discover", "src/main.c", "-o", "kernel", "--", "cc", *flags).stdout
    assert "3 of 6 statements kept for 3 I/O calls" in shown
    kernel = project / "kernel" / "src" / "main.c"
    assert f"wrote {kernel.relative_to(project)}" in shown
    assert "double e" not in kernel.read_text()
    assert (project / "kernel" / "include" / "size.h").exists()
    subprocess.run(["cc", *flags, "-Werror", str(kernel), "-o", "small"], cwd=project, check=True, timeout=60)
    subprocess.run(["./small"], cwd=project, check=True, timeout=60)
    assert (project / "out").read_text() == "<b>&"


def test_errors_are_one_line_and_write_nothing(project: Path) -> None:
    failed = luthier(project, "io", "discover", "src/main.c", "-o", "kernel", "--", "-Iinclude", code=2)
    assert failed.stderr.count("\n") == 1
    assert "undeclared identifier 'EXTRA'" in failed.stderr
    failed = luthier(project, "io", "discover", "nothing.c", "-o", "kernel", code=2)
    assert "nothing.c: cannot be read" in failed.stderr
    failed = luthier(project, "io", "discover", "src/main.c", "-o", "src", "--", "-Iinclude", "-DEXTRA=1", code=2)
    assert "src: already exists" in failed.stderr
    failed = luthier(project, "io", "discover", "src/main.c", "--buffers", "some", code=2)
    assert "choose from keep, cut" in failed.stderr
    failed = luthier(project, "io", "discover", "src/main.c", "--", "rm", "-rf", code=2)
    assert "is not a C compiler" in failed.stderr
    failed = luthier(project, "io", "discover", "src/main.c", "--reduce", "10%", code=2)
    assert "--reduce needs --run" in failed.stderr
    failed = luthier(project, "io", "discover", "src/main.c", "--reduce", "200%", "--run", "{program}", code=2)
    assert "--reduce '200%': is not a share; write for example 10%" in failed.stderr
    failed = luthier(project, "io", "discover", "src/main.c", "--in-memory", "", "--run", "{program}", code=2)
    assert "--in-memory" in failed.stderr
    assert sorted(path.name for path in project.iterdir()) == ["include", "src"]


def test_a_reduced_kernel_with_files_in_memory(project: Path) -> None:
    loop = """\
        for (int t = 0; t < 50; t++) {
            if (fwrite("0123456789", 1, SIZE, file) != SIZE || fflush(file) != 0)
                return 1;
        }
    """
    (project / "src" / "main.c").write_text(TEXT.replace('    fwrite("<b>&", 1, SIZE, file);', loop))
    before = set(MEMORY.iterdir())
    words = ["src/main.c", "-o", "kernel", "--reduce", "10%", "--in-memory", "out", "--run", "{program}"]
    flags = ["--", "cc", "-Iinclude", "-DEXTRA=3", "-O2"]
    shown = luthier(project, "io", "discover", *words, *flags).stdout
    assert (
        "loop reduced to 5 of 50 executions of its I/O, 5 of 50 iterations; its counters are multiplied by 10" in shown
    )
    assert "1 loop reduced; verified on one input: it predicts operations and bytes of the application to 0 %" in shown
    assert not {path for path in set(MEMORY.iterdir()) - before if path.name.startswith("luthier")}
    assert "LUTHIER_LOOP(1, 5, 10000000000)" in (project / "kernel" / "src" / "main.c").read_text()
    assert "loop reduced to 5 of 50" in (project / "kernel" / "report.html").read_text()
    loops = json.loads((project / "kernel" / "loops.json").read_text())
    assert [one["factor"] for one in loops["loops"]] == [10]

    subprocess.run(["cc", *flags[2:], "kernel/src/main.c", "-o", "small"], cwd=project, check=True, timeout=60)
    subprocess.run(["./small"], cwd=project, check=True, timeout=60)
    assert (project / "out").stat().st_size == 20  # without the library it is just shorter
    profile = json.loads(luthier(project, "io", "profile", "--json", "--", "./small").stdout)
    assert "200" in json.dumps(profile)


def test_a_verified_kernel(project: Path) -> None:
    flags = ["--", "cc", "-Iinclude", "-DEXTRA=3", "-O2"]
    words = ["io", "discover", "src/main.c", "-o", "kernel", "--run", "{program} 'a b'"]
    shown = luthier(project, *words, *flags).stdout
    assert "verified on one input: same I/O as the application (2 operations, 4 B, 1 process); application 0." in shown
    assert "\nverified on one input: same I/O" in (project / "kernel" / "report.txt").read_text()
    assert '<p class="verdict">verified on one input: same I/O' in (project / "kernel" / "report.html").read_text()
    unverified = luthier(project, *words[:4], "other", *flags).stdout
    assert "not verified: it was not compared with the application; name a run with --run" in unverified
    for file in ("report.txt", "report.html", "src/main.c"):
        assert "not verified: it was not compared" in (project / "other" / file).read_text()
        assert "not verified" not in (project / "kernel" / file).read_text()
    head = (project / "kernel" / "src" / "main.c").read_text().splitlines()[1]
    assert head.startswith("/* verified on one input: same I/O as the application")
    plain = json.loads(luthier(project, *words[:4], "json", "--json", *flags).stdout)["verification"]
    assert (plain["accepted"], plain["inputs"]) == (False, [])
    assert plain["text"].startswith("not verified: ")
    assert sorted(path.name for path in project.iterdir()) == ["include", "json", "kernel", "other", "src"]


def test_a_kernel_verified_on_several_inputs(project: Path) -> None:
    inputs = ["{program} one", "{program} one 'and two'"]
    runs = [word for one in inputs for word in ("--run", one)]
    words = ["io", "discover", "src/main.c", "-o", "kernel", *runs, "--json", "--", "-Iinclude", "-DEXTRA=3"]
    plain = json.loads(luthier(project, *words).stdout)["verification"]
    assert (plain["accepted"], plain["inputs"]) == (True, inputs)
    assert plain["text"].startswith("verified on 2 inputs: same I/O as the application (")
    assert "/* verified on 2 inputs: " in (project / "kernel" / "src" / "main.c").read_text()


def test_a_kernel_that_is_refused_is_not_written(project: Path) -> None:
    text = TEXT.replace("return fclose(file);", "fclose(file);\n    return 3;")
    (project / "src" / "main.c").write_text(text)
    words = ["io", "discover", "src/main.c", "-o", "kernel", "--run", "{program}", "--timeout", "9"]
    flags = ["--", "-Iinclude", "-DEXTRA=3"]
    failed = luthier(project, *words, *flags, code=2)
    assert failed.stderr.count("\n") == 1
    assert "not verified: the application ended with exit code 3" in failed.stderr
    assert "No kernel was written" in failed.stdout
    assert sorted(path.name for path in (project / "kernel").rglob("*")) == ["report.html", "report.txt"]
    assert "not verified: the application ended" in (project / "kernel" / "report.txt").read_text()
    found = json.loads(luthier(project, *words[:4], "json", *words[5:], "--json", *flags, code=2).stdout)
    assert (found["files"], found["verification"]["accepted"]) == ([], False)
    assert found["verification"]["reasons"][0].startswith("the application ended with exit code 3")
    for wrong in (["--run", "mpirun"], ["--run", "'"], ["--run", "{program}", "--folder", "nowhere"], ["--link", "cc"]):
        failed = luthier(project, "io", "discover", "src/main.c", "-o", "none", *wrong, *flags, code=2)
        assert failed.stderr.count("\n") == 1
    assert not (project / "none").exists()


def test_verified_with_compile_commands(project: Path) -> None:
    (project / "src" / "half.c").write_text("#include <math.h>\ndouble half(double x) { return pow(x, 0.5) + HALF; }\n")
    text = TEXT.replace("int main", "double half(double x);\nint main").replace(
        "SIZE, file", "(int)half(argc * 9), file"
    )
    (project / "src" / "main.c").write_text(text)
    (project / "build").mkdir()
    first = ["cc", "-I../include", "-DEXTRA=1", "-MD", "-MF", "x.d", "-o", "main.o", "-c", "../src/main.c"]
    second = ["/usr/bin/gcc", "-DHALF=1", "-o", "half.o", "-c", "../src/half.c"]
    folder = str(project / "build")
    entries = [{"directory": folder, "file": words[-1], "arguments": words} for words in (first, second)]
    (project / "compile_commands.json").write_text(json.dumps(entries))
    words = ("io", "discover", "--compile-commands", "compile_commands.json", "--run", "{program}", "-o")
    shown = luthier(project, *words, "kernel", "--link", "cc -lm").stdout
    assert "verified on one input: same I/O as the application (2 operations, 4 B, 1 process)" in shown
    assert "cc fails" in luthier(project, *words, "other", "--link", "cc -lnothing", code=2).stderr
    assert list((project / "build").iterdir()) == []


def test_json_and_compile_commands(project: Path) -> None:
    entry = {"directory": str(project), "file": "src/main.c", "command": "cc -Iinclude '-DEXTRA=1' -c src/main.c"}
    (project / "compile_commands.json").write_text(json.dumps([entry]))
    words = ("io", "discover", "--compile-commands", "compile_commands.json", "-o", "kernel", "--json")
    found = json.loads(luthier(project, *words).stdout)
    assert (found["kept"], found["statements"], found["files"]) == (3, 6, ["kernel/src/main.c"])


@pytest.mark.parametrize(
    "text",
    ["[", "{}", "[1]", '[{"directory": "/", "file": "a.c"}]', '[{"directory": "/", "file": "a.c", "command": "\'"}]'],
)
def test_invalid_compile_commands(text: str, tmp_path: Path) -> None:
    path = tmp_path / "compile_commands.json"
    path.write_text(text)
    with pytest.raises(InvalidInputError):
        compile_commands(path)


def test_a_compiler_in_a_file_is_not_any_program(tmp_path: Path) -> None:
    path = tmp_path / "compile_commands.json"
    path.write_text(json.dumps([{"directory": "/", "file": "a.c", "arguments": ["/bin/sh", "-c", "a.c"]}]))
    with pytest.raises(InvalidInputError, match="not a C compiler"):
        sources_of_database(path, [])


def test_flags_that_matter(tmp_path: Path) -> None:
    flags = ["-DA", "-D", "B=1", "-Wall", "-O3", "-fopenmp", "-lm", "-o", "x", "-std=c99", "-march=native", "-c"]
    arguments = source_file(Path("a.c"), flags, tmp_path).arguments
    assert arguments[1:] == ("-DA", "-D", "B=1", "-O3", "-D_OPENMP=201511", "-std=c99", "-march=native")


def test_include_folders() -> None:
    assert any(Path(folder, "stddef.h").exists() for folder in include_folders("cc"))


def test_reports(tmp_path: Path) -> None:
    found = discovered(tmp_path, size_h="#define SIZE 4\n#define EXTRA 1\n", main=TEXT)
    states = line_states(found.files[0])
    assert states[5] == ("dropped", "no I/O needs it")
    assert states[8] == ("kept", "fwrite does I/O")
    assert states[2] == ("", "")
    page = html_report(found)
    assert "&lt;script&gt;alert(1)" in page
    assert "<script>" not in page
    assert '<tr class="dropped"><td class="number">6</td>' in page
    text = text_report(found)
    assert "    6 -     double e = argc * 0.5;" in text
    assert '    9 +     fwrite("<b>&", 1, SIZE, file);    <- fwrite does I/O' in text
