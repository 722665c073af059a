"""The steps of I/O discovery: read, link, slice, write, and check what was written."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

from luthier.errors import KernelRefusedError
from luthier.io.kernel.buffers import Buffers, keep_uncuttable
from luthier.io.kernel.calls import Linked, link
from luthier.io.kernel.discovery import Discovery, KernelFile, read_bytes
from luthier.io.kernel.emit import emitted, headed
from luthier.io.kernel.ir import CProgram, Statement
from luthier.io.kernel.loops import loops_with_io
from luthier.io.kernel.options import KernelOptions
from luthier.io.kernel.parsing import check_source, parsed
from luthier.io.kernel.reduction import without_marks
from luthier.io.kernel.slicing import Slice, Slicer
from luthier.io.kernel.sources import SourceFile
from luthier.io.kernel.statements import UnitReader

_SYSTEM = ("/usr/", "/opt/", "/lib/")


def build(sources: Sequence[SourceFile], options: KernelOptions) -> Discovery:
    """The kernel of the sources."""
    program, headers = _read(sources, options)
    linked = link(program, options)
    kept, filled, notes = _sliced(program, linked, options)
    if not kept.starts:
        raise KernelRefusedError("no I/O call is reached from main; nothing can be kept; tune the program itself")
    loops = loops_with_io(program, linked, kept, options) if options.reduce < 1 else {}
    marked = {path: headed(Path(path).name, emitted(program, kept, path, filled, loops)) for path in program.files}
    texts = {path: without_marks(text) for path, text in marked.items()}
    for source in sources:
        _check(source, texts)
    files = tuple(_file(program, kept, path, texts[path]) for path in program.files)
    files = tuple(replace(file, marked=marked[file.path]) for file in files) if loops else files
    total = [statement for statement in _countable(program) if statement.function in linked.reachable]
    unreached = sum(statement.function not in linked.reachable for statement in _countable(program))
    counted = sum(statement.index in kept.why for statement in total)
    unknown = _unknown(kept)
    all_notes = (*notes, *unknown)
    size = (counted, len(total) + unreached)
    return Discovery(files, headers, tuple(kept.starts), all_notes, *size, loops=tuple(loops.values()))


def _sliced(program: CProgram, linked: Linked, options: KernelOptions) -> tuple[Slice, dict[int, str], list[str]]:
    """What is kept; a buffer that cannot be filled is not cut, which may keep more."""
    statements = [found for key in sorted(linked.reachable) for found in program.functions[key].statements]
    keep_uncuttable(program, linked, statements)
    while True:
        kept = Slicer(program, linked, options).run()
        buffers = Buffers(program, linked, kept, options)
        fills, given_up = buffers.fills()
        if not given_up:
            return kept, fills, buffers.notes() if options.buffer_content == "cut" else []


def _read(sources: Sequence[SourceFile], options: KernelOptions) -> tuple[CProgram, tuple[str, ...]]:
    program = CProgram()
    headers: set[str] = set()
    roots = {str(Path(source.path).parent) for source in sources} | _own_folders(sources)
    for source in sources:
        if source.path in program.files:
            continue
        text = check_source(source.path, read_bytes(source.path, options.largest_file), options.largest_file)
        program.files[source.path] = text
        unit = parsed(source, {source.path: text})
        system = _system_folders(source)
        own = {name for include in unit.get_includes() if _is_project(name := include.include.name, system, roots)}
        for name in own:
            text_of = check_source(name, read_bytes(name, options.largest_file), options.largest_file)
            program.header_texts.append(text_of)
        headers |= {str(Path(name).resolve()) for name in own}
        reader = UnitReader(program, source.path, text, own | {source.path})
        reader.read(unit)
        if len(program.statements) > options.most_statements:
            raise KernelRefusedError(
                f"the sources have more than {options.most_statements} statements; tune the program itself"
            )
    return program, tuple(sorted(headers))


def _system_folders(source: SourceFile) -> list[str]:
    arguments = source.arguments
    return [arguments[at + 1] for at, flag in enumerate(arguments[:-1]) if flag == "-isystem"]


def _own_folders(sources: Sequence[SourceFile]) -> set[str]:
    """The folders of -I, without those of the system and of MPI and HDF5."""
    given = {flag.removeprefix("-I") for source in sources for flag in source.arguments if flag.startswith("-I/")}
    given |= {after for source in sources for flag, after in pairwise(source.arguments) if flag == "-I"}
    found = {str(Path(folder).resolve()) for folder in given if not folder.startswith("/usr/")}
    return {folder for folder in found if not any(Path(folder, name).exists() for name in ("mpi.h", "hdf5.h"))}


def _is_project(name: str, system: list[str], roots: set[str]) -> bool:
    path = str(Path(name).resolve())
    if any(path.startswith(f"{root}/") for root in roots):
        return True
    return not path.startswith((*_SYSTEM, *(f"{folder}/" for folder in system)))


def _check(source: SourceFile, texts: dict[str, str]) -> None:
    try:
        parsed(source, texts)
    except KernelRefusedError as error:
        raise KernelRefusedError(f"the kernel that was made is not valid C ({error})") from None


def _countable(program: CProgram) -> list[Statement]:
    quiet = ("block", "empty", "case", "label")
    return [
        statement
        for function in program.functions.values()
        for statement in function.statements
        if statement.kind not in quiet
    ]


def _file(program: CProgram, kept: Slice, path: str, text: str) -> KernelFile:
    why, dropped = [], []
    for statement in _countable(program):
        if program.functions[statement.function].file != path:
            continue
        last = statement.last_line if not statement.children else statement.children[0].line
        if statement.index in kept.why:
            why.append((statement.line, last, kept.why[statement.index]))
        else:
            dropped.append((statement.line, statement.last_line))
    return KernelFile(path, program.files[path], text, tuple(sorted(why)), tuple(sorted(dropped)))


def _unknown(kept: Slice) -> list[str]:
    found: dict[str, str] = {}
    for file, line, why in kept.starts:
        if "may do I/O" in why:
            found.setdefault(why, f"{file}:{line}: {why}; if it does not, exclude it with --compute")
    return list(found.values())
