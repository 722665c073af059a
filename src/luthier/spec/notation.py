"""The short notation of parameters on the command line: `NAME=SPEC[@DEFAULT]`."""

import re
from typing import Literal

from luthier.errors import SpaceError
from luthier.space import Choice, Integer, Parameter, Real, parse_quantity
from luthier.texts import shown, visible

HOW = "write NAME=a,b,c or NAME=low..high[:step|:xFACTOR], and @DEFAULT if it is not the first value"

_LONGEST_SHOWN = 200


def parse_parameter(text: str) -> Parameter:
    r"""Read `threads=1..16`, `block=4k,16k,1M@16k`, `depth=1..64:x2` or `ratio=0.1..0.9`.

    A backslash before `,` or `@` makes it an ordinary character. A list of numbers or quantities is ordered; any other
    list is a choice without order. Values of a list are passed to the command exactly as they were typed.
    """
    name, equals, rest = text.partition("=")
    if not equals or not name or not rest:
        raise SpaceError(f"-p {_short(text)}: {HOW}")
    spec, default = _split_default(rest)
    try:
        found = _ends_and_step(spec)
        if found is None and ".." in spec and not set(spec) & set(",/"):
            raise SpaceError(f"{shown(spec)} is an incomplete range; {HOW}")
        return _range(name, *found, default) if found else _choice(name, spec, default)
    except SpaceError as error:
        raise SpaceError(f"-p {_short(text)}: {error}") from None


def names_default(text: str) -> bool:
    """Whether the text of a parameter contains its default."""
    return _split_default(text)[1] is not None


def _split_default(text: str) -> tuple[str, str | None]:
    parts = _split(text, "@")
    if len(parts) == 1:
        return text, None
    return "@".join(parts[:-1]), parts[-1].replace("\\", "")


def _split(text: str, separator: str) -> list[str]:
    return re.split(rf"(?<!\\){separator}", text)


def _ends_and_step(spec: str) -> tuple[str, str, str | None] | None:
    """The parts of `low..high`, `low..high:step` or `low..high:xFACTOR`; None if it is not a range."""
    low, dots, rest = spec.partition("..")
    high, colon, step = rest.partition(":")
    if not dots or not low or not high or ":" in low or ":" in step or (colon and not step):
        return None
    return low, high, step if colon else None


def _short(text: str) -> str:
    """What was typed, as it is shown in an error."""
    return visible(text) if len(text) <= _LONGEST_SHOWN else f"{visible(text[:_LONGEST_SHOWN])}..."


def _range(name: str, low: str, high: str, step: str | None, default: str | None) -> Parameter:
    multiplies = step is not None and step.startswith("x") and len(step) > 1
    step = step[1:] if step is not None and multiplies else step
    if step is not None and multiplies and not _number(step) > 1:
        raise SpaceError(f"{name}: factor {step} is not above 1; write for example x2")
    typed = [text for text in (low, high, step, default) if text is not None]
    scale: Literal["log", "linear"] = "log" if multiplies else "linear"
    whole = all(_is_whole(text) for text in (low, high, default) if text is not None)
    if whole and (step is None or multiplies or _is_whole(step)):
        return Integer(name, low, high, step=_number(step) if step else 1, scale=scale, default=default)
    if any(number is None for number in map(_as_number, typed)):
        raise SpaceError(f"{name}: {shown(f'{low}..{high}')} is not a range of numbers; {HOW}")
    return Real(name, low, high, step=_number(step) if step else None, scale=scale, default=default)


def _choice(name: str, spec: str, default: str | None) -> Parameter:
    texts = [part.replace("\\", "") for part in _split(spec, ",")]
    if any(not text for text in texts):
        raise SpaceError(f"{name}: an empty value in {shown(spec)}; {HOW}")
    values: list[int | float | str] = [_plain_number(text) for text in texts]
    if any(isinstance(value, str) for value in values):
        values = list(texts)
    chosen = values[0] if default is None else _plain_number(default) if _plain_number(default) in values else default
    magnitudes = [_as_number(text) for text in texts]
    if None in magnitudes:
        return Choice(name, values, default=chosen)
    ranked = sorted(zip(magnitudes, range(len(values)), strict=True), key=lambda pair: (float(pair[0] or 0), pair[1]))
    return Choice(name, [values[position] for _, position in ranked], default=chosen, ordered=True)


def _plain_number(text: str) -> int | float | str:
    """The number if it is printed exactly as it was typed, else the text."""
    number = _as_number(text)
    if number is None or not text[-1].isdigit():
        return text
    whole = int(number) if float(number).is_integer() else None
    if whole is not None and str(whole) == text:
        return whole
    return float(number) if repr(float(number)) == text else text


def _is_whole(text: str) -> bool:
    number = _as_number(text)
    return number is not None and float(number).is_integer() and not set(text) & set(".eE")


def _number(text: str) -> int | float:
    number = _as_number(text)
    if number is None:
        raise SpaceError(f"{shown(text)} is not a number; {HOW}")
    return number


def _as_number(text: str) -> int | float | None:
    try:
        return parse_quantity(text)[0]
    except SpaceError:
        return None
