"""Calls within expressions."""

from typing import TYPE_CHECKING, Any

from clang.cindex import CursorKind

from luthier.io.kernel.ir import NOTHING, Argument, Call, Value
from luthier.io.kernel.types import CType

if TYPE_CHECKING:
    from luthier.io.kernel.expressions import Expressions


def read_call(expressions: "Expressions", cursor: Any) -> Value:
    """Evaluate a call: its arguments are linked with parameters once all units are read."""
    children = [child for child in cursor.get_children() if child.kind.is_expression()]
    callee, given = children[0], children[1:]
    declared = _called(callee)
    if declared is None:
        expressions.value(callee)
    else:
        expressions.effects.names.add(expressions.key_of(declared))
    function_type = _function_type(callee)
    parameters = [expressions.types.of(kind) for kind in function_type.argument_types()] if function_type else []
    arguments = [_argument(expressions, argument, parameters, index) for index, argument in enumerate(given)]
    call = Call(
        "" if declared is None else expressions.key_of(declared),
        "" if declared is None else declared.spelling,
        "" if declared is None or declared.location.file is None else declared.location.file.name,
        cursor.location.line,
        arguments,
        expressions.memory.new(),
        len(parameters),
        noreturn="noreturn" in callee.type.spelling,
        is_project=declared is not None and expressions.is_project(declared),
    )
    expressions.effects.calls.append(call)
    kind = expressions.types.of(cursor.type)
    if kind.kind == "pointer":
        call.gives_pointer = kind.to is not None and not kind.to.opaque and kind.to.kind != "function"
        if kind.to is not None:
            expressions.types.describe(call.result, kind.to)
        return Value(call.result)
    return NOTHING


def _called(callee: Any) -> Any:
    while callee.kind in (CursorKind.UNEXPOSED_EXPR, CursorKind.PAREN_EXPR):
        children = list(callee.get_children())
        if len(children) != 1:
            return None
        callee = children[0]
    if callee.kind != CursorKind.DECL_REF_EXPR:
        return None
    declared = callee.referenced
    return declared if declared is not None and declared.kind == CursorKind.FUNCTION_DECL else None


def _function_type(callee: Any) -> Any:
    kind = callee.type.get_canonical()
    pointed = kind.get_pointee()
    kind = pointed.get_canonical() if pointed.spelling else kind
    return kind if kind.kind.name == "FUNCTIONPROTO" else None


def _argument(expressions: "Expressions", cursor: Any, parameters: list[CType], index: int) -> Argument:
    value = expressions.value(cursor)
    kind = parameters[index] if index < len(parameters) else expressions.types.of(_uncast(cursor).type)
    given = expressions.types.of(_uncast(cursor).type)
    to = expressions.types.pointed(kind)
    points = kind.kind in ("pointer", "array") and to.kind != "function"
    given_to = expressions.types.pointed(given)
    return Argument(
        value,
        points,
        to.constant,
        to.opaque or given_to.opaque,
        to.kind == "void" or to.small,
        deep=to.kind == "pointer" or given_to.kind == "pointer",
    )


def _uncast(cursor: Any) -> Any:
    """The expression under implicit conversions: `void *` says nothing about what is passed."""
    while cursor.kind == CursorKind.UNEXPOSED_EXPR:
        children = list(cursor.get_children())
        if len(children) != 1:
            break
        cursor = children[0]
    return cursor
