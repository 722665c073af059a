"""Compiled programs and kernels, run over several inputs."""

import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.iokernel.tiny import discovered

from luthier.iokernel import Discovery, Options

INPUTS = ("0", "1", "2", "5", "9")
HEAD = """\
#include <errno.h>
#include <search.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static FILE *out;
static void emit(long v) { fprintf(out, "%ld\\n", v); }
"""
MAIN = """\
int main(int argc, char **argv)
{
    int x = atoi(argv[2]);
    out = fopen(argv[1], "w");
"""
Did = tuple[int, bytes]


def behaviour(text: str, name: str, folder: Path, inputs: Sequence[str] = INPUTS, *flags: str) -> list[Did]:
    """Exit code and content of the file that is named by the first argument, for each second argument."""
    source, binary = folder / f"{name}.run.c", folder / f"{name}.bin"
    source.write_text(text)
    subprocess.run(["gcc", "-O1", "-w", *flags, str(source), "-o", str(binary), "-lm"], check=True, timeout=60)
    found = []
    for number, given in enumerate(inputs):
        written = folder / f"{name}{number}.txt"
        ended = subprocess.run(
            [str(binary), str(written), given], check=False, timeout=30, cwd=folder, stderr=subprocess.DEVNULL
        )
        found.append((ended.returncode, written.read_bytes() if written.exists() else b""))
    return found


def differing(text: str, found: Discovery, folder: Path, *, with_content: bool) -> list[tuple[str, Did, Did]]:
    """The inputs for which the kernel does something else; what it leaves uninitialized is no zero."""
    full = behaviour(text, "full", folder)
    kernel = behaviour(found.files[0].text, "kernel", folder, INPUTS, "-ftrivial-auto-var-init=pattern")
    return [
        (given, one, other)
        for given, one, other in zip(INPUTS, full, kernel, strict=True)
        if (one != other if with_content else (one[0], len(one[1])) != (other[0], len(other[1])))
    ]


def check_same(body: str, folder: Path, options: Options | None = None) -> Discovery:
    """Check that program and kernel do the same; statements of `main` are enough, x is the input."""
    if "main(" not in body:
        body = f"{MAIN}{body}\n    fclose(out);\n    return 0;\n}}\n"
    text = HEAD + body
    found = discovered(folder, options, program=text)
    cut = options is not None and options.buffer_content == "cut"
    assert differing(text, found, folder, with_content=not cut) == []
    return found
