"""MPI communication that is kept needs its partner: the other side of a message, or of a collective call."""

from luthier.io.kernel import externals
from luthier.io.kernel.calls import Linked
from luthier.io.kernel.ir import Call, CProgram, Statement
from luthier.io.kernel.ranks import Ranks


class Messages:
    """The MPI calls of a program, by what they can match with."""

    def __init__(self, program: CProgram, linked: Linked) -> None:
        self._program = program
        self._linked = linked
        self._messages: list[tuple[Statement, Call]] = []
        self._collectives: dict[str, list[Statement]] = {}
        self._ranks: Ranks | None = None
        for key in sorted(linked.reachable):
            for statement in program.functions[key].statements:
                for part in statement.parts.values():
                    for call in part.calls:
                        self._add(statement, call)

    def _add(self, statement: Statement, call: Call) -> None:
        if call.key in self._program.functions:
            return
        if externals.is_point_to_point(call):
            self._messages.append((statement, call))
        elif externals.is_collective(call):
            self._collectives.setdefault(call.name, []).append(statement)

    def _missed(self, statement: Statement) -> bool:
        if self._ranks is None:
            self._ranks = Ranks(self._program, self._linked)
        return self._ranks.may_be_missed(statement)

    def partners(self, statement: Statement) -> list[Statement]:
        """The statements that may be the other side of what this one sends, receives or takes part in."""
        found: list[Statement] = []
        for part in statement.parts.values():
            for call in part.calls:
                if call.key in self._program.functions:
                    continue
                if externals.is_point_to_point(call):
                    found += [other for other, theirs in self._messages if _may_match(call, theirs)]
                # If all ranks come here, all take part by this statement alone.
                elif externals.is_collective(call) and self._missed(statement):
                    found += [other for other in self._collectives[call.name] if self._missed(other)]
        return found


def _may_match(one: Call, other: Call) -> bool:
    mine, theirs = externals.tags(one), externals.tags(other)
    return any(left is None or right is None or left == right for left in mine for right in theirs)
