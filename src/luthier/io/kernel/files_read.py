"""Values that go through a file: written, and read again by the same program."""

from collections.abc import Sequence

from luthier.io.kernel import externals, tables
from luthier.io.kernel.calls import Linked
from luthier.io.kernel.ir import Call, CProgram, Statement, StorageSpot
from luthier.io.kernel.options import KernelOptions
from luthier.io.kernel.slicing import Slice

_MAIN = "c:@F@main"


def line_read_back(
    program: CProgram, linked: Linked, kept: Slice, options: KernelOptions, writers: Sequence[Statement]
) -> int:
    """A line that reads from a file what is needed, unless all such lines are before all `writers`; else 0."""
    readers = [
        program.statements[index]
        for index in sorted(kept.why)
        if any(
            _reads(program, call, options) and _is_needed(program, kept, call)
            for part in program.statements[index].parts.values()
            for call in part.calls
        )
    ]
    if not readers or not writers:
        return 0
    order = _Order(program, linked)
    first = min(order.places(writer)[0] for writer in writers)
    return next((reader.line for reader in readers if order.places(reader)[1] >= first), 0)


def _reads(program: CProgram, call: Call, options: KernelOptions) -> bool:
    """Whether a call may read a file that the program has written."""
    if call.key in program.functions or any(argument.value.name == "stdin" for argument in call.arguments):
        return False
    if call.name in tables.READS | tables.READS_TEXT or call.name.startswith(tables.READS_OF_LIBRARIES):
        return True
    return externals.family(call) == "unknown" and bool(externals.why_io(call, options))


def _is_needed(program: CProgram, kept: Slice, call: Call) -> bool:
    """Whether the flow of control depends on what is read, or anything that is kept uses it."""
    if call.name in tables.READS_TEXT:
        # The content tells where lines and numbers end.
        return True
    return any(
        location in kept.needed
        for argument, mode in zip(call.arguments, externals.modes(call), strict=True)
        if mode in "wm" and argument.value
        for location in program.locations(StorageSpot(argument.value.node, whole=True, indexed=True))
    )


class _Order:
    """Which of the statements of the body of `main` may execute a statement, directly or through calls."""

    def __init__(self, program: CProgram, linked: Linked) -> None:
        self._program, self._linked = program, linked
        self._main = program.functions[_MAIN]
        self._jumps = any(one.kind == "goto" or one.targets for one in self._main.statements)

    def places(self, statement: Statement) -> tuple[int, int]:
        """The bytes where the first of them begins and the last one begins; all of main if that is not known."""
        found: set[int] = set()
        waiting, seen = [statement], {_MAIN}
        while waiting:
            one = waiting.pop()
            if one.function == _MAIN:
                found.add(self._outermost(one).start)
            elif one.function not in seen:
                seen.add(one.function)
                waiting += self._linked.callers.get(one.function, [])
                if one.function in self._program.address_taken:
                    found |= {self._main.start, self._main.end}
        # With a goto in main, the order of the text says nothing.
        if self._jumps or not found:
            return self._main.start, self._main.end
        return min(found), max(found)

    def _outermost(self, statement: Statement) -> Statement:
        while statement.parent is not None and statement.parent is not self._main.body:
            statement = statement.parent
        return statement
