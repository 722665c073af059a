"""Functions of the program that only allocate memory and check the result: each call of them gives new memory.

Without this, everything that a program allocates through its own `xmalloc` would be one object.
"""

from luthier.io.kernel import tables
from luthier.io.kernel.flow import followed
from luthier.io.kernel.ir import CProgram, Effects, Function

_PLAIN = frozenset(["malloc", "calloc", "aligned_alloc", "valloc", "memalign"])
_MESSAGES = frozenset(["fprintf", "printf", "perror", "fputs", "puts", "fflush", "__errno_location", "strerror"])


def allocators(program: CProgram) -> set[str]:
    """The keys of such functions."""
    return {key for key, function in program.functions.items() if _is_allocator(program, function)}


def _is_allocator(program: CProgram, function: Function) -> bool:
    returned = set()
    for statement in function.statements:
        if statement.kind == "return":
            part = statement.parts.get("all", Effects())
            if len(part.reads) != 1 or part.calls or not part.reads[0].var or part.writes:
                return False
            returned.add(part.reads[0].var)
    if len(returned) != 1:
        return False
    variable = returned.pop()
    if not followed(program, variable) or program.variables[variable].is_parameter:
        return False
    parts = [
        part
        for statement in function.statements
        if statement.kind != "return"
        for part in statement.parts.values()
        if variable in part.names
    ]
    return bool(parts) and all(_is_harmless(part, variable) for part in parts)


def _is_harmless(part: Effects, variable: str) -> bool:
    """Whether a use of the returned pointer sets it to new memory, or only looks at it."""
    if any(place.var != variable for place in part.writes):
        return False
    if part.writes:
        return not any(place.var == variable for place in part.reads) and (
            (len(part.calls) == 1 and part.calls[0].name in _PLAIN and part.calls[0].target == variable)
            or not (part.calls or part.reads)
        )
    return all(call.name in _MESSAGES | tables.EXITS for call in part.calls)
