"""The slice: from the calls that do I/O backward to everything they need, until nothing is added."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from luthier.errors import InvalidInputError, KernelRefusedError
from luthier.io.kernel import externals, tables
from luthier.io.kernel.calls import Linked
from luthier.io.kernel.communication import Messages
from luthier.io.kernel.flow import Reaching, followed
from luthier.io.kernel.ir import LOOPS, Call, CProgram, Effects, Function, Statement, StorageSpot
from luthier.io.kernel.options import KernelOptions

_PRAGMA = re.compile(r"^[ \t]*#[ \t]*pragma[ \t]+luthier\b[ \t]*([^\n]*)", re.M)
_WORD = re.compile(r"[A-Za-z_]\w*")


def _pragmas_above(text: str, offset: int) -> str:
    """The lines of pragmas directly above a statement, with continued lines."""
    found: list[str] = []
    lines = text[max(0, offset - 5000) : offset].split("\n")[:-1]
    for line in reversed(lines):
        if not line.lstrip().startswith("#") and not line.rstrip().endswith("\\"):
            break
        found.append(line)
    return "\n".join(found)


@dataclass(slots=True)
class Slice:
    """What is kept: statements with the reason, functions, and declarations outside functions."""

    why: dict[int, str] = field(default_factory=dict)
    functions: set[str] = field(default_factory=set)
    names: set[str] = field(default_factory=set)
    needed: dict[int, int] = field(default_factory=dict)  # classes of storage whose content a line needs
    bare: set[int] = field(default_factory=set)  # return statements whose value is not used
    starts: list[tuple[str, int, str]] = field(default_factory=list)  # file, line, reason of each I/O call


class Slicer:
    """Marks statements until nothing is added. Each statement, function and class of storage is visited once."""

    def __init__(self, program: CProgram, linked: Linked, options: KernelOptions) -> None:
        self._program, self._linked, self._options = program, linked, options
        self.slice = Slice()
        self._waiting: list[Statement] = []
        # By class of storage: the statements that write it (True: it is local to their function), free or complete it.
        self._writers: dict[int, list[tuple[Statement, bool]]] = {}
        self._frees: dict[int, list[Statement]] = {}
        self._completions: dict[int, list[Statement]] = {}
        # By loop or switch: the jumps and labels that belong to it.
        self._jumps: dict[int, list[Statement]] = {}
        self._reaching: dict[str, Reaching] = {}
        # Functions all of whose calls are kept.
        self._called: set[str] = set()
        self._taken_by: dict[str, list[Statement]] = {}
        self._declared = {key: declaration for declaration in program.declarations for key in declaration.keys}
        self._messages = Messages(program, linked)
        for key in sorted(linked.reachable):
            for statement in program.functions[key].statements:
                self._index(statement)

    def run(self) -> Slice:
        """Start from the I/O calls and the marked regions; return all that is kept."""
        # Rajesh et al. 2024, III-B: mark the I/O calls, then all that they depend on and all that contains them.
        self._keep_function("c:@F@main")
        for key in sorted(self._linked.reachable):
            for statement in self._program.functions[key].statements:
                self._start(statement)
        self._start_marked()
        while self._waiting:
            self._visit(self._waiting.pop())
        return self.slice

    # Tables

    def _index(self, statement: Statement) -> None:
        program = self._program
        for part in statement.parts.values():
            for place in part.writes:
                # `Reaching` knows the definitions of followed variables exactly.
                if place.var and followed(program, place.var):
                    continue
                for location in program.locations(place):
                    is_local = program.memory.owners[location] == {statement.function}
                    self._writers.setdefault(location, []).append((statement, is_local))
            for call in part.calls:
                self._index_call(statement, call)
            for name in part.names & program.address_taken:
                self._taken_by.setdefault(name, []).append(statement)
        # A loop or switch that is kept without its jumps and labels would do something else.
        if statement.kind in ("break", "continue", "atomic", "case") and statement.jumps | (statement.kind == "case"):
            for target in self._targets(statement):
                self._jumps.setdefault(target.index, []).append(statement)

    def _index_call(self, statement: Statement, call: Call) -> None:
        find = self._program.memory.find
        if call.key in self._program.functions or not call.arguments:
            return
        if call.name in tables.RELEASES and call.arguments[0].value:
            self._frees.setdefault(find(call.arguments[0].value.node), []).append(statement)
        elif call.name.startswith(tables.COMPLETIONS):
            for argument in call.arguments:
                if argument.value and not argument.opaque:
                    self._completions.setdefault(find(argument.value.node), []).append(statement)

    def _targets(self, statement: Statement) -> Iterable[Statement]:
        """The loop or switch that a jump or a label belongs to; a macro may jump out of any around it."""
        outer = statement.parent
        while outer is not None:
            if outer.kind in LOOPS or outer.kind == "switch":
                fits = {"continue": outer.kind in LOOPS, "case": outer.kind == "switch"}.get(statement.kind, True)
                if fits:
                    yield outer
                    if statement.kind != "atomic":
                        return
            outer = outer.parent

    # Starts

    def _start(self, statement: Statement) -> None:
        file = self._program.functions[statement.function].file
        for part in statement.parts.values():
            for call in part.calls:
                if call.key in self._program.functions or not call.key:
                    continue
                why = externals.why_io(call, self._options, redirects=self._linked.redirects)
                if why:
                    self.slice.starts.append((file, call.line, why))
                # Without these the kernel would not start, end, or keep the order of the ranks.
                why = why or externals.why_always(call, self._options)
                if why:
                    self._keep_called(statement, why)

    def _start_marked(self) -> None:
        for path, text in self._program.files.items():
            for pragma in _PRAGMA.finditer(text):
                line = text.count("\n", 0, pragma.start()) + 1
                if pragma.group(1).strip() != "keep":
                    raise InvalidInputError(f"{path}:{line}: unknown pragma; write: #pragma luthier keep")
                self._keep_marked(path, line, pragma.end())

    def _keep_marked(self, path: str, line: int, offset: int) -> None:
        functions = [function for function in self._program.functions.values() if function.file == path]
        around = next((function for function in functions if function.start <= offset < function.end), None)
        # Above a function, the pragma keeps all of the function; inside, only the next statement.
        if around is None:
            after = [function for function in functions if function.start >= offset]
            marked = min(after, key=lambda function: function.start).body if after else None
        else:
            inside = [statement for statement in around.statements if statement.start >= offset]
            marked = min(inside, key=lambda statement: statement.start, default=None)
        if marked is None or marked.function not in self._linked.reachable:
            raise InvalidInputError(
                f"{path}:{line}: no statement that is reached from main follows the pragma; move it"
            )
        for statement in marked.walk():
            self._keep_called(statement, "marked by #pragma luthier keep")

    # Marks

    def _keep(self, statement: Statement, why: str) -> None:
        # A return that was kept without its value is visited again for the value.
        if statement.index not in self.slice.why or statement.index in self.slice.bare:
            self.slice.bare.discard(statement.index)
            self.slice.why[statement.index] = why
            self._waiting.append(statement)

    def _keep_bare(self, statement: Statement, why: str) -> None:
        """Keep a return statement, but not its value."""
        if statement.index not in self.slice.why:
            self.slice.bare.add(statement.index)
            self.slice.why[statement.index] = why
            self._waiting.append(statement)

    def _need_result(self, key: str) -> None:
        """Keep the values that a function returns."""
        for statement in self._program.functions[key].statements:
            if statement.kind == "return":
                self._keep(statement, "returns a value that is used")

    def _keep_called(self, statement: Statement, why: str) -> None:
        """Keep a statement with an effect outside its function: all calls of the function are needed too."""
        self._keep(statement, why)
        waiting = [statement.function]
        while waiting:
            key = waiting.pop()
            if key in self._called:
                continue
            self._called.add(key)
            name = self._program.functions[key].name
            sites = list(self._linked.callers.get(key, []))
            if key in self._program.address_taken:
                sites += self._taken_by.get(key, []) + self._linked.indirect
            for site in sites:
                self._keep(site, f"calls {name}, which is needed")
                waiting.append(site.function)

    def _keep_function(self, key: str) -> None:
        if key in self.slice.functions:
            return
        self.slice.functions.add(key)
        function = self._program.functions[key]
        self._check_variadic(function)
        # The value of main is the exit status; a caller through a pointer may use any value.
        needs_value = function.returns_record or function.name == "main" or key in self._program.address_taken
        for statement in function.statements:
            if function.is_fixed:
                self._keep(statement, "part of a function in a header")
            elif statement.kind == "return" and not needs_value:
                self._keep_bare(statement, "ends the function")
            elif statement.kind in ("return", "goto") or (statement.kind == "atomic" and statement.jumps):
                self._keep(statement, "ends the function or jumps")
            elif statement.kind == "label":
                self._keep(statement, "is the target of a jump")
            elif statement.kind == "declaration" and statement.label == "type":
                self._keep(statement, "declares a type")

    def _check_variadic(self, function: Function) -> None:
        if not function.is_variadic:
            return
        for statement in function.statements:
            for part in statement.parts.values():
                for call in part.calls:
                    if call.name.startswith("v") and call.name.endswith("scanf"):
                        self._refuse_variadic(function)
        text = self._program.files.get(function.file, "")[function.start : function.end]
        if function.is_fixed or re.search(r"\bva_arg\b", text):
            self._refuse_variadic(function)

    def _refuse_variadic(self, function: Function) -> None:
        raise KernelRefusedError(
            f"{function.file}:{function.line}: {function.name}: a function with a variable number of arguments that "
            "reads them itself is not supported; tune the program itself"
        )

    # Dependences

    def _visit(self, statement: Statement) -> None:
        self._keep_function(statement.function)
        if statement.parent is not None:
            self._keep(statement.parent, f"contains line {statement.line}, which is kept")
        for jump in self._jumps.get(statement.index, []):
            self._keep(jump, f"a label or jump of the {statement.kind} in line {statement.line}")
        # Clauses such as `private(x)` name variables that must stay declared.
        if self._program.functions[statement.function].has_threads:
            self._keep_clauses(statement)
        if statement.index in self.slice.bare:
            return
        for part in statement.parts.values():
            self._visit_part(statement, part)
        for partner in self._messages.partners(statement):
            self._keep_called(partner, f"communicates with line {statement.line}")

    def _keep_clauses(self, statement: Statement) -> None:
        """Keep the variables that the clauses of a pragma above the statement mention."""
        function = self._program.functions[statement.function]
        text = self._program.files.get(function.file, "")
        words = set(_WORD.findall(_pragmas_above(text, statement.start)))
        for variable in self._program.variables.values():
            if variable.name in words and variable.function in ("", function.key):
                self._keep_name(variable.key, statement.line)

    def _visit_part(self, statement: Statement, part: Effects) -> None:
        program = self._program
        for name in part.names:
            self._keep_name(name, statement.line)
        for place in part.reads:
            self._need(statement, part, place)
        for call in part.calls:
            if call.key in program.functions and not self._is_unused(call):
                self._need_result(call.key)
            # A call through a pointer may reach every function whose address is taken.
            if not call.key:
                for key in sorted(program.address_taken & program.functions.keys()):
                    self._keep_function(key)
            if call.name in tables.ALLOCATORS or call.key in self._linked.allocators:
                self._keep_frees(statement, call)
        # A request, a communicator or a type that is made must be completed or released; see COMPLETIONS.
        made = part.writes if statement.kind != "declaration" or part.calls else []
        for place in made:
            for location in program.locations(place):
                for done in self._completions.get(location, []):
                    self._keep_called(done, f"completes or releases what line {statement.line} made")

    def _is_unused(self, call: Call) -> bool:
        """Whether nothing but a followed variable gets the value; its uses decide then."""
        return call.target is not None and (not call.target or followed(self._program, call.target))

    def _keep_frees(self, statement: Statement, call: Call) -> None:
        memory = self._program.memory
        nodes = [call.result]
        if call.name == "posix_memalign" and call.arguments[0].value:
            nodes = [memory.pointee(call.arguments[0].value.node)]
        for node in nodes:
            for release in self._frees.get(memory.find(node), []):
                self._keep_called(release, f"frees what line {statement.line} allocated")

    def _keep_name(self, name: str, line: int) -> None:
        """Keep the declaration of a variable or function that is mentioned."""
        program = self._program
        if name in program.functions:
            self._keep_function(name)
        variable = program.variables.get(name)
        if variable is not None:
            for index in variable.declared_by:
                self._keep(program.statements[index], f"declares {variable.name}, used in line {line}")
        if name in self.slice.names:
            return
        self.slice.names.add(name)
        declared = self._declared.get(name)
        if declared is not None:
            for inner in declared.effects.names:
                self._keep_name(inner, declared.line)

    def _need(self, statement: Statement, part: Effects, place: StorageSpot) -> None:
        program = self._program
        if place.var and followed(program, place.var):
            name = program.variables[place.var].name
            for definition in self._flow(statement.function).new_definitions(part, place.var):
                self._keep(definition, f"sets {name}, used in line {statement.line}")
                self._need_assigned(definition, place.var)
            return
        # Other storage has no flow: all that writes it anywhere is needed, once for the whole program.
        for location in program.locations(place):
            if location in self.slice.needed:
                continue
            self.slice.needed[location] = statement.line
            for writer, is_local in self._writers.get(location, []):
                why = f"writes data that line {statement.line} reads"
                if is_local:
                    self._keep(writer, why)
                else:
                    self._keep_called(writer, why)

    def _need_assigned(self, definition: Statement, variable: str) -> None:
        for part in definition.parts.values():
            for call in part.calls:
                if call.target == variable and call.key in self._program.functions:
                    self._need_result(call.key)

    def _flow(self, key: str) -> Reaching:
        if key not in self._reaching:
            self._reaching[key] = Reaching(self._program, self._program.functions[key])
        return self._reaching[key]
