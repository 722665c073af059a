"""What the analysis knows about a program: functions as trees of statements, each with its effects.

The trees hold no cursor of libclang: each syntax tree is walked once.
"""

from dataclasses import dataclass, field

from luthier.io.kernel.memory import StorageGraph

LOOPS = frozenset({"for", "while", "do"})
JUMPS = frozenset({"return", "goto", "break", "continue"})


@dataclass(frozen=True, slots=True)
class StorageSpot:
    """Storage that an expression reads or writes.

    `whole` covers all fields of the records there; `var` is set if it is exactly one variable.
    """

    node: int
    whole: bool = False
    var: str = ""
    indexed: bool = False


@dataclass(frozen=True, slots=True)
class Value:
    """The value of an expression, if it may be an address: `node` is what it points to (-1: nothing known)."""

    node: int = -1
    neighbour: str = ""  # the record, if it is the address of one of its fields
    functions: frozenset[str] = frozenset()
    is_address_of: bool = False
    constant: int | None = None
    name: str = ""  # of the variable, if it is simply one

    def __bool__(self) -> bool:
        return self.node >= 0


NOTHING = Value()


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument of a call, with what its parameter's type promises."""

    value: Value
    points: bool  # its parameter is a pointer to data
    constant: bool  # ... that is not written
    opaque: bool  # ... to a type that only its library can look into
    untyped: bool  # ... to void or char: any number of bytes
    deep: bool  # ... to further pointers


@dataclass(slots=True)
class Call:
    """A call within a statement. `key` is empty if it is made through a pointer."""

    key: str
    name: str
    header: str  # the file of its declaration
    line: int
    arguments: list[Argument]
    result: int  # node: what the returned pointer points to
    variadic_from: int = 1 << 30
    noreturn: bool = False
    is_project: bool = False  # declared in the project's own files
    gives_pointer: bool = False  # ... to data that the program may look into
    target: str | None = None  # the variable that alone gets the value, "" if nothing does, None for any other use


@dataclass(slots=True)
class Effects:
    """What evaluating a part of a statement does."""

    reads: list[StorageSpot] = field(default_factory=list)
    writes: list[StorageSpot] = field(default_factory=list)
    names: set[str] = field(default_factory=set)  # variables and functions whose declarations it needs
    calls: list[Call] = field(default_factory=list)
    kills: str = ""  # the variable that it certainly overwrites
    unneeded: list[StorageSpot] = field(default_factory=list)  # content of buffers that was cut


@dataclass(slots=True, eq=False)
class Statement:
    """A statement. Offsets are bytes of its file; `parts` are its own expressions without those of its children."""

    index: int
    kind: str
    function: str
    start: int
    end: int
    line: int
    last_line: int
    parent: "Statement | None" = None
    children: list["Statement"] = field(default_factory=list)
    parts: dict[str, Effects] = field(default_factory=dict)
    label: str = ""
    jumps: bool = False  # it is or contains a jump out of itself
    targets: list[str] = field(default_factory=list)  # of a macro: labels that jumps in it lead to
    header_end: int = 0  # where the header of a control statement ends

    def walk(self) -> "list[Statement]":
        """The statement and all within it, in the order of the text."""
        found, waiting = [], [self]
        while waiting:
            statement = waiting.pop()
            found.append(statement)
            waiting.extend(reversed(statement.children))
        return found


@dataclass(slots=True)
class Variable:
    """A variable, a parameter or a global."""

    key: str
    name: str
    node: int
    function: str  # "" for globals
    is_static: bool
    is_simple: bool  # neither array, record nor volatile
    is_parameter: bool = False
    address_taken: bool = False
    declared_by: list[int] = field(default_factory=list)  # statements


@dataclass(slots=True)
class Function:
    """A function with its body."""

    key: str
    name: str
    file: str
    start: int
    end: int
    line: int
    parameters: list[str]
    result: int  # node that holds the returned value
    body: Statement | None = None
    is_fixed: bool = False  # defined in a header: emitted whole
    is_variadic: bool = False
    is_static: bool = False
    has_threads: bool = False
    returns_record: bool = False
    statements: list[Statement] = field(default_factory=list)


@dataclass(slots=True)
class Declaration:
    """A declaration outside functions that may be left out: of variables, or a prototype."""

    keys: tuple[str, ...]
    file: str
    start: int
    end: int
    line: int
    effects: Effects
    is_prototype: bool


@dataclass(frozen=True, slots=True)
class RecordType:
    """A struct or union: its fields with the records stored inside them."""

    fields: tuple[tuple[str, str], ...]  # key, key of the nested record or ""
    is_union: bool
    holds_pointers: bool


@dataclass(slots=True)
class CProgram:
    """All translation units."""

    memory: StorageGraph = field(default_factory=StorageGraph)
    functions: dict[str, Function] = field(default_factory=dict)
    variables: dict[str, Variable] = field(default_factory=dict)
    fields: dict[str, int] = field(default_factory=dict)
    records: dict[str, RecordType] = field(default_factory=dict)
    declarations: list[Declaration] = field(default_factory=list)
    statements: list[Statement] = field(default_factory=list)
    address_taken: set[str] = field(default_factory=set)
    byte_wise: list[int] = field(default_factory=list)  # storage that is used as single bytes
    header_texts: list[str] = field(default_factory=list)  # of the project's own headers
    files: dict[str, str] = field(default_factory=dict)  # main files, their text as Latin-1: one character, one byte

    def stored_fields(self, record: str) -> list[int]:
        """The nodes of all fields of a record, those of nested records included."""
        found: list[int] = []
        waiting, seen = [record], set()
        while waiting:
            key = waiting.pop()
            if key in seen or key not in self.records:
                continue
            seen.add(key)
            for name, nested in self.records[key].fields:
                found.append(self.fields[name])
                waiting.extend([nested] if nested else [])
        return found

    def locations(self, place: StorageSpot) -> set[int]:
        """The classes of storage that an access to the place touches."""
        memory = self.memory
        root = memory.find(place.node)
        found = {root}
        records = set(memory.records[root]) if place.whole or not place.var else set()
        if place.whole or (place.indexed or memory.moved[root]):
            records |= memory.neighbours[root]
        for record in records:
            found.update(memory.find(node) for node in self.stored_fields(record))
        return found
