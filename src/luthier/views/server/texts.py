"""What is refused at the entrance, whatever it is meant for: every body and every short text goes through here."""

MOST_NESTED = 64
"""How deep the lists and mappings of a JSON body may be nested; what luthier itself takes has about ten levels."""


def check_body(value: object) -> None:
    r"""Raise `ValueError` for JSON that is nested too deeply, or that holds text which is not Unicode.

    JSON can name half a character, such as `"\ud800"`; nothing can encode it afterwards. The check does not recurse.
    """
    waiting: list[tuple[object, int]] = [(value, 1)]
    while waiting:
        here, depth = waiting.pop()
        if isinstance(here, str):
            _check_encodable(here)
        elif isinstance(here, dict | list):
            if depth > MOST_NESTED:
                raise ValueError(f"is nested too deeply; {MOST_NESTED} levels are the most")
            inner = [*here.keys(), *here.values()] if isinstance(here, dict) else here
            waiting.extend((one, depth + 1) for one in inner)


def check_line(text: str) -> str:
    """The text of one line that people read, such as a label; `ValueError` if a terminal or a page could be misled."""
    _check_encodable(text)
    if not text.isprintable():
        raise ValueError("holds a control character; use printable characters only")
    return text


def _check_encodable(text: str) -> None:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise ValueError("holds half a character (a lone surrogate); send whole ones") from None
