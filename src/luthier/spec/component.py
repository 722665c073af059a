"""Components: what is tuned, how it is enabled, and how its parameters are passed to it."""

import hashlib
import json
import math
import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal, TypeAlias, TypeVar, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StrictBool, ValidationError, model_validator

from luthier.errors import InvalidInputError, SpaceError
from luthier.space import parse_quantity
from luthier.space.arguments import check_name
from luthier.spec.config_files import FORMATS, Format
from luthier.spec.template import placeholders
from luthier.spec.yaml_lines import Document, Place, read_document
from luthier.texts import check_name as check_printable_name
from luthier.texts import check_text, closest, shown
from luthier.trial import Json, Value

Kind: TypeAlias = Literal["int", "float", "str", "bool"]

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")
_NOT_PLAIN = re.compile(r'["`\\]|\$\(')
"""Characters with a meaning between double quotes in a shell, except variables."""
_KINDS: Mapping[Kind, tuple[str, tuple[type, ...]]] = {
    "int": ("a whole number", (int,)),
    "float": ("a number", (int, float)),
    "str": ("a text; put it in quotes", (str,)),
    "bool": ("true or false", (bool,)),
}


def _value(given: object) -> object:
    if not isinstance(given, bool | int | float | str) or (isinstance(given, float) and not math.isfinite(given)):
        raise ValueError(f"{shown(given)} is not a value; give a number, a text, true or false")
    return _encodable(given) if isinstance(given, str) else given


def _number(given: object) -> object:
    if isinstance(given, str) and _is_quantity(given):
        return given
    if isinstance(given, bool) or not isinstance(given, int | float) or not math.isfinite(given):
        raise ValueError(f"{shown(given)} is not a number")
    return given


def _text(given: object) -> object:
    if not isinstance(given, str):
        raise ValueError(f"{shown(given)} is not a text; put it in quotes")
    return _encodable(given)


def _encodable(text: str) -> str:
    try:
        return check_text(text, "it")
    except InvalidInputError as error:
        raise ValueError(str(error)) from None


def _line(given: object) -> object:
    text = _text(given)
    if not isinstance(text, str) or not text.isprintable():
        raise ValueError(f"{shown(text)} contains a line end or another character that is not printable; remove it")
    return text


def _name(given: object) -> object:
    try:
        return check_printable_name(str(_text(given)), "it")
    except InvalidInputError as error:
        raise ValueError(str(error)) from None


def _texts(given: object) -> object:
    return [given] if isinstance(given, str) else given


Scalar = Annotated[Value, BeforeValidator(_value, json_schema_input_type=Value)]
Number = Annotated[int | float | str, BeforeValidator(_number, json_schema_input_type=int | float | str)]
Text = Annotated[str, BeforeValidator(_text, json_schema_input_type=str)]
Line = Annotated[str, BeforeValidator(_line, json_schema_input_type=str)]
Name = Annotated[str, BeforeValidator(_name, json_schema_input_type=str)]
Texts = Annotated[list[Text], BeforeValidator(_texts, json_schema_input_type=str | list[str])]
Model = TypeVar("Model", bound=BaseModel)
T = TypeVar("T")


class Section(BaseModel):
    """A part of a file; an unknown key is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


class Grid(Section):
    """The values to try: a range with both ends, or a list."""

    min: Number | None = None
    """The first value."""
    max: Number | None = None
    """The last value, or the last step below it."""
    step: Number | None = None
    """From one value to the next; by default 1 for type int, and any value in the range for type float."""
    step_type: Literal["additive", "multiplicative"] = "additive"
    """Whether the step is added or multiplied."""
    values: list[Scalar] | None = None
    """A list of values, instead of a range."""

    @model_validator(mode="after")
    def _is_whole(self) -> "Grid":
        if (self.min is None) != (self.max is None):
            raise ValueError(f"a range needs both ends; {'min' if self.min is None else 'max'} is missing")
        if self.values is not None and self.min is not None:
            raise ValueError("give min and max, or values, not both")
        if self.min is None and self.step is not None:
            raise ValueError("step needs min and max")
        return self

    @property
    def given(self) -> bool:
        """Whether there are values to try."""
        return self.min is not None or self.values is not None


class ComponentParameter(Grid):
    """One parameter: how it is passed, its default, and optionally the values to try."""

    type: Kind
    """The type of its values."""
    default: Scalar | None = None
    """Its value if it is not tuned; the default configuration is compared with the others."""
    optional: StrictBool = False
    """Whether it may be omitted if it has no default."""
    ordered: StrictBool = False
    """Whether a list of texts is in order, from small to large; numbers always are."""
    description: Text = ""
    """A description for readers."""
    env_var: StrictBool = False
    """Pass it as an environment variable with its name."""
    cmd_var: StrictBool = False
    """Pass it as an argument of the component's command."""
    cli_var: StrictBool = False
    """Pass it as an option of the job, on the command line of sbatch."""
    flag: Line = ""
    """The option before the value: `-f value` for one letter, else `--flag value`; by default `name=value`."""
    suffix: Line = ""
    """A text that follows the value, such as M."""

    @model_validator(mode="before")
    @classmethod
    def _whole_numbers_are_texts(cls, given: object) -> object:
        if not isinstance(given, Mapping) or given.get("type") != "str":
            return given
        listed = given.get("values")
        values = [as_text(one) for one in listed] if isinstance(listed, list) else listed
        return {**given, "default": as_text(given.get("default")), "values": values}

    @model_validator(mode="after")
    def _fits_its_type(self) -> "ComponentParameter":
        for value in [*(self.values or []), *([] if self.default is None else [self.default])]:
            if problem := misfit(self.type, value):
                raise ValueError(problem)
        return self


class ConfigFile(Section):
    """A file that is written before each run: a text with `{name}` for values, or another file with changed values."""

    path: Line
    """Where it is written; the shell expands variables such as $TMPDIR in it."""
    text: Text = ""
    """Its contents; `{name}` is replaced by the value of a parameter, unless `set` is given."""
    base: Text = ""
    """Instead of `text`: a file to start from; its path is relative to this file."""
    format: Format | None = None
    """The format of a file with `set`; by default it follows from the extension of the path."""
    set: dict[str, Scalar] = Field(default_factory=dict)
    """Values to change, by path, such as `server.port`; `{name}` in a value is replaced by a parameter's value."""

    @model_validator(mode="after")
    def _is_complete(self) -> "ConfigFile":
        if bool(self.text) == bool(self.base):
            raise ValueError("give either text or base")
        if self.set and self.kind is None:
            raise ValueError(f"the format of {self.path!r} is unknown; add format: {', '.join(FORMATS)}")
        if _NOT_PLAIN.search(self.path):
            raise ValueError(f"{self.path!r} is not a plain path")
        return self

    @property
    def kind(self) -> Format | None:
        """The format that is given or follows from the extension of the path."""
        endings: dict[str, Format] = {"yml": "yaml", "cnf": "ini", "conf": "ini", "cfg": "ini"}
        ending = Path(self.path).suffix.lower().lstrip(".")
        return self.format or endings.get(ending) or (ending if ending in FORMATS else None)  # type: ignore[return-value]  # it is one of FORMATS

    @property
    def parameters(self) -> frozenset[str]:
        """The parameters in it."""
        texts = [value for value in self.set.values() if isinstance(value, str)] if self.set else [self.text]
        return frozenset(name for text in texts for name in placeholders(text))


class Component(Section):
    """Something that can be tuned: how it is enabled, and its parameters.

    `header` and `command` are shell text by the author of the component and run as they are; values of parameters are
    data and are quoted.
    """

    description: Text = ""
    """A description for readers."""
    plugin: Text = ""
    """Options of the job, on the command line of sbatch; the leading -- may be omitted."""
    cli_command: Text = ""
    """Another name for plugin."""
    header: Text = ""
    """Shell text that runs before the time measurement, such as a command that clears a cache."""
    command: Text = ""
    """Shell text that runs before the application and is timed; the values of `cmd_var` parameters are appended."""
    ld_preload: Line = ""
    """A library that is preloaded for the application only; the shell expands variables in it. `luthier:io` is one of
    luthier's own, see `luthier native list`; several have a space between them."""
    custom_target: Text = ""
    """The function that reads the result in SHAMan; see `measure`."""
    measure: Texts = Field(default_factory=list)
    """What is measured, as in `luthier tune -m`; by default the elapsed time."""
    constraints: Texts = Field(default_factory=list)
    """Conditions on the parameters, such as `threads <= 2 * depth`."""
    files: list[ConfigFile] = Field(default_factory=list)
    """Files that are written before each run."""
    parameters: dict[str, ComponentParameter]
    """The parameters, by name."""

    @property
    def in_files(self) -> frozenset[str]:
        """The parameters that are written to a file."""
        return frozenset(name for file in self.files for name in file.parameters)

    @property
    def submitted(self) -> list[str]:
        """The parameters that are options of the job, on the command line of sbatch."""
        return [name for name, parameter in self.parameters.items() if parameter.cli_var]

    @property
    def options(self) -> tuple[str, ...]:
        """The options of sbatch that enable it."""
        text = (self.plugin or self.cli_command).strip()
        return tuple(shlex.split(text if text.startswith("-") or not text else f"--{text}"))


class ComponentFile(Section):
    """A file that describes components by name."""

    components: dict[str, Component]
    """The components."""


def read_components(path: Path) -> dict[str, Component]:
    """The components that a file describes, with the contents of their base files."""
    return components_in(read_document(path), path.parent)


def components_in(document: Document, folder: Path | None) -> dict[str, Component]:
    """The components of a document; base files are in `folder`, and an error without one."""
    described = validated(ComponentFile, document, document.values).components
    for name in described:
        if not _NAME.fullmatch(name):
            raise document.error(("components", name), "is not a valid name; use letters, digits, _ . -")
    return {name: checked(one, document, ("components", name), folder) for name, one in described.items()}


def checked(component: Component, document: Document, place: Place, folder: Path | None) -> Component:
    """The component with the contents of its base files; raise if its parts contradict each other."""
    if component.plugin and component.cli_command:
        raise document.error((*place, "cli_command"), "is another name of plugin; remove one of them")
    try:
        _ = component.options
    except ValueError as error:
        key = "plugin" if component.plugin else "cli_command"
        raise document.error((*place, key), f"cannot be split into words: {error}") from None
    if _NOT_PLAIN.search(component.ld_preload):
        raise document.error((*place, "ld_preload"), f"{component.ld_preload!r} is not a plain path")
    for name, parameter in component.parameters.items():
        if problem := _problem_of(name, parameter, component):
            raise document.error((*place, "parameters", name), problem)
    if unknown := sorted(component.in_files - set(component.parameters)):
        problem = f"unknown parameter {unknown[0]!r}; write {{{{{unknown[0]}}}}} for the plain text"
        raise document.error((*place, "files"), problem)
    return _with_contents(component, document, place, folder)


def _problem_of(name: str, parameter: ComponentParameter, component: Component) -> str | None:
    if not (parameter.env_var or parameter.cmd_var or parameter.cli_var or name in component.in_files):
        return "is not passed to the program; set env_var, cmd_var or cli_var to true"
    if parameter.cmd_var and not component.command.strip():
        return "has cmd_var, but the component has no command; add one"
    if parameter.env_var and not _VARIABLE.fullmatch(name):
        return "is not a valid name of an environment variable; use letters, digits and _"
    try:
        check_name(name)
    except SpaceError as error:
        return str(error)
    return None


def _with_contents(component: Component, document: Document, place: Place, folder: Path | None) -> Component:
    """The component with the contents of its base files, so that it needs no other file."""
    files = []
    for number, file in enumerate(component.files):
        if file.base:
            text = text_of(file.base, document, (*place, "files", number, "base"), folder)
            files.append(file.model_copy(update={"text": text, "base": ""}))
        else:
            files.append(file)
    return component.model_copy(update={"files": files})


def text_of(name: str, document: Document, place: Place, folder: Path | None) -> str:
    """The text of a file that a document names; an error without a `folder`."""
    if folder is None:
        raise document.error(place, f"{name!r}: files are not supported here; write the text itself")
    try:
        return (folder / name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise document.error(place, f"{name!r}: {reason}") from None


def validated(model: type[Model], document: Document, values: Json, place: Place = ()) -> Model:
    """The values at a place of a document as a model; raise with the first error in one line."""
    try:
        return model.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        where = (*place, *first["loc"])
        raise document.error(where, _problem(model, first["type"], first, first["loc"])) from None


def _problem(model: type[BaseModel], kind: str, error: Mapping[str, object], where: Place) -> str:
    """The error of pydantic in the style of luthier."""
    given = error.get("input")
    context = error.get("ctx")
    if kind == "value_error" and isinstance(context, Mapping):
        return str(context.get("error"))
    if kind == "missing":
        return "is missing"
    if kind == "extra_forbidden":
        known = _keys_at(model, where[:-1])
        near = closest(str(where[-1]), known)
        return f"is unknown; did you mean {near!r}?" if near else f"is unknown; valid here: {', '.join(known)}"
    expected = {
        "bool_type": "true or false",
        "dict_type": "settings by name",
        "model_type": "settings by name",
        "list_type": "a list",
    }.get(kind)
    if kind == "literal_error" and isinstance(context, Mapping):
        expected = str(context.get("expected"))
    return f"{shown(given)} is invalid; expected {expected or error.get('msg')}"


def _keys_at(model: type[BaseModel], place: Sequence[int | str]) -> list[str]:
    """The keys that are valid at a place, whose steps may also be items of lists and names in mappings."""
    models = [model]
    for step in place:
        fields = [field for one in models for name, field in one.model_fields.items() if step in (name, field.alias)]
        models = [inner for field in fields for inner in _models_in(field.annotation)] or models
    return sorted({field.alias or name for one in models for name, field in one.model_fields.items()})


def _models_in(annotation: object) -> list[type[BaseModel]]:
    """The models in a type such as `dict[str, Grid] | None`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for part in get_args(annotation) for model in _models_in(part)]


def as_text(value: T) -> T | str:
    """A whole number as a text; other numbers are unchanged, because 1.10 and 1.1 may be different texts."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def misfit(kind: Kind, value: Value) -> str | None:
    """Why a value does not have a type, or None; a number may be a text with a unit, such as 64k."""
    expected, kinds = _KINDS[kind]
    if kind in ("int", "float") and isinstance(value, str) and _is_quantity(value):
        return None
    if isinstance(value, kinds) and (kind == "bool" or not isinstance(value, bool)):
        return None
    return f"{shown(value)} is not of type {kind}; expected {expected}"


def _is_quantity(text: str) -> bool:
    try:
        parse_quantity(text)
    except SpaceError:
        return False
    return True


def version_of(component: Component) -> str:
    """The digest of everything that a component describes."""
    plain = component.model_dump(mode="json", exclude_defaults=True)
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()
