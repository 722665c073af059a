"""What is refused at the entrance, whatever it is meant for: every body and every short text goes through here."""

from collections.abc import Callable

from luthier.errors import InvalidInputError
from luthier.texts import DEEPEST, check_name, check_text


def check_body(value: object) -> None:
    r"""Raise `ValueError` for JSON that is nested too deeply, or that holds text which no program can be given.

    JSON can name half a character, such as `"\ud800"`; nothing can encode it afterwards. The check does not recurse.
    """
    waiting: list[tuple[object, int]] = [(value, 1)]
    while waiting:
        here, depth = waiting.pop()
        if isinstance(here, str):
            _checked(here, check_text)
        elif isinstance(here, dict | list):
            if depth > DEEPEST:
                raise ValueError(f"is nested too deeply; {DEEPEST} levels are the most")
            inner = [*here.keys(), *here.values()] if isinstance(here, dict) else here
            waiting.extend((one, depth + 1) for one in inner)


def check_line(text: str) -> str:
    """The text of one line that people read, such as a label; `ValueError` if a terminal or a page could be misled."""
    return _checked(text, check_name)


def _checked(text: str, check: Callable[[str, str], str]) -> str:
    """The text if the check passes; pydantic takes a `ValueError` for a problem of what was sent."""
    try:
        return check(text, "text")
    except InvalidInputError as error:
        raise ValueError(str(error)) from None
