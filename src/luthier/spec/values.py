"""Single values as people write them on the command line."""

from luthier.texts import check_length

_LONGEST = 10_000


def parse_value(text: str) -> bool | int | float | str:
    """A number or truth value if the text is one, else the text."""
    if text in ("true", "false"):
        return text == "true"
    for kind in (int, float):
        try:
            return kind(check_length(text, "value", _LONGEST))
        except ValueError:
            continue
    return text


def format_value(value: object) -> str:
    """The text that `parse_value` reads as this value, if there is one."""
    return str(value).lower() if isinstance(value, bool) else str(value)
