"""Durations with units: `90s`, `1.5m`, `2h`."""

import re
from decimal import Decimal

from luthier.errors import InvalidInputError
from luthier.texts import shown

_DURATION = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*(ms|s|m|min|h|d)?")
_LONGEST = 40
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}


def parse_duration(text: str) -> float:
    """Read a duration in seconds: `90`, `90s`, `1.5m`, `2h`, `1d`, `200ms`."""
    match = _DURATION.fullmatch(text.strip()) if len(text) <= _LONGEST else None
    if match is None or float(match[1]) <= 0:
        raise InvalidInputError(f"{shown(text)} is not a duration; write for example 90s, 1.5m or 2h")
    return float(match[1]) * _SECONDS[match[2] or "s"]


def format_duration(seconds: float) -> str:
    """The text that `parse_duration` reads as exactly this many seconds."""
    return f"{Decimal(repr(seconds)):f}s"
