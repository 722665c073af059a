from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from luthier.errors import InvalidInputError, NotFoundError, UnavailableError
from luthier.spec.component import Component, read_components
from luthier.spec.library import Library

ONE = Component.model_validate(
    {"command": "a é\n#b", "parameters": {"x": {"cmd_var": True, "type": "int", "default": 0}}}
)
TWO = Component.model_validate({"parameters": {"Y": {"env_var": True, "type": "str", "default": "on"}}})


def test_what_was_added_is_read_back_and_the_others_stay(tmp_path: Path) -> None:
    library = Library(tmp_path / "components")
    assert library.names() == []
    library.add({"one": ONE}, replace=False)
    library.add({"two-b": TWO}, replace=False)
    assert library.names() == ["one", "two-b"]
    assert library.get("one") == ONE
    assert library.get("two-b") == TWO
    assert read_components(tmp_path / "components" / "one.yaml") == {"one": ONE}
    library.remove("one")
    assert library.names() == ["two-b"]


def test_all_or_none_are_added(tmp_path: Path) -> None:
    library = Library(tmp_path)
    library.add({"one": ONE}, replace=False)
    with pytest.raises(InvalidInputError, match="'one' is already registered; use --replace"):
        library.add({"new": TWO, "one": TWO}, replace=False)
    assert library.names() == ["one"]
    assert library.get("one") == ONE
    library.add({"new": TWO, "one": TWO}, replace=True)
    assert library.get("one") == TWO


def test_several_threads_write_one_component(tmp_path: Path) -> None:
    library = Library(tmp_path)
    many = [Component.model_validate({"header": f"{n}\n" * 2000, "parameters": {}}) for n in range(8)]

    def write(component: Component) -> None:
        for _ in range(10):
            library.add({"one": component}, replace=True)
            assert library.get("one") in many

    with ThreadPoolExecutor(len(many)) as pool:
        list(pool.map(write, many))
    assert [path.name for path in tmp_path.iterdir()] == ["one.yaml"]


def test_an_unknown_name_gets_a_hint(tmp_path: Path) -> None:
    library = Library(tmp_path)
    with pytest.raises(NotFoundError, match="add it with: luthier component add FILE"):
        library.get("dd")
    library.add({"openmpi": ONE}, replace=False)
    for call in (library.get, library.remove):
        with pytest.raises(NotFoundError, match="did you mean 'openmpi'"):
            call("openmp")
    with pytest.raises(NotFoundError):
        library.get("../openmpi")


def test_a_damaged_file_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text("components: {bad: {parameters: {x: {type: int}}}}")
    with pytest.raises(
        InvalidInputError, match=r"bad\.yaml:1: components\.bad\.parameters\.x: is not passed to the program"
    ):
        Library(tmp_path).get("bad")
    (tmp_path / "other.yaml").write_text("components: {else: {parameters: {}}}")
    with pytest.raises(InvalidInputError, match="does not describe 'other'"):
        Library(tmp_path).get("other")


def test_a_folder_that_cannot_be_made_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UnavailableError, match="cannot be written"):
        Library(tmp_path / "file" / "components").add({"one": ONE}, replace=False)
