"""Expressions: what they read, write and call, and which pointers they copy."""

import ctypes
from collections.abc import Callable
from typing import Any

from clang.cindex import Cursor, CursorKind, StorageClass, conf

from luthier.errors import KernelRefusedError
from luthier.io.kernel.call_expressions import read_call
from luthier.io.kernel.ir import NOTHING, CProgram, Effects, StorageSpot, Value, Variable
from luthier.io.kernel.types import CType, Types

# Levels of nested expressions. They are read by recursion, and Python's stack is limited.
_DEEPEST = 300
_ASSIGN, _COMMA, _ADD, _SUBTRACT = 22, 33, 5, 6  # libclang's CXBinaryOperatorKind
_INCREMENTS, _ADDRESS, _DEREFERENCE, _MINUS = {1, 2, 3, 4}, 5, 6, 8  # CXUnaryOperatorKind
_STATEMENTS = {kind for kind in CursorKind.get_all_kinds() if kind.is_statement()}
_NO_VALUE = {
    CursorKind.INTEGER_LITERAL,
    CursorKind.FLOATING_LITERAL,
    CursorKind.CHARACTER_LITERAL,
    CursorKind.IMAGINARY_LITERAL,
    CursorKind.TYPE_REF,
    CursorKind.MEMBER_REF,
}
_LVALUES = {CursorKind.DECL_REF_EXPR, CursorKind.MEMBER_REF_EXPR, CursorKind.ARRAY_SUBSCRIPT_EXPR}
_REFUSED = {
    CursorKind.ADDR_LABEL_EXPR: "the address of a label (computed goto)",
    CursorKind.BLOCK_EXPR: "a block",
}


def _operator(name: str) -> Callable[[Any], int]:
    # The Python package does not declare these two functions of libclang.
    function = getattr(conf.lib, name)
    function.argtypes, function.restype = [Cursor], ctypes.c_int
    return function  # type: ignore[no-any-return]  # a function of ctypes


class Expressions:
    """Walks the expressions of one translation unit. Effects are added to `self.effects`."""

    def __init__(self, program: CProgram, types: Types, key_of: Callable[[Any], str]) -> None:
        self.program = program
        self.memory = program.memory
        self.types = types
        self.key_of = key_of
        self.effects = Effects()
        self.function = ""
        self.walk_statement: Callable[[Any], None] = lambda _: None
        self.file = ""
        self.is_project: Callable[[Any], bool] = lambda _: True
        self._declare_evaluation()
        self._binary = _operator("clang_getCursorBinaryOperatorKind")
        self._unary = _operator("clang_getCursorUnaryOperatorKind")
        self._depth = 0
        self._kinds = {
            CursorKind.PAREN_EXPR: self._inner,
            CursorKind.UNEXPOSED_EXPR: self._unexposed,
            CursorKind.UNARY_OPERATOR: self._unary_operator,
            CursorKind.BINARY_OPERATOR: self._binary_operator,
            CursorKind.COMPOUND_ASSIGNMENT_OPERATOR: self._compound_assignment,
            CursorKind.CONDITIONAL_OPERATOR: self._joined,
            CursorKind.CALL_EXPR: lambda cursor: read_call(self, cursor),
            CursorKind.CSTYLE_CAST_EXPR: self._cast,
            CursorKind.CXX_UNARY_EXPR: self._sizeof,
            CursorKind.STRING_LITERAL: lambda _: Value(self.memory.new()),
            CursorKind.StmtExpr: self._statement_expression,
            CursorKind.COMPOUND_LITERAL_EXPR: self._compound_literal,
        }

    def refuse(self, cursor: Any, what: str) -> KernelRefusedError:
        """The error for a construct that is not supported."""
        return KernelRefusedError(
            f"{self.file}:{cursor.location.line}: {what} is not supported in I/O kernels; tune the program itself"
        )

    def value(self, cursor: Any) -> Value:
        """Evaluate; return the pointer it may be."""
        kind = cursor.kind
        if kind in _NO_VALUE:
            return self._literal(cursor)
        if kind in _REFUSED:
            raise self.refuse(cursor, _REFUSED[kind])
        self._depth += 1
        if self._depth > _DEEPEST:
            raise self.refuse(cursor, f"an expression nested deeper than {_DEEPEST} levels")
        try:
            if kind in _LVALUES:
                return self._read(cursor)
            return self._kinds.get(kind, self._joined)(cursor)
        finally:
            self._depth -= 1

    def _literal(self, cursor: Any) -> Value:
        if cursor.kind != CursorKind.INTEGER_LITERAL:
            return NOTHING
        return Value(constant=self._evaluated(cursor))

    @staticmethod
    def _evaluated(cursor: Any) -> int | None:
        """The value of an integer constant, also out of a macro."""
        result = conf.lib.clang_Cursor_Evaluate(cursor)
        if not result:
            return None
        try:
            # 1 is CXEval_Int.
            is_integer = conf.lib.clang_EvalResult_getKind(ctypes.c_void_p(result)) == 1
            return int(conf.lib.clang_EvalResult_getAsLongLong(ctypes.c_void_p(result))) if is_integer else None
        finally:
            conf.lib.clang_EvalResult_dispose(ctypes.c_void_p(result))

    # Storage

    @staticmethod
    def _declare_evaluation() -> None:
        conf.lib.clang_Cursor_Evaluate.argtypes, conf.lib.clang_Cursor_Evaluate.restype = [Cursor], ctypes.c_void_p
        conf.lib.clang_EvalResult_getAsLongLong.restype = ctypes.c_longlong

    def place(self, cursor: Any) -> StorageSpot | None:
        """Evaluate the address of an lvalue; return the storage, or None if the cursor is a function or a constant."""
        kind = cursor.kind
        if kind == CursorKind.DECL_REF_EXPR:
            return self._variable_place(cursor)
        if kind == CursorKind.MEMBER_REF_EXPR:
            return self._field_place(cursor)
        if kind == CursorKind.ARRAY_SUBSCRIPT_EXPR:
            return self._element_place(cursor)
        if kind == CursorKind.UNARY_OPERATOR and self._unary(cursor) == _DEREFERENCE:
            child = next(cursor.get_children())
            pointed = self.value(child)
            return self._pointed_place(pointed, self.types.of(cursor.type), indexed=False)
        if kind in (CursorKind.PAREN_EXPR, CursorKind.UNEXPOSED_EXPR):
            # Implicit conversions are unexposed expressions with a single child.
            children = list(cursor.get_children())
            if len(children) == 1:
                return self.place(children[0])
        if kind == CursorKind.COMPOUND_LITERAL_EXPR:
            return StorageSpot(self._compound_literal(cursor).node, whole=True)
        if kind == CursorKind.UNARY_OPERATOR:  # __real__ and __imag__ of an lvalue, and extensions
            children = list(cursor.get_children())
            if len(children) == 1 and self._unary(cursor) not in _INCREMENTS | {_ADDRESS}:
                return self.place(children[0])
        value = self.value(cursor)
        # Not an lvalue, such as a record that a function returns: it is stored in a temporary object.
        node = value.node if value else self.memory.new()
        kind_of = self.types.of(cursor.type)
        self.types.describe(node, kind_of)
        return StorageSpot(node, whole=True)

    def _variable_place(self, cursor: Any) -> StorageSpot | None:
        declared = cursor.referenced
        if declared is None or declared.kind not in (CursorKind.VAR_DECL, CursorKind.PARM_DECL):
            return None
        variable = self.variable(declared)
        self.effects.names.add(variable.key)
        kind = self.types.of(declared.type)
        return StorageSpot(variable.node, whole=kind.kind == "record", var=variable.key)

    def variable(self, declared: Any) -> Variable:
        """The variable of a declaration, made at its first use."""
        key = self.key_of(declared)
        found = self.program.variables.get(key)
        if found is not None:
            return found
        kind = self.types.of(declared.type)
        if kind.kind == "array" and declared.kind == CursorKind.PARM_DECL:
            kind = CType("pointer", to=kind.to)  # an array as a parameter is a pointer; libclang shows it as written
        storage = declared.storage_class
        is_local = declared.kind == CursorKind.PARM_DECL or storage in (
            StorageClass.NONE,
            StorageClass.AUTO,
            StorageClass.REGISTER,
        )
        inside = declared.semantic_parent is None or declared.semantic_parent.kind != CursorKind.TRANSLATION_UNIT
        owner = self.function if is_local and inside else ""
        found = Variable(
            key,
            declared.spelling,
            self.memory.new(owner),
            owner,
            is_static=not owner,
            is_simple=kind.kind in ("scalar", "pointer") and not kind.volatile,
            is_parameter=declared.kind == CursorKind.PARM_DECL,
        )
        self.types.describe(found.node, kind)
        self.program.variables[key] = found
        return found

    def _field_place(self, cursor: Any) -> StorageSpot | None:
        declared = cursor.referenced
        children = list(cursor.get_children())
        base = next((child for child in children if child.kind.is_expression()), None)
        if base is not None:
            # `p->x` reads the pointer p; `r.x` reads nothing to find out where x is.
            if self.types.of(base.type).kind == "pointer":
                pointed = self.value(base)
                if pointed:
                    self.types.describe(pointed.node, self.types.pointed(self.types.of(base.type)))
            else:
                self.place(base)
        # This makes the nodes of all fields of the record type, unless they exist.
        self.types.of(declared.semantic_parent.type)
        kind = self.types.of(declared.type)
        key = self.key_of(declared)
        if not declared.get_usr():  # a struct or union without a name in another one
            key = self.key_of(declared.type.get_declaration()) + "#"
        # One node for this field of all records of the type: records are not told apart.
        node = self.program.fields.get(key)
        if node is None:
            raise self.refuse(cursor, "a field of an unusual record")
        return StorageSpot(node, whole=kind.element().kind == "record")

    def _element_place(self, cursor: Any) -> StorageSpot | None:
        first, second = cursor.get_children()
        # C allows `2[a]` for `a[2]`.
        if self.types.of(first.type).kind not in ("pointer", "array"):
            first, second = second, first
        self.value(second)
        pointed = self.value(first)
        return self._pointed_place(pointed, self.types.of(cursor.type), indexed=True)

    def _pointed_place(self, pointed: Value, kind: CType, *, indexed: bool) -> StorageSpot | None:
        if kind.kind == "function":
            return None
        node = pointed.node if pointed else self.memory.new()
        if pointed.neighbour:
            self.memory.neighbours[self.memory.find(node)].add(pointed.neighbour)
        self.types.describe(node, kind)
        # Through a pointer to bytes, pointers may be copied as well; `calls.join_moved` takes care of that.
        if kind.small:
            self.program.byte_wise.append(node)
        return StorageSpot(node, whole=kind.element().kind == "record", indexed=indexed)

    def _read(self, cursor: Any) -> Value:
        kind = self.types.of(cursor.type)
        if kind.kind == "function":
            return self._function_name(cursor)
        place = self.place(cursor)
        if place is None:
            return NOTHING
        return self._loaded(place, kind, cursor)

    def _loaded(self, place: StorageSpot, kind: CType, cursor: Any) -> Value:
        """The value of a place; an array gives its address instead."""
        is_pointer = bool(place.var) and self.program.variables[place.var].is_parameter
        # The name of an array is the address of its first element: nothing is read.
        if kind.kind == "array" and not is_pointer:
            if place.var:
                self.program.variables[place.var].address_taken = True
            return Value(place.node)
        self.effects.reads.append(place)
        name = cursor.spelling if cursor.kind == CursorKind.DECL_REF_EXPR else ""
        if kind.kind in ("pointer", "array"):
            return Value(self.memory.pointee(place.node), name=name)
        return Value(name=name)

    def _function_name(self, cursor: Any) -> Value:
        declared = cursor.referenced
        if declared is None or declared.kind != CursorKind.FUNCTION_DECL:
            place = self.place(cursor)
            return NOTHING if place is None else Value(self.memory.pointee(place.node))
        key = self.key_of(declared)
        self.effects.names.add(key)
        self.program.address_taken.add(key)
        return Value(functions=frozenset([key]))

    # Operators

    def _inner(self, cursor: Any) -> Value:
        return self.value(next(cursor.get_children()))

    def _unexposed(self, cursor: Any) -> Value:
        children = list(cursor.get_children())
        if len(children) == 1:
            return self.value(children[0])
        return self._joined(cursor)

    def _joined(self, cursor: Any) -> Value:
        """An expression of any other kind: all parts are evaluated, and the value may be that of any part."""
        found = NOTHING
        for child in cursor.get_children():
            if child.kind in _STATEMENTS:
                self.walk_statement(child)
            elif child.kind.is_expression():
                found = self.join(found, self.value(child))
        return found

    def join(self, one: Value, other: Value) -> Value:
        """A value that may be either."""
        if one and other:
            # Steensgaard 1996: what one value may point to is one class of storage from now on.
            self.memory.unify(one.node, other.node)
        known = one if one else other
        functions = one.functions | other.functions
        return Value(known.node, one.neighbour or other.neighbour, functions)

    def _unary_operator(self, cursor: Any) -> Value:
        operator, child = self._unary(cursor), next(cursor.get_children())
        if operator == _ADDRESS:
            return self._address(child)
        if operator == _DEREFERENCE:
            kind = self.types.of(cursor.type)
            if kind.kind == "function":
                return self.value(child)
            place = self.place(cursor)
            return NOTHING if place is None else self._loaded(place, kind, cursor)
        if operator in _INCREMENTS:
            place = self.place(child)
            if place is None:
                return NOTHING
            self.effects.reads.append(place)
            self.effects.writes.append(place)
            return self._moved(self._of_pointer(place, cursor))
        value = self.value(child)
        return Value(constant=-value.constant) if operator == _MINUS and value.constant is not None else NOTHING

    def _of_pointer(self, place: StorageSpot, cursor: Any) -> Value:
        kind = self.types.of(cursor.type)
        return Value(self.memory.pointee(place.node)) if kind.kind == "pointer" else NOTHING

    def _moved(self, value: Value) -> Value:
        if value:
            self.memory.moved[self.memory.find(value.node)] = True
        return value

    def _address(self, child: Any) -> Value:
        if self.types.of(child.type).kind == "function":
            return self.value(child)
        place = self.place(child)
        if place is None:
            return NOTHING
        if place.var:
            self.program.variables[place.var].address_taken = True
        neighbour = ""
        inner = child
        while inner.kind in (CursorKind.PAREN_EXPR, CursorKind.UNEXPOSED_EXPR):
            inner = next(inner.get_children())
        if inner.kind == CursorKind.MEMBER_REF_EXPR and self.types.of(inner.type).kind in ("scalar", "pointer"):
            # `&p.x` is often passed for three fields x, y, z in a row, so the fields beside it may be meant as well.
            neighbour = self.key_of(inner.referenced.semantic_parent)
        return Value(place.node, neighbour, is_address_of=True)

    def _binary_operator(self, cursor: Any) -> Value:
        operator = self._binary(cursor)
        left, right = cursor.get_children()
        if operator == _ASSIGN:
            value = self.value(right)
            place = self.place(left)
            if place is None:
                raise self.refuse(cursor, "an unusual assignment")
            self.write(place, value)
            return value
        if operator == _COMMA:
            self.value(left)
            return self.value(right)
        # Pointer arithmetic stays within the same storage, but may leave its first element.
        if operator in (_ADD, _SUBTRACT) and self.types.of(cursor.type).kind == "pointer":
            return self._moved(self.join(self.value(left), self.value(right)))
        self.value(left)
        self.value(right)
        return NOTHING

    def write(self, place: StorageSpot, value: Value) -> None:
        """Store a value."""
        self.effects.writes.append(place)
        if value:
            if value.neighbour:
                self.memory.neighbours[self.memory.find(value.node)].add(value.neighbour)
            # Steensgaard 1996, rule for x = y: both point to the same class of storage.
            self.memory.unify(self.memory.pointee(place.node), value.node)

    def _compound_assignment(self, cursor: Any) -> Value:
        left, right = cursor.get_children()
        self.value(right)
        place = self.place(left)
        if place is None:
            raise self.refuse(cursor, "an unusual assignment")
        self.effects.reads.append(place)
        self.effects.writes.append(place)
        return self._moved(self._of_pointer(place, cursor))

    def _cast(self, cursor: Any) -> Value:
        inner = [child for child in cursor.get_children() if child.kind.is_expression()]
        for size in inner[:-1]:  # of a type of variable arrays
            self.value(size)
        value = self.value(inner[-1])
        kind = self.types.of(cursor.type)
        # A pointer that is kept in an integer still points to its storage.
        if kind.kind != "pointer":
            return value if kind.kind == "scalar" else NOTHING
        source = self.types.of(inner[-1].type)
        # An integer variable may hold any address; the analysis cannot follow it.
        if source.kind == "scalar" and not value and value.constant is None and not self._is_constant(inner[-1]):
            raise self.refuse(cursor, "an integer that is converted to a pointer")
        if value and kind.to is not None and kind.to.kind not in ("void", "function"):
            self.types.describe(value.node, kind.to)
        return value

    def _is_constant(self, cursor: Any) -> bool:
        return all(
            node.kind not in (CursorKind.DECL_REF_EXPR, CursorKind.MEMBER_REF_EXPR, CursorKind.CALL_EXPR)
            for node in cursor.walk_preorder()
        )

    def _sizeof(self, cursor: Any) -> Value:
        """Sizeof and _Alignof evaluate nothing, but sizes of variable arrays are read."""
        for node in cursor.walk_preorder():
            if node.kind == CursorKind.DECL_REF_EXPR and node.referenced is not None:
                place = self._variable_place(node)
                if place is not None and self.types.of(node.type).kind == "scalar":
                    self.effects.reads.append(place)
        return NOTHING

    def _statement_expression(self, cursor: Any) -> Value:
        for child in cursor.get_children():
            self.walk_statement(child)
        kind = self.types.of(cursor.type)
        if kind.kind in ("pointer", "record"):
            raise self.refuse(cursor, "a statement expression with a pointer as its value")
        return NOTHING

    def _compound_literal(self, cursor: Any) -> Value:
        node = self.memory.new()
        kind = self.types.of(cursor.type)
        self.types.describe(node, kind)
        children = [child for child in cursor.get_children() if child.kind.is_expression()]
        if children:
            self.initialize(StorageSpot(node, whole=True), kind, children[-1])
        return Value(node)

    def initialize(self, place: StorageSpot, kind: CType, cursor: Any) -> None:
        """Store an initial value, which may be a list."""
        if cursor.kind != CursorKind.INIT_LIST_EXPR:
            self.write(place, self.value(cursor))
            return
        self.effects.writes.append(place)
        element = kind.element()
        nodes = [place.node, *(self.program.stored_fields(element.record) if element.record else [])]
        holders = [node for node in nodes if self.memory.holds_pointers[self.memory.find(node)]]
        for value in self._listed(cursor):
            if value:
                # Designators (`.x =`) are ignored: any field that can hold a pointer may get this one.
                for node in holders:
                    self.memory.unify(self.memory.pointee(node), value.node)

    def _listed(self, cursor: Any) -> list[Value]:
        values = []
        for child in cursor.get_children():
            if child.kind in (CursorKind.INIT_LIST_EXPR, CursorKind.UNEXPOSED_EXPR):
                values += self._listed(child) if len(list(child.get_children())) != 1 else [self.value(child)]
            elif child.kind.is_expression():
                values.append(self.value(child))
        return values
