"""What is not supported is refused with one line; hostile sources change nothing."""

import cProfile
import os
import pstats
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.io.kernel.random_programs import program
from tests.io.kernel.tiny import PRELUDE, discovered, kernel

from luthier.errors import InvalidInputError, KernelRefusedError, LuthierError
from luthier.io.kernel import KernelOptions, SourceFile, discover_io, source_file
from luthier.io.kernel.parsing import parsed
from luthier.io.kernel.reduction import traced
from luthier.io.kernel_runs import discover_apart, include_folders

WRITE = '    write(4, "abc", 3);\n'
SYSTEM = include_folders("cc")
APPS = Path(__file__).parents[3] / "testbeds" / "io_apps"

REFUSED = {
    "a syntax error": ("    int x = ;\n", "expected expression"),
    "an unknown header": ("}\n#include <nothing_like_this.h>\nvoid f(void) {\n", "file not found"),
    "inline assembly": ('    __asm__ volatile("nop");\n', "inline assembly"),
    "setjmp": ("    jmp_buf b;\n    if (setjmp(b)) return 1;\n", "setjmp"),
    "a computed goto": ("    void *p = &&end; goto *p; end:;\n", "goto"),
    "a signal handler": ("    signal(SIGINT, handler);\n", "a signal handler"),
    "mapped files": ("    mmap(0, 4096, 3, 1, 4, 0);\n", "memory-mapped I/O"),
    "pointers out of integers": ("    long n = argc; char *p = (char *)n; write(4, p, 1);\n", "converted to a pointer"),
    "a statement split by #if": (
        "    int n = 0;\n#ifdef NOTHING\n    if (argc > 2) {\n#else\n    if (argc > 3) {\n#endif\n    n = 2;\n    }\n",
        "split by #if",
    ),
    "a return in an expression": ("    int n = ({ if (argc > 3) return 1; 3; });\n", "inside an expression"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str, tmp_path: Path) -> None:
    code, words = REFUSED[name]
    text = f"#include <setjmp.h>\n#include <signal.h>\n#include <sys/mman.h>\n{PRELUDE}static int hits;\n"
    text += "static void handler(int s) { hits = s; }\n"
    text += f"int main(int argc, char **argv)\n{{\n{WRITE}{code}    return 0;\n}}\n"
    with pytest.raises(KernelRefusedError) as caught:
        discovered(tmp_path, program=text)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "tune the program itself" in str(caught.value)


DEFINITIONS = {
    "K&R": ('int f(a) int a; { return a; }\nint main(void) { write(4, "abc", f(2)); return 0; }\n', "K&R"),
    "variable arguments": (
        "#include <stdarg.h>\nint f(int n, ...) { va_list l; va_start(l, n); int *p = va_arg(l, int *); va_end(l);\n"
        '*p = 1; return n; }\nint main(void) { int k; write(4, "abc", f(2, &k)); return 0; }\n',
        "variable number of arguments",
    ),
    "no main": ('void f(void) { write(4, "abc", 3); }\n', "no function main"),
    "no I/O": ("int main(void) { return 0; }\n", "no I/O call"),
    "a constructor": (
        '__attribute__((constructor)) void f(void) { write(4, "abc", 3); }\nint main(void) { return 0; }\n',
        "attribute",
    ),
    "a thread": (
        "#include <pthread.h>\nvoid *f(void *p) { return p; }\n"
        'int main(void) { pthread_t t; pthread_create(&t, 0, f, 0); write(4, "abc", 3); return 0; }\n',
        "a thread",
    ),
}


@pytest.mark.parametrize("name", DEFINITIONS)
def test_refused_definition(name: str, tmp_path: Path) -> None:
    text, words = DEFINITIONS[name]
    with pytest.raises(KernelRefusedError, match=words):
        discovered(tmp_path, program=PRELUDE + text)


def test_a_variadic_function_that_prints_is_accepted(tmp_path: Path) -> None:
    text = """\
#include <stdarg.h>
static void fail(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vfprintf(stderr, format, list);
    va_end(list);
    exit(1);
}
int main(void)
{
    if (write(4, "abc", 3) != 3)
        fail("wrong: %d\\n", 3);
    return 0;
}
"""
    assert 'fail("wrong: %d\\n", 3);' in kernel(tmp_path, text)


def test_libclang_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "clang", None)
    with pytest.raises(InvalidInputError, match=r"needs libclang; install it: .*luthier\[iokernel\]"):
        discover_io([source_file(Path("a.c"), [], tmp_path)])


def test_no_sources() -> None:
    with pytest.raises(InvalidInputError, match="no sources"):
        discover_io([])


def test_cplusplus_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="only C sources"):
        source_file(Path("a.cpp"), [], tmp_path)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"\x7fELF\0\0\1", "NUL"),
        (b"int main(void) { return '\xff'; }", "UTF-8"),
        (b"//" + b"x" * 200, "the limit is 100"),
    ],
)
def test_files_that_are_not_c(data: bytes, words: str, tmp_path: Path) -> None:
    (tmp_path / "a.c").write_bytes(data)
    with pytest.raises(KernelRefusedError, match=words):
        discover_io([source_file(Path("a.c"), [], tmp_path)], KernelOptions(largest_file=100))


@pytest.mark.parametrize(
    "expression", ["(" * 5000 + "1" + ")" * 5000, "1" + "+1" * 5000, "-" * 5001 + "1", "!" * 999 + "argc"]
)
def test_deep_expressions(expression: str, tmp_path: Path) -> None:
    with pytest.raises(KernelRefusedError) as caught:
        kernel(tmp_path, f'    int n = {expression};\n    write(4, "abc", n);')
    assert "\n" not in str(caught.value)


def test_deep_statements(tmp_path: Path) -> None:
    with pytest.raises(KernelRefusedError):
        kernel(tmp_path, "if (argc) {" * 200 + WRITE + "}" * 200)
    with pytest.raises(KernelRefusedError):
        kernel(tmp_path, "if (argc == 1) argc++; else " * 2000 + WRITE)


def test_too_many_statements(tmp_path: Path) -> None:
    with pytest.raises(KernelRefusedError, match="more than 10 statements"):
        kernel(tmp_path, "    argc++;\n" * 20 + WRITE, KernelOptions(most_statements=10))


def test_macros_that_grow_without_end(tmp_path: Path) -> None:
    """Exponential macros: the analysis is ended from outside, with one line."""
    grown = "".join(f"#define M{n + 1} M{n} + M{n} + M{n} + M{n}\n" for n in range(30))
    text = f"{PRELUDE}#define M0 1\n{grown}int main(void)\n{{\n{WRITE}    return M30;\n}}\n"
    (tmp_path / "a.c").write_text(text)
    source = source_file(Path("a.c"), [], tmp_path, SYSTEM)
    with pytest.raises(KernelRefusedError, match="tune the program itself") as caught:
        discover_apart([source], KernelOptions(), timeout_s=2)
    assert "\n" not in str(caught.value)


GROWING = "".join(f"#define M{n + 1} M{n} + M{n}\n" for n in range(22))
GROWING = f"{PRELUDE}#define M0 1\n{GROWING}int main(void)\n{{\n{WRITE}    return M22;\n}}\n"


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_the_analysis_ends_with_the_command(how: signal.Signals, tmp_path: Path) -> None:
    (tmp_path / "a.c").write_text(GROWING)
    words = [sys.executable, "-m", "luthier", "io", "discover", "a.c"]
    with subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as command:
        children = Path(f"/proc/{command.pid}/task/{command.pid}/children")
        workers: list[int] = []
        while not workers:  # the process that analyses, not the resource tracker of Python; it has read the sources
            assert command.poll() is None
            workers = [int(pid) for pid in children.read_text().split() if "libclang" in said(f"/proc/{pid}/maps")]
            time.sleep(0.01)
        command.send_signal(how)
        command.wait(timeout=60)
    for pid in workers:
        until(partial(has_ended, pid))


def has_ended(pid: int) -> bool:
    return said(f"/proc/{pid}/stat").rpartition(")")[2].split()[:1] in ([], ["Z"])


def said(file: str) -> str:
    """The contents of a file of /proc; nothing if the process has ended."""
    try:
        return Path(file).read_text()
    except OSError:
        return ""


def until(is_so: Callable[[], bool]) -> None:
    """Wait for a condition, at most a minute."""
    for _ in range(6000):
        if is_so():
            return
        time.sleep(0.01)
    raise AssertionError


def test_an_include_that_never_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "endless.h")
    (tmp_path / "a.c").write_text(f'{PRELUDE}#include "endless.h"\nint main(void)\n{{\n{WRITE}    return 0;\n}}\n')
    monkeypatch.setattr("luthier.io.kernel_runs._MOST_IDLE_S", 2)
    with pytest.raises(KernelRefusedError, match="such as a FIFO named by #include") as caught:
        discover_apart([source_file(Path("a.c"), [], tmp_path, SYSTEM)], KernelOptions())
    assert "\n" not in str(caught.value)


def test_a_device_that_never_ends_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "a.c").write_text(f'{PRELUDE}#include "/dev/zero"\nint main(void)\n{{\n{WRITE}    return 0;\n}}\n')
    words = [sys.executable, "-m", "luthier", "io", "discover", "a.c"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert "tune the program itself" in done.stderr


def test_a_source_that_never_ends(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.c")
    with pytest.raises(InvalidInputError, match=r"a\.c: is not an ordinary file"):
        discover_io([source_file(Path("a.c"), [], tmp_path, SYSTEM)])


def test_the_work_grows_with_the_number_of_loops_only(tmp_path: Path) -> None:
    """Four times as many loops: about four times as many calls of functions, not sixteen times."""
    calls = []
    for count in (100, 400):
        body = "    int i, s = 0;\n" + "    for (i = 0; i < 3; i++) { s += i; write(4, &s, i); }\n" * count
        profile = cProfile.Profile()
        profile.runcall(kernel, tmp_path, body)
        calls.append(pstats.Stats(profile).total_calls)  # type: ignore[attr-defined]  # missing in typeshed
    assert calls[1] < 5.5 * calls[0]


def test_an_unknown_pragma(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="unknown pragma"):
        kernel(tmp_path, "#pragma luthier drop\n" + WRITE)


TEXTS = [
    *(program(seed) for seed in range(3)),
    *((APPS / name).read_text() for name in ("logger.c", "restart/main.c", "restart/files.c")),
]


@st.composite
def mutated(draw: st.DrawFn) -> str:
    """A source with parts cut out, doubled, moved or replaced."""
    text = draw(st.sampled_from(TEXTS))
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(text)))
        size = draw(st.integers(0, 60))
        piece = text[at : at + size]
        new = draw(
            st.sampled_from(["", piece * 2, "{", "}", ";", "/*", "*/", "#if 0\n", "\n#endif\n", "'", '"', "\\\n", "0"])
        )
        text = text[:at] + new + text[at + size :]
    return text


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=mutated())
def test_mutated_sources(text: str, tmp_path: Path) -> None:
    """Whatever comes in, a kernel that parses comes out, or one line."""
    (tmp_path / "a.c").write_text(text)
    source: SourceFile = source_file(Path("a.c"), [f"-I{APPS / 'restart'}"], tmp_path, SYSTEM)
    try:
        found = discover_io([source], KernelOptions(reduce=0.1))
    except LuthierError as error:
        lines = str(error).count("\n") + 1
        assert lines == 1
        return
    parsed(source, {file.path: file.text for file in found.files})
    parsed(source, {file.path: traced(file.marked) for file in found.files if found.loops})


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=mutated(), cut=st.booleans())
def test_a_mutated_source_on_the_command_line(text: str, cut: bool, tmp_path: Path) -> None:
    """A kernel in a folder of its own, or one line and nothing; the source stays as it is."""
    folder = Path(tempfile.mkdtemp(dir=tmp_path))
    (folder / "a.c").write_text(text)
    words = [str(folder / "a.c"), "-o", str(folder / "kernel"), "--buffers", "cut" if cut else "keep"]
    command = [sys.executable, "-m", "luthier", "io", "discover", *words, "--", f"-I{APPS / 'restart'}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, cwd=folder)
    assert (folder / "a.c").read_text() == text
    left = sorted(path.name for path in folder.iterdir())
    if done.returncode == 0:
        assert left == ["a.c", "kernel"]
        return
    assert (done.returncode, left) == (2, ["a.c"])
    assert done.stderr.count("\n") == 1
    assert "Traceback" not in done.stderr
