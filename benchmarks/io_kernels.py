"""How much faster the I/O kernels of `testbeds/io_apps` are than their applications (`docs/io-kernels.md`).

    python -m benchmarks.io_kernels [--lines 10000] [--pairs 5] [--only kernels|loops|analysis]

Each kernel (`--buffers cut`) is verified: compiled, run beside its application, and the I/O of both compared. Sizes are
such that computing dominates. Then loops are reduced to 10 % of their executions of I/O, with sizes at which there are
at least 20 of them, and what the reduced kernel predicts is compared with the application: operations, bytes, and the
bandwidth, as the ratio of runs in turns. Last, a generated program is analysed, of so many lines in several files.
"""

import argparse
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

from luthier.io.kernel import Discovery, KernelOptions, discover_io
from luthier.io.kernel_reduction import Reduced, with_reduced_loops
from luthier.io.kernel_runs import discover_apart, sources_from, write_kernel
from luthier.io.kernel_verification import BuiltProgram, build_from, built, counted_run, run_words, verified
from luthier.io.measures import perf

FOLDER = Path(__file__).parents[1] / "testbeds" / "io_apps"
APPLICATIONS = (
    ("stencil", ("stencil.c",), ("h5pcc", "-shlib"), "mpirun -n 2 {program} 1024 600 300"),
    ("particles", ("particles.c",), ("h5cc", "-shlib"), "{program} 100000 600 300"),
    ("restart", ("restart/main.c", "restart/state.c", "restart/files.c"), ("gcc",), "{program} -n200000 -s150"),
    ("columns", ("columns.c",), ("h5cc", "-shlib"), "{program} 2500 100"),
    ("strided", ("strided.c",), ("mpicc",), "mpirun -n 2 {program} 262144 60"),
    ("logger", ("logger.c",), ("gcc",), "{program} 3000 10000000"),
)
LOOPS = {
    "stencil": "mpirun -n 2 {program} 1024 200 10",
    "particles": "{program} 400000 100 5",
    "restart": "{program} -n600000 -s40 -e2",
    "columns": "{program} 1500 100",
    "strided": "mpirun -n 2 {program} 65536 60",
    "logger": "{program} 100000 10000000",
}
SHARE = 0.1
MPI = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1"}
FILES = 10
FUNCTION = """\
static double table_{n}[64], saved_{n}[64];
double work_{n}(double x, int count)
{{
    double sum = x;
    for (int i = 0; i < count; i++) {{
        table_{n}[i % 64] += sum * 0.5;
        if (sum > 1e6)
            sum = table_{n}[(i + 7) % 64];
        else
            sum += table_{n}[i % 64] + {n};
    }}
    return sum;
}}

void save_{n}(const char *name, int count)
{{
    FILE *file = fopen(name, "a");
    saved_{n}[0] = count;
    int size = count > 64 ? 64 : count;
    if (file == NULL)
        exit(1);
    fwrite(saved_{n}, sizeof(double), size, file);
    fclose(file);
}}

"""


def generated(folder: Path, lines: int) -> list[Path]:
    """A program of about so many lines: functions that compute and functions that write, over several files."""
    count = lines // (FUNCTION.count("\n") + 4)
    names = [folder / f"part{number}.c" for number in range(FILES)]
    for number, name in enumerate(names):
        bodies = "".join(FUNCTION.format(n=n) for n in range(number, count, FILES))
        name.write_text(f"#include <stdio.h>\n#include <stdlib.h>\n\n{bodies}")
    declared = "".join(f"double work_{n}(double, int);\nvoid save_{n}(const char *, int);\n" for n in range(count))
    calls = "".join(f'    x += work_{n}(x, argc);\n    save_{n}("out", argc * {n});\n' for n in range(count))
    main = folder / "main.c"
    main.write_text(
        f"{declared}\nint main(int argc, char **argv)\n{{\n    double x = 1;\n{calls}    return argv[0] == 0;\n}}\n"
    )
    return [main, *names]


def compare() -> None:
    """Print a table of the applications."""
    print("application  application s  kernel s  ratio  operations  bytes      verdict")
    for name, files, compiler, run in APPLICATIONS:
        found = discover_io(
            sources_from([FOLDER / file for file in files], compiler), KernelOptions(buffer_content="cut")
        )
        program = BuiltProgram(build_from([*compiler, "-O2", "-lm"]), run_words(run), timeout_s=120)
        verdict = verified(found, program)
        if not verdict.accepted or not verdict.application_s or not verdict.kernel_s:
            print(f"{name:<12} {verdict.text}", flush=True)
            continue
        times = (
            f"{verdict.application_s:<14.2f} {verdict.kernel_s:<9.2f} {verdict.application_s / verdict.kernel_s:<6.1f}"
        )
        print(f"{name:<12} {times} {verdict.operations:<11} {verdict.bytes:<10} verified", flush=True)


def reduce(pairs: int) -> None:
    """Print a table of what reduced kernels predict."""
    print(
        "\napplication  executions  operations off  bytes off  "
        "bandwidth: reduced / whole kernel (range)  whole varies by  whole s  reduced s"
    )
    for name, files, compiler, _ in APPLICATIONS:
        sources = sources_from([FOLDER / file for file in files], compiler)
        found = discover_io(sources, KernelOptions(buffer_content="cut", reduce=SHARE))
        program = BuiltProgram(build_from([*compiler, "-O2", "-lm"]), run_words(LOOPS[name]), timeout_s=120)
        verdict = verified(found, program)
        reduced = with_reduced_loops(found, program, verdict, SHARE)
        if not reduced.reduction.loops:
            print(f"{name:<12} {reduced.text}", flush=True)
            continue
        ratios, varies = bandwidths(found, reduced, program, pairs)
        done = "+".join(f"{one.kept_executions}/{one.executions}" for one in reduced.reduction.loops)
        top = [one for one in reduced.predictions if one.layer == reduced.predictions[0].layer]
        operations = max(abs(one.error) for one in top if one.name == "operations")
        size = max(abs(one.error) for one in reduced.predictions if one.name != "operations")
        spread = f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
        times = f"{reduced.kernel_s or 0:<8.2f} {reduced.reduced_s or 0:.2f}"
        print(
            f"{name:<12} {done:<11} {operations:<15.3%} {size:<10.3%} {spread:<42} {varies:<16.1f} {times}", flush=True
        )


def bandwidths(whole: Discovery, reduced: Reduced, program: BuiltProgram, pairs: int) -> tuple[list[float], float]:
    """The bandwidth that the reduced kernel predicts, divided by that of the whole kernel, for runs in turns.

    Then the largest bandwidth of the whole kernel divided by its smallest.
    """
    with tempfile.TemporaryDirectory() as temporary:
        place = Path(temporary)
        programs = []
        for name, discovery in (("whole", whole), ("reduced", reduced.discovery)):
            written = write_kernel(discovery, place / name / "sources")
            programs.append(built(written, program.build, place / name / "program").program)
        ratios, seen = [], []
        for _ in range(pairs):
            actual, predicted = (perf(counted_run(one, program, None, place).processes) for one in programs)
            if actual and predicted:
                ratios.append(predicted / actual)
                seen.append(actual)
        return ratios, max(seen) / min(seen)


def analyse(lines: int) -> None:
    """Print how long the analysis of a generated program takes."""
    with tempfile.TemporaryDirectory() as temporary:
        paths = generated(Path(temporary), lines)
        written = sum(path.read_text().count("\n") for path in paths)
        sources = sources_from(paths, ["cc"])
        began = time.monotonic()
        found = discover_apart(sources, KernelOptions())
        took_s = time.monotonic() - began
        print(
            f"\nanalysis of {written} lines in {len(paths)} files: {took_s:.1f} s, {found.kept} of {found.total} kept"
        )


def main() -> int:
    """Print all three."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--lines", type=int, default=10_000)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--only", choices=["kernels", "loops", "analysis"])
    arguments = parser.parse_args()
    os.environ.update(MPI)
    if arguments.only in (None, "kernels"):
        compare()
    if arguments.only in (None, "loops"):
        reduce(arguments.pairs)
    if arguments.only in (None, "analysis"):
        analyse(arguments.lines)
    return 0


if __name__ == "__main__":
    sys.exit(main())
