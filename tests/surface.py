"""What others rely on, one line each: Python names, commands and options, operations of the REST API, entry points.

python -m tests.surface      # writes surface.txt anew, after a change that is meant; the diff shows it
"""

import inspect
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import cast

import typer.main
from fastapi import APIRouter
from starlette.routing import Route

import luthier as lt
from luthier import tunio
from luthier.__main__ import app_with_wings
from luthier.measures.registry import MEASURES
from luthier.online.registry import STRATEGIES
from luthier.optimizers.registry import OPTIMIZERS
from luthier.policies import PRUNES, RESAMPLES, STOPS, SUBSET_PICKERS
from luthier.runners.registry import RUNNERS
from luthier.server.app import ServerAddress, create_app
from luthier.store import open_server_store
from luthier.submission.commands import SubmissionServeOptions

WRITTEN = Path(__file__).with_name("surface.txt")
METHODS = ("get", "put", "post", "patch", "delete", "head")


def surface(home: Path) -> list[str]:
    """Every line, sorted."""
    return sorted({*_python(), *_commands(), *_operations(home), *_registries()})


def _python() -> Iterator[str]:
    for module, name in [*((lt, name) for name in lt.__all__), *((tunio, name) for name in tunio.__all__)]:
        thing = getattr(module, name)
        signature = _signature(thing) if callable(thing) else ""
        yield f"python {module.__name__}.{name}{signature}"
        if inspect.isclass(thing):
            for member in sorted(set(dir(thing)) - set(dir(object)) - set(dir(Exception))):
                if not member.startswith("_"):
                    found = inspect.getattr_static(thing, member)
                    known = _signature(found) if inspect.isfunction(found) else ""
                    yield f"python {module.__name__}.{name}.{member}{known}"


def _signature(thing: object) -> str:
    """Names, kinds and defaults of the arguments; no annotations, which may name modules."""
    try:
        parameters = inspect.signature(cast("type", thing)).parameters.values()
    except (TypeError, ValueError):
        return ""
    bare = [parameter.replace(annotation=inspect.Parameter.empty) for parameter in parameters]
    return re.sub(r" at 0x[0-9a-f]+|<class '[\w.]+'>", "", str(inspect.Signature(bare)))


def _commands() -> Iterator[str]:
    yield from _below("luthier", typer.main.get_command(app_with_wings()))


def _below(path: str, command: object) -> Iterator[str]:
    yield f"command {path}"
    for parameter in getattr(command, "params", ()):
        names = [*parameter.opts, *parameter.secondary_opts]
        if parameter.param_type_name == "argument":
            yield f"command {path} {parameter.name.upper()}"
        for name in names if parameter.param_type_name == "option" else ():
            yield f"command {path} {name}"
    for name, each in getattr(command, "commands", {}).items():
        yield from _below(f"{path} {name}", each)


def _operations(home: Path) -> Iterator[str]:
    store = open_server_store(str(home / "surface.db"))
    options = {"submission": SubmissionServeOptions(signing_key=home / "key.pem")}
    application = create_app(store, ServerAddress(1), folder=home, options=options)
    document = cast("dict[str, dict[str, dict[str, dict[str, object]]]]", application.openapi())
    for path, methods in document["paths"].items():
        for method, described in methods.items():
            if method not in METHODS:
                continue
            where = f"rest {method.upper()} {path}"
            yield where
            for parameter in cast("list[dict[str, str]]", described.get("parameters", [])):
                yield f"{where} {parameter['in']} {parameter['name']}"
            for part in ("requestBody", "responses"):
                for schema in re.findall(r"'\$ref': '#/components/schemas/(\w+)'", str(described.get(part, ""))):
                    yield f"{where} {'takes' if part == 'requestBody' else 'answers'} {schema}"
    for name, schema in document["components"]["schemas"].items():
        for field in cast("dict[str, object]", schema.get("properties", {})):
            required = "" if field in cast("list[str]", schema.get("required", [])) else " (optional)"
            yield f"rest {name}.{field}{required}"
    for route in _routes(application.routes):
        if not getattr(route, "include_in_schema", True):
            yield from (f"page {method} {route.path}" for method in route.methods or ())


def _routes(routes: Sequence[object]) -> Iterator[Route]:
    """Also those of included routers, which newer versions of FastAPI keep apart."""
    for route in routes:
        if isinstance(route, Route):
            yield route
        elif (inner := getattr(route, "original_router", None)) is not None:
            yield from _routes(cast("APIRouter", inner).routes)


def _registries() -> Iterator[str]:
    """The entry point groups, and the built-in names of each."""
    for registry in (OPTIMIZERS, RUNNERS, MEASURES, STOPS, PRUNES, RESAMPLES, SUBSET_PICKERS, STRATEGIES):
        group = f"entry-points luthier.{registry.kinds or registry.kind + 's'}"
        yield group
        yield from (f"{group} {name}" for name in registry.built_in)


def main() -> None:
    with TemporaryDirectory() as folder:
        WRITTEN.write_text("".join(f"{line}\n" for line in surface(Path(folder))), encoding="utf-8")


if __name__ == "__main__":
    main()
