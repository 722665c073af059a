"""Compares the I/O of two runs: calls, bytes, sizes, offsets and order, by rank, layer and file."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Protocol

from luthier.io.counts import LAYER_NAMES, Counts, FileCounts, ProcessCounts
from luthier.texts import visible

MOST = 20
"""The number of differences that are listed."""
_TIMES = ("read_s", "write_s", "other_s")
_COMPARED = tuple(one.name for one in fields(Counts) if one.name not in _TIMES)


class ComparedRun(Protocol):
    """What is compared of a run."""

    @property
    def processes(self) -> tuple[ProcessCounts, ...]:
        """What its processes counted; paths in the run folder are relative."""

    @property
    def files(self) -> Mapping[str, int]:
        """The sizes of the files it left."""


def relative(process: ProcessCounts, folder: str) -> ProcessCounts:
    """The process with paths relative to a folder, for the files in it."""
    files = tuple(
        replace(file, path=file.path.removeprefix(f"{folder}/")) if file.path.startswith(f"{folder}/") else file
        for file in process.files
    )
    return replace(process, files=files)


def own_files(process: ProcessCounts) -> tuple[FileCounts, ...]:
    """The files that count: not those of the system and of the MPI library."""
    return tuple(file for file in process.files if not file.is_system)


def differences(application: ComparedRun, kernel: ComparedRun) -> tuple[str, ...]:
    """What differs between two runs, one plain line each, at most `MOST`; nothing if their I/O is the same."""
    ours, theirs = _by_rank(application.processes), _by_rank(kernel.processes)
    found: list[str] = []
    for rank in sorted({*ours, *theirs}):
        found += _of_rank(ours.get(rank, []), theirs.get(rank, []), f"rank {rank}: " if rank >= 0 else "")
    found += _of_left(application.files, kernel.files)
    return tuple(found[:MOST])


def unordered(run: ComparedRun) -> bool:
    """Whether several threads of a process made I/O, so that its order means nothing."""
    return any(process.is_threaded for process in run.processes)


def _by_rank(processes: Iterable[ProcessCounts]) -> dict[int, list[ProcessCounts]]:
    """The processes with I/O; those that are not ranks are -1."""
    found: dict[int, list[ProcessCounts]] = {}
    for process in processes:
        if own_files(process) or process.has_unlisted:
            found.setdefault(-1 if process.rank is None else process.rank, []).append(process)
    return found


def _of_rank(ours: Sequence[ProcessCounts], theirs: Sequence[ProcessCounts], where: str) -> list[str]:
    if len(ours) != len(theirs):
        return [f"{where}processes with I/O: {len(ours)} in the application, {len(theirs)} in the kernel"]
    if len(ours) == 1:
        return _of_process(ours[0], theirs[0], where)
    left = Counter(map(_signature, theirs))
    left.subtract(Counter(map(_signature, ours)))
    if any(left.values()):
        return [f"{where}the I/O of its {len(ours)} processes differs"]
    return [line for process in ours for line in _unproven(process, where)]


def _signature(process: ProcessCounts) -> tuple[object, ...]:
    files = tuple((file.path, file.layer, *_values(file), file.operations, file.order) for file in own_files(process))
    return (process.is_threaded, process.has_unlisted, process.order, files)


def _values(file: FileCounts) -> tuple[object, ...]:
    return tuple(getattr(file.counts, name) for name in _COMPARED)


def _unproven(process: ProcessCounts, where: str) -> list[str]:
    if process.has_unlisted:
        return [f"{where}more files than can be compared"]
    return [] if process.order else [f"{where}the order of the I/O was not recorded"]


def _of_process(ours: ProcessCounts, theirs: ProcessCounts, where: str) -> list[str]:
    found = _unproven(ours, where) or _unproven(theirs, where)
    one, other = ({(file.layer, file.path): file for file in own_files(process)} for process in (ours, theirs))
    is_ordered = not (ours.is_threaded or theirs.is_threaded)
    for key in [*one, *(key for key in other if key not in one)]:
        name = f"{where}{LAYER_NAMES[key[0]]} {visible(key[1]) or 'file'}"
        if key not in other:
            found.append(f"{name}: used by the application only")
        elif key not in one:
            found.append(f"{name}: used by the kernel only")
        else:
            found += _of_file(one[key], other[key], name, is_ordered=is_ordered)
    if not found and ours.is_threaded != theirs.is_threaded:
        return [f"{where}only one of application and kernel makes I/O in several threads"]
    if not found and is_ordered and (list(one) != list(other) or ours.order != theirs.order):
        return [f"{where}the order of operations on several files differs"]
    return found


def _of_file(ours: FileCounts, theirs: FileCounts, name: str, *, is_ordered: bool) -> list[str]:
    found = [
        f"{name}: {field.replace('_', ' ')} {_text(one)} in the application, {_text(other)} in the kernel"
        for field, one, other in zip(_COMPARED, _values(ours), _values(theirs), strict=True)
        if one != other
    ]
    if not found and ours.operations != theirs.operations:
        return [f"{name}: offsets, sizes or modes of operations differ"]
    if not found and is_ordered and ours.order != theirs.order:
        return [f"{name}: the order of operations differs"]
    return found


def _text(value: object) -> str:
    return "/".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _of_left(ours: Mapping[str, int], theirs: Mapping[str, int]) -> list[str]:
    found = []
    for name in sorted({*ours, *theirs}):
        one, other = ours.get(name), theirs.get(name)
        if one is None or other is None:
            found.append(f"{visible(name)}: left behind by the {'kernel' if one is None else 'application'} only")
        elif one != other:
            found.append(f"{visible(name)}: {one} bytes left by the application, {other} by the kernel")
    return found
