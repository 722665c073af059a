"""Finding one's way in the text of C: comments, strings, semicolons, directives."""

import re

MARK = "\0"
"""Begins and ends a mark that is put into the text: no source contains it."""
_SKIPPED = re.compile(r"(?:\s|\\\n|/\*.*?\*/|//(?:[^\n\\]|\\.)*)+", re.DOTALL)
_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
_TOKEN = re.compile(
    r"""/\*.*?\*/|//(?:[^\n\\]|\\[\s\S])*|"(?:[^"\\\n]|\\[\s\S])*"|'(?:[^'\\\n]|\\[\s\S])*'|[(){}\[\];]""", re.DOTALL
)
_CONDITIONAL = re.compile(r"^[ \t]*#[ \t]*(if|ifdef|ifndef|elif|else|endif)\b", re.M)


def after_blanks(text: str, offset: int) -> int:
    """The offset of the next character that is neither white space nor in a comment."""
    found = _SKIPPED.match(text, offset)
    return found.end() if found else offset


def without_comments(text: str) -> str:
    """The text with a blank for each comment."""
    return _COMMENT.sub(" ", text)


def end_of_statement(text: str, offset: int) -> int:
    """The end of a statement with its semicolon, if one follows."""
    if text[offset - 1 : offset] == ";":
        return offset
    after = after_blanks(text, offset)
    return after + 1 if text[after : after + 1] == ";" else offset


def header_semicolons(text: str, start: int) -> tuple[int, int]:
    """Where the two semicolons of a for header are."""
    depth, found = 0, []
    for token in _TOKEN.finditer(text, start):
        sign = token.group()
        if sign in "([{":
            depth += 1
        elif sign in ")]}":
            depth -= 1
            if depth == 0:
                break
        elif sign == ";" and depth == 1:
            found.append(token.start())
    return (found[0], found[1]) if len(found) > 1 else (start, start)


def is_balanced(text: str) -> bool:
    """Whether every #if in the text has its #endif there, and no #else or #elif stands alone."""
    depth = 0
    for directive in _CONDITIONAL.finditer(text):
        word = directive.group(1)
        depth += word.startswith("if")
        if depth == 0:
            return False
        depth -= word == "endif"
    return depth == 0


def closing_parenthesis(text: str, opening: int) -> int:
    """Where the parenthesis that opens at an offset is closed."""
    depth = 0
    for token in _TOKEN.finditer(text, opening):
        sign = token.group()
        depth += (sign in "([{") - (sign in ")]}")
        if depth == 0:
            return token.start()
    return len(text)


def split_arguments(text: str) -> list[str]:
    """The arguments of a call, split at the commas outside parentheses."""
    found, depth, start = [], 0, 0
    for position, sign in enumerate(text):
        depth += (sign in "([{") - (sign in ")]}")
        if sign == "," and depth == 0:
            found.append(text[start:position].strip())
            start = position + 1
    return [*found, text[start:].strip()]
