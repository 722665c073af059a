"""Single values as people write them on the command line."""

from luthier.texts import check_length

_LONGEST = 10_000


def parse_value(text: str) -> bool | int | float | str:
    """The number or truth value that the text represents, else the text."""
    if text in ("true", "false"):
        return text == "true"
    for kind in (int, float):
        try:
            return kind(check_length(text, "value", _LONGEST))
        except ValueError:
            continue
    return text


def format_value(value: object) -> str:
    """The text that `parse_value` reads as this value, where one exists."""
    return str(value).lower() if isinstance(value, bool) else str(value)
