"""Buffers whose content is cut: which can be, and how they are filled once after their allocation.

A buffer that nobody touched would move its page faults into the first write.
"""

import re
from collections import Counter
from dataclasses import replace

from luthier.io.kernel import tables
from luthier.io.kernel.calls import Linked
from luthier.io.kernel.files_read import line_read_back
from luthier.io.kernel.ir import Call, CProgram, Effects, Statement, StorageSpot
from luthier.io.kernel.layout import closing_parenthesis, split_arguments
from luthier.io.kernel.options import KernelOptions
from luthier.io.kernel.slicing import Slice

# In a declaration with a first value, declaring counts as one write and the value as another.
_MOST_WRITES = 2
FILL = 63  # the byte; as a double or float it is a small positive number
_SIZES = {"malloc": (0,), "calloc": (0, 1), "aligned_alloc": (1,), "valloc": (0,), "memalign": (1,)}
_UNFILLED = frozenset(["realloc", "posix_memalign", "strdup", "strndup", "MPI_Alloc_mem", "reallocarray"])
# `p->field[i] = (double *)malloc(`; the arguments are read from this parenthesis on.
_ALLOCATION = re.compile(
    r"(?P<target>[A-Za-z_][\w.]*(?:(?:->|\.)\w+|\[[\w+\-*. ]+\])*)\s*=\s*"
    r"(?:\([\w\s*]+\)\s*)?(?P<name>malloc|calloc|aligned_alloc|valloc|memalign)\s*(?P<open>\()"
)
# What must not be evaluated a second time in a fill: ++, --, an assignment, a call.
_EFFECT = re.compile(r"\+\+|--|(?<![=!<>])=(?!=)|\b(?!sizeof\b)[A-Za-z_]\w*\s*\(")


def keep_uncuttable(program: CProgram, linked: Linked, reachable: list[Statement]) -> None:
    """Give up cutting where the content may hold pointers or a filter looks at it."""
    for statement in reachable:
        for part in statement.parts.values():
            for place in list(part.unneeded):
                # A filter, such as compression in HDF5: with other content the size of the written data would differ.
                if linked.reads_content:
                    _give_up(linked, statement, part, place, linked.reads_content)
                elif program.memory.holds_pointers[program.memory.find(place.node)]:
                    _give_up(linked, statement, part, place, "it may hold pointers")


def _give_up(linked: Linked, statement: Statement, part: Effects, place: StorageSpot, why: str) -> None:
    part.unneeded.remove(place)
    part.reads.append(place)
    linked.uncut[statement.index] = why


class Buffers:
    """The buffers that were cut in a slice."""

    def __init__(self, program: CProgram, linked: Linked, kept: Slice, options: KernelOptions) -> None:
        self._program, self._linked, self._kept, self._options = program, linked, kept, options
        self._used: dict[int, list[tuple[Statement, Effects, StorageSpot]]] = {}
        self._written: set[int] = set()
        for index in kept.why:
            statement = program.statements[index]
            for part in statement.parts.values():
                for place in part.unneeded:
                    self._used.setdefault(program.memory.find(place.node), []).append((statement, part, place))
                if statement.kind != "declaration":
                    self._written.update(
                        location for place in part.writes if not place.var for location in program.locations(place)
                    )

    def fills(self) -> tuple[dict[int, str], bool]:
        """Texts to insert after statements; and whether cutting had to be given up for some buffer."""
        found: dict[int, str] = {}
        given_up = self._read_back()
        for location, uses in self._used.items():
            if location in self._kept.needed:
                continue  # all that writes it is kept
            line = self._needed_part(uses)
            texts = f"a part of it is needed in line {line}" if line is not None else self._filled(location)
            if line is None and isinstance(texts, str) and location in self._written:
                continue  # what is kept fills it, such as the reading of a restart file
            if isinstance(texts, str):
                given_up = True
                for statement, part, place in uses:
                    if place in part.unneeded:
                        _give_up(self._linked, statement, part, place, texts)
            else:
                found |= texts
        return found, given_up

    def _read_back(self) -> bool:
        """Give up all cutting if what is read from files is needed and may have been written before by the program."""
        cut = [(statement, part, place) for uses in self._used.values() for statement, part, place in uses]
        line = line_read_back(
            self._program, self._linked, self._kept, self._options, [statement for statement, _, _ in cut]
        )
        for statement, part, place in cut if line else []:
            why = f"what line {line} reads from a file is needed, and may be what is written here"
            if place in part.unneeded:
                _give_up(self._linked, statement, part, place, why)
        return bool(cut and line)

    def _needed_part(self, uses: list[tuple[Statement, Effects, StorageSpot]]) -> int | None:
        """The line that needs some of what a fill would overwrite, such as one field of a struct."""
        for _, _, place in uses:
            for location in self._program.locations(replace(place, whole=True, indexed=True, var="")):
                line = self._kept.needed.get(location)
                if line is not None:
                    return line
        return None

    def notes(self) -> list[str]:
        """One line for each write of a buffer: cut, or why not."""
        program, lines = self._program, []
        for location, uses in self._used.items():
            line = self._kept.needed.get(location)
            what = "content cut" if line is None else f"content kept: its values are needed in line {line}"
            lines += [(self._where(statement), what) for statement, _, _ in uses]
        for index, why in self._linked.uncut.items():
            if index in self._kept.why:
                lines.append((self._where(program.statements[index]), f"content kept: {why}"))
        return [f"{file}:{line}: {what}" for (file, line), what in sorted(set(lines))]

    def _where(self, statement: Statement) -> tuple[str, int]:
        return self._program.functions[statement.function].file, statement.line

    def _filled(self, location: int) -> dict[int, str] | str:
        """The fills of one class of buffers, or why they cannot be written."""
        program, found = self._program, {}
        for index in self._kept.why:
            statement = program.statements[index]
            for part in statement.parts.values():
                for call in part.calls:
                    is_it = program.memory.find(call.result) == location
                    if is_it and call.name in _SIZES:
                        text = self._after_allocation(statement)
                        if not text:
                            return f"its allocation in line {statement.line} is not a simple assignment"
                        found[index] = text
                    # A function of the program allocates it: the fill is inserted in that function, after malloc.
                    elif is_it and call.key in self._linked.allocators:
                        inner = self._inside(call.key)
                        if not inner:
                            return f"{call.name} does not allocate it by a simple assignment of malloc"
                        found |= inner
                    elif call.name in _UNFILLED and self._touches(call, location):
                        return f"it is allocated by {call.name} in line {call.line}"
        for variable in program.variables.values():
            if program.memory.find(variable.node) != location or variable.is_simple:
                continue
            # No statement allocates a static array, so there is no place for a fill that runs once.
            if not variable.function:
                return f"{variable.name} is a static array"
            for index in variable.declared_by:
                if index in self._kept.why:
                    found[index] = self._after_declaration(program.statements[index], variable.name)
        return found or "its allocation was not found"

    def _inside(self, key: str) -> dict[int, str]:
        """Fills in a function that allocates; none if it may clear memory that is needed elsewhere."""
        found = {}
        for statement in self._program.functions[key].statements:
            for part in statement.parts.values():
                if any(call.name == "malloc" for call in part.calls):
                    found[statement.index] = self._after_allocation(statement)
                elif any(call.name in _SIZES for call in part.calls):
                    return {}
        return found if all(found.values()) else {}

    def _touches(self, call: Call, location: int) -> bool:
        memory, nodes = self._program.memory, [call.result]
        nodes += [memory.pointee(argument.value.node) for argument in call.arguments if argument.value]
        return any(memory.find(node) == location for node in nodes)

    def _after_allocation(self, statement: Statement) -> str:
        function = self._program.functions[statement.function]
        if function.is_fixed or statement.kind not in ("expression", "declaration", "if"):
            return ""
        if not self._is_plain(statement):
            return ""
        text = self._program.files[function.file]
        end = statement.children[0].start if statement.children else statement.end
        matches = list(_ALLOCATION.finditer(text, statement.start, end))
        fills = []
        # Where the allocation may be skipped, the pointer may be an old one.
        if matches and self._is_conditional(statement, text[statement.start : matches[-1].start()]):
            return ""
        for match in matches:
            stop = closing_parenthesis(text, match.start("open"))
            arguments = split_arguments(text[match.start("open") + 1 : stop])
            sizes = [arguments[at] for at in _SIZES[match["name"]] if at < len(arguments)]
            if not sizes or any(_EFFECT.search(size) for size in sizes) or _EFFECT.search(match["target"]):
                return ""
            size = " * ".join(f"({part})" for part in sizes) if len(sizes) > 1 else sizes[0]
            fills.append(f"if ({match['target']})\n    memset({match['target']}, {FILL}, {size});")
        return self._indented(text, statement, fills)

    def _is_plain(self, statement: Statement) -> bool:
        """Whether nothing in the statement changes size or target between the allocation and the fill behind it."""
        own = list(statement.parts.values())
        inner = [part for child in statement.children for one in child.walk() for part in one.parts.values()]
        calls = [call for part in [*own, *inner] for call in part.calls]
        if any(not call.key or call.key in self._program.functions for call in calls):
            return False
        if any(self._stored(part) for part in inner):
            return False
        written = Counter(place.var for part in own for place in self._stored(part))
        if statement.kind == "declaration":
            return all(
                count <= _MOST_WRITES and self._is_declared_by(statement, name) for name, count in written.items()
            )
        return written.total() <= sum(call.name in _SIZES for call in calls)

    def _is_declared_by(self, statement: Statement, name: str) -> bool:
        return bool(name) and statement.index in self._program.variables[name].declared_by

    def _stored(self, part: Effects) -> list[StorageSpot]:
        """What is written, without hidden states and buffers of the C library, such as errno."""
        memory, hidden = self._program.memory, set()
        for name, node in self._program.fields.items():
            if name.startswith("state:"):
                hidden |= {memory.find(node), memory.pointee(node)}
        return [place for place in part.writes if memory.find(place.node) not in hidden]

    @staticmethod
    def _is_conditional(statement: Statement, before: str) -> bool:
        """Whether the allocation may be skipped; in `if (!(a = f()) || !(b = f()))` the branch must leave."""
        if "?" in before or "&&" in before:
            return True
        leaves = statement.kind == "if" and any(
            one.jumps or any(call.name in tables.EXITS for part in one.parts.values() for call in part.calls)
            for one in statement.children[0].walk()
        )
        return "||" in before and not leaves

    def _after_declaration(self, statement: Statement, name: str) -> str:
        text = self._program.files[self._program.functions[statement.function].file]
        return self._indented(text, statement, [f"memset(&{name}, {FILL}, sizeof {name});"])

    @staticmethod
    def _indented(text: str, statement: Statement, fills: list[str]) -> str:
        if not fills:
            return ""
        begin = text.rfind("\n", 0, statement.start) + 1
        indent = text[begin : statement.start]
        indent = indent if not indent.strip() else "    "
        lines = "\n".join(["/* filled by luthier: its content is not computed */", *fills]).split("\n")
        following = text[statement.end : text.find("\n", statement.end)].strip()
        last = f"\n{indent}" if following and not following.startswith(("//", "/*")) else ""
        return "".join(f"\n{indent}{line}" for line in lines) + last
