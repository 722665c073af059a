"""Constraints between parameters, such as "threshold <= length"."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from luthier.arrays import BoolArray
from luthier.errors import SpaceError
from luthier.space.arguments import is_quantity
from luthier.space.expressions import (
    Absolute,
    Columns,
    Constant,
    Expression,
    Not,
    Operation,
    Reference,
    TermComparison,
    Truth,
)
from luthier.space.parameters import Choice, Parameter
from luthier.space.syntax import FUNCTIONS, ConstraintToken, Tokens
from luthier.space.units import parse_quantity
from luthier.texts import LONGEST_RULE, is_argument, shown, visible
from luthier.trial import Value

Kind: TypeAlias = Literal["number", "condition", "text", "label"]
"""What an expression is: a label is one of the values of a choice that mixes numbers and texts."""

_DEEPEST = 40
# How tightly operators bind, as in Python; `not` stands between `and` and the comparisons, a sign just below **.
_BINDING = {"or": 1, "and": 2, "+": 5, "-": 5, "*": 6, "/": 6, "//": 6, "%": 6, "**": 8}
_NOT_BINDING, _COMPARISON_BINDING, _SIGN_BINDING = 3, 4, 7
_COMPARISONS = frozenset({"<", "<=", ">", ">=", "==", "!="})


@dataclass(frozen=True, slots=True)
class Constraint:
    """A condition over some parameters of a space, given by their positions."""

    text: str
    root: Expression
    positions: frozenset[int]

    def satisfied(self, codes: Columns, count: int) -> BoolArray:
        """Which of `count` configurations satisfy it; one for which it is undefined does not."""
        with np.errstate(all="ignore"):
            return np.broadcast_to(self.root.evaluate(codes) == 1.0, (count,))

    def verdict(self, low: Columns, high: Columns, count: int) -> tuple[BoolArray, BoolArray]:
        """Which of `count` boxes may hold a configuration that satisfies it, and which hold no other."""
        with np.errstate(all="ignore"):
            bounds = self.root.bounds(low, high)
        return np.broadcast_to(bounds.high == 1.0, (count,)), np.broadcast_to(bounds.low == 1.0, (count,))


def parse_constraint(text: str, parameters: Sequence[Parameter]) -> Constraint:
    """Read a constraint over the named parameters."""
    if not isinstance(text, str) or not text.strip() or not is_argument(text):
        raise SpaceError(f"constraint {shown(text)} is not a text such as 'threshold <= length'")
    if len(text) > LONGEST_RULE:
        raise SpaceError(f"constraint {shown(text)} has {len(text)} characters; the limit is {LONGEST_RULE}; split it")
    parser = _Parser(text, parameters)
    root = parser.condition()
    if not parser.positions:
        known = ", ".join(parameter.name for parameter in parameters)
        raise SpaceError(f'constraint "{visible(text)}": names no parameter; known: {known}')
    return Constraint(text, root, frozenset(parser.positions))


@dataclass(frozen=True, slots=True)
class _Part:
    """An expression under construction: what it is, where it began, and the literal or choice it was written as."""

    kind: Kind
    expression: Expression
    token: ConstraintToken
    literal: Value | None = None
    choice: tuple[int, Choice] | None = None


class _Parser:
    """Precedence climbing over the words of one constraint."""

    def __init__(self, text: str, parameters: Sequence[Parameter]) -> None:
        self._parameters = {parameter.name: (position, parameter) for position, parameter in enumerate(parameters)}
        self._tokens = Tokens(text, self._parameters)
        self._depth = 0
        self._labels: dict[tuple[type, Value], float] = {}
        self.positions: set[int] = set()

    def condition(self) -> Expression:
        """Read the whole constraint."""
        part = self._expression(0)
        if self._tokens.next.kind != "end":
            raise self._tokens.error(
                self._tokens.next, f"found {self._tokens.next.text!r}; expected an operator or the end"
            )
        return self._need(part, "condition").expression

    def _need(self, part: _Part, kind: Kind) -> _Part:
        if part.kind == kind:
            return part
        advice = "compare it with something" if kind == "condition" else f"expected a {kind}"
        raise self._tokens.error(part.token, f"{part.token.text!r} begins a {part.kind}, not a {kind}; {advice}")

    def _expression(self, binding: int) -> _Part:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise self._tokens.error(self._tokens.next, f"is nested deeper than {_DEEPEST} levels; split it")
        left = self._prefix()
        while True:
            token = self._tokens.next
            if token.kind == "word" and _BINDING.get(token.text, 0) > binding:
                left = self._infix(left, self._tokens.take())
            elif self._at_comparison() and binding < _COMPARISON_BINDING:
                left = self._comparisons(left)
            else:
                self._depth -= 1
                return left

    def _prefix(self) -> _Part:
        token = self._tokens.take()
        if token.kind == "number":
            return _Part("number", Constant(token.number), token, literal=token.number)
        if token.kind == "text":
            return _Part("text", Constant(self._label(token.text)), token, literal=token.text)
        if token.kind == "name":
            return self._reference(token)
        if token.text in ("true", "false"):
            return _Part("condition", Constant(float(token.text == "true")), token, literal=token.text == "true")
        if token.text == "(":
            inner = self._expression(0)
            self._tokens.expect(")")
            return inner
        if token.text in ("-", "+"):
            operand = self._need(self._expression(_SIGN_BINDING), "number")
            return _Part("number", Operation(token.text, Constant(0.0), operand.expression), token)
        if token.text == "not":
            operand = self._need(self._expression(_NOT_BINDING), "condition")
            return _Part("condition", Not(operand.expression), token)
        if token.text in FUNCTIONS:
            return self._function(token)
        raise self._tokens.error(token, f"found {token.text or 'the end'!r}; expected a value")

    def _infix(self, left: _Part, operator: ConstraintToken) -> _Part:
        kind: Kind = "condition" if operator.text in ("and", "or") else "number"
        # ** binds to the right: 2 ** 3 ** 2 is 2 ** 9.
        right = self._expression(_BINDING[operator.text] - (operator.text == "**"))
        self._need(left, kind), self._need(right, kind)
        return _Part(kind, Operation(operator.text, left.expression, right.expression), left.token)

    def _function(self, token: ConstraintToken) -> _Part:
        self._tokens.expect("(")
        arguments = self._list_until(")")
        values = [self._need(argument, "number").expression for argument in arguments]
        if token.text == "abs":
            if len(values) != 1:
                raise self._tokens.error(token, f"abs takes one number, not {len(values)}")
            return _Part("number", Absolute(values[0]), token)
        folded = values[0]
        for value in values[1:]:
            folded = Operation(token.text, folded, value)
        return _Part("number", folded, token)

    def _list_until(self, closing: str) -> list[_Part]:
        parts = [self._expression(0)]
        while self._tokens.accept(","):
            parts.append(self._expression(0))
        self._tokens.expect(closing)
        return parts

    def _at_comparison(self) -> bool:
        if self._tokens.next.kind != "word":
            return False
        if self._tokens.next.text == "not":
            return self._tokens.after_next.text == "in"
        return self._tokens.next.text in _COMPARISONS or self._tokens.next.text == "in"

    def _comparisons(self, first: _Part) -> _Part:
        left, links = first, list[Expression]()
        while self._at_comparison():
            operator = self._tokens.take()
            if operator.text in ("in", "not"):
                links.append(self._membership(left, operator))
                break
            right = self._expression(_COMPARISON_BINDING)
            links.append(self._compare(left, operator, right))
            left = right
        whole = links[0]
        for link in links[1:]:
            whole = Operation("and", whole, link)
        return _Part("condition", whole, first.token)

    def _membership(self, left: _Part, operator: ConstraintToken) -> Expression:
        if operator.text == "not":
            self._tokens.expect("in")
        self._tokens.expect("[")
        equal = ConstraintToken("word", "==", operator.position)
        matches = [self._compare(left, equal, member) for member in self._list_until("]")]
        found = matches[0]
        for match in matches[1:]:
            found = Operation("or", found, match)
        return Not(found) if operator.text == "not" else found

    def _compare(self, left: _Part, operator: ConstraintToken, right: _Part) -> Expression:
        a, b = self._alike(left, right, operator)
        match operator.text:
            case "==":
                return TermComparison("==", a, b)
            case "!=":
                return Not(TermComparison("==", a, b))
            case "<":
                return TermComparison("<", a, b)
            case ">":
                return TermComparison("<", b, a)
            case "<=":
                return TermComparison("<=", a, b)
            case _:
                return TermComparison("<=", b, a)

    def _alike(self, left: _Part, right: _Part, operator: ConstraintToken) -> tuple[Expression, Expression]:
        """Two expressions that can be compared with each other."""
        equality = operator.text in ("==", "!=")
        for one, other in ((left, right), (right, left)):
            if equality and one.choice and other.literal is not None and (one.kind == "label" or other.kind == "text"):
                return self._choice_and_literal(one, other, operator)
        if left.kind != right.kind:
            raise self._tokens.error(operator, f"compares a {left.kind} with a {right.kind}; compare like with like")
        if left.kind == "number":
            return left.expression, right.expression
        if not equality:
            raise self._tokens.error(operator, f"a {left.kind} is not less or more than another; use ==, != or in")
        if left.kind == "condition":
            return Truth(left.expression), Truth(right.expression)
        return left.expression, right.expression

    def _choice_and_literal(self, one: _Part, other: _Part, operator: ConstraintToken) -> tuple[Expression, Expression]:
        """A choice compared with one of its values."""
        if one.choice is None or other.literal is None:
            raise self._tokens.error(operator, "expected a choice and a literal")
        position, choice = one.choice
        literal = other.literal
        if isinstance(literal, str) and not choice.contains(literal) and one.kind == "number" and is_quantity(literal):
            return one.expression, Constant(float(parse_quantity(literal)[0]))
        table = tuple(self._label(value) for value in choice.values)
        wanted = self._label(literal)
        if wanted not in table:
            raise self._tokens.error(operator, f"{choice.name} is never {shown(literal)}; expected {choice.describe()}")
        return Reference(position, choice, table), Constant(wanted)

    def _reference(self, token: ConstraintToken) -> _Part:
        position, parameter = self._parameters[token.text]
        self.positions.add(position)
        if not isinstance(parameter, Choice):
            return _Part("number", Reference(position, parameter, None), token)
        choice, magnitudes = (position, parameter), parameter.magnitudes()
        if magnitudes is not None:
            kind: Kind = "condition" if isinstance(parameter.values[0], bool) else "number"
            return _Part(kind, Reference(position, parameter, magnitudes), token, choice=choice)
        kind = "text" if all(isinstance(value, str) for value in parameter.values) else "label"
        table = tuple(self._label(value) for value in parameter.values)
        return _Part(kind, Reference(position, parameter, table), token, choice=choice)

    def _label(self, value: Value) -> float:
        """A number for a text or a value; equal values have equal numbers."""
        group = str if isinstance(value, str) else bool if isinstance(value, bool) else float
        return self._labels.setdefault((group, value), float(len(self._labels)))
