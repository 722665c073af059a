"""Functions whose definitions are not among the sources: which do I/O, what they do with their arguments.

By default a pointer to constant data is read, and any other pointer is read and written; the tables hold the
exceptions.
"""

from fnmatch import fnmatchcase
from pathlib import PurePath

from luthier.io.kernel import tables
from luthier.io.kernel.ir import Call
from luthier.io.kernel.options import KernelOptions


def family(call: Call) -> str:
    """hdf5, mpi, posix, quiet (does no I/O) or unknown."""
    name, header = call.name, PurePath(call.header).name
    if call.is_project:
        return "unknown"
    if header.startswith(("H5", "hdf5")):
        return "hdf5"
    if header == "mpi.h":
        return "mpi"
    if name.startswith("__builtin_") or name in tables.STATE_OF or name in tables.EXITS or not call.header:
        return "quiet"
    if name in tables.LOUD_IN_QUIET or (header in tables.LOUD_HEADERS and name not in tables.QUIET_IN_LOUD):
        return "posix"
    if header in tables.QUIET_HEADERS or name in tables.QUIET_IN_LOUD:
        return "quiet"
    return "unknown"


def why_io(call: Call, options: KernelOptions, *, redirects: bool = False) -> str:
    """Why a call is where the analysis starts, or "" if it is not.

    With `redirects` the standard output may be a file.
    """
    name = call.name
    if any(fnmatchcase(name, pattern) for pattern in options.compute_calls):
        return ""
    if any(fnmatchcase(name, pattern) for pattern in options.io_calls):
        return f"{name} is named as I/O"
    group = family(call)
    if group == "unknown":
        return f"{name} is not defined in the sources and may do I/O"
    if group == "posix" and "posix" in options.families:
        return "" if _is_terminal(call) and not redirects else f"{name} does I/O"
    if redirects and name in tables.TO_OUTPUT:
        return f"{name} prints to the standard output, which is redirected"
    if group == "hdf5" and "hdf5" in options.families:
        return f"{name} is a call of HDF5"
    if group == "mpi" and name.startswith("MPI_File_") and "mpi-io" in options.families:
        return f"{name} is a call of MPI-IO"
    return ""


def why_always(call: Call, options: KernelOptions) -> str:
    """Why a call is kept although it does no I/O, or ""."""
    name = call.name
    if family(call) == "mpi" and name.startswith(tables.ALWAYS):
        return f"{name} sets up or ends MPI"
    if name == "MPI_Barrier":
        return "MPI_Barrier orders the I/O of the ranks"
    if is_point_to_point(call) and (_count(call) == 0 or (_count(call) == 1 and _has_basic_type(call))):
        return f"{name} with one element may order the I/O of the ranks"
    if name in tables.EXITS or (call.noreturn and not call.is_project):
        if options.failures == "drop" and _is_failure(call):
            return ""
        return f"{name} ends the program"
    return ""


def _count(call: Call) -> int | None:
    """How many elements a message has, if it is a constant."""
    return call.arguments[1].value.constant if len(call.arguments) > 1 and "robe" not in call.name else None


def _has_basic_type(call: Call) -> bool:
    """Whether the elements of a message are of a type of MPI itself, not one that the program made of many elements."""
    given = call.arguments[2].value if len(call.arguments) > 2 else None  # buffer, count, type
    return given is None or given.is_address_of or given.constant is not None


def _is_failure(call: Call) -> bool:
    status = call.arguments[0].value.constant if call.arguments else None
    return call.name in tables.FAILURES or (call.name in tables.EXITS and status not in (None, 0))


def _is_terminal(call: Call) -> bool:
    """Whether the call prints to the terminal."""
    at = tables.TO_STREAM.get(call.name)
    if at is not None and at < len(call.arguments):
        return call.arguments[at].value.name in tables.TERMINALS
    return call.name in ("write", "dprintf") and bool(call.arguments) and call.arguments[0].value.constant in (1, 2)


def refused(call: Call) -> str:
    """What makes the call unsuitable for the analysis, or ""."""
    found = next((what for what, names in tables.REFUSED.items() if call.name in names), "")
    if not found:
        found = next((what for what, names in tables.REFUSED_PREFIXES.items() if call.name.startswith(names)), "")
    if call.name == "signal" and call.arguments[1:] and call.arguments[1].value.constant is None:
        return "a signal handler"
    return found


def modes(call: Call) -> list[str]:
    """What the call does with the data behind each argument: r, w, m, b or "." (nothing)."""
    table = tables.MODES.get(call.name, "")
    if call.name.startswith("MPI_") and call.arguments and call.arguments[0].value.constant is not None:
        table = table.replace("w", "m")  # MPI_IN_PLACE: the result replaces the data
    found = []
    for index, argument in enumerate(call.arguments):
        letter = table[index] if index < len(table) else "*"
        if argument.opaque and letter in "*m":
            letter = "."
        if letter == "*":
            letter = ("r" if argument.constant else "m") if argument.points else "."
            if index >= call.variadic_from and call.name in tables.PRINTS:
                is_text = argument.untyped or argument.constant
                letter = ("r" if is_text else "m") if argument.points else "."  # m: %n stores a number
            elif index >= call.variadic_from and call.name in tables.SCANS:
                letter = "w" if argument.points else "."
        found.append(letter)
    return found


def is_point_to_point(call: Call) -> bool:
    """Whether a message is sent, received or looked at."""
    return family(call) == "mpi" and call.name.startswith(tables.POINT_TO_POINT)


def is_collective(call: Call) -> bool:
    """Whether all ranks take part."""
    return family(call) == "mpi" and call.name.startswith(tables.COLLECTIVES)


def tags(call: Call) -> list[int | None]:
    """The tags of a message, None for one that is not a constant."""
    places = tables.TAGS.get(call.name, (4,))
    values = [call.arguments[at].value.constant if at < len(call.arguments) else None for at in places]
    return [value if value is not None and value >= 0 else None for value in values]  # MPI_ANY_TAG is negative


def reads_content(call: Call) -> str:
    """What a call does with data that is written later, other than storing it: then its content matters; or ""."""
    if call.name.startswith(tables.FILTERS):
        return "a filter makes the written size depend on the values"
    if call.name.startswith(tables.TYPES_WITH_ADDRESSES):
        return "a type of HDF5 with references or of variable length makes HDF5 look at the values"
    if call.name in tables.CHANNELS:
        return f"{call.name} may let another process, or memory, have the values"
    return ""
