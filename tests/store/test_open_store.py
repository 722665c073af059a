import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from luthier.errors import InvalidInputError, LuthierError
from luthier.folders import data_directory
from luthier.store import open_server_store, open_store
from luthier.store.memory import MemoryStore
from luthier.store.url import without_password


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of its own; nothing configured."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    monkeypatch.delenv("LUTHIER_STORE", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_default_is_a_file_in_a_private_folder(home: Path) -> None:
    open_store().create("x", {}, 0.0)
    folder = home / ".local" / "share" / "luthier"
    assert data_directory() == folder
    assert (folder / "luthier.db").exists()
    assert folder.stat().st_mode & 0o777 == 0o700
    assert [record.name for record in open_store().experiments()] == ["x"]


def test_xdg_data_home_is_respected_if_absolute(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(home / "data"))
    assert data_directory() == home / "data" / "luthier"
    open_store()
    assert (home / "data" / "luthier" / "luthier.db").exists()
    monkeypatch.setenv("XDG_DATA_HOME", "data")
    assert data_directory() == home / ".local" / "share" / "luthier"


def test_data_directory_creates_nothing(home: Path) -> None:
    data_directory()
    assert list(home.iterdir()) == []


def test_home_that_cannot_be_created_is_told(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / "file").touch()
    monkeypatch.setenv("XDG_DATA_HOME", str(home / "file"))
    with pytest.raises(InvalidInputError, match=r"cannot be created .* LUTHIER_STORE"):
        open_store()


def test_environment_names_the_store(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LUTHIER_STORE", "memory:")
    assert isinstance(open_store(), MemoryStore)
    monkeypatch.setenv("LUTHIER_STORE", "nonsense")
    with pytest.raises(InvalidInputError, match=r"^LUTHIER_STORE: 'nonsense' is not a valid store; .*memory:$"):
        open_store()
    monkeypatch.setenv("LUTHIER_STORE", "")
    open_store()
    assert (data_directory() / "luthier.db").exists()


def test_server_stores_are_opened_like_stores(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key = open_store("a.db").create("x", {}, 0.0).id
    assert [record.id for record in open_server_store("a.db").queue.records()] == [key]
    assert open_server_store().history.experiments() == []
    assert (data_directory() / "luthier.db").exists()
    monkeypatch.setenv("LUTHIER_STORE", "a.db")
    assert len(open_server_store().history.experiments()) == 1


@pytest.mark.parametrize("name", ["memory:", "memory:x", "nonsense", "mysql://root:secret@host/db"])
def test_invalid_names_of_server_stores(home: Path, name: str) -> None:
    with pytest.raises(InvalidInputError, match=r"^store: .*(valid|a server needs)") as caught:
        open_server_store(name)
    assert "secret" not in str(caught.value)
    assert list(home.iterdir()) == []


@pytest.mark.parametrize("name", ["a.db", "b c.sqlite", "sqlite:///d.db", "ä%20%.db", "sqlite:///without-suffix"])
def test_names_of_files(home: Path, name: str) -> None:
    open_store(name).create("x", {}, 0.0)
    assert (home / name.removeprefix("sqlite:///")).exists()


def test_home_is_expanded_and_absolute_paths_stay(home: Path) -> None:
    open_store("~/a.db")
    open_store(f"sqlite:///{home}/b.db")
    assert {path.name for path in home.glob("*.db")} == {"a.db", "b.db"}


def test_relative_name_survives_a_change_of_folder(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = open_store("a.db")
    (home / "elsewhere").mkdir()
    monkeypatch.chdir(home / "elsewhere")
    assert store.create("x", {}, 0.0).id == 1


@pytest.mark.parametrize(
    "name",
    [
        "",
        "x",
        "x.txt",
        "mysql://root:secret@host/db",
        "ftp://a.db",
        "sqlite:",
        "sqlite://",
        "sqlite:///",
        "sqlite:///:memory:",
        "sqlite:///a.db?mode=ro",
        "sqlite://a.db",
        "memory:x",
        "memory://",
        "postgresql:secret@x",
        "postgresql://u:secret@h:port/db",
        "sqlite:///folder/that/is/missing.db",
        "missing/a.db",
        "nul\0.db",
        "surrogate\ud800.db",
        "~nobody-of-this-name/x.db",
        "sqlite:///" + "n" * 5000,
    ],
)
def test_anything_else_is_refused_in_one_line_without_secrets(home: Path, name: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        open_store(name)
    message = str(caught.value)
    assert "\n" not in message
    assert "secret" not in message
    assert list(home.iterdir()) == []


@given(name=st.text(st.characters(exclude_categories=())).filter(lambda name: not name.endswith((".db", ".sqlite"))))
def test_any_text_is_refused_politely(name: str) -> None:
    with pytest.raises(LuthierError):
        open_store(name)


@given(
    user=st.text("abc", min_size=1),
    password=st.text(st.sampled_from("@:/?&%#ä "), min_size=1).map(lambda text: f"SECRET{text}SECRET"),
    scheme=st.sampled_from(["postgresql://", "postgres://", "mysql+x://", "//", ""]),
)
@example(user="a", password="SECRET://SECRET", scheme="//")
def test_passwords_are_never_shown(user: str, password: str, scheme: str) -> None:
    for url in (
        f"{scheme}{user}:{password}@host:5432/db",
        f"{scheme}{user}@host/db?password={password.replace('&', '')}",
    ):
        assert "SECRET" not in without_password(url)
        assert "host" in without_password(url)


def test_missing_driver_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] in {"psycopg", "psycopg_binary"}]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(InvalidInputError, match=r"^postgresql://u:\*\*\*@h/d: .*pip install 'luthier\[postgresql\]'$"):
        open_store("postgresql://u:secret@h/d")


def test_heavy_modules_are_imported_only_when_needed(tmp_path: Path) -> None:
    program = """
import sys
import luthier.store
assert "sqlalchemy" not in sys.modules
luthier.store.open_store("memory:")
assert "sqlalchemy" not in sys.modules
luthier.store.open_store("x.db")
print("alembic" in sys.modules)
"""
    seen = [
        subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=True, capture_output=True, text=True).stdout
        for _ in range(2)
    ]
    assert seen == ["True\n", "False\n"]
