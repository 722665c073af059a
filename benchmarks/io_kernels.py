"""How much faster the I/O kernels of `testbeds/io_apps` are than their applications (`docs/io-kernels.md`).

    python -m benchmarks.io_kernels [--lines 10000]

Each kernel (`--buffers cut`) is verified: compiled, run beside its application, and the I/O of both compared. Sizes are
such that computing dominates. Then a generated program is analysed, of so many lines in several files.
"""

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

from luthier.iokernel import Options, discover_io
from luthier.launch.io_kernel import discover_apart, sources_from
from luthier.launch.io_verification import Program, build_from, run_words, verified

FOLDER = Path(__file__).parents[1] / "testbeds" / "io_apps"
APPLICATIONS = (
    ("stencil", ("stencil.c",), ("h5pcc", "-shlib"), "mpirun -n 2 {program} 1024 600 300"),
    ("particles", ("particles.c",), ("h5cc", "-shlib"), "{program} 100000 600 300"),
    ("restart", ("restart/main.c", "restart/state.c", "restart/files.c"), ("gcc",), "{program} -n200000 -s150"),
    ("columns", ("columns.c",), ("h5cc", "-shlib"), "{program} 2500 100"),
    ("strided", ("strided.c",), ("mpicc",), "mpirun -n 2 {program} 262144 60"),
    ("logger", ("logger.c",), ("gcc",), "{program} 3000 10000000"),
)
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
        found = discover_io(sources_from([FOLDER / file for file in files], compiler), Options(buffer_content="cut"))
        program = Program(build_from([*compiler, "-O2", "-lm"]), run_words(run), timeout_s=120)
        verdict = verified(found, program)
        if not verdict.accepted or not verdict.application_s or not verdict.kernel_s:
            print(f"{name:<12} {verdict.text}", flush=True)
            continue
        times = (
            f"{verdict.application_s:<14.2f} {verdict.kernel_s:<9.2f} {verdict.application_s / verdict.kernel_s:<6.1f}"
        )
        print(f"{name:<12} {times} {verdict.operations:<11} {verdict.bytes:<10} verified", flush=True)


def analyse(lines: int) -> None:
    """Print how long the analysis of a generated program takes."""
    with tempfile.TemporaryDirectory() as temporary:
        paths = generated(Path(temporary), lines)
        written = sum(path.read_text().count("\n") for path in paths)
        sources = sources_from(paths, ["cc"])
        began = time.monotonic()
        found = discover_apart(sources, Options())
        took_s = time.monotonic() - began
        print(
            f"\nanalysis of {written} lines in {len(paths)} files: {took_s:.1f} s, {found.kept} of {found.total} kept"
        )


def main() -> int:
    """Print both."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--lines", type=int, default=10_000)
    arguments = parser.parse_args()
    os.environ.update(MPI)
    compare()
    analyse(arguments.lines)
    return 0


if __name__ == "__main__":
    sys.exit(main())
