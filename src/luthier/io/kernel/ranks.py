"""Which values may differ between the ranks of an MPI program, and so which statements not all ranks may reach."""

from luthier.io.kernel import externals, tables
from luthier.io.kernel.calls import Linked
from luthier.io.kernel.flow import followed
from luthier.io.kernel.ir import JUMPS, Call, CProgram, Effects, Statement, StorageSpot

_SAME_EVERYWHERE = (
    "MPI_Allreduce",
    "MPI_Bcast",
    "MPI_Allgather",
    "MPI_Comm_size",
    "MPI_Init",
    "MPI_Type_",
    "MPI_Info_",
)
_RESULTS = {"MPI_Bcast": 0, "MPI_Allreduce": 1, "MPI_Allgather": 3}  # which argument gets the common data
_OF_ONE_PROCESS = frozenset(["getpid", "gethostname", "clock", "time", "gettimeofday", "clock_gettime", "uname"])


class Ranks:
    """Forward flow of what differs between ranks, to a fixed point."""

    def __init__(self, program: CProgram, linked: Linked) -> None:
        self._program, self._linked = program, linked
        self._differs: set[int | str] = set()
        self._returns: set[str] = set()
        self._parted: set[int] = set()  # control statements whose condition differs
        self._entered: set[str] = set()  # functions that not all ranks may call
        self._left: set[str] = set()  # functions that some ranks may leave or jump in earlier
        self._places: dict[int, list[int | str]] = {}
        self._broadcasts: dict[int, list[Statement]] = {}
        statements = [found for key in sorted(linked.reachable) for found in program.functions[key].statements]
        for statement in statements:
            self._find_broadcasts(statement)
        # To a fixed point: a statement may pass on to those before it, by loops and calls.
        while sum(self._visit(statement) for statement in statements):
            pass

    def may_be_missed(self, statement: Statement) -> bool:
        """Whether some ranks may execute the statement while others do not."""
        function = statement.function
        return function in self._entered or function in self._left or self._under_parted(statement)

    def _under_parted(self, statement: Statement) -> bool:
        outer = statement.parent
        while outer is not None:
            if outer.index in self._parted:
                return True
            outer = outer.parent
        return False

    def _visit(self, statement: Statement) -> bool:
        """Propagate through one statement; whether anything was new."""
        before = len(self._differs) + len(self._returns) + len(self._parted) + len(self._entered) + len(self._left)
        is_missed = statement.function in self._entered or self._under_parted(statement)
        for name, part in statement.parts.items():
            differs = is_missed or self._reads_differ(part)
            # A macro may hide a condition.
            if differs and (name in ("cond", "any") or statement.kind == "atomic"):
                self._parted.add(statement.index)
            self._spread(statement, part, differs=differs, is_missed=is_missed)
        # A return at the end of a function changes nothing: all ranks leave there.
        if is_missed and (statement.kind in JUMPS or statement.jumps) and not self._is_last(statement):
            self._left.add(statement.function)
        after = len(self._differs) + len(self._returns) + len(self._parted) + len(self._entered) + len(self._left)
        return after != before

    def _is_last(self, statement: Statement) -> bool:
        body = self._program.functions[statement.function].body
        return body is not None and bool(body.children) and body.children[-1] is statement

    def _reads_differ(self, part: Effects) -> bool:
        if any(call.key in self._returns for call in part.calls):
            return True
        return any(key in self._differs for place in part.reads for key in self._keys(place))

    def _spread(self, statement: Statement, part: Effects, *, differs: bool, is_missed: bool) -> None:
        own = [call for call in part.calls if call.key not in self._program.functions]
        # What MPI_Allreduce and the like give is the same on all ranks, whatever went in.
        is_same = bool(own) and all(call.name.startswith(_SAME_EVERYWHERE) for call in own)
        starts = any(self._is_source(call) for call in own)
        if (differs and not is_same) or is_missed or starts:
            written = {key for place in part.writes for key in self._keys(place)}
            is_of_mpi = starts and any(externals.family(call) == "mpi" for call in own)
            self._differs.update(key for key in written if is_of_mpi or not self._is_made_equal(key, statement))
            if statement.kind == "return" or statement.kind == "atomic":
                self._returns.add(statement.function)
        for call in part.calls:
            targets = [call.key] if call.key else sorted(self._program.address_taken)
            for key in targets:
                if key in self._program.functions:
                    self._enter(key, differs=differs, is_missed=is_missed)

    def _find_broadcasts(self, statement: Statement) -> None:
        """Note the data that is certainly the same on all ranks after the statement."""
        memory = self._program.memory
        for part in statement.parts.values():
            for call in part.calls:
                at = next((at for name, at in _RESULTS.items() if call.name.startswith(name)), None)
                if at is None or at >= len(call.arguments) or not call.arguments[at].value:
                    continue
                value = call.arguments[at].value
                nodes = [value.node]
                # A whole record, unless one field or several in a row were passed.
                if not value.neighbour:
                    records = memory.records[memory.find(value.node)]
                    nodes += [node for record in records for node in self._program.stored_fields(record)]
                for node in nodes:
                    self._broadcasts.setdefault(memory.find(node), []).append(statement)

    def _is_made_equal(self, key: int | str, writer: Statement) -> bool:
        """Whether what one rank writes, such as settings that it reads, is sent to all ranks afterwards."""
        if isinstance(key, str):
            return False
        found = self._broadcasts.get(key, [])
        return any(not self.may_be_missed(after) and self._is_before(writer, after, set()) for after in found)

    def _is_before(self, first: Statement, second: Statement, seen: set[str]) -> bool:
        """Whether the first statement, or all calls that lead to it, are above the second one in its function."""
        if first.function == second.function:
            return first.start < second.start
        sites = self._linked.callers.get(first.function, [])
        if first.function in seen or not sites or first.function in self._program.address_taken:
            return False
        return all(self._is_before(site, second, seen | {first.function}) for site in sites)

    def _enter(self, key: str, *, differs: bool, is_missed: bool) -> None:
        if is_missed:
            self._entered.add(key)
        if differs:
            self._differs.update(self._program.functions[key].parameters)

    @staticmethod
    def _is_source(call: Call) -> bool:
        """Whether a function may give each rank a value of its own."""
        group = externals.family(call)
        if group == "mpi":
            return not call.name.startswith(_SAME_EVERYWHERE)
        # Files, clocks and hidden states of the C library may differ between ranks.
        return group != "quiet" or call.name in tables.STATE_OF or call.name in _OF_ONE_PROCESS

    def _keys(self, place: StorageSpot) -> list[int | str]:
        if place.var and (followed(self._program, place.var) or self._is_parameter(place.var)):
            return [place.var]
        known = self._places.get(id(place))
        if known is None:
            known = self._places[id(place)] = list(self._program.locations(place))
        return known

    def _is_parameter(self, key: str) -> bool:
        variable = self._program.variables.get(key)
        return variable is not None and variable.is_parameter and not variable.address_taken
