"""The commands around the server, as somebody types them."""

import io
import json
import sys
from pathlib import Path

import pytest

from luthier.__main__ import main
from luthier.server.access import Doorkeeper
from luthier.store import open_books


class Terminal:
    """Types commands, with a store of its own."""

    def __init__(self, store: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.store = str(store)
        self._monkeypatch = monkeypatch
        self._capsys = capsys

    def __call__(self, *words: str, typed: str = "") -> tuple[int, str, str]:
        self._monkeypatch.setattr(sys, "argv", ["luthier", *words, "--store", self.store])
        self._monkeypatch.setattr(sys, "stdin", io.StringIO(typed))
        with pytest.raises(SystemExit) as ended:
            main()
        said = self._capsys.readouterr()
        return int(str(ended.value.code)), said.out, said.err


@pytest.fixture
def terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Terminal:
    return Terminal(tmp_path / "x.db", monkeypatch, capsys)


def test_accounts_are_added_listed_invited_and_removed(terminal: Terminal) -> None:
    assert terminal("user", "list")[1] == "no accounts; the server is for one person on this machine\n"
    password = "correct horse battery"
    assert terminal("user", "add", "ada", "--role", "admin", "--password-stdin", typed=f"{password}\n")[0] == 0
    assert terminal("user", "add", "bob", "--no-password")[1] == "bob: user\n"
    listed = json.loads(terminal("user", "list", "--json")[1])
    assert listed == [
        {"name": "ada", "role": "admin", "disabled": False},
        {"name": "bob", "role": "user", "disabled": False},
    ]
    door = Doorkeeper(open_books(terminal.store).accounts)
    assert door.recognise(door.log_in("ada", password, "here"), "session") is not None
    link = terminal("user", "invite", "bob", "--url", "https://example.org/")[1].strip()
    address, _, token = link.partition("?token=")
    assert address == "https://example.org/enter"
    assert door.enter(token) is not None
    assert door.enter(token) is None
    assert terminal("user", "remove", "bob")[1] == "removed: bob\n"
    assert terminal("user", "list")[1] == "ada  admin\n"


@pytest.mark.parametrize(
    ("words", "typed", "what"),
    [
        (["serve", "--host", "0.0.0.0"], "", "it has no accounts; make one first: luthier user add"),
        (["serve", "--port", "99999"], "", "there is no such port"),
        (["serve", "--proxy", "*"], "", "--proxy *: not an address or network"),
        (["serve", "--local", "-1"], "", "--local -1: give 0 or more"),
        (["worker", "--batch", "-1"], "", "--batch -1: give 0 or more"),
        (["user", "add", "ada", "--role", "boss", "--no-password"], "", "--role boss: there are viewer, user, admin"),
        (["user", "add", "ada", "--password-stdin"], "short\n", "password: give 10 to 1000 characters"),
        (["user", "add", "ada", "--no-password"], "", "somebody has to be an administrator"),
        (["user", "add", "local", "--role", "admin", "--no-password"], "", "is no name"),
        (["user", "invite", "bob"], "", "'bob' is not known here"),
        (["user", "remove", "bob"], "", "'bob' is not known here"),
    ],
)
def test_what_cannot_be_done_is_one_line_and_changes_nothing(
    terminal: Terminal, words: list[str], typed: str, what: str
) -> None:
    code, said, complaint = terminal(*words, typed=typed)
    assert (code, said) == (2, "")
    assert what in complaint
    assert len(complaint.splitlines()) == 1
    assert not open_books(terminal.store).accounts.users()


def test_a_store_in_memory_cannot_be_served(terminal: Terminal) -> None:
    terminal.store = "memory:"
    code, _, complaint = terminal("serve")
    assert code == 2
    assert "name a file or a database" in complaint
