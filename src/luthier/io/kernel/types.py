"""What the analysis needs to know about C types, read from libclang once for each type."""

from dataclasses import dataclass
from typing import Any

from clang.cindex import CursorKind, TypeKind

from luthier.io.kernel.ir import CProgram, RecordType

_ARRAYS = {TypeKind.CONSTANTARRAY, TypeKind.INCOMPLETEARRAY, TypeKind.VARIABLEARRAY, TypeKind.DEPENDENTSIZEDARRAY}
_FUNCTIONS = {TypeKind.FUNCTIONPROTO, TypeKind.FUNCTIONNOPROTO}
_OPAQUE = {"FILE", "struct _IO_FILE", "_IO_FILE", "DIR"}  # complete types that only their library looks into


@dataclass(frozen=True, slots=True)
class CType:
    """A type: `to` is what a pointer points to, or the element of an array."""

    kind: str  # pointer, array, record, function, void, scalar
    constant: bool = False
    volatile: bool = False
    to: "CType | None" = None
    record: str = ""
    opaque: bool = False
    small: bool = False  # one byte

    def element(self) -> "CType":
        """The type without the dimensions of arrays."""
        found = self
        while found.kind == "array" and found.to is not None:
            found = found.to
        return found


_UNKNOWN = CType("scalar")


class Types:
    """The types of one translation unit."""

    def __init__(self, program: CProgram, key_of: Any) -> None:
        self._program = program
        self._key_of = key_of
        self._known: dict[str, CType] = {}

    def of(self, clang_type: Any) -> CType:
        """The type, from libclang's."""
        spelling = clang_type.spelling
        found = self._known.get(spelling)
        if found is None:
            found = self._known[spelling] = self._read(clang_type)
        return found

    def _read(self, clang_type: Any) -> CType:
        exact = clang_type.get_canonical()
        kind, constant, volatile = exact.kind, exact.is_const_qualified(), exact.is_volatile_qualified()
        if kind == TypeKind.POINTER:
            return CType("pointer", constant, volatile, self.of(exact.get_pointee()))
        if kind in _ARRAYS:
            return CType("array", constant, volatile, self.of(exact.element_type))
        if kind == TypeKind.RECORD:
            return self._record(exact, constant, volatile)
        if kind in _FUNCTIONS:
            return CType("function")
        if kind == TypeKind.VOID:
            return CType("void", constant, volatile)
        # Other threads may change it at any time, as with volatile.
        if kind == TypeKind.ATOMIC:
            return CType("scalar", constant, volatile=True)
        return CType("scalar", constant, volatile, small=exact.get_size() == 1)

    def _record(self, exact: Any, constant: bool, volatile: bool) -> CType:
        declaration = exact.get_declaration()
        definition = declaration.get_definition()
        name = exact.spelling.removeprefix("const ").removeprefix("volatile ")
        if definition is None or name in _OPAQUE:
            return CType("record", constant, volatile, opaque=True)
        key = self._key_of(definition)
        self._add(key, definition)
        return CType("record", constant, volatile, record=key)

    def _add(self, key: str, definition: Any) -> None:
        program = self._program
        if key in program.records:
            return
        is_union = definition.kind == CursorKind.UNION_DECL
        program.records[key] = RecordType((), is_union, holds_pointers=False)  # for records that point to themselves
        fields, holds = [], False
        shared = program.memory.new() if is_union else -1
        for child in definition.get_children():
            if child.kind == CursorKind.FIELD_DECL:
                name, kind = self._key_of(child), self.of(child.type)
            # Members of a record without a name belong to the record around it; it gets a field of its own.
            elif child.kind in (CursorKind.STRUCT_DECL, CursorKind.UNION_DECL) and child.is_anonymous():
                name, kind = self._key_of(child) + "#", self.of(child.type)
            else:
                continue
            # The members of a union share their storage.
            node = shared if is_union else program.memory.new()
            program.fields[name] = node
            self.describe(node, kind)
            element = kind.element()
            fields.append((name, element.record))
            nested = program.records.get(element.record)
            holds = holds or element.kind == "pointer" or (nested is not None and nested.holds_pointers)
        program.records[key] = RecordType(tuple(fields), is_union, holds)
        if is_union:
            for node in program.stored_fields(key):
                program.memory.unify(shared, node)

    def describe(self, node: int, kind: CType) -> None:
        """Tell a node what is stored in it."""
        memory = self._program.memory
        seen = 0
        while True:
            element, root = kind.element(), memory.find(node)
            if element.record:
                memory.records[root].add(element.record)
                record = self._program.records.get(element.record)
                memory.holds_pointers[root] |= record is None or record.holds_pointers
            # Deeper chains of pointers, as in a linked list, need not be described.
            if element.kind != "pointer" or element.to is None or seen > 4:
                return
            memory.holds_pointers[root] = True
            if element.to.kind in ("function", "void") or element.to.opaque:
                return
            node, kind, seen = memory.pointee(node), element.to, seen + 1

    def pointed(self, kind: CType) -> CType:
        """What a pointer or an array of this type gives access to."""
        return kind.to if kind.kind in ("pointer", "array") and kind.to is not None else _UNKNOWN
