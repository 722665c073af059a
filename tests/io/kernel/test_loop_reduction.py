"""Reduced loops predict the operations and bytes of the application, or are left whole with the reason."""

import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.conftest import missing
from tests.io.io_runs import MPI_ENVIRONMENT
from tests.io.kernel.tiny import PRELUDE

from luthier.errors import InvalidInputError
from luthier.io.kernel import KernelOptions, discover_io
from luthier.io.kernel.loops import KernelLoop
from luthier.io.kernel.reduction import ReducedLoop, chosen_loops
from luthier.io.kernel_reduction import Reduced, with_reduced_loops
from luthier.io.kernel_runs import sources_from
from luthier.io.kernel_verification import BuiltProgram, build_from, run_words, verified
from luthier.io.loop_counts import IterationRun, LoopTrace, loop_traces

STEPS = """
static double field[512];
static void save(int step) {
    char name[64];
    snprintf(name, sizeof name, "step%04d", step);
    FILE *out = fopen(name, "w");
    if (out == NULL) exit(1);
    fwrite(field, sizeof field, 1, out);
    fclose(out);
}
static void advance(void) { for (int i = 0; i < 512; i++) field[i] = sin(field[i]) + 1; }
"""
OPENED = 'int fd = open("all", O_RDWR | O_CREAT | O_TRUNC, 0644);\nif (fd < 0) return 1;\n'


def main(body: str) -> str:
    """A program whose main has this body."""
    return f"{STEPS}int main(int argc, char **argv)\n{{\n{body}\nreturn argc > 9 && argv == NULL;\n}}\n"


def reduced(folder: Path, text: str, run: str = "{program}", words: tuple[str, ...] = ("cc",)) -> Reduced:
    """What a share of 10 % makes of a program."""
    for name in (words[0], run.split(maxsplit=1)[0]):
        if name != "{program}" and shutil.which(name) is None:
            missing(f"{name} is not installed; as root: sh tests/services.sh")
    source = folder / "program.c"
    source.write_text(PRELUDE + text)
    found = discover_io(sources_from([source], words[:1]), KernelOptions(buffer_content="cut", reduce=0.1))
    program = BuiltProgram(build_from([*words, "-O1", "-lm"]), run_words(run), timeout_s=60)
    verdict = verified(found, program)
    assert verdict.accepted, verdict.reasons
    return with_reduced_loops(found, program, verdict, 0.1)


@pytest.fixture(autouse=True)
def _mpi(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in MPI_ENVIRONMENT.items():
        monkeypatch.setenv(name, value)


@dataclass(frozen=True)
class Case:
    name: str
    body: str
    executions: tuple[int, int]
    """Kept, of all."""


CASES = (
    Case(
        "a checkpoint every 200th step",
        "for (int t = 0; t < 2000; t++) {\n    advance();\n    if (t % 200 == 0)\n        save(t);\n}",
        (1, 10),
    ),
    Case(
        "the first checkpoint is late, and there is a log as well",
        OPENED
        + "for (int t = 0; t < 2000; t++) {\n    advance();\n    if (t % 10 == 0 && write(fd, field, 40) != 40)\n"
        "        return 1;\n    if (t > 0 && t % 200 == 0)\n        save(t);\n}",
        (22, 200),
    ),
    Case(
        "an offset that grows",
        OPENED
        + "off_t at = 0;\nfor (int i = 0; i < 100; i++) {\n    if (pwrite(fd, field, 4096, at) != 4096) return 1;\n"
        "    at += 4096;\n}\nif (pwrite(fd, field, 8, at) != 8) return 1;\n",
        (10, 100),
    ),
    Case(
        "a body without braces",
        "for (int t = 0; t < 40; t++)\n    if (t % 2)\n        save(t);\n    else\n        advance();",
        (2, 20),
    ),
    Case(
        "do and while",
        "int t = 0;\ndo {\n    save(t);\n    if (t % 3 == 0) continue;\n    advance();\n} while (++t < 30);",
        (3, 30),
    ),
    Case(
        "the last step is used by what is no I/O, and returned",
        'int t;\nfor (t = 0; t < 20; t++) save(t);\nprintf("%d", t);\nif (argc > 7) return t;',
        (2, 20),
    ),
    Case(
        "returns and jumps out",
        "for (int t = 0; t < 30; t++) {\n    save(t);\n    if (t == 99) return 3;\n"
        "    if (t == 98) goto end;\n}\nend: ;",
        (3, 30),
    ),
    Case(
        "an early exit",
        "double sum = 0;\nfor (int t = 0; ; t++) {\n    save(t);\n    sum += 1;\n    if (sum > 29.5) break;\n}",
        (3, 30),
    ),
    Case("two executions", "for (int t = 0; t < 10; t++) {\n    advance();\n    if (t % 5 == 4) save(t);\n}", (1, 2)),
    Case(
        "an inner loop, where the outer one runs once",
        "for (int all = 0; all < 1; all++)\n    for (int t = 0; t < 20; t++)\n        save(t);",
        (2, 20),
    ),
    Case(
        "each file is checked",
        'for (int t = 0; t < 20; t++) {\n    char name[30];\n    sprintf(name, "c%d", t);\n'
        '    FILE *f = fopen(name, "w+");\n    if (f == NULL) return 1;\n    fwrite(field, sizeof field, 1, f);\n'
        "    rewind(f);\n    if (fread(field, 8, 1, f) != 1) return 2;\n    fclose(f);\n}",
        (2, 20),
    ),
    Case(
        "a function that is called twice",
        "for (int half = 0; half < 1; half++) advance();\nfor (int t = 0; t < 20; t++) save(t);\nsave(50);",
        (2, 20),
    ),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_loop_does_a_share_of_its_executions(tmp_path: Path, case: Case) -> None:
    found = reduced(tmp_path, main(case.body))
    [loop] = found.reduction.loops
    assert (loop.kept_executions, loop.executions) == case.executions, found.reduction
    assert found.predictions
    assert all(abs(one.error) <= 0.01 for one in found.predictions)
    assert loop.factor == pytest.approx(case.executions[1] / case.executions[0], rel=0.01)
    assert found.discovery.files[0].text.count("LUTHIER_NEXT") == 2  # its definition, and one use


WHOLE = {
    "it only closes files": (
        'FILE *out[4];\nfor (int i = 0; i < 4; i++) {\n    char name[20];\n    sprintf(name, "f%d", i);\n'
        '    out[i] = fopen(name, "w");\n}\nfor (int t = 0; t < 30; t++) save(t);\n'
        "for (int i = 0; i < 4; i++) fclose(out[i]);",
        "it only opens, closes or flushes files",
    ),
    "a region of OpenMP": (
        "for (int t = 0; t < 20; t++) {\n#pragma omp parallel for\n    for (int i = 0; i < 512; i++) field[i] += 1;\n"
        "    save(0);\n}\n#pragma omp parallel for\nfor (int t = 0; t < 4; t++)\n    save(t + 40);\n",
        "a directive is above it",
    ),
    "the last step is used": (
        OPENED + "int t;\nfor (t = 0; t < 50; t++) save(t);\nif (pwrite(fd, &t, 4, 8L * t) != 4) return 1;",
        "t, which it changes, is used in line",
    ),
    "its condition reads": (
        'FILE *in = fopen("/proc/self/maps", "r");\nchar line[500];\nint n = 0;\n'
        "while (n < 5 && fgets(line, 500, in)) save(n++);",
        "its condition does I/O",
    ),
    "each write is larger": (
        OPENED + "for (int i = 1; i < 60; i++)\n    if (write(fd, field, 8 * i) != 8 * i) return 1;",
        "different amounts of I/O",
    ),
    "what follows depends on what was done": (
        OPENED + "int done = 0, *count = &done;\nfor (int t = 0; t < 50; t++) { save(t); ++*count; }\n"
        "if (done == 50)\n    for (int i = 0; i < 3; i++)\n        if (write(fd, field, 4096) != 4096) return 1;",
        "predicts wrong numbers",
    ),
    "the files are read": (
        OPENED
        + "for (int t = 0; t < 50; t++)\n    if (write(fd, field, 4096) != 4096) return 1;\nlseek(fd, 0, SEEK_SET);\n"
        "if (read(fd, field, 4096) != 4096) return 1;",
        "it writes all, which the program reads too",
    ),
    "it fails when less was done": (
        "int done = 0, *count = &done;\nfor (int t = 0; t < 50; t++) { save(t); ++*count; }\n"
        'if (access("step0049", F_OK) != 0) abort();',
        "crashes with signal 6",
    ),
}


@pytest.mark.parametrize("case", WHOLE)
def test_a_loop_is_left_whole_with_the_reason(tmp_path: Path, case: str) -> None:
    body, reason = WHOLE[case]
    found = reduced(tmp_path, main(body))
    assert not [
        one for one in found.reduction.loops if "save(t)" in body.splitlines()[one.loop.line - 1 : one.loop.line]
    ]
    assert reason in " ".join(why for _, why in found.reduction.whole), found.reduction
    if not found.reduction.loops:
        assert "LUTHIER" not in found.discovery.files[0].text
        assert "loops are whole" in found.text


HDF5 = """
#include <hdf5.h>
int main(void) {
    hsize_t all[2] = {400, 500}, chunk[2] = {40, 500}, one[2] = {1, 500}, at[2] = {0, 0};
    static double row[500];
    hid_t file = H5Fcreate("a.h5", H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), space = H5Screate_simple(2, all, NULL);
    hid_t list = H5Pcreate(H5P_DATASET_CREATE), line = H5Screate_simple(2, one, NULL);
    H5Pset_chunk(list, 2, chunk);
    hid_t set = H5Dcreate2(file, "a", H5T_NATIVE_DOUBLE, space, H5P_DEFAULT, list, H5P_DEFAULT);
    for (int i = 0; i < 400; i++) {
        at[0] = i;
        H5Sselect_hyperslab(space, H5S_SELECT_SET, at, NULL, one, NULL);
        if (H5Dwrite(set, H5T_NATIVE_DOUBLE, line, space, H5P_DEFAULT, row) < 0) return 1;
    }
    H5Dclose(set);
    H5Fclose(file);
    return 0;
}
"""


def test_what_hdf5_writes_when_it_closes_counts_for_the_loop(tmp_path: Path) -> None:
    """One tenth of the data stays in the cache of chunks until the dataset is closed."""
    found = reduced(tmp_path, HDF5, words=("h5cc", "-shlib"))
    assert [one.kept_executions for one in found.reduction.loops] == [40], found.reduction
    written = {one.layer: one for one in found.predictions if one.name == "bytes written"}
    assert written["hdf5"].error == 0
    assert written["posix"].actual > 1_600_000
    assert abs(written["posix"].error) < 0.01


RANKS = """
#include <mpi.h>
int main(int argc, char **argv) {
    int rank, ranks;
    double sum, one = 1;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int t = 0; t < 60; t++) {
        MPI_Allreduce(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        if (rank == WRITER) {
            char name[64];
            snprintf(name, sizeof name, "rank%d-%03d-%d", rank, t, (int)sum);
            FILE *out = fopen(name, "w");
            if (out == NULL) MPI_Abort(MPI_COMM_WORLD, 1);
            fwrite(&sum, sizeof sum, 1, out);
            fclose(out);
        }
    }
    MPI_Finalize();
    return 0;
}
"""


@pytest.mark.parametrize(("writer", "kept"), [("0", 6), ("t % ranks", 3)])
def test_every_rank_leaves_the_loop_at_the_same_time(tmp_path: Path, writer: str, kept: int) -> None:
    text = RANKS.replace("WRITER", writer)
    found = reduced(tmp_path, text, "mpirun -n 2 {program}", ("mpicc",))
    [loop] = found.reduction.loops
    assert (loop.kept_iterations, loop.kept_executions) == (6, kept)
    assert loop.factor == pytest.approx(10)
    assert all(abs(one.error) <= 0.01 for one in found.predictions)


def test_programs_at_fixed_addresses_are_reduced_too(tmp_path: Path) -> None:
    found = reduced(tmp_path, main("for (int t = 0; t < 20; t++) save(t);"), words=("cc", "-no-pie", "-fno-pic"))
    assert len(found.reduction.loops) == 1, found.reduction


def trace(number: int, *runs: tuple[int, int, int, int], outer: int = 0, entries: int = 1) -> LoopTrace:
    """First, stride, count and bytes written by each iteration."""
    made = tuple(IterationRun(first, stride, count, (1, 0, size, *(0,) * 6), 0) for first, stride, count, size in runs)
    return LoopTrace(
        number,
        entries,
        1 + max(run.first + run.stride * (run.count - 1) for run in made),
        outer,
        is_regular=True,
        runs=made,
    )


LOOPS = [KernelLoop(1, "a.c", 10), KernelLoop(2, "a.c", 20)]


def test_all_ranks_do_at_least_one_execution() -> None:
    chosen, _ = chosen_loops(LOOPS, [[trace(1, (0, 4, 25, 80))], [trace(1, (3, 4, 25, 80))]], 0.01)
    assert [(one.kept_iterations, one.kept_executions, one.factor) for one in chosen] == [(4, 1, 25.0)]


def test_of_nested_loops_the_outer_one_is_reduced() -> None:
    inner = trace(2, (0, 1, 100, 8), outer=1, entries=10)
    chosen, whole = chosen_loops(LOOPS, [[trace(1, (0, 1, 10, 800)), inner]], 0.1)
    assert [one.loop.number for one in chosen] == [1]
    assert not whole


def test_a_rare_large_write_is_not_left_out() -> None:
    many = trace(1, (0, 1, 999, 8), (999, 1, 1, 1_000_000))
    chosen, whole = chosen_loops(LOOPS, [[many]], 0.1)
    assert not chosen
    assert whole == [(LOOPS[0], "its iterations do different amounts of I/O")]


def test_the_share_is_checked() -> None:
    for share in (0.0, -1.0, 1.5, float("nan")):
        with pytest.raises(InvalidInputError, match="reduce"):
            KernelOptions(reduce=share)


@pytest.mark.parametrize(
    "damaged",
    [
        {},
        [1],
        [{"number": 1}],
        [{"number": -1, "runs": []}],
        [{"number": 1, "entries": 1, "iterations": 1, "outer": 0, "runs": [[1]]}],
    ],
)
def test_a_damaged_trace_is_an_error(damaged: object) -> None:
    with pytest.raises(ValueError, match="loop"):
        loop_traces(damaged, 3)


def test_the_reduced_loop_reads_well() -> None:
    loop = ReducedLoop(KernelLoop(3, "a.c", 7), 20, 200, 2, 20, 10.0)
    assert loop.text == (
        "a.c:7: loop reduced to 2 of 20 executions of its I/O, 20 of 200 iterations; its counters are multiplied by 10"
    )
