"""The kernel's text: the source without the statements, functions and declarations that are not kept."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from luthier.errors import KernelRefusedError
from luthier.io.kernel.discovery import UNVERIFIED
from luthier.io.kernel.ir import CProgram, Statement
from luthier.io.kernel.layout import MARK, is_balanced, without_comments
from luthier.io.kernel.loops import KernelLoop
from luthier.io.kernel.slicing import Slice

NO_LOOPS: Mapping[int, KernelLoop] = MappingProxyType({})
HEADER = """\
/* I/O kernel of {name}, made by luthier io discover: only what its I/O needs is left. */
/* {verdict} */
#if defined(__GNUC__)
{warnings}
#endif
#line 1
"""
_WARNINGS = (
    *("unused-variable", "unused-but-set-variable", "unused-function", "unused-parameter", "unused-but-set-parameter"),
    *("unused-value", "unused-label", "empty-body", "unused-const-variable", "maybe-uninitialized", "uninitialized"),
    *("unused-result", "unknown-pragmas", "implicit-fallthrough"),
)
_POSITION = re.compile(r"\b__(?:LINE|FILE)__\b")
_COMMENT_LINE = re.compile(r"[ \t]*(?://[^\n]*|/\*(?:(?!\*/)[^\n])*\*/[ \t]*)\Z")
_TRAILING = re.compile(r"[ \t]*(?://[^\n]*|/\*(?:(?!\*/)[^\n])*\*/[ \t]*)?(?=\n|\Z)")
_PRAGMA_LINE = re.compile(r"[ \t]*#[ \t]*pragma\b(?:[^\n]|\\\n)*\Z")
_SAME_DECLARATION = re.compile(r"\s*,[\s*(]*")  # between two variables of one declaration
_STANDALONE = re.compile(
    r"[ \t]*#[ \t]*pragma[ \t]+omp[ \t]+(?:barrier|taskwait|taskyield|flush|threadprivate|declare)\b"
)
_BLANKS = re.compile(r"\n(?:[ \t]*\n){2,}")
_FIRST_BLANKS = re.compile(r"(\{[ \t]*\n)(?:[ \t]*\n)+")
_LAST_BLANKS = re.compile(r"\n(?:[ \t]*\n)+([ \t]*\})")


@dataclass(slots=True)
class Edits:
    """Ranges of a text to replace, and texts to insert."""

    text: str
    path: str
    cuts: list[tuple[int, int, str]] = field(default_factory=list)

    def cut(self, start: int, end: int, replacement: str = "") -> None:
        """Replace a range."""
        if not is_balanced(self.text[start:end]):
            line = self.text.count("\n", 0, start) + 1
            raise KernelRefusedError(
                f"{self.path}:{line}: a statement that is split by #if or #else is not supported; "
                "tune the program itself"
            )
        self.cuts.append((start, end, replacement))

    def result(self, *, numbered: bool = False) -> str:
        """The edited text; numbered: with #line where lines are missing, so that __LINE__ and __FILE__ are the same."""
        parts, position, has_moved = [], 0, numbered
        for start, end, replacement in sorted(self.cuts, key=lambda cut: cut[:2]):
            if start < position:  # inside a larger cut
                continue
            kept, has_moved = self._numbered(position, start, has_moved=has_moved)
            parts += [kept, replacement]
            has_moved |= numbered and self.text.count("\n", start, end) != replacement.count("\n")
            position = max(end, position)
        return "".join([*parts, self._numbered(position, len(self.text), has_moved=has_moved)[0]])

    def _numbered(self, start: int, end: int, *, has_moved: bool) -> tuple[str, bool]:
        """A part of the text, with #line at the first beginning of a line; whether that is still to come."""
        text = self.text
        at = start if start == 0 or text[start - 1] == "\n" else text.find("\n", start, end) + 1
        while at > 1 and text[at - 2] == "\\":  # the line is continued
            at = text.find("\n", at, end) + 1
        if not has_moved or (at == 0 and start > 0) or at >= end:
            return text[start:end], has_moved
        # Sources are read as Latin-1, a character for each byte, so the path must have the same form.
        name = self.path.encode().decode("latin-1").replace("\\", "\\\\").replace('"', '\\"')
        line = f'#line {text.count(chr(10), 0, at) + 1} "{name}"\n'
        return f"{text[start:at]}{line}{text[at:end]}", False


def emitted(
    program: CProgram, kept: Slice, path: str, fills: Mapping[int, str], loops: Mapping[int, KernelLoop] = NO_LOOPS
) -> str:
    """The kernel's text of one main file. `fills` are texts to insert after statements; `loops` are marked."""
    text = program.files[path]
    edits = Edits(text, path)
    for function in program.functions.values():
        if function.file != path or function.body is None:
            continue
        if function.key in kept.functions:
            _Writer(edits, kept, fills, loops).statements(function.body)
        else:
            _cut_lines(edits, function.start, function.end)
    _cut_declarations(program, kept, path, edits)
    # A program that uses __LINE__ or __FILE__ must get the same values as before.
    numbered = any(_POSITION.search(one) for one in (*program.files.values(), *program.header_texts))
    text = edits.result(numbered=True) if numbered else _tidy(edits.result())
    # The fills call memset.
    return f"#include <string.h>\n{text}" if fills else text


def headed(name: str, text: str) -> str:
    """The text below a comment that says what it is."""
    warnings = "\n".join(f'#pragma GCC diagnostic ignored "-W{warning}"' for warning in _WARNINGS)
    safe = "".join(sign for sign in name if sign.isalnum() or sign in "._-")
    header = HEADER.format(name=safe, verdict=UNVERIFIED, warnings=warnings).replace("#line 1\n", "")
    return f"{header}\n{text}"


def _tidy(text: str) -> str:
    text = _BLANKS.sub("\n\n", text)
    text = _FIRST_BLANKS.sub(r"\1", text)
    return _LAST_BLANKS.sub(r"\n\1", text)


def _cut_declarations(program: CProgram, kept: Slice, path: str, edits: Edits) -> None:
    groups: dict[int, list[tuple[int, bool]]] = {}
    text, start, end = program.files[path], 0, 0
    ordered = sorted((one for one in program.declarations if one.file == path), key=lambda one: one.start)
    for declaration in ordered:
        key = declaration.keys[0]
        if declaration.is_prototype:
            needed = key not in program.functions or key in kept.functions
        else:
            needed = key in kept.names
        # Only a comma between two variables: they are one declaration.
        if not _SAME_DECLARATION.fullmatch(without_comments(text[end : declaration.start])):
            start = declaration.start
        end = declaration.end
        groups.setdefault(start, []).append((end, needed))
    for start, members in groups.items():  # int a, b; is cut only if neither is needed
        end = max(end for end, _ in members)
        if not any(needed for _, needed in members) and text[end - 1] == ";":
            declared = text[start:end]
            # Other code may need the type that is declared together with the variable.
            if not re.search(r"\b(?:struct|union|enum)\b[^;{(]*\{", declared) and "typedef" not in declared:
                _cut_lines(edits, start, end)


def _cut_lines(edits: Edits, start: int, end: int) -> None:
    """Cut a range with its comments; whole lines if nothing else is on them."""
    text = edits.text
    begin = text.rfind("\n", 0, start) + 1
    trailing = _TRAILING.match(text, end)
    if text[begin:start].strip() or trailing is None:
        edits.cut(start, end)
        return
    stop = trailing.end()
    start = _with_comment(text, begin)
    edits.cut(start, min(stop + 1, len(text)))


def _line_above(text: str, begin: int) -> int:
    """The start of the line above, or of the first of several that are continued by a backslash."""
    above = text.rfind("\n", 0, begin - 1) + 1
    while above > 1 and text[above - 2 : above] == "\\\n":
        above = text.rfind("\n", 0, above - 1) + 1
    return above


def _with_comment(text: str, begin: int) -> int:
    """The start of the comment and pragma lines directly above."""
    while begin > 0:
        above = _line_above(text, begin)
        line = text[above : begin - 1]
        # The last line of a longer comment: go up to the line on which it begins.
        if line.rstrip().endswith("*/") and "/*" not in line:
            opening = text.rfind("/*", 0, begin)
            start = text.rfind("\n", 0, opening) + 1
            if text[start:opening].strip():
                return begin
            begin = start
        # `omp barrier` and the like are statements, not attributes of the next one.
        elif _STANDALONE.match(line):
            return begin
        elif (_COMMENT_LINE.match(line) and line.strip()) or _PRAGMA_LINE.match(line):
            begin = above
        else:
            return begin
    return begin


class _Writer:
    """Cuts the statements of a function that are not kept."""

    def __init__(self, edits: Edits, kept: Slice, fills: Mapping[int, str], loops: Mapping[int, KernelLoop]) -> None:
        self.edits, self.kept, self.fills, self.loops = edits, kept, fills, loops

    def statements(self, block: Statement) -> None:
        for number, child in enumerate(block.children):
            if not self._is_kept(child):
                self._drop(block, number)
            else:
                self._inside(child)

    def _is_kept(self, statement: Statement) -> bool:
        return statement.index in self.kept.why or (
            statement.kind == "block" and any(self._is_kept(child) for child in statement.children)
        )

    def _drop(self, block: Statement, number: int) -> None:
        child = block.children[number]
        after = block.children[number + 1] if number + 1 < len(block.children) else None
        if child.kind == "empty" and child.start == child.end:
            return
        # A comment above several lines is about all of them; it stays while the next one is kept.
        if after is not None and self._is_kept(after) and self._same_paragraph(child, after):
            self._cut_without_comment(child)
        else:
            _cut_lines(self.edits, child.start, child.end)

    def _same_paragraph(self, child: Statement, after: Statement) -> bool:
        text = self.edits.text
        between = text[child.end : after.start]
        begin = text.rfind("\n", 0, child.start) + 1
        above = text[_line_above(text, begin) : max(begin - 1, 0)]
        return between.count("\n") <= 1 and "#" not in between and not _PRAGMA_LINE.match(above)

    def _cut_without_comment(self, child: Statement) -> None:
        text = self.edits.text
        begin = text.rfind("\n", 0, child.start) + 1
        trailing = _TRAILING.match(text, child.end)
        if text[begin : child.start].strip() or trailing is None:
            self.edits.cut(child.start, child.end)
        else:
            self.edits.cut(begin, min(trailing.end() + 1, len(text)))

    def _inside(self, statement: Statement) -> None:
        loop = self.loops.get(statement.index)
        if loop is None or loop.why_whole:
            self._within(statement)
            return
        body = statement.children[0]
        is_block = body.kind == "block"
        # `reduction` replaces the marks: "<n" and ">" enclose loop n, "[n" begins a body with braces, "{n" and "}"
        # enclose one without.
        self._mark(statement.start, f"<{loop.number}")
        self._mark(body.start + is_block, f"{'[' if is_block else '{'}{loop.number}")
        self._within(statement)
        if not is_block:
            self._mark(body.end, "}")
        self._mark(statement.end, ">")

    def _mark(self, offset: int, what: str) -> None:
        self.edits.cuts.append((offset, offset, f"{MARK}{what}{MARK}"))

    def _within(self, statement: Statement) -> None:
        fill = self.fills.get(statement.index)
        if fill:
            # `if (a) p = malloc(n);` needs braces, so that the fill is under the condition as well.
            is_alone = self._is_block(statement.parent)
            self.edits.cuts.append((statement.end, statement.end, fill if is_alone else f"{fill} }}"))
            self.edits.cuts += [] if is_alone else [(statement.start, statement.start, "{ ")]
        if statement.kind == "block":
            self.statements(statement)
            return
        if statement.index in self.kept.bare:
            self._without_value(statement)
        for number, child in enumerate(statement.children):
            if child.kind == "block" or self._is_kept(child):
                self._inside(child)
            # In C a label must be followed by a statement.
            elif statement.kind in ("case", "label"):
                self.edits.cut(child.start, child.end, ";")
            elif child.kind != "empty":
                self._replace_body(statement, number, child)
        if statement.kind == "if" and len(statement.children) > 1 and self._is_block(statement.parent):
            self._drop_else(statement)

    def _without_value(self, statement: Statement) -> None:
        """A return statement whose value is not used returns 0."""
        text = self.edits.text[statement.start : statement.end]
        value = text.removeprefix("return").rstrip(";").strip()
        if text.startswith("return") and value and not re.fullmatch(r"-?\d\w*|NULL|EXIT_\w+", value):
            self.edits.cut(statement.start, statement.end, "return 0;")

    def _replace_body(self, statement: Statement, number: int, child: Statement) -> None:
        if number == 0 or not self._is_block(statement.parent):
            self.edits.cut(child.start, child.end, "{ }")

    @staticmethod
    def _is_block(statement: Statement | None) -> bool:
        return statement is not None and statement.kind == "block"

    def _drop_else(self, statement: Statement) -> None:
        """Cut an else branch in which nothing is kept."""
        then, other = statement.children
        if any(inner.index in self.kept.why for inner in other.walk() if inner.kind != "block"):
            return
        # One cut of the whole branch replaces those inside it.
        self.edits.cuts = [cut for cut in self.edits.cuts if not other.start <= cut[0] < other.end]
        start = then.end
        while self.edits.text[start : start + 1] in (" ", "\t", "\n"):
            start += 1
        if self.edits.text[start : start + 4] == "else":
            self.edits.cut(then.end, other.end)
        elif other.kind != "block":
            self.edits.cut(other.start, other.end, "{ }")
