"""Parameters as JSON."""

from collections.abc import Callable, Mapping, Sequence

from luthier.errors import SpaceError
from luthier.space.parameters import Choice, Integer, Parameter, Real
from luthier.texts import shown
from luthier.trial import Json

_NUMBER_KEYS = ("name", "low", "high", "step", "scale", "default", "unit")
_CHOICE_KEYS = ("name", "values", "default", "ordered")
_KINDS: Mapping[str, tuple[type[Parameter], Sequence[str]]] = {
    "integer": (Integer, _NUMBER_KEYS),
    "real": (Real, _NUMBER_KEYS),
    "choice": (Choice, _CHOICE_KEYS),
}


def parameter_to_json(parameter: Parameter) -> dict[str, Json]:
    """Write a parameter as JSON."""
    kind, keys = next((kind, keys) for kind, (made, keys) in _KINDS.items() if isinstance(parameter, made))
    values = {key: getattr(parameter, key) for key in keys}
    return {"kind": kind, **{key: list(value) if key == "values" else value for key, value in values.items()}}


def parameter_from_json(mapping: Json) -> Parameter:
    """Read a parameter that `parameter_to_json` wrote."""
    kind = mapping.get("kind") if isinstance(mapping, Mapping) else None
    if not isinstance(mapping, Mapping) or not isinstance(kind, str) or kind not in _KINDS:
        raise SpaceError(f"{shown(mapping)} is not a parameter; expected an object of kind {', '.join(_KINDS)}")
    made, keys = _KINDS[kind]
    check_keys(mapping, ("kind", *keys), f"parameter {shown(mapping.get('name'))}")
    make: Callable[..., Parameter] = made  # it checks every argument itself
    return make(**{key: mapping[key] for key in keys})


def check_keys(mapping: Mapping[str, Json], keys: Sequence[str], where: str) -> None:
    """Refuse a JSON object with missing or unknown keys."""
    for key in keys:
        if key not in mapping:
            raise SpaceError(f"{where}: {shown(key)} is missing")
    for key in mapping:
        if key not in keys:
            raise SpaceError(f"{where}: {shown(key)} is unknown; expected {', '.join(keys)}")
