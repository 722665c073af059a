from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from luthier.errors import InvalidInputError, NotFoundError
from luthier.spec.component import Component
from luthier.spec.library import Library
from luthier.store import open_server_store

ONE = Component.model_validate(
    {"command": "a é\n#b", "parameters": {"x": {"cmd_var": True, "type": "int", "default": 0}}}
)
TWO = Component.model_validate({"parameters": {"Y": {"env_var": True, "type": "str", "default": "on"}}})


@pytest.fixture
def library(tmp_path: Path) -> Library:
    return opened(tmp_path)


def opened(folder: Path) -> Library:
    return Library(open_server_store(str(folder / "some.db")).components, folder / "components")


def test_what_was_added_is_read_back_and_the_others_stay(library: Library, tmp_path: Path) -> None:
    assert library.names() == []
    library.add({"one": ONE}, replace=False)
    library.add({"two-b": TWO}, replace=False)
    for reader in (library, opened(tmp_path)):
        assert reader.names() == ["one", "two-b"]
        assert reader.get("one") == ONE
        assert reader.get("two-b") == TWO
    library.remove("one")
    assert opened(tmp_path).names() == ["two-b"]


def test_another_store_has_its_own(library: Library, tmp_path: Path) -> None:
    library.add({"one": ONE}, replace=False)
    assert Library(open_server_store(str(tmp_path / "other.db")).components).names() == []


def test_all_or_none_are_added(library: Library) -> None:
    library.add({"one": ONE}, replace=False)
    with pytest.raises(InvalidInputError, match="'one' is already registered; use --replace"):
        library.add({"new": TWO, "one": TWO}, replace=False)
    assert library.names() == ["one"]
    assert library.get("one") == ONE
    library.add({"new": TWO, "one": TWO}, replace=True)
    assert library.get("one") == TWO


def test_several_threads_write_one_component(library: Library) -> None:
    many = [Component.model_validate({"header": f"{n}\n" * 2000, "parameters": {}}) for n in range(8)]

    def write(component: Component) -> None:
        for _ in range(10):
            library.add({"one": component}, replace=True)
            assert library.get("one") in many

    with ThreadPoolExecutor(len(many)) as pool:
        list(pool.map(write, many))
    assert library.names() == ["one"]


def test_an_unknown_name_gets_a_hint(library: Library) -> None:
    with pytest.raises(NotFoundError, match="add it with: luthier component add FILE"):
        library.get("dd")
    library.add({"openmpi": ONE}, replace=False)
    for call in (library.get, library.remove):
        with pytest.raises(NotFoundError, match="did you mean 'openmpi'"):
            call("openmp")
    with pytest.raises(NotFoundError):
        library.get("../openmpi")


def test_the_file_of_an_earlier_version_is_named(library: Library, tmp_path: Path) -> None:
    (tmp_path / "components").mkdir()
    (tmp_path / "components" / "dd.yaml").touch()
    with pytest.raises(NotFoundError, match=r"earlier version kept it in a file; add it with: .*components/dd\.yaml"):
        library.get("dd")
    with pytest.raises(NotFoundError, match="component add FILE"):
        library.get("../components/dd")


def test_a_damaged_text_is_one_line(library: Library) -> None:
    library.texts.put({"bad": "components: {bad: {parameters: {x: {type: int}}}}"}, replace=False)
    with pytest.raises(
        InvalidInputError, match=r"component bad:1: components\.bad\.parameters\.x: is not passed to the program"
    ):
        library.get("bad")
    library.texts.put({"other": "components: {else: {parameters: {}}}"}, replace=False)
    with pytest.raises(InvalidInputError, match="component other: its text does not describe it"):
        library.get("other")
