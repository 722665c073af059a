"""Statements and declarations of a translation unit, as the program's own trees."""

import re
from typing import Any

from clang.cindex import CursorKind, StorageClass, TypeKind

from luthier.errors import KernelRefusedError
from luthier.io.kernel.expressions import Expressions
from luthier.io.kernel.ir import JUMPS, CProgram, Declaration, Effects, Function, Statement, StorageSpot
from luthier.io.kernel.layout import end_of_statement, header_semicolons, without_comments
from luthier.io.kernel.macros import Macros
from luthier.io.kernel.types import Types

# Levels of nested statements. They are read by recursion, and Python's stack is limited.
_DEEPEST = 150
_KINDS = {
    CursorKind.COMPOUND_STMT: "block",
    CursorKind.IF_STMT: "if",
    CursorKind.FOR_STMT: "for",
    CursorKind.WHILE_STMT: "while",
    CursorKind.DO_STMT: "do",
    CursorKind.SWITCH_STMT: "switch",
    CursorKind.CASE_STMT: "case",
    CursorKind.DEFAULT_STMT: "case",
    CursorKind.LABEL_STMT: "label",
    CursorKind.GOTO_STMT: "goto",
    CursorKind.BREAK_STMT: "break",
    CursorKind.CONTINUE_STMT: "continue",
    CursorKind.RETURN_STMT: "return",
    CursorKind.DECL_STMT: "declaration",
    CursorKind.NULL_STMT: "empty",
}
_REFUSED = {
    CursorKind.ASM_STMT: "inline assembly",
    CursorKind.MS_ASM_STMT: "inline assembly",
    CursorKind.INDIRECT_GOTO_STMT: "a computed goto",
}
_TRANSPARENT = {CursorKind.UNEXPOSED_EXPR, CursorKind.PAREN_EXPR, CursorKind.CSTYLE_CAST_EXPR}
_PRAGMA = re.compile(r"^[ \t]*#[ \t]*pragma[ \t]+(omp|luthier|acc)\b[^\n]*", re.M)
_TYPES_ONLY = {CursorKind.STRUCT_DECL, CursorKind.UNION_DECL, CursorKind.ENUM_DECL, CursorKind.TYPEDEF_DECL}


class UnitReader:
    """Reads one translation unit into the program."""

    def __init__(self, program: CProgram, path: str, text: str, own: set[str]) -> None:
        self.program = program
        self.path = path
        self.text = text
        self.own = own
        self.types = Types(program, self._key_of)
        self.expressions = Expressions(program, self.types, self._key_of)
        self.expressions.file = path
        self.expressions.walk_statement = self._walk_inside
        self.expressions.is_project = self._is_own
        self._function: Function | None = None
        self._macros = Macros(())
        self._depth = 0
        self._atomic: Statement | None = None

    def _is_own(self, cursor: Any) -> bool:
        return bool(cursor.location.file) and cursor.location.file.name in self.own

    @staticmethod
    def _key_of(cursor: Any) -> str:
        usr: str = cursor.get_usr()
        if usr.startswith("c:@"):
            return usr
        where = cursor.location
        return f"{where.file.name if where.file else ''}|{usr or where.offset}"

    def read(self, unit: Any) -> None:
        """Read all that is defined in the project's files."""
        top = list(unit.cursor.get_children())
        self._macros = Macros(
            (extent.start.offset, extent.end.offset)
            for cursor in top
            if cursor.kind == CursorKind.MACRO_INSTANTIATION
            and (extent := cursor.extent).start.file is not None
            and extent.start.file.name == self.path
        )
        for cursor in top:
            file = cursor.location.file
            if file is None or file.name not in self.own:
                continue
            if cursor.kind == CursorKind.FUNCTION_DECL:
                self._function_or_prototype(cursor, file.name)
            elif cursor.kind == CursorKind.VAR_DECL:
                self._global(cursor, file.name)
            elif cursor.kind.name == "UNEXPOSED_DECL" and "asm" in self._text_of(cursor, file.name):
                raise self.expressions.refuse(cursor, "inline assembly")

    def _text_of(self, cursor: Any, file: str) -> str:
        return self.text[cursor.extent.start.offset : cursor.extent.end.offset] if file == self.path else ""

    # Outside functions

    def _function_or_prototype(self, cursor: Any, file: str) -> None:
        key = self._key_of(cursor)
        if not cursor.is_definition():
            if file == self.path:
                self._declare((key,), cursor, Effects(), is_prototype=True)
            return
        if key in self.program.functions:
            # A function of a header is defined in every unit that includes it; it was read with the first of them.
            if self.program.functions[key].file != file or file == self.path:
                raise self.expressions.refuse(cursor, f"a second definition of {cursor.spelling}")
            return
        parameters = [child for child in cursor.get_children() if child.kind == CursorKind.PARM_DECL]
        body = next((child for child in cursor.get_children() if child.kind == CursorKind.COMPOUND_STMT), None)
        if body is None:
            raise self.expressions.refuse(cursor, "an unusual function definition")
        if file == self.path and parameters:
            between = self.text[parameters[-1].extent.end.offset : body.extent.start.offset]
            # K&R style, `int f(a) int a; { }`: declarations of the parameters stand before the body.
            if ";" in without_comments(between):
                raise self.expressions.refuse(cursor, "a definition in the style of K&R")
        self._define(cursor, key, file, parameters, body)

    def _define(self, cursor: Any, key: str, file: str, parameters: list[Any], body: Any) -> None:
        extent = cursor.extent
        memory = self.program.memory
        function = Function(
            key,
            cursor.spelling,
            file,
            extent.start.offset,
            extent.end.offset,
            extent.start.line,
            [],
            memory.new(),
            is_fixed=file != self.path,
            is_variadic=cursor.type.kind == TypeKind.FUNCTIONPROTO and cursor.type.is_function_variadic(),
            is_static=cursor.storage_class == StorageClass.STATIC,
            returns_record=self.types.of(cursor.result_type).kind == "record",
        )
        self.types.describe(function.result, self.types.of(cursor.result_type))
        self.program.functions[key] = function
        self._function, self.expressions.function = function, key
        function.parameters = [self.expressions.variable(parameter).key for parameter in parameters]
        # Pragmas of OpenMP and OpenACC; those of luthier only mark what to keep.
        function.has_threads = file == self.path and any(
            pragma.group(1) != "luthier" for pragma in _PRAGMA.finditer(self.text, function.start, function.end)
        )
        function.body = self._statement(body, None)
        self._function, self.expressions.function = None, ""

    def _global(self, cursor: Any, file: str) -> None:
        self.expressions.effects = effects = Effects()
        self.expressions.function = ""
        variable = self.expressions.variable(cursor)
        self._initialize(cursor)
        # A declaration does not need itself.
        effects.names.discard(variable.key)
        self._declare((variable.key,), cursor, effects, is_prototype=False, file=file)

    def _declare(
        self, keys: tuple[str, ...], cursor: Any, effects: Effects, *, is_prototype: bool, file: str | None = None
    ) -> None:
        extent = cursor.extent
        where = file or self.path
        end = self._end(extent.end.offset) if where == self.path else extent.end.offset
        self.program.declarations.append(
            Declaration(keys, where, extent.start.offset, end, extent.start.line, effects, is_prototype)
        )

    # Inside functions

    def _statement(self, cursor: Any, parent: Statement | None) -> Statement:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise self.expressions.refuse(cursor, f"a statement nested deeper than {_DEEPEST} levels")
        if cursor.kind in _REFUSED:
            raise self.expressions.refuse(cursor, _REFUSED[cursor.kind])
        kind = _KINDS.get(cursor.kind, "expression")
        # What a macro expands to cannot be cut in parts, so it is one statement.
        if parent is not None and kind != "block" and self._is_within_macro(cursor):
            kind = "atomic"
        statement = self._new(kind, cursor, parent)
        {
            "block": self._block,
            "if": self._if,
            "for": self._for,
            "while": self._while,
            "do": self._do,
            "switch": self._while,
            "case": self._case,
            "label": self._label,
            "goto": self._goto,
            "atomic": self._atomic_statement,
        }.get(kind, self._simple)(statement, cursor)
        self._depth -= 1
        return statement

    def _new(self, kind: str, cursor: Any, parent: Statement | None) -> Statement:
        if self._function is None:
            raise self.expressions.refuse(cursor, "a statement outside a function")
        extent = cursor.extent
        start, end = extent.start.offset, extent.end.offset
        if self._function.file == self.path:
            macro = self._macros.at(start)
            # A statement that begins inside the call of a macro is cut from the beginning of that call.
            if macro is not None:
                start = macro[0]
            end = self._end(end) if kind != "block" else self._macros.end(end)
        statement = Statement(
            len(self.program.statements),
            kind,
            self._function.key,
            start,
            max(end, start),
            extent.start.line,
            self.text.count("\n", start, end) + extent.start.line
            if self._function.file == self.path
            else extent.end.line,
            parent,
            jumps=kind in JUMPS,
        )
        self.program.statements.append(statement)
        self._function.statements.append(statement)
        return statement

    def _part(self, statement: Statement, name: str, cursor: Any) -> None:
        """The effects of an expression of the statement."""
        self.expressions.effects = effects = statement.parts.setdefault(name, Effects())
        if cursor.kind == CursorKind.DECL_STMT:
            self._declarations(cursor, statement)
            if name == "all":
                self._mark_target(cursor, effects)
        else:
            before = len(effects.writes)
            self.expressions.value(cursor)
            effects.kills = self._certain_write(cursor, effects, before)
            if name == "all":
                self._mark_target(cursor, effects)

    def _certain_write(self, cursor: Any, effects: Effects, before: int) -> str:
        """The variable that an assignment `x = ...`, not nested in anything, overwrites."""
        # Inside a macro, the assignment may be under a condition.
        if cursor.kind != CursorKind.BINARY_OPERATOR or self._is_within_macro(cursor) or not effects.writes[before:]:
            return ""
        left = next(cursor.get_children())
        # An assignment is recorded after the writes inside its right side.
        target = effects.writes[-1].var
        return target if left.kind == CursorKind.DECL_REF_EXPR and target else ""

    @staticmethod
    def _mark_target(cursor: Any, effects: Effects) -> None:
        """Note what becomes of the value of a call that is a statement, or the right side of `x = f();`."""
        inner = cursor
        if cursor.kind == CursorKind.DECL_STMT:
            declared = list(cursor.get_children())
            values = [child for child in declared[0].get_children() if child.kind.is_expression()]
            if len(declared) != 1 or len(values) != 1:
                return
            inner = values[0]
        elif effects.kills:
            inner = list(cursor.get_children())[1]
        # Casts and parentheses do not change whose value it is.
        while inner.kind in _TRANSPARENT:
            inner = list(inner.get_children())[-1]
        # Of nested calls the outer one is recorded last. The target is "" if nothing gets its value.
        if inner.kind == CursorKind.CALL_EXPR and effects.calls:
            effects.calls[-1].target = effects.kills

    def _block(self, statement: Statement, cursor: Any) -> None:
        for child in cursor.get_children():
            made = self._statement(child, statement)
            before = statement.children[-1] if statement.children else None
            # Both come out of the same macro: their texts overlap, and neither can be cut alone.
            if before is not None and made.start < before.end and self._function and not self._function.is_fixed:
                self._merge(before, made)
            else:
                statement.children.append(made)

    def _merge(self, first: Statement, second: Statement) -> None:
        """Two statements out of one macro are kept or dropped together."""
        effects = first.parts.setdefault("all", Effects())
        for inner in [*first.walk(), *second.walk()]:
            for part in inner.parts.values():
                if part is not effects:
                    _add_effects(effects, part)
            first.jumps |= inner.jumps
            first.targets += inner.targets if inner is not first else []
            first.targets += [inner.label] if inner.kind == "goto" else []
            if inner.kind == "label":
                raise self._refuse_line(inner.line, "a label inside a macro")
        # The inner statements disappear; variables that they declared are now declared by the first one.
        gone = {inner.index for inner in [*first.walk()[1:], *second.walk()]}
        for name in effects.names & self.program.variables.keys():
            variable = self.program.variables[name]
            variable.declared_by = [first.index if number in gone else number for number in variable.declared_by]
        if self._function is not None:
            self._function.statements = [kept for kept in self._function.statements if kept.index not in gone]
        first.kind, first.children, first.parts = "atomic", [], {"all": effects}
        first.end, first.last_line = max(first.end, second.end), max(first.last_line, second.last_line)

    def _refuse_line(self, line: int, what: str) -> KernelRefusedError:
        where = f"{self.path}:{line}"
        return KernelRefusedError(f"{where}: {what} is not supported in I/O kernels; tune the program itself")

    def _body(self, statement: Statement, cursor: Any) -> None:
        child = self._statement(cursor, statement)
        statement.children.append(child)

    def _if(self, statement: Statement, cursor: Any) -> None:
        condition, *bodies = cursor.get_children()
        self._control(statement, cursor, [("cond", condition)], bodies)

    def _while(self, statement: Statement, cursor: Any) -> None:
        condition, body = cursor.get_children()
        self._control(statement, cursor, [("cond", condition)], [body])

    def _do(self, statement: Statement, cursor: Any) -> None:
        body, condition = cursor.get_children()
        self._control(statement, cursor, [("cond", condition)], [body])

    def _for(self, statement: Statement, cursor: Any) -> None:
        *header, body = cursor.get_children()
        names = self._header_names(statement, header)
        self._control(statement, cursor, list(zip(names, header, strict=True)), [body])

    def _header_names(self, statement: Statement, header: list[Any]) -> list[str]:
        """Which of init, condition and increment the parts of a for header are."""
        all_names = ["init", "cond", "inc"]
        # libclang leaves out empty parts, as in `for (;; i++)`; then the semicolons tell which ones are there.
        if len(header) == len(all_names):
            return all_names
        if self._macros.at(statement.start) is not None or (self._function and self._function.is_fixed):
            # No text to look at: the loop is written by a macro or is in a header.
            return ["any"] * len(header)
        first, second = header_semicolons(self.text, statement.start)
        return [
            "init" if (at := part.extent.start.offset) < first else "cond" if at < second else "inc" for part in header
        ]

    def _control(self, statement: Statement, cursor: Any, parts: list[tuple[str, Any]], bodies: list[Any]) -> None:
        macro = self._macros.at(cursor.extent.start.offset)
        # The macro holds the beginning of the body too, so header and body cannot be cut apart.
        in_header = macro is not None and any(body.extent.start.offset < macro[1] for body in bodies)
        if in_header and self._function is not None and not self._function.is_fixed:
            statement.kind = "atomic"
            self._atomic_statement(statement, cursor)
            return
        for name, part in parts:
            self._part(statement, name, part)
        for body in bodies:
            self._body(statement, body)

    def _case(self, statement: Statement, cursor: Any) -> None:
        *values, inner = cursor.get_children()
        for value in values:
            self._part(statement, "value", value)
        self._body(statement, inner)
        statement.header_end = statement.children[0].start

    def _label(self, statement: Statement, cursor: Any) -> None:
        statement.label = cursor.spelling
        self._body(statement, next(cursor.get_children()))
        statement.header_end = statement.children[0].start

    def _goto(self, statement: Statement, cursor: Any) -> None:
        statement.label = next(cursor.get_children()).spelling

    def _simple(self, statement: Statement, cursor: Any) -> None:
        """An expression, a declaration, a return, a break, a continue or nothing."""
        if statement.kind == "declaration":
            self._part(statement, "all", cursor)
        elif statement.kind == "return":
            self._returned(statement, cursor)
        elif statement.kind == "expression":
            self._part(statement, "all", cursor)

    def _returned(self, statement: Statement, cursor: Any) -> None:
        self.expressions.effects = statement.parts.setdefault("all", Effects())
        for child in cursor.get_children():
            value = self.expressions.value(child)
            if value and self._function is not None:
                self.expressions.memory.unify(self.expressions.memory.pointee(self._function.result), value.node)

    def _declarations(self, cursor: Any, statement: Statement) -> None:
        effects = self.expressions.effects
        for child in cursor.get_children():
            if child.kind == CursorKind.VAR_DECL:
                variable = self.expressions.variable(child)
                variable.declared_by.append(statement.index)
                effects.names.add(variable.key)
                # A static variable gets its first value before the program starts; its declaration overwrites nothing.
                if not variable.is_static:
                    effects.writes.append(StorageSpot(variable.node, whole=not variable.is_simple, var=variable.key))
                    effects.kills = variable.key
                self._initialize(child)
            elif child.kind in _TYPES_ONLY or child.kind == CursorKind.FUNCTION_DECL:
                statement.label = "type"
                # The size in `typedef double row[n]` is computed where the typedef stands.
                if child.kind == CursorKind.TYPEDEF_DECL:
                    for size in child.get_children():
                        if size.kind.is_expression():
                            self.expressions.value(size)

    def _initialize(self, cursor: Any) -> None:
        """Evaluate the sizes of a variable's type, and store its first value."""
        variable = self.expressions.variable(cursor)
        kind = self.types.of(cursor.type)
        name_at = cursor.location.offset
        for child in cursor.get_children():
            if not child.kind.is_expression():
                continue
            at = child.extent.start.offset
            # `int a[n] = {0}` has two expressions: n is a size, and what follows the equals sign is a value.
            is_value = kind.kind != "array" or at <= name_at or "=" in self.text[name_at:at]
            if is_value:
                place = StorageSpot(variable.node, whole=not variable.is_simple, var=variable.key)
                self.expressions.initialize(place, kind, child)
            else:
                self.expressions.value(child)

    # Macros

    def _atomic_statement(self, statement: Statement, cursor: Any) -> None:
        """All that a macro expands to is one statement; what it does may or may not happen."""
        self.expressions.effects = statement.parts.setdefault("all", Effects())
        outer, self._atomic = self._atomic, statement
        self._walk_inside(cursor)
        self._atomic = outer

    def _walk_inside(self, cursor: Any) -> None:
        """Add the effects of a statement that lies within an expression or a macro."""
        if cursor.kind in _REFUSED:
            raise self.expressions.refuse(cursor, _REFUSED[cursor.kind])
        kind = _KINDS.get(cursor.kind, "expression")
        owner = self._atomic
        if kind in JUMPS or kind == "label":
            # A jump out of `({ ... })` would leave the middle of an expression; the flow knows only whole statements.
            if owner is None:
                raise self.expressions.refuse(cursor, f"{kind} inside an expression")
            if kind == "label":
                raise self.expressions.refuse(cursor, "a label inside a macro")
            owner.jumps = True
            if kind == "goto":
                owner.targets.append(next(cursor.get_children()).spelling)
                return
        if kind == "declaration":
            holder = owner or self.program.statements[-1]
            self._declarations(cursor, holder)
        elif kind == "return":
            for child in cursor.get_children():
                value = self.expressions.value(child)
                if value and self._function is not None:
                    self.expressions.memory.unify(self.expressions.memory.pointee(self._function.result), value.node)
        elif kind == "expression":
            self.expressions.value(cursor)
        else:
            for child in cursor.get_children():
                if child.kind.is_statement() or child.kind.is_expression():
                    self._walk_inside(child)
        # Nothing inside a macro or an expression is certain to happen, so it overwrites nothing for certain.
        self.expressions.effects.kills = ""

    def _is_within_macro(self, cursor: Any) -> bool:
        if self._function is None or self._function.file != self.path:
            return False
        extent = cursor.extent
        macro = self._macros.at(extent.start.offset)
        return macro is not None and extent.end.offset <= macro[1]

    def _end(self, offset: int) -> int:
        return end_of_statement(self.text, self._macros.end(offset))


def _add_effects(total: Effects, part: Effects) -> None:
    total.reads += part.reads
    total.writes += part.writes
    total.names |= part.names
    total.calls += part.calls
