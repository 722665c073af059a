"""The words of a constraint: numbers with units, quoted texts, names, operators."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from luthier.errors import SpaceError
from luthier.space.units import parse_quantity
from luthier.texts import NUMBER, closest, visible

KEYWORDS = frozenset({"and", "or", "not", "in", "true", "false"})
FUNCTIONS = frozenset({"min", "max", "abs"})

_SPACE = re.compile(r"\s*")
# A % that directly follows a number is a unit where no value follows it, else the remainder.
_PERCENT = r"%(?=\s*(?:$|[)\],<>=!+\-*/]|(?:and|or|in|not)\b))"
_NUMBER = re.compile(rf"(?![-+]){NUMBER}(?:[A-Za-z_]+|{_PERCENT})?")
_TEXT = re.compile(r"'[^']*'|\"[^\"]*\"")
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*")
_SYMBOL = re.compile(r"\*\*|//|<=|>=|==|!=|[-+*/%<>()\[\],]")
_MOST_WORDS = 300
_MOST_SUGGESTED = 20


@dataclass(frozen=True, slots=True)
class ConstraintToken:
    """A word of a constraint and where it begins, counted from 1."""

    kind: Literal["number", "text", "name", "word", "end"]
    text: str
    position: int
    number: float = 0.0


def syntax_error(constraint: str, position: int, problem: str) -> SpaceError:
    """The error for a constraint that cannot be understood."""
    return SpaceError(f'constraint "{visible(constraint)}": position {position}: {problem}')


class Tokens:
    """The words of one constraint, read from left to right."""

    def __init__(self, constraint: str, names: Iterable[str]) -> None:
        self._constraint, self._tokens, self._at = constraint, tokenize(constraint, names), 0

    @property
    def next(self) -> ConstraintToken:
        """The word to be read next."""
        return self._tokens[self._at]

    @property
    def after_next(self) -> ConstraintToken:
        """The word after the next one."""
        return self._tokens[min(self._at + 1, len(self._tokens) - 1)]

    def take(self) -> ConstraintToken:
        """Read a word; the end can be read any number of times."""
        token = self.next
        self._at += token.kind != "end"
        return token

    def accept(self, *words: str) -> ConstraintToken | None:
        """Read the next word if it is one of these."""
        return self.take() if self.next.kind == "word" and self.next.text in words else None

    def expect(self, word: str) -> None:
        """Read this word, or raise an error."""
        if not self.accept(word):
            raise self.error(self.next, f"found {self.next.text or 'the end'!r}; expected {word!r}")

    def error(self, token: ConstraintToken, problem: str) -> SpaceError:
        """The error for a problem at a word."""
        return syntax_error(self._constraint, token.position, problem)


def tokenize(constraint: str, names: Iterable[str]) -> Sequence[ConstraintToken]:
    """Split a constraint into words; of several parameter names that match, the longest is taken."""
    longest_first = sorted(names, key=len, reverse=True)
    tokens: list[ConstraintToken] = []
    at = _end_of(_SPACE, constraint, 0)
    while at < len(constraint):
        token, at = _next_token(constraint, at, longest_first)
        tokens.append(token)
        if len(tokens) > _MOST_WORDS:
            raise SpaceError(f'constraint "{constraint[:40]}...": is longer than {_MOST_WORDS} words; split it')
        at = _end_of(_SPACE, constraint, at)
    return [*tokens, ConstraintToken("end", "", len(constraint) + 1)]


def suggest(name: str, names: Iterable[str]) -> str:
    """What to write instead of an unknown name."""
    known = sorted(names)
    near = closest(name, known, cutoff=0.5)
    if near is not None:
        return f"did you mean {near!r}?"
    return f"known: {', '.join(known[:_MOST_SUGGESTED])}{', ...' if len(known) > _MOST_SUGGESTED else ''}"


def _end_of(pattern: re.Pattern[str], text: str, at: int) -> int:
    match = pattern.match(text, at)
    return match.end() if match else at


def _next_token(constraint: str, at: int, names: Sequence[str]) -> tuple[ConstraintToken, int]:
    if (end := _end_of(_NUMBER, constraint, at)) > at:
        return _number(constraint, at, end), end
    if (end := _end_of(_TEXT, constraint, at)) > at:
        return ConstraintToken("text", constraint[at + 1 : end - 1], at + 1), end
    if (end := _end_of(_WORD, constraint, at)) > at:
        return _word(constraint, at, end, names)
    if (end := _end_of(_SYMBOL, constraint, at)) > at:
        return ConstraintToken("word", constraint[at:end], at + 1), end
    advice = "write == to compare" if constraint[at] == "=" else "expected a value or an operator"
    raise syntax_error(constraint, at + 1, f"found {constraint[at]!r}; {advice}")


def _number(constraint: str, at: int, end: int) -> ConstraintToken:
    try:
        number, _ = parse_quantity(constraint[at:end])
    except SpaceError as error:
        raise syntax_error(constraint, at + 1, str(error)) from None
    return ConstraintToken("number", constraint[at:end], at + 1, float(number))


def _word(constraint: str, at: int, end: int, names: Sequence[str]) -> tuple[ConstraintToken, int]:
    for name in names:
        after = constraint[at + len(name) : at + len(name) + 1]
        if constraint.startswith(name, at) and not (after.isalnum() or after == "_") and name not in KEYWORDS:
            called = name in FUNCTIONS and constraint[at + len(name) :].lstrip().startswith("(")
            return ConstraintToken("word" if called else "name", name, at + 1), at + len(name)
    word = constraint[at:end]
    if word not in KEYWORDS | FUNCTIONS:
        raise syntax_error(constraint, at + 1, f"there is no parameter {word!r}; {suggest(word, names)}")
    return ConstraintToken("word", word, at + 1), end
