"""Which assignments to a local variable reach a use of it.

Only variables whose address is never taken are followed in this way; all other storage is treated as one value.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from luthier.io.kernel.ir import CProgram, Effects, Function, Statement


def followed(program: CProgram, key: str) -> bool:
    """Whether the assignments to a variable are told apart by the flow of control."""
    variable = program.variables.get(key)
    if variable is None or not variable.function or variable.is_static or variable.address_taken:
        return False
    function = program.functions.get(variable.function)
    # With threads, the order of the text is not the order of what happens.
    return variable.is_simple and function is not None and not function.has_threads


@dataclass(slots=True)
class _Target:
    """Where break and continue of the innermost loop or switch go."""

    breaks: set[int] = field(default_factory=set)
    continues: set[int] = field(default_factory=set)
    is_loop: bool = True
    cases_from: int = -1


class Reaching:
    """Reaching definitions of one function (Aho et al. 2006, section 9.2.4)."""

    def __init__(self, program: CProgram, function: Function) -> None:
        self._program = program
        # The graph of control flow: a node for each part of a statement, and which nodes may run after it.
        self._nodes: list[tuple[Statement | None, Effects]] = []
        self._next: list[set[int]] = []
        self._targets: list[_Target] = []
        self._labels: dict[str, int] = {}
        self._gotos: list[tuple[int, str]] = []
        self._number: dict[int, int] = {}
        if function.body is not None:
            self._build(function.body, {self._add(None, Effects())})
        for node, label in self._gotos:
            self._next[node].add(self._labels[label])
        # Sets of definitions are integers: bit n is the definition that `_owners[n]` makes.
        self._owners: list[Statement] = []
        self._defined: dict[str, int] = {}
        self._returned: dict[str, int] = {}
        self._before = self._solve()

    def new_definitions(self, part: Effects, variable: str) -> list[Statement]:
        """The statements whose value of the variable may be used by this part of a statement.

        Each is returned once only: in a long function every use may see every definition.
        """
        found = self._found(part, variable) & ~self._returned.get(variable, 0)
        self._returned[variable] = self._returned.get(variable, 0) | found
        return self._statements(found)

    def comes_from(self, variable: str, inside: set[int]) -> Callable[[Effects], bool]:
        """Whether a part of a statement may read a value of the variable that one of the statements `inside` made."""
        made = sum(1 << number for number, owner in enumerate(self._owners) if owner.index in inside)
        made &= self._defined.get(variable, 0)

        def is_user(part: Effects) -> bool:
            return bool(self._found(part, variable) & made) and any(place.var == variable for place in part.reads)

        return is_user

    def _found(self, part: Effects, variable: str) -> int:
        """The definitions as bits."""
        node = self._number.get(id(part))
        return 0 if node is None else self._before[node] & self._defined.get(variable, 0)

    def _statements(self, found: int) -> list[Statement]:
        statements = []
        while found:
            lowest = found & -found
            statements.append(self._owners[lowest.bit_length() - 1])
            found ^= lowest
        return statements

    # The graph

    def _add(self, statement: Statement | None, effects: Effects, before: set[int] | None = None) -> int:
        self._nodes.append((statement, effects))
        self._next.append(set())
        number = len(self._nodes) - 1
        self._number[id(effects)] = number
        self._link(before or set(), number)
        return number

    def _link(self, before: set[int], node: int) -> None:
        for previous in before:
            self._next[previous].add(node)

    def _part(self, statement: Statement, name: str, before: set[int]) -> int:
        return self._add(statement, statement.parts.get(name) or Effects(), before)

    def _build(self, statement: Statement, before: set[int]) -> set[int]:
        """Add a statement after the nodes `before`; return the nodes from which control goes on behind it."""
        special = getattr(self, f"_{statement.kind}", None)
        if special is not None:
            return special(statement, before)  # type: ignore[no-any-return]  # one of the methods below
        node = self._part(statement, "all", before)
        self._gotos += [(node, label) for label in statement.targets]
        # A macro may hide a break or a continue, of any of the loops around it.
        if statement.jumps and self._targets:
            self._targets[-1].breaks.add(node)
            for target in self._targets:
                target.continues |= {node} if target.is_loop else set()
        return {node}

    def _block(self, statement: Statement, before: set[int]) -> set[int]:
        for child in statement.children:
            before = self._build(child, before)
        return before

    def _if(self, statement: Statement, before: set[int]) -> set[int]:
        condition = self._part(statement, "cond", before)
        outs = self._build(statement.children[0], {condition})
        if len(statement.children) > 1:
            return outs | self._build(statement.children[1], {condition})
        return outs | {condition}

    def _for(self, statement: Statement, before: set[int]) -> set[int]:
        # Parts of the header that could not be told apart run before the loop and after each iteration.
        if "any" in statement.parts:
            statement.parts["any"].kills = ""
            before = {self._part(statement, "any", before)}
        if "init" in statement.parts:
            before = {self._part(statement, "init", before)}
        condition = self._part(statement, "cond", before)
        increment = self._part(statement, "inc", set())
        if "any" in statement.parts:
            self._next[increment].add(next(iter(before)))
        self._next[increment].add(condition)
        target = _Target()
        self._targets.append(target)
        outs = self._build(statement.children[0], {condition})
        self._targets.pop()
        self._link(outs | target.continues, increment)
        return {condition} | target.breaks

    def _while(self, statement: Statement, before: set[int]) -> set[int]:
        condition = self._part(statement, "cond", before)
        target = _Target()
        self._targets.append(target)
        outs = self._build(statement.children[0], {condition})
        self._targets.pop()
        self._link(outs | target.continues, condition)
        return {condition} | target.breaks

    def _do(self, statement: Statement, before: set[int]) -> set[int]:
        # An empty node to come back to, because the condition stands at the end.
        start = self._add(None, Effects(), before)
        target = _Target()
        self._targets.append(target)
        outs = self._build(statement.children[0], {start})
        self._targets.pop()
        condition = self._part(statement, "cond", outs | target.continues)
        self._next[condition].add(start)
        return {condition} | target.breaks

    def _switch(self, statement: Statement, before: set[int]) -> set[int]:
        condition = self._part(statement, "cond", before)
        target = _Target(is_loop=False, cases_from=condition)
        self._targets.append(target)
        # The body is entered only at its cases; if none fits, control goes on behind it.
        outs = self._build(statement.children[0], set())
        self._targets.pop()
        return outs | {condition} | target.breaks

    def _case(self, statement: Statement, before: set[int]) -> set[int]:
        switch = next((target for target in reversed(self._targets) if not target.is_loop), None)
        entry = before | ({switch.cases_from} if switch else set())
        return self._build(statement.children[0], {self._part(statement, "value", entry)})

    def _label(self, statement: Statement, before: set[int]) -> set[int]:
        node = self._add(None, Effects(), before)
        self._labels[statement.label] = node
        return self._build(statement.children[0], {node})

    def _goto(self, statement: Statement, before: set[int]) -> set[int]:
        self._gotos.append((self._part(statement, "all", before), statement.label))
        return set()

    def _return(self, statement: Statement, before: set[int]) -> set[int]:
        self._part(statement, "all", before)
        return set()

    def _break(self, statement: Statement, before: set[int]) -> set[int]:
        self._targets[-1].breaks.add(self._part(statement, "all", before))
        return set()

    def _continue(self, statement: Statement, before: set[int]) -> set[int]:
        loop = next(target for target in reversed(self._targets) if target.is_loop)
        loop.continues.add(self._part(statement, "all", before))
        return set()

    # The solution

    def _solve(self) -> list[int]:
        made = [0] * len(self._nodes)
        for number, (statement, effects) in enumerate(self._nodes):
            for place in effects.writes:
                if statement is not None and place.var and followed(self._program, place.var):
                    bit = 1 << len(self._owners)
                    self._owners.append(statement)
                    made[number] |= bit
                    self._defined[place.var] = self._defined.get(place.var, 0) | bit
        # Aho et al. 2006, algorithm 9.11: what reaches the end of a node is what it makes, and what reaches
        # its beginning unless the node overwrites it for certain. All bits of -1 are set: nothing is overwritten.
        kept = [~self._defined.get(effects.kills, 0) if effects.kills else -1 for _, effects in self._nodes]
        before = [0] * len(self._nodes)
        # Nodes are taken from the end of the list: in the order of the text few of them change twice.
        waiting, queued = list(range(len(self._nodes) - 1, -1, -1)), set(range(len(self._nodes)))
        while waiting:
            node = waiting.pop()
            queued.discard(node)
            after = (before[node] & kept[node]) | made[node]
            for follower in self._next[node]:
                if after & ~before[follower]:
                    before[follower] |= after
                    if follower not in queued:
                        queued.add(follower)
                        waiting.append(follower)
        return before
