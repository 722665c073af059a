"""Compiles an application and its I/O kernel with the same compiler and flags."""

import os
import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from luthier.errors import InvalidInputError, KernelRefusedError, UnavailableError
from luthier.io.kernel import compile_commands
from luthier.io.kernel_runs import compiler_path, split_words
from luthier.texts import shown, visible

_WITH_VALUE = ("-isystem", "-iquote", "-idirafter", "-include", "-imacros", "-I", "-L", "-D", "-U", "-l")
_OUTPUT = ("-c", "-S", "-E", "-M", "-MM", "-MD", "-MMD", "-MP", "-MG")
_OUTPUT_WITH_VALUE = ("-o", "-MF", "-MT", "-MQ")
_REFUSED = ("@", "-specs", "--specs", "-fplugin", "-wrapper", "-B")
_JOINED = ("-I", "-L", "-D", "-U", "-l")
_LIBRARY = re.compile(r"-l|-L|-Wl,|[^-].*\.(?:a|o|so(?:\.[\d.]+)?)\Z")
_HDF5_WRAPPER = re.compile(r"h5p?cc\b")
_CLASS = re.compile(r"\[(-W[\w=+-]+)\]")
_LONGEST_S = 600.0


@dataclass(frozen=True, slots=True)
class Unit:
    """How one source is compiled: flags are for a compiler that runs in `folder`."""

    compiler: str
    flags: tuple[str, ...] = ()
    folder: Path | None = None


@dataclass(frozen=True, slots=True)
class Build:
    """How a program is compiled and linked; `units` are for sources with flags of their own, in their order.

    `flags` are those of all other sources, and of the linker.
    """

    compiler: str = "cc"
    flags: tuple[str, ...] = ()
    units: tuple[Unit, ...] = ()

    @property
    def notes(self) -> tuple[str, ...]:
        """What is done differently from what was asked for."""
        if _HDF5_WRAPPER.search(Path(self.compiler).name) and "-shlib" not in self.flags:
            return (f"{Path(self.compiler).name} was given -shlib: calls of a static HDF5 cannot be counted",)
        return ()


@dataclass(frozen=True, slots=True)
class Built:
    """A program, with the classes of warnings of its compiler, such as -Wuninitialized."""

    program: Path
    warnings: frozenset[str]


def build_from(words: Sequence[str]) -> Build:
    """The words after `--`: flags, with the compiler before them unless it is cc."""
    compiler, flags = split_words(words)
    return Build(compiler, tuple(flags))


def build_of_database(database: Path, sources: Sequence[str], link: Sequence[str]) -> Build:
    """Flags from a compile_commands.json for these sources (absolute paths); `link` are the words to link with.

    By default the compiler of the first source links, with the flags of that source and no others.
    """
    units = {
        str((folder / file).resolve()): Unit(words[0], _without(file, words[1:]), folder)
        for file, words, folder in compile_commands(database)
        if words
    }
    chosen = tuple(units[source] for source in sources)
    compiler, flags = split_words(link) if link else (chosen[0].compiler, ())
    return Build(compiler, tuple(flags), chosen)


def _without(file: Path, words: Sequence[str]) -> tuple[str, ...]:
    return tuple(word for word in words if word != str(file) and not (word.endswith(".c") and not word.startswith("-")))


def built(sources: Sequence[Path], build: Build, target: Path) -> Built:
    """Compile these sources into the program `target`; objects go beside it. KernelRefusedError if that fails.

    Each source is compiled on its own, and a compiler runs in the folder of the target: nothing is left elsewhere.
    """
    if build.units and len(build.units) != len(sources):
        raise InvalidInputError(f"{len(sources)} sources, but flags for {len(build.units)}")
    target.parent.mkdir(parents=True, exist_ok=True)
    whole = Unit(build.compiler, build.flags)
    objects, said = [], ""
    for number, source in enumerate(sources):
        unit = build.units[number] if build.units else whole
        flags, _ = _split(unit)
        objects.append(f"{target.name}-{number}.o")
        said += _compile(unit, [*flags, "-c", "-o", objects[-1], str(source.absolute())], target.parent)
    flags, libraries = _split(_linker(build))
    said += _compile(whole, [*flags, *objects, "-o", str(target), *libraries], target.parent)
    return Built(target, frozenset(_CLASS.findall(said)))


def _linker(build: Build) -> Unit:
    whole = Unit(build.compiler, build.flags)
    return replace(whole, flags=(*whole.flags, "-shlib")) if build.notes else whole


def _compile(unit: Unit, words: list[str], folder: Path) -> str:
    """Run a compiler; return its messages."""
    name = Path(unit.compiler).name
    try:
        done = subprocess.run(
            [compiler_path(unit.compiler), *words],
            cwd=folder,
            env={**os.environ, "LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_LONGEST_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise KernelRefusedError(f"{name} takes longer than {_LONGEST_S:g} s; tune the program itself") from None
    except OSError as error:
        raise UnavailableError(f"{name}: cannot be started: {error.strerror}") from None
    said = done.stderr.decode("utf-8", "replace") + done.stdout.decode("utf-8", "replace")
    if done.returncode != 0:
        raise KernelRefusedError(f"{name} fails: {_reason(said)}")
    return said


def _reason(said: str) -> str:
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    telling = [line for line in lines if "error:" in line or "undefined reference" in line or "cannot find" in line]
    return visible((telling or lines or ["it gave no reason"])[0][:300])


def _split(unit: Unit) -> tuple[list[str], list[str]]:
    """Flags without those that name outputs, and libraries, which come after the sources; paths are absolute."""
    folder = unit.folder or Path.cwd()
    flags: list[str] = []
    libraries: list[str] = []
    waiting = iter(unit.flags)
    for word in waiting:
        if word.startswith(_REFUSED):
            raise InvalidInputError(f"{shown(word)}: is not supported; write the flags themselves")
        if word in _OUTPUT:
            continue
        if word in _OUTPUT_WITH_VALUE:
            next(waiting, None)
            continue
        name = next((name for name in _WITH_VALUE if word.startswith(name)), "")
        value = next(waiting, "") if name == word else word.removeprefix(name)
        value = _absolute(name, value, folder)
        listed = libraries if _LIBRARY.match(word) else flags
        listed += [name + value] if name in (*_JOINED, "") else [name, value]
    return flags, libraries


def _absolute(name: str, value: str, folder: Path) -> str:
    """A path relative to the folder of the compiler; a header or word that is no file there stays as it is."""
    if value.startswith("-") or name in ("-D", "-U", "-l"):
        return value
    must_exist = name in ("-include", "-imacros", "")
    return value if must_exist and not (folder / value).exists() else str(folder / value)
