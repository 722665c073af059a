"""Calls: linking arguments with parameters, and the effects of functions outside the sources."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from luthier.errors import KernelRefusedError
from luthier.io.kernel import externals, tables
from luthier.io.kernel.allocators import allocators
from luthier.io.kernel.ir import Argument, Call, CProgram, Effects, Function, Statement, StorageSpot
from luthier.io.kernel.options import KernelOptions


@dataclass(slots=True)
class Linked:
    """What is known about the calls of the program once all units are read."""

    reachable: set[str] = field(default_factory=set)
    callers: dict[str, list[Statement]] = field(default_factory=dict)
    indirect: list[Statement] = field(default_factory=list)
    reads_content: str = ""  # what makes the content of written data matter elsewhere
    allocators: set[str] = field(default_factory=set)  # functions of the program that only allocate memory
    redirects: bool = False  # the standard output may be a file
    uncut: dict[int, str] = field(default_factory=dict)  # statement -> why its buffer was not cut


def link(program: CProgram, options: KernelOptions) -> Linked:
    """Give every call its effects; raise if something cannot be analysed soundly."""
    linked = Linked(reachable=_reachable(program), allocators=allocators(program))
    statements = [statement for key in sorted(linked.reachable) for statement in program.functions[key].statements]
    for statement in statements:
        for part in statement.parts.values():
            for call in part.calls:
                _refuse(program, statement, call)
                linked.reads_content = linked.reads_content or externals.reads_content(call)
                linked.redirects |= call.name in tables.REDIRECTIONS
                if call.key in program.functions:
                    linked.callers.setdefault(call.key, []).append(statement)
                elif not call.key:
                    linked.indirect.append(statement)
    _link_states(program)
    resolver = _Resolver(program, options, linked, _reads_errno(statements))
    for statement in statements:
        for part in statement.parts.values():
            for call in part.calls:
                resolver.resolve(statement, part, call)
    resolver.join_moved()
    # Records that are joined share fields, and these may hold pointers: a second time.
    _join_records(program)
    resolver.join_moved()
    resolver.follow_pointers()
    return linked


def _join_records(program: CProgram) -> None:
    """Storage that is used as more than one type of record: any of their fields may overlap."""
    memory, is_changed = program.memory, True
    while is_changed:
        is_changed = False
        for node in range(len(memory.parent)):
            if memory.find(node) != node or len(memory.records[node]) < 2:
                continue
            fields = [found for record in sorted(memory.records[node]) for found in program.stored_fields(record)]
            for other in fields[1:]:
                if memory.find(fields[0]) != memory.find(other):
                    memory.unify(fields[0], other)
                    is_changed = True


def _refuse(program: CProgram, statement: Statement, call: Call) -> None:
    what = "" if call.key in program.functions else externals.refused(call)
    if what:
        file = program.functions[statement.function].file
        raise KernelRefusedError(f"{file}:{call.line}: {call.name}: {what} is not supported; tune the program itself")


def _reachable(program: CProgram) -> set[str]:
    start = [key for key in program.functions if key == "c:@F@main"]
    if not start:
        raise KernelRefusedError("no function main in the sources; name all sources of the program")
    for declaration in program.declarations:
        # A function in a table outside of functions may be called through it.
        start += [name for name in declaration.effects.names if name in program.functions]
    found: set[str] = set()
    while start:
        key = start.pop()
        if key in found:
            continue
        found.add(key)
        for statement in program.functions[key].statements:
            for part in statement.parts.values():
                start += [name for name in part.names if name in program.functions]
    return found


def _reads_errno(statements: Iterable[Statement]) -> bool:
    return any(
        call.name == "__errno_location"
        for statement in statements
        for part in statement.parts.values()
        for call in part.calls
    )


def _link_states(program: CProgram) -> None:
    for variable in program.variables.values():
        state = tables.STATE_VARIABLES.get(variable.name)
        # Only the global of the C library, such as optarg; a local variable may have the same name.
        if state and variable.key == f"c:@{variable.name}":
            program.memory.unify(variable.node, state_node(program, state))


def state_node(program: CProgram, state: str) -> int:
    """The storage that represents a hidden state of the C library."""
    return program.fields.setdefault(f"state:{state}", program.memory.new())


class _Resolver:
    def __init__(self, program: CProgram, options: KernelOptions, linked: Linked, reads_errno: bool) -> None:
        self.program, self.memory, self.options, self.linked = program, program.memory, options, linked
        self.reads_errno = reads_errno
        self._followed: list[tuple[Effects, int, bool]] = []
        self._moved: list[tuple[int, int]] = []  # objects with the same content

    def follow_pointers(self) -> None:
        """Data behind the pointers in what a function is given is used as well."""
        for part, node, is_written in self._followed:
            root = self.memory.find(node)
            holders = [found for record in self.memory.records[root] for found in self.program.stored_fields(record)]
            for holder in {root, *map(self.memory.find, holders)}:
                if self.memory.holds_pointers[holder] and self.memory.target[holder] >= 0:
                    place = StorageSpot(self.memory.pointee(holder), whole=True, indexed=True)
                    part.reads.append(place)
                    part.writes += [place] if is_written else []

    def resolve(self, statement: Statement, part: Effects, call: Call) -> None:
        if call.key in self.program.functions:
            self._defined(part, call, self.program.functions[call.key])
        elif not call.key:
            for key in self._takers():
                self._defined(part, call, self.program.functions[key])
        else:
            self._external(statement, part, call)

    def _takers(self) -> list[str]:
        """The functions that a pointer to a function may point to."""
        return sorted(key for key in self.program.address_taken if key in self.program.functions)

    def _defined(self, part: Effects, call: Call, function: Function) -> None:
        for index, argument in enumerate(call.arguments):
            value = argument.value
            if not value:
                continue
            if value.neighbour:
                self.memory.neighbours[self.memory.find(value.node)].add(value.neighbour)
            # Passing an argument is an assignment to the parameter; further arguments are those of `...`.
            if index < len(function.parameters):
                parameter = self.program.variables[function.parameters[index]]
                self.memory.unify(self.memory.pointee(parameter.node), value.node)
            else:
                part.reads.append(StorageSpot(value.node, whole=True, indexed=True))
        # Each call of an allocator gives new storage; joined, all buffers of the program would be one.
        if function.key not in self.linked.allocators or not call.key:
            self.memory.unify(self.memory.pointee(function.result), call.result)

    def _external(self, statement: Statement, part: Effects, call: Call) -> None:
        for index, (argument, mode) in enumerate(zip(call.arguments, externals.modes(call), strict=True)):
            self._use(statement, part, call, index, argument, mode)
        self._callbacks(statement, call)
        self._result(call)
        state = tables.STATE_OF.get(call.name)
        if state:
            # Such as the state of rand(): the next call depends on this one.
            place = StorageSpot(state_node(self.program, state))
            part.reads.append(place)
            part.writes.append(place)
        if call.name in tables.SHARED_RESULTS:
            part.writes.append(StorageSpot(call.result, whole=True, indexed=True))
        if call.name == "putenv" and call.arguments[0].value:
            self.memory.unify(
                call.arguments[0].value.node, self.memory.pointee(state_node(self.program, "environment"))
            )
        if self.reads_errno:
            self._errno(part, call)

    def _errno(self, part: Effects, call: Call) -> None:
        node = state_node(self.program, "errno")
        if call.name == "__errno_location":
            self.memory.unify(call.result, node)
        elif externals.family(call) in ("posix", "unknown") or call.name.startswith("strto"):
            part.writes.append(StorageSpot(node))

    def _use(self, statement: Statement, part: Effects, call: Call, index: int, argument: Argument, mode: str) -> None:
        value = argument.value
        if not value or mode == ".":
            return
        # `&x` for a typed parameter is x alone; for void * it may be the beginning of an array.
        one_element = value.is_address_of and (not argument.untyped or self._is_single(call, index))
        if value.neighbour and not one_element:
            self.memory.neighbours[self.memory.find(value.node)].add(value.neighbour)
        places = [StorageSpot(value.node, whole=not one_element, indexed=not one_element)]
        # A pointer to pointers: what these point to is used too.
        if argument.deep and externals.family(call) != "mpi":
            places.append(StorageSpot(self.memory.pointee(value.node), whole=True, indexed=True))
        group = externals.family(call)
        if group in ("hdf5", "unknown") or not argument.untyped:
            self._followed.append((part, value.node, group == "unknown" or call.name.startswith("getopt")))
        if mode == "b" and self._can_cut(statement, argument):
            part.unneeded += places
        elif mode in "rmb":
            part.reads += places
        if mode in "wm":
            part.writes += places

    def _is_single(self, call: Call, index: int) -> bool:
        """Whether MPI transfers one element only: the argument after the buffer is the constant 1."""
        after = call.arguments[index + 1].value.constant if index + 1 < len(call.arguments) else None
        return call.name.startswith("MPI_") and after == 1

    def _can_cut(self, statement: Statement, argument: Argument) -> bool:
        if self.options.buffer_content != "cut":
            return False
        if argument.deep or argument.value.neighbour:
            self.linked.uncut[statement.index] = "it holds pointers, or is part of a struct"
            return False
        return True

    def _callbacks(self, statement: Statement, call: Call) -> None:
        """Functions that are passed along may be called with any of the other arguments, and what is behind them."""
        is_unknown = externals.family(call) == "unknown"
        called: set[str] = set()
        for argument in call.arguments:
            called |= {key for key in argument.value.functions if key in self.program.functions}
            # Perhaps a pointer to a function out of a variable: then any of them may be called.
            is_pointer = not argument.points and not argument.value.functions and not argument.opaque
            if argument.value and (is_pointer or is_unknown):
                called |= set(self._takers())
        given = [argument.value.node for argument in call.arguments if argument.value and argument.points]
        if is_unknown:
            given += [self.memory.pointee(holder) for node in given for holder in self._holders(node)]
        for key in called:
            self.linked.callers.setdefault(key, []).append(statement)
            for parameter in self.program.functions[key].parameters:
                node = self.memory.pointee(self.program.variables[parameter].node)
                for other in given:
                    self.memory.unify(node, other)

    def _holders(self, node: int) -> list[int]:
        """The storage in an object that may hold pointers: itself, and fields."""
        root = self.memory.find(node)
        found = [inner for record in sorted(self.memory.records[root]) for inner in self.program.stored_fields(record)]
        return [one for one in [root, *found] if self.memory.holds_pointers[self.memory.find(one)]]

    def _result(self, call: Call) -> None:
        """What the returned pointer, and pointers stored through arguments, point to."""
        memory, name = self.memory, call.name
        values = [argument.value for argument in call.arguments]
        if call.gives_pointer and name not in tables.GIVES_NEW:
            self._given_back(call)
        if name in tables.POINTER_INTO_FIRST and len(values) > 1 and values[0] and values[1]:
            memory.unify(memory.pointee(values[1].node), values[0].node)
        if name in tables.MOVES_CONTENT and len(values) > 1 and values[0] and values[1]:
            memory.unify(memory.pointee(values[0].node), memory.pointee(values[1].node))
            self._moved.append((values[0].node, values[1].node))
        kept = self._kept_pointer(call)
        if kept >= 0:
            memory.unify(call.result, memory.pointee(kept))
            if values[0] and values[0].node != kept:
                memory.unify(call.result, values[0].node)
        # They keep pointers to the arguments: optarg is one of argv.
        if name in ("getopt", "getopt_long", "getopt_long_only") and len(values) > 1 and values[1]:
            memory.unify(memory.pointee(state_node(self.program, "options")), memory.pointee(values[1].node))
        # A function that is not known may return any pointer that it got.
        if externals.family(call) == "unknown":
            for argument in call.arguments:
                if argument.value and not argument.opaque:
                    memory.unify(call.result, argument.value.node)

    def _given_back(self, call: Call) -> None:
        """What a returned pointer points to: a hidden state or buffer of the C library, or data of an argument."""
        state = tables.STATE_OF.get(call.name) or tables.SHARED_RESULTS.get(call.name)
        if state and call.name != "strtok":
            self.memory.unify(call.result, self.memory.pointee(state_node(self.program, state)))
            return
        for argument in call.arguments:
            if argument.value and argument.points and not argument.opaque:
                self.memory.unify(call.result, argument.value.node)

    def join_moved(self) -> None:
        """Pointers that are copied with the objects that hold them, whatever the types, or byte by byte."""
        for one, other in self._moved:
            targets = [self.memory.pointee(holder) for holder in [*self._holders(one), *self._holders(other)]]
            is_same = self.memory.records[self.memory.find(one)] == self.memory.records[self.memory.find(other)]
            for target in [] if is_same else targets:
                self.memory.unify(self.memory.pointee(one), target)
        for node in self.program.byte_wise:
            for holder in self._holders(node):
                self.memory.unify(self.memory.pointee(state_node(self.program, "bytes")), self.memory.pointee(holder))

    def _kept_pointer(self, call: Call) -> int:
        """Where strtok, strtok_r and strsep keep the pointer that they return later, or -1."""
        if call.name == "strtok":
            return state_node(self.program, "tokens")
        at = {"strtok_r": 2, "strsep": 0}.get(call.name)
        return call.arguments[at].value.node if at is not None and at < len(call.arguments) else -1
