"""Checks for every request body and every short text from clients."""

from collections.abc import Callable

from luthier.errors import InvalidInputError
from luthier.texts import DEEPEST, check_name, check_text

MOST_VALUES = 20_000
"""Most values in the JSON of a request; each takes about 1 us to check."""


def check_body(value: object) -> None:
    r"""Raise `ValueError` for JSON that is nested too deeply, has too many values, or text which cannot be encoded.

    JSON can contain a lone surrogate, such as `"\ud800"`, which no encoding supports. The check does not recurse.
    """
    waiting: list[tuple[object, int]] = [(value, 1)]
    count = 0
    while waiting:
        here, depth = waiting.pop()
        if isinstance(here, str):
            _checked(here, check_text)
        elif isinstance(here, dict | list):
            if depth > DEEPEST:
                raise ValueError(f"is nested too deeply; the limit is {DEEPEST} levels")
            inner = [*here.keys(), *here.values()] if isinstance(here, dict) else here
            count += len(inner)
            if count > MOST_VALUES:
                raise ValueError(f"has more than {MOST_VALUES} values; send fewer")
            waiting.extend((one, depth + 1) for one in inner)


def check_line(text: str) -> str:
    """The text of a label or name; `ValueError` if it has control characters or other misleading ones."""
    return _checked(text, check_name)


def _checked(text: str, check: Callable[[str, str], str]) -> str:
    """The text if the check passes; pydantic reports a `ValueError` as an invalid request."""
    try:
        return check(text, "text")
    except InvalidInputError as error:
        raise ValueError(str(error)) from None
