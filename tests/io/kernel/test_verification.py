"""Wrong kernels are refused, whatever is wrong with them; the application is then used."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from tests.conftest import missing
from tests.io.io_runs import MPI_ENVIRONMENT

from luthier.errors import InvalidInputError
from luthier.io.kernel import Discovery, discover_io
from luthier.io.kernel_runs import sources_from
from luthier.io.kernel_verification import (
    Build,
    BuiltProgram,
    Verification,
    build_from,
    built,
    counted_run,
    on_other_ranks,
    verified,
)

TEXT = """\
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    double sum = 0;
    char data[300] = "x";
    for (int i = 0; i < 1000 * argc; i++)
        sum += i * 0.5;
    int fd = open("out", O_RDWR | O_CREAT | O_TRUNC, 0644), log = open("log", O_WRONLY | O_CREAT, 0644);
    if (fd < 0 || log < 0)
        return 1;
    if (write(fd, data, 100) != 100)
        return 1;
    if (write(fd, data, 200) != 200)
        return 1;
    if (pwrite(fd, data, 50, 1000) != 50)
        return 1;
    if (pwrite(fd, data, 50, 2000) != 50)
        return 1;
    if (write(log, data, 10) != 10)
        return 1;
    fsync(fd);
    close(fd);
    close(log);
    printf("%g %s\\n", sum, argv[0]);
    return 0;
}
"""
FIRST = "    if (pwrite(fd, data, 50, 1000) != 50)\n        return 1;\n"
SECOND = "    if (pwrite(fd, data, 50, 2000) != 50)\n        return 1;\n"
LOGGED = "    if (write(log, data, 10) != 10)\n        return 1;\n"
END = "    return 0;\n}"

WRONG = {
    "two writes of one file are swapped": (FIRST + SECOND, SECOND + FIRST, "POSIX out: the order of operations"),
    "two writes of two files are swapped": (SECOND + LOGGED, LOGGED + SECOND, "order of operations on several files"),
    "another offset": ("50, 1000)", "50, 1001)", "POSIX out: offsets, sizes or modes"),
    "sizes exchanged between writes": (
        "write(fd, data, 100) != 100)\n        return 1;\n    if (write(fd, data, 200) != 200",
        "write(fd, data, 200) != 200)\n        return 1;\n    if (write(fd, data, 100) != 100",
        "offsets, sizes or modes",
    ),
    "one byte less": ("data, 200) != 200", "data, 199) != 199", "write bytes 400 in the application, 399"),
    "no fsync": ("    fsync(fd);\n", "", "syncs 1 in the application, 0 in the kernel"),
    "fsync before a write": (LOGGED + "    fsync(fd);\n", "    fsync(fd);\n" + LOGGED, "several files"),
    "another file": ('"log"', '"log2"', "log: used by the application only"),
    "a file in two steps": (
        "write(log, data, 10) != 10",
        "write(log, data, 4) + write(log, data, 6) != 10",
        "writes 1",
    ),
    "another mode": ("O_RDWR |", "O_SYNC | O_RDWR |", "offsets, sizes or modes"),
    "a file that is not closed": ("    close(log);\n", "", "POSIX log: offsets, sizes or modes"),
    "a file that is removed": (END, '    unlink("log");\n' + END, "log: left behind by the application only"),
    "a file that is cut": (END, '    if (truncate("log", 3)) return 1;\n' + END, "log: 10 bytes left by the app"),
    "a name with the process number": (
        'log = open("log"',
        'log = sprintf(data, "log%d", getpid()) < 0 ? -1 : open(data',
        "log: used by the application only",
    ),
    "exit code 1": (END, "    return 1;\n}", "the kernel ended with exit code 1"),
    "a crash after all I/O": (END, "    abort();\n}", "the kernel crashes with signal 6"),
    "an endless loop": (END, "    for (volatile int on = 1; on;)\n        continue;\n" + END, "runs longer than 2 s"),
    "an undeclared function": (END, "    undeclared(3);\n" + END, "does not compile"),
    "a warning": (END, "    int u, *p = 3;\n    if (p) u++;\n" + END, "warns about the kernel only: -Wint-conversion"),
}


def kernel_of(folder: Path, text: str = TEXT) -> Discovery:
    (folder / "main.c").write_text(text)
    return discover_io(sources_from([folder / "main.c"], ["cc"]))


def changed(found: Discovery, old: str, new: str) -> Discovery:
    """The discovery with another text in the kernel."""
    [file] = found.files
    assert old in file.text
    return replace(found, files=(replace(file, text=file.text.replace(old, new)),))


def judged(found: Discovery, timeout_s: float = 2.0, **more: object) -> Verification:
    return verified(found, BuiltProgram(build_from(["cc", "-O1"]), timeout_s=timeout_s, **more))  # type: ignore[arg-type]


def test_the_unchanged_kernel_is_accepted(tmp_path: Path) -> None:
    found = kernel_of(tmp_path)
    assert "sum" not in found.files[0].text
    verdict = judged(found)
    assert (verdict.accepted, verdict.reasons) == (True, ())
    assert (verdict.operations, verdict.bytes, verdict.ranks) == (8, 410, 1)


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_kernel_is_refused(name: str, tmp_path: Path) -> None:
    old, new, reason = WRONG[name]
    verdict = judged(changed(kernel_of(tmp_path), old, new))
    assert not verdict.accepted
    assert reason in "\n".join(verdict.reasons)
    assert "differs from run to run" not in verdict.reasons[0]
    assert verdict.text.startswith("not verified: ")
    assert "\n" not in verdict.text


def test_what_is_printed_does_not_count(tmp_path: Path) -> None:
    printing = '    fprintf(stderr, "%0999999d\\n", 1);\n    puts("done");\n' + END
    assert judged(changed(kernel_of(tmp_path), END, printing)).accepted


def test_an_application_that_differs_from_run_to_run(tmp_path: Path) -> None:
    text = TEXT.replace("#include <unistd.h>", "#include <unistd.h>\n#include <sys/random.h>")
    drawn = "    unsigned n = 0;\n    if (getrandom(&n, 4, 0) != 4)\n        return 1;\n"
    text = text.replace("    double sum", drawn + "    double sum")
    text = text.replace("50, 1000)", "50, 1000 + n)")
    verdict = judged(kernel_of(tmp_path, text))
    assert not verdict.accepted
    assert verdict.reasons[0] == "the application's own I/O differs from run to run"


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (END, "    return 3;\n}", "the application ended with exit code 3"),
        (END, "    for (volatile int on = 1; on;)\n        continue;\n" + END, "the application runs longer than 2 s"),
        ('"out"', '"/dev/null"', ""),
    ],
)
def test_what_an_application_must_do(old: str, new: str, reason: str, tmp_path: Path) -> None:
    verdict = judged(kernel_of(tmp_path, TEXT.replace(old, new)))
    assert verdict.accepted == (reason == "")
    assert reason in verdict.text


def test_static_programs_cannot_be_verified(tmp_path: Path) -> None:
    verdict = verified(kernel_of(tmp_path), BuiltProgram(build_from(["cc", "-static"]), timeout_s=10))
    assert "linked dynamically" in verdict.text


def test_inputs_are_copied_and_files_elsewhere_count(tmp_path: Path) -> None:
    (tmp_path / "inputs").mkdir()
    (tmp_path / "inputs" / "log").write_text("longer than what is written\n")
    text = TEXT.replace('"out"', f'"{tmp_path}/elsewhere"')
    found = kernel_of(tmp_path, text)
    assert judged(found, folder=tmp_path / "inputs").accepted
    assert (tmp_path / "inputs" / "log").read_text().startswith("longer")
    assert not judged(changed(found, "50, 2000)", "50, 2001)"), folder=tmp_path / "inputs").accepted
    short = changed(found, f'"{tmp_path}/elsewhere"', '"out"')
    assert f"{tmp_path}/elsewhere" in judged(short).text


def test_several_ranks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if shutil.which("mpirun") is None or shutil.which("mpicc") is None:
        missing("Open MPI (mpicc, mpirun) is not installed; as root: sh tests/services.sh")
    for name, value in MPI_ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    source = Path(__file__).parents[3] / "testbeds" / "io_apps" / "strided.c"
    found = discover_io(sources_from([source], ["mpicc"]))
    run = ("mpirun", "-n", "2", "{program}", "256", "8")
    program = BuiltProgram(build_from(["mpicc", "-O1", "-lm"]), run, timeout_s=20)
    call = next(line for line in found.files[0].text.splitlines() if "MPI_File_write" in line)
    missing_rank = changed(found, call, "if (rank == 0)\n" + call)
    verdict = verified(missing_rank, program)
    assert not verdict.accepted
    assert "rank 1: " in "\n".join(verdict.reasons) or "longer than" in verdict.text
    hang = changed(found, call, "if (rank == 1) for (volatile int on = 1; on;) continue;\n" + call)
    assert "runs longer than 3 s" in verified(hang, replace(program, timeout_s=3)).text
    left = [path for path in Path("/proc").glob("[0-9]*/cmdline") if b"luthier-verify-" in _content(path)]
    assert not left


def test_a_kernel_that_is_wrong_on_a_second_input_only(tmp_path: Path) -> None:
    wrong = changed(kernel_of(tmp_path), "50, 2000)", "50 + (argc > 1), 2000)")
    program = BuiltProgram(build_from(["cc"]), timeout_s=20)
    assert verified(wrong, program).text.startswith("verified on one input: ")
    verdict = verified(wrong, program, [("{program}", "a b")])
    assert not verdict.accepted
    assert verdict.text.startswith("not verified: with {program} 'a b': ")
    assert verdict.inputs == ("{program}", "{program} 'a b'")
    right = kernel_of(tmp_path)
    assert verified(right, program, [("{program}", "1"), ("{program}", "2", "3")]).text.startswith(
        "verified on 3 inputs"
    )
    assert verified(right, program, [("{program}",)]).inputs == ("{program}",)  # the same input again
    failing = kernel_of(tmp_path, TEXT.replace(END, "    return argc > 1;\n}"))
    named = verified(failing, program, [("{program}", "1")])  # what the user names must work
    assert named.reasons == ("with {program} 1: the application ended with exit code 1: it printed nothing",)


RANKS = """\
#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    int rank, ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    char name[20];
    snprintf(name, sizeof name, "out%d", rank);
    FILE *out = fopen(name, "w");
    for (int i = 0; i < ranks; i++)
        fprintf(out, "%d", i);
    fclose(out);
    MPI_Finalize();
    return 0;
}
"""


def test_an_mpi_program_is_compared_on_other_ranks_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if shutil.which("mpirun") is None or shutil.which("mpicc") is None:
        missing("Open MPI (mpicc, mpirun) is not installed; as root: sh tests/services.sh")
    for name, value in MPI_ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    (tmp_path / "main.c").write_text(RANKS)
    found = discover_io(sources_from([tmp_path / "main.c"], ["mpicc"]))
    program = BuiltProgram(build_from(["mpicc"]), ("mpirun", "-n", "2", "{program}"), timeout_s=60)
    verdict = verified(found, program)
    assert verdict.text.startswith("verified on 2 inputs: same I/O as the application (")
    assert "also compared with mpirun -n 1 {program}, made by luthier" in verdict.notes
    fixed = changed(found, "i < ranks", "i < 2")
    assert verified(fixed, program).text.startswith("not verified: with mpirun -n 1 {program}: ")
    (tmp_path / "main.c").write_text(
        RANKS.replace("    char name", "    if (ranks != 2)\n        return 4;\n    char name")
    )
    choosy = verified(discover_io(sources_from([tmp_path / "main.c"], ["mpicc"])), program)
    assert choosy.text.startswith("verified on one input: ")
    assert choosy.notes[0].startswith("not compared with mpirun -n 1 {program}: the application ended with exit code 4")


@pytest.mark.parametrize(
    ("run", "other"),
    [
        ("mpirun -n 4 {program} -n 3", "mpirun -n 2 {program} -n 3"),
        ("/opt/bin/mpiexec.hydra -q -np 1 {program}", "/opt/bin/mpiexec.hydra -q -np 2 {program}"),
        ("srun -n 3 {program}", "srun -n 1 {program}"),
        ("srun -n 1 {program}", None),
        ("srun -c 4 {program}", None),
        ("mpirun -n 0 {program}", None),
        ("mpirun -n 2 {program} : -n 2 {program}", "mpirun -n 1 {program} : -n 2 {program}"),
        ("mpirun {program} -n 2", None),
        ("{program} -n 2", None),
        ("timeout -n 2 {program}", None),
    ],
)
def test_the_other_number_of_ranks(run: str, other: str | None) -> None:
    made = on_other_ranks(run.split())
    assert (None if made is None else " ".join(made)) == other


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def test_libraries_come_after_the_sources_and_paths_are_those_of_the_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "include").mkdir()
    (tmp_path / "include" / "power.h").write_text("#define POWER 0.5\n")
    (tmp_path / "a.c").write_text(
        '#include <math.h>\n#include "power.h"\nint main(int c, char **v) { return v[c] != 0 || pow(c, POWER) != 1; }\n'
    )
    monkeypatch.chdir(tmp_path)
    build = Build("cc", ("-lm", "-Iinclude", "-O0", "-c", "-o", "elsewhere", "-fno-builtin"))
    made = built([Path("a.c")], build, tmp_path / "made" / "program")
    assert counted_run(made.program, BuiltProgram(build)).exit_code == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.c", "include", "made"]


def test_hdf5_is_linked_dynamically() -> None:
    assert "was given -shlib" in Build("h5pcc", ("-O2",)).notes[0]
    assert Build("h5cc", ("-shlib",)).notes == Build("cc").notes == ()


def test_invalid_programs(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"write \{program\}"):
        BuiltProgram(Build(), ("mpirun", "-n", "2"))
    with pytest.raises(InvalidInputError, match="must be above 0"):
        BuiltProgram(Build(), timeout_s=0)
    with pytest.raises(InvalidInputError, match="is not a C compiler"):
        built([tmp_path / "a.c"], Build("rm"), tmp_path / "x" / "program")
    found = kernel_of(tmp_path)
    with pytest.raises(InvalidInputError, match="is not a folder"):
        judged(found, folder=tmp_path / "nothing")
    with pytest.raises(InvalidInputError, match="cannot be started"):
        judged(found, run=("/nowhere/mpirun", "{program}"))
