"""Parameters as JSON."""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias, cast

from luthier.errors import SpaceError
from luthier.space.arguments import Scale
from luthier.space.parameters import Choice, Integer, Parameter, Real
from luthier.texts import shown
from luthier.trial import Value

Json: TypeAlias = bool | int | float | str | Sequence["Json"] | Mapping[str, "Json"] | None
"""What survives a round trip through JSON."""

_NUMBER_KEYS = ("name", "low", "high", "step", "scale", "default", "unit")
_CHOICE_KEYS = ("name", "values", "default", "ordered")


def parameter_to_json(parameter: Parameter) -> dict[str, Json]:
    """Write a parameter as JSON."""
    if isinstance(parameter, Choice):
        return {
            "kind": "choice",
            "name": parameter.name,
            "values": list(parameter.values),
            "default": parameter.default,
            "ordered": parameter.ordered,
        }
    return {
        "kind": "integer" if isinstance(parameter, Integer) else "real",
        "name": parameter.name,
        "low": parameter.low,
        "high": parameter.high,
        "step": parameter.step,
        "scale": parameter.scale,
        "default": parameter.default,
        "unit": parameter.unit,
    }


def parameter_from_json(mapping: Json) -> Parameter:
    """Read a parameter that `parameter_to_json` wrote."""
    kind = mapping.get("kind") if isinstance(mapping, Mapping) else None
    if not isinstance(mapping, Mapping) or not isinstance(kind, str) or kind not in _READERS:
        raise SpaceError(f"{shown(mapping)} is not a parameter; expected an object of kind {', '.join(_READERS)}")
    keys, read = _READERS[kind]
    check_keys(mapping, ("kind", *keys), f"parameter {shown(mapping.get('name'))}")
    return read(mapping)


def check_keys(mapping: Mapping[str, Json], keys: Sequence[str], where: str) -> None:
    """Refuse a JSON object with missing or unknown keys."""
    for key in keys:
        if key not in mapping:
            raise SpaceError(f"{where}: {shown(key)} is missing")
    for key in mapping:
        if key not in keys:
            raise SpaceError(f"{where}: {shown(key)} is unknown; expected {', '.join(keys)}")


# The constructors check every argument themselves; the casts only say what they hope for.
def _integer(mapping: Mapping[str, Json]) -> Parameter:
    name, low, high, step, scale, default, unit = (mapping[key] for key in _NUMBER_KEYS)
    return Integer(
        cast("str", name),
        cast("int", low),
        cast("int", high),
        cast("float", step),
        cast("Scale", scale),
        cast("int", default),
        cast("str", unit),
    )


def _real(mapping: Mapping[str, Json]) -> Parameter:
    name, low, high, step, scale, default, unit = (mapping[key] for key in _NUMBER_KEYS)
    return Real(
        cast("str", name),
        cast("float", low),
        cast("float", high),
        cast("float", step),
        cast("Scale", scale),
        cast("float", default),
        cast("str", unit),
    )


def _choice(mapping: Mapping[str, Json]) -> Parameter:
    name, values, default, ordered = (mapping[key] for key in _CHOICE_KEYS)
    return Choice(cast("str", name), cast("Sequence[Value]", values), cast("Value", default), cast("bool", ordered))


_READERS: dict[str, tuple[Sequence[str], Callable[[Mapping[str, Json]], Parameter]]] = {
    "integer": (_NUMBER_KEYS, _integer),
    "real": (_NUMBER_KEYS, _real),
    "choice": (_CHOICE_KEYS, _choice),
}
