"""Sources with their compiler flags, from a command line or from compile_commands.json."""

import json
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from luthier.errors import InvalidInputError
from luthier.texts import shown

_WITH_VALUE = ("-isystem", "-include", "-iquote", "-idirafter", "-imacros", "-I", "-D", "-U")
_FOLDERS = ("-I", "-isystem", "-iquote", "-idirafter")
_ALONE = re.compile(r"-(?:std=.*|ansi|pthread|m(?!p$)[a-z0-9.=+-]+|f(?:no-)?(?:signed|unsigned)-char|nostdinc|O.?)\Z")
_OPENMP = ("-fopenmp", "-openmp", "-qopenmp")
OPENMP_VERSION = "-D_OPENMP=201511"  # the bodies of OpenMP regions vanish from libclang's tree with -fopenmp itself
_CPLUSPLUS = (".cc", ".cpp", ".cxx", ".C", ".c++", ".hpp")
_LARGEST_DATABASE = 50_000_000


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A C file (absolute path) with the arguments that libclang needs of its compiler flags."""

    path: str
    arguments: tuple[str, ...] = ()


def source_file(path: Path, flags: Sequence[str], folder: Path, system: Sequence[str] = ()) -> SourceFile:
    """A source with the flags of its compiler, which runs in `folder`; `system` are the compiler's own include folders.

    Flags that do not change what the file means (warnings, libraries, output) are ignored.
    """
    if path.suffix in _CPLUSPLUS or path.suffix != ".c":
        raise InvalidInputError(f"{path}: only C sources (.c) are analysed; tune the program itself")
    arguments = [f"-working-directory={folder}"]
    for directory in system:
        arguments += ["-isystem", directory]
    arguments += _kept_flags(flags, folder)
    return SourceFile(str((folder / path).resolve()), tuple(arguments))


def _kept_flags(flags: Sequence[str], folder: Path) -> list[str]:
    kept: list[str] = []
    waiting = iter(flags)
    for flag in waiting:
        if flag in _WITH_VALUE:
            value = next(waiting, None)
            if value is None:
                raise InvalidInputError(f"{flag}: needs a value; add it")
            kept += [flag, _absolute(flag, value, folder)]
        elif flag in ("-x", "-o", "-MF", "-MT", "-MQ", "-Xlinker", "-L", "-l"):
            next(waiting, None)
        elif flag in _OPENMP:
            kept.append(OPENMP_VERSION)
        elif flag.startswith(("@", "-specs", "-fplugin")):
            raise InvalidInputError(f"{shown(flag)}: is not supported; write the flags themselves")
        elif (name := next((name for name in _WITH_VALUE if flag.startswith(name)), None)) is not None:
            kept.append(name + _absolute(name, flag.removeprefix(name), folder))
        elif _ALONE.match(flag):
            kept.append(flag)
    return kept


def _absolute(flag: str, value: str, folder: Path) -> str:
    """A folder of headers as an absolute path; other values, and files found through these folders, as they are."""
    return str(folder / value) if flag in _FOLDERS else value


def compile_commands(path: Path) -> list[tuple[Path, list[str], Path]]:
    """File, flags with the compiler first, and folder of each entry of a compile_commands.json."""
    try:
        if path.stat().st_size > _LARGEST_DATABASE:
            raise InvalidInputError(f"{path}: has more than {_LARGEST_DATABASE} bytes; name the sources instead")
        entries = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InvalidInputError(f"{path}: cannot be read as compile_commands.json: {error}") from None
    if not isinstance(entries, list):
        raise InvalidInputError(f"{path}: must be a list of entries with directory, file, and command or arguments")
    return [_entry(path, number, entry) for number, entry in enumerate(entries, start=1)]


def _entry(path: Path, number: int, entry: object) -> tuple[Path, list[str], Path]:
    wrong = InvalidInputError(f"{path}: entry {number} needs the texts directory, file, and command or arguments")
    if not isinstance(entry, dict):
        raise wrong
    folder, file, command, arguments = (entry.get(name) for name in ("directory", "file", "command", "arguments"))
    if not isinstance(folder, str) or not isinstance(file, str):
        raise wrong
    if isinstance(arguments, list) and all(isinstance(word, str) for word in arguments) and arguments:
        words = list(arguments)
    elif isinstance(command, str):
        try:
            words = shlex.split(command)
        except ValueError:
            raise wrong from None
    else:
        raise wrong
    return Path(file), words, Path(folder)
