"""Small C programs, and what is left of them."""

from pathlib import Path

from luthier.io.kernel import Discovery, KernelOptions, discover_io
from luthier.io.kernel_runs import sources_from

PRELUDE = """\
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
"""


def discovered(folder: Path, options: KernelOptions | None = None, compiler: str = "cc", **texts: str) -> Discovery:
    """The kernel of sources given by name; a name with _h is a header."""
    for name, text in texts.items():
        file = folder / (f"{name.removesuffix('_h')}.h" if name.endswith("_h") else f"{name}.c")
        file.write_text(text)
    paths = [folder / f"{name}.c" for name in texts if not name.endswith("_h")]
    return discover_io(sources_from(paths, [compiler]), options)


def kernel(folder: Path, body: str, options: KernelOptions | None = None, compiler: str = "cc") -> str:
    """What is left of a program; statements of `main` are enough."""
    text = body if "main(" in body else f"int main(int argc, char **argv)\n{{\n{body}\n    return 0;\n}}\n"
    found = discovered(folder, options, compiler, program=PRELUDE + text)
    return found.files[0].text


def lines(text: str) -> list[str]:
    """The lines without indentation."""
    return [line.strip() for line in text.split("\n")]


def check(folder: Path, body: str, options: KernelOptions | None = None, compiler: str = "cc") -> str:
    """Lines marked with `// +` must be kept, lines marked with `// -` dropped; returns the kernel's text."""
    left = kernel(folder, body, options, compiler)
    kept = lines(left)
    marked = [line.strip() for line in body.split("\n") if line.rstrip().endswith(("// +", "// -"))]
    assert marked
    for line in marked:
        code = line[:-4].rstrip()
        is_left = any(other.startswith(code) for other in kept)
        assert is_left == line.endswith("+"), f"{line}\n{left}"
    return left
