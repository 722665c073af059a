"""What I/O discovery needs of the machine: the compiler's include folders, and a folder for the kernel."""

import ctypes
import json
import multiprocessing
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import cast

from luthier.errors import InvalidInputError, KernelRefusedError, LuthierError, UnavailableError
from luthier.io.kernel import Discovery, KernelOptions, SourceFile, compile_commands, discover_io, source_file
from luthier.io.kernel.discovery import UNVERIFIED
from luthier.io.kernel.report import html_report, text_report, with_verdict
from luthier.texts import shown
from luthier.trial import Json

_COMPILER = re.compile(
    r"(?:[\w.+-]*-)?(?:cc|gcc|clang|mpicc|mpiicc|mpiicx|icc|icx|h5cc|h5pcc|c99|c11)(?:[-.][\w.]+)?\Z"
)
_FOLDERS = re.compile(r"search starts here:\n(.*?)End of search list", re.DOTALL)
_TIMEOUT_S = 30
_MOST_MEMORY = 4 << 30  # bytes of address space for the analysis
_MOST_CPU_S = 300.0  # 20,000 loops take about 30 s
_MOST_IDLE_S = 15
_PR_SET_PDEATHSIG = 1  # prctl: the signal that a process gets when its parent has ended


def compiler_path(compiler: str) -> str:
    """Where a C compiler, or a wrapper such as mpicc or h5pcc, is in PATH; any other program is refused."""
    path = shutil.which(Path(compiler).name)
    if not _COMPILER.match(Path(compiler).name) or path is None:
        raise InvalidInputError(f"{shown(compiler)}: is not a C compiler in PATH; name another one after --")
    return path


def include_folders(compiler: str) -> tuple[str, ...]:
    """The folders in which a compiler looks for headers."""
    path = compiler_path(compiler)
    try:
        done = subprocess.run(
            [path, "-E", "-v", "-x", "c", os.devnull],
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=_TIMEOUT_S,
            check=False,
            env={**os.environ, "LC_ALL": "C"},
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UnavailableError(f"{compiler}: cannot be asked for its include folders: {error}") from None
    found = _FOLDERS.findall(done.stderr.decode("utf-8", "replace"))
    folders = [line.strip() for line in found[-1].split("\n")] if found else []
    return tuple(folder for folder in folders if folder and Path(folder).is_dir())


def split_words(words: Sequence[str]) -> tuple[str, Sequence[str]]:
    """Compiler and flags: the first word is a compiler unless it is a flag."""
    return (words[0], words[1:]) if words and not words[0].startswith("-") else ("cc", words)


def sources_from(paths: Sequence[Path], words: Sequence[str]) -> list[SourceFile]:
    """Sources with the words after `--`: flags, with the compiler before them unless it is cc."""
    compiler, flags = split_words(words)
    system = include_folders(compiler)
    return [source_file(path, flags, Path.cwd(), system) for path in paths]


def sources_of_database(database: Path, paths: Sequence[Path]) -> list[SourceFile]:
    """The sources in a compile_commands.json; only these paths, if any are given."""
    wanted = {path.resolve() for path in paths}
    known: dict[str, tuple[str, ...]] = {}
    found = []
    for file, words, folder in compile_commands(database):
        path = (folder / file).resolve()
        if not words or (wanted and path not in wanted):
            continue
        if words[0] not in known:
            known[words[0]] = include_folders(words[0])
        found.append(source_file(path, words[1:], folder, known[words[0]]))
        wanted.discard(path)
    if wanted & {path.resolve() for path in paths}:
        missing = min(str(path) for path in wanted)
        raise InvalidInputError(f"{database}: has no entry for {missing}; add it, or give the flags after --")
    return found


def write_kernel(
    discovery: Discovery,
    folder: Path,
    verdict: Sequence[str] = (UNVERIFIED,),
    *,
    loops: Json = None,
    is_usable: bool = True,
) -> list[Path]:
    """Write the kernel with its headers and reports into a new folder, or nothing; only the reports if not usable.

    `loops` says how its loops were reduced, for loops.json.
    """
    if folder.exists():
        raise InvalidInputError(f"{folder}: already exists; remove it or name another with --output")
    folder.parent.mkdir(parents=True, exist_ok=True)
    paths = [*(file.path for file in discovery.files), *discovery.headers]
    root = Path(os.path.commonpath([str(Path(path).parent) for path in paths]))
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}.") as temporary:
        made = Path(temporary) / "kernel"
        made.mkdir()
        for file in discovery.files if is_usable else ():
            _write(made / Path(file.path).relative_to(root), with_verdict(file.text, verdict).encode("latin-1"))
        for header in discovery.headers if is_usable else ():
            _write(made / Path(header).relative_to(root), Path(header).read_bytes())
        if loops is not None:
            _write(made / "loops.json", f"{json.dumps(loops, indent=1)}\n".encode())
        _write(made / "report.txt", text_report(discovery, verdict).encode())
        _write(made / "report.html", html_report(discovery, verdict).encode())
        made.rename(folder)
    return [folder / Path(file.path).relative_to(root) for file in discovery.files if is_usable]


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def discover_apart(sources: Sequence[SourceFile], options: KernelOptions, timeout_s: float = _MOST_CPU_S) -> Discovery:
    """`discover_io` in a process of its own, which ends with this one and has limits of time and memory.

    Hostile sources can make libclang crash, or take all time and memory, or wait for a file that never ends.
    """
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_discover, args=(sender, os.getpid(), list(sources), options), daemon=True)
    process.start()
    sender.close()
    try:
        _wait(receiver, cast("int", process.pid), timeout_s)
        found = receiver.recv()
    except EOFError:
        raise KernelRefusedError("libclang crashed or needed too much memory; tune the program itself") from None
    finally:
        process.kill()
        process.join()
        receiver.close()
    if isinstance(found, LuthierError):
        raise found
    return cast("Discovery", found)


def _wait(receiver: Connection, pid: int, timeout_s: float) -> None:
    """Wait until the process has sent something or ended; raise if it computes too long, or waits for anything else."""
    used_s, idle = 0.0, 0
    while not receiver.poll(1.0):
        before_s, used_s = used_s, _cpu_s(pid)
        idle = idle + 1 if used_s == before_s else 0
        if used_s > timeout_s:
            raise KernelRefusedError(f"the analysis takes over {timeout_s:g} s of CPU time; tune the program itself")
        if idle >= _MOST_IDLE_S and _is_asleep(pid):
            raise KernelRefusedError(
                "the analysis waits for a file that cannot be read to its end, such as a FIFO named by #include; "
                "correct the sources, or tune the program itself"
            )


def _stat(pid: int) -> list[str]:
    """The fields of /proc/PID/stat from the state on; none if the process has ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
    except OSError:
        return []


def _cpu_s(pid: int) -> float:
    fields = _stat(pid)
    return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")


def _is_asleep(pid: int) -> bool:
    """Whether it waits, rather than for a processor that others use."""
    return _stat(pid)[:1] in (["S"], ["D"])


def _discover(sender: Connection, parent: int, sources: list[SourceFile], options: KernelOptions) -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it ended before that
        os._exit(1)
    # libclang writes about its crash to stderr; errors of Python still get there.
    sys.stderr = os.fdopen(os.dup(2), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    resource.setrlimit(resource.RLIMIT_AS, (_MOST_MEMORY, _MOST_MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    result: Discovery | LuthierError
    try:
        result = discover_io(sources, options)
    except LuthierError as error:
        result = error
    except MemoryError:
        result = KernelRefusedError("the analysis needs too much memory; tune the program itself")
    sender.send(result)
