"""The loops of a kernel that do I/O, and which of them may be left early."""

from collections.abc import Iterator
from dataclasses import dataclass

from luthier.io.kernel import externals
from luthier.io.kernel.calls import Linked
from luthier.io.kernel.flow import Reaching, followed
from luthier.io.kernel.ir import LOOPS, Call, CProgram, Effects, Function, Statement
from luthier.io.kernel.layout import is_balanced
from luthier.io.kernel.options import KernelOptions
from luthier.io.kernel.slicing import Slice

MOST = 200
"""The number of loops that are looked at; the library that counts has room for 255."""
_LINES_ABOVE = 5000  # characters in which a directive above a statement is looked for


@dataclass(frozen=True, slots=True)
class KernelLoop:
    """A loop of the kernel that does I/O; `why_whole` tells why it cannot be left early, "" if it can."""

    number: int
    file: str
    line: int
    why_whole: str = ""


def loops_with_io(program: CProgram, linked: Linked, kept: Slice, options: KernelOptions) -> dict[int, KernelLoop]:
    """The loops of the kernel in which I/O happens, by their statements."""
    finder = _Finder(program, linked, kept, options)
    found: dict[int, KernelLoop] = {}
    for key in sorted(kept.functions & linked.reachable):
        function = program.functions[key]
        for statement in function.statements:
            if statement.kind in LOOPS and statement.index in kept.why and finder.does_io(statement.walk()):
                number = len(found) + 1
                why = f"it is not among the first {MOST} loops with I/O"
                why = why if number > MOST else finder.why_whole(function, statement)
                found[statement.index] = KernelLoop(number, function.file, statement.line, why)
    return found


def _around(statement: Statement) -> Iterator[Statement]:
    while statement.parent is not None:
        statement = statement.parent
        yield statement


def _has_directive(text: str, statement: Statement) -> bool:
    """Whether the line above a statement is a directive, or continues one."""
    before = text[max(0, statement.start - _LINES_ABOVE) : statement.start]
    lines = before.rstrip(" \t").removesuffix("\n").split("\n")
    first = len(lines) - 1
    while first > 0 and lines[first - 1].endswith("\\"):
        first -= 1
    above = lines[first].strip()
    return above.startswith("#") and "luthier" not in above


class _Finder:
    def __init__(self, program: CProgram, linked: Linked, kept: Slice, options: KernelOptions) -> None:
        self._program, self._linked, self._kept, self._options = program, linked, kept, options
        self._reaching: dict[str, Reaching] = {}
        self._users: dict[str, dict[str, list[tuple[Statement, Effects]]]] = {}
        self._doing = self._functions_with_io()

    def _functions_with_io(self) -> set[str]:
        """The functions that do I/O, or call one that does."""
        program, linked = self._program, self._linked
        found: set[str] = set()
        waiting = [key for key in linked.reachable if self._starts(program.functions[key].statements)]
        while waiting:
            key = waiting.pop()
            if key in found:
                continue
            found.add(key)
            sites = list(linked.callers.get(key, []))
            if key in program.address_taken:
                sites += linked.indirect
            waiting += [site.function for site in sites]
        return found

    def _starts(self, statements: list[Statement]) -> bool:
        return any(self._calls_io(part) for statement in statements for part in statement.parts.values())

    def _calls_io(self, part: Effects) -> bool:
        """Whether a function outside the sources is called that does I/O."""
        return any(
            call.key
            # A call through a pointer has no key.
            and call.key not in self._program.functions
            and self._why(call)
            for call in part.calls
        )

    def _why(self, call: Call) -> str:
        return externals.why_io(call, self._options, redirects=self._linked.redirects)

    def _part_does_io(self, part: Effects) -> bool:
        indirect = bool(self._doing & self._program.address_taken)
        return self._calls_io(part) or any(
            call.key in self._doing or (not call.key and indirect) for call in part.calls
        )

    def does_io(self, statements: list[Statement]) -> bool:
        """Whether one of these statements does I/O, in functions that it calls too."""
        return any(
            self._part_does_io(part)
            for statement in statements
            if statement.index in self._kept.why
            for part in statement.parts.values()
        )

    def why_whole(self, function: Function, loop: Statement) -> str:
        """Why a loop cannot be left early; "" if nothing in the text speaks against it."""
        if function.is_fixed:
            return "it is in a header"
        # A goto would enter the loop behind the place where its iterations are counted.
        if any(inner.kind == "label" for inner in loop.walk()):
            return "a jump leads into it"
        text = self._program.files[function.file]
        body = loop.children[0]
        if _has_directive(text, loop):
            return "a directive is above it"
        if function.has_threads and any(_has_directive(text, outer) for outer in _around(loop)):
            return "it is in a region of OpenMP or OpenACC"
        # With a directive between header and body, the marks would be in one of its branches only.
        if not is_balanced(text[loop.start : body.start]) or text[body.start] == "#":
            return "directives divide it"
        if any(self._part_does_io(part) for part in loop.parts.values()):
            return "its condition does I/O"
        return self._used_after(function, loop)

    def _used_after(self, function: Function, loop: Statement) -> str:
        """Whether a variable that decides when the loop ends is used after it."""
        inside = {inner.index for inner in loop.walk()}
        # After an early end these have other values than after all iterations.
        parts = [loop.parts[name] for name in ("cond", "any") if name in loop.parts]
        names = {place.var for part in parts for place in part.reads}
        for name in sorted(names & self._users_in(function).keys()):
            user = self._user_outside(function, loop, inside, name)
            if user is not None:
                variable = self._program.variables[name]
                return f"{variable.name}, which it changes, is used in line {user.line}"
        return ""

    def _users_in(self, function: Function) -> dict[str, list[tuple[Statement, Effects]]]:
        """The statements that are kept, without return, by the local variables that they name."""
        if function.key not in self._users:
            local = {key for key, variable in self._program.variables.items() if variable.function == function.key}
            found: dict[str, list[tuple[Statement, Effects]]] = {}
            self._users[function.key] = found
            for statement in function.statements:
                if statement.index in self._kept.why and statement.kind != "return":
                    for part in statement.parts.values():
                        for name in part.names & local:
                            found.setdefault(name, []).append((statement, part))
        return self._users[function.key]

    def _user_outside(self, function: Function, loop: Statement, inside: set[int], name: str) -> Statement | None:
        """The first statement outside of a loop that may use a value that a variable got in the loop."""
        users = ((user, part) for user, part in self._users_in(function)[name] if user.index not in inside)
        if followed(self._program, name):
            comes_from_loop = self._flow(function).comes_from(name, inside)
            return next((user for user, part in users if comes_from_loop(part)), None)
        # No flow to follow, because the address is taken: every later statement that names the variable counts.
        changes = any(
            name in {place.var for place in inner.writes}
            for statement in loop.walk()
            for inner in statement.parts.values()
        )
        return next((user for user, _ in users if user.start >= loop.end), None) if changes else None

    def _flow(self, function: Function) -> Reaching:
        if function.key not in self._reaching:
            self._reaching[function.key] = Reaching(self._program, function)
        return self._reaching[function.key]
