"""Reading C with libclang: one translation unit after the other, into the program's own form."""

import re
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

from luthier.errors import InvalidInputError, KernelRefusedError
from luthier.io.kernel.sources import OPENMP_VERSION, SourceFile
from luthier.texts import visible

_OPENMP_HEADER = """\
#ifndef _OMP_H
#define _OMP_H 1
typedef struct { unsigned char data[4]; } omp_lock_t;
typedef struct { unsigned char data[16]; } omp_nest_lock_t;
int omp_get_num_threads(void);
int omp_get_max_threads(void);
int omp_get_thread_num(void);
int omp_get_num_procs(void);
int omp_in_parallel(void);
int omp_get_dynamic(void);
int omp_get_level(void);
double omp_get_wtime(void);
double omp_get_wtick(void);
void omp_set_num_threads(int);
void omp_set_dynamic(int);
void omp_set_nested(int);
void omp_init_lock(omp_lock_t *);
void omp_destroy_lock(omp_lock_t *);
void omp_set_lock(omp_lock_t *);
void omp_unset_lock(omp_lock_t *);
int omp_test_lock(omp_lock_t *);
#endif
"""
_ERROR = 3  # libclang's severities: 3 error, 4 fatal
_DETAILED = 0x01  # keep the record of macros
_REFUSED_TEXT = {
    re.compile(r"^[ \t]*#[ \t]*(?:if|elif|ifdef|ifndef)\b.*\b__clang__\b", re.M): "a test for __clang__",
    re.compile(r"\b__GNUC__\s*[<>=!]+\s*(?:[5-9]|\d\d)"): "a test for a version of GCC",
    re.compile(r"\b__attribute__\s*\(\s*\(\s*_*(?:constructor|destructor|cleanup|ifunc|alias)"): "this attribute",
}


def clang() -> Any:
    """The module of libclang; raise if it is not installed."""
    try:
        from clang import cindex
    except ImportError:
        raise InvalidInputError(
            "I/O discovery needs libclang; install it: python3 -m pip install 'luthier[iokernel]'"
        ) from None
    return cindex


def parsed(source: SourceFile, texts: Mapping[str, str]) -> Any:
    """The translation unit of a source, with other texts in place of files; raise if it has errors.

    Texts are Latin-1: one character is one byte of the file.
    """
    cindex = clang()
    # The Python interface encodes texts as UTF-8: what check_source has decoded comes back byte for byte.
    texts = {**_openmp(source), **texts}
    unsaved = [(path, text.encode("latin-1").decode("utf-8")) for path, text in texts.items()]
    try:
        unit = cindex.Index.create().parse(source.path, _arguments(source), unsaved, _DETAILED)
    except cindex.TranslationUnitLoadError:
        raise KernelRefusedError(f"{source.path}: libclang cannot read this file; tune the program itself") from None
    for diagnostic in unit.diagnostics:
        if diagnostic.severity >= _ERROR:
            where = diagnostic.location
            name = where.file.name if where.file else source.path
            raise KernelRefusedError(
                f"{visible(name)}:{where.line}: {visible(diagnostic.spelling)}; with errors no I/O kernel can be made; "
                "correct the flags, or tune the program itself"
            )
    return unit


def _openmp(source: SourceFile) -> dict[str, str]:
    """The header of OpenMP: GCC's own has attributes that libclang rejects."""
    if OPENMP_VERSION not in source.arguments:
        return {}
    folders = [after for flag, after in pairwise(source.arguments) if flag == "-isystem"]
    found = next((path for folder in folders if (path := Path(folder) / "omp.h").exists()), None)
    return {} if found is None else {str(found): _OPENMP_HEADER}


def _arguments(source: SourceFile) -> list[str]:
    return ["-x", "c", "-ferror-limit=1", "-Wno-everything", *source.arguments]


def check_source(path: str, data: bytes, largest: int) -> str:
    """The text of a source as Latin-1; raise if it cannot be C."""
    if len(data) > largest:
        raise KernelRefusedError(f"{path}: has {len(data)} bytes; the limit is {largest}; tune the program itself")
    if b"\0" in data:
        raise KernelRefusedError(f"{path}: contains NUL bytes and is not C; tune the program itself")
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise KernelRefusedError(f"{path}:{line}: is not UTF-8; convert the file, or tune the program itself") from None
    text = data.decode("latin-1")
    for pattern, what in _REFUSED_TEXT.items():
        found = pattern.search(text)
        if found:
            line = text.count("\n", 0, found.start()) + 1
            raise KernelRefusedError(f"{path}:{line}: {what} is not supported in I/O kernels; tune the program itself")
    return text
