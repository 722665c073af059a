"""Values in the form that JSON can represent: finite numbers, and texts that can be encoded."""

import json
import math
import re
from collections.abc import Mapping

_SURROGATE = re.compile("[\ud800-\udfff]")
"""Half a character, such as a byte of a program's output that is not UTF-8."""


def plain(value: object) -> object:
    """The value as JSON can represent it: a number that is not finite becomes null, half a character U+FFFD."""
    if isinstance(value, str):
        return value if value.isascii() else _SURROGATE.sub("\ufffd", value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {plain(name): plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    return value


def json_text(value: object) -> str:
    """The value as JSON on one line."""
    return json.dumps(plain(value), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
