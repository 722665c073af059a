"""Names of built-in things and of plug-ins."""

import importlib.metadata
from collections.abc import Callable, Iterator

import pytest

from luthier.errors import InvalidInputError, NotFoundError
from luthier.plugins import Registry, entries_of

SHAPES: Registry[Callable[[], str]] = Registry(
    "shape", {"disc": lambda: "built in", "join": "os.path:join"}, notations=lambda: ("polygon:SIDES",)
)
raises = KeyError("a", "b")


def square() -> str:
    return "plug-in"


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    places = {
        "square": f"{__name__}:square",
        "disc": f"{__name__}:square",
        "absent": "no_such_module:x",
        "number": f"{__name__}:raises",
    }
    entries = [importlib.metadata.EntryPoint(name, place, "luthier.shapes") for name, place in places.items()]
    monkeypatch.setattr(
        importlib.metadata, "entry_points", lambda *, group: [entry for entry in entries if entry.group == group]
    )
    yield
    entries_of.cache_clear()


def test_built_in_names_come_first_and_win() -> None:
    assert SHAPES.names() == ["disc", "join", "absent", "number", "square"]
    assert SHAPES.get("disc")() == "built in"
    assert SHAPES.get("square")() == "plug-in"
    assert SHAPES.get("join").__name__ == "join", "imported when asked for"
    assert "square" in SHAPES
    assert "os.path:join" not in SHAPES


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("disk", "unknown shape 'disk'; did you mean 'disc'? known: disc, join, absent, number, square, polygon:SIDES"),
        ("poligon:3", "unknown shape 'poligon:3'; did you mean 'polygon'? known"),
        ("os.path:join", "unknown shape 'os.path:join'; known"),
    ],
)
def test_unknown_names(name: str, told: str) -> None:
    with pytest.raises(NotFoundError) as caught:
        SHAPES.get(name)
    assert str(caught.value).startswith(told)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        (
            "absent",
            "shape: the plug-in 'absent' (no_such_module:x) cannot be loaded: ModuleNotFoundError: "
            "No module named 'no_such_module'; reinstall or remove it",
        ),
        ("number", "is a KeyError, not a valid shape; ask its author"),
    ],
)
def test_plugins_that_cannot_be_used_are_one_clear_line(name: str, told: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        SHAPES.get(name)
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)
