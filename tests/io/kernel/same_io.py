"""Compiled programs and kernels, run over several inputs."""

import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.io.kernel.tiny import discovered

from luthier.io.kernel import Discovery, KernelOptions

INPUTS = ("0", "1", "2", "5", "9")
HEAD = """\
#include <errno.h>
#include <search.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
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


@dataclass(frozen=True)
class Did:
    """What a program did: its exit code, and the files named by its first and third argument."""

    exit_code: int
    output: bytes
    data: bytes

    @property
    def without_data(self) -> tuple[int, bytes, int]:
        """Without the content of the second file."""
        return self.exit_code, self.output, len(self.data)

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Without the content of both."""
        return self.exit_code, len(self.output), len(self.data)


def behaviour(text: str, name: str, folder: Path, *flags: str) -> list[Did]:
    """What a program does for each second argument."""
    source, binary = folder / f"{name}.run.c", folder / f"{name}.bin"
    source.write_text(text)
    subprocess.run(["gcc", "-O1", "-w", *flags, str(source), "-o", str(binary), "-lm"], check=True, timeout=60)
    found = []
    for given in INPUTS:
        files = [folder / f"{name}-{given}.{end}" for end in ("output", "data")]
        words = [str(binary), str(files[0]), given, str(files[1])]
        ended = subprocess.run(words, check=False, timeout=30, cwd=folder, stderr=subprocess.DEVNULL)
        found.append(Did(ended.returncode, *(file.read_bytes() if file.exists() else b"" for file in files)))
    return found


def both(text: str, found: Discovery, folder: Path) -> tuple[list[Did], list[Did]]:
    """What program and kernel do; what the kernel leaves uninitialized is not zero."""
    kernel = behaviour(found.files[0].text, "kernel", folder, "-ftrivial-auto-var-init=pattern")
    return behaviour(text, "full", folder), kernel


def check_same(body: str, folder: Path, options: KernelOptions | None = None) -> Discovery:
    """Check that program and kernel do the same; statements of `main` are enough, x is the input."""
    if "main(" not in body:
        body = f"{MAIN}{body}\n    fclose(out);\n    return 0;\n}}\n"
    text = HEAD + body
    found = discovered(folder, options, program=text)
    cut = options is not None and options.buffer_content == "cut"
    full, made = both(text, found, folder)
    assert [one.sizes for one in made] == [one.sizes for one in full] if cut else made == full
    return found
