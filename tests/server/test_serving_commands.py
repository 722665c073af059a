"""The commands around the server, as somebody types them."""

import io
import json
import socket
import sys
from pathlib import Path

import pytest
from tests.server.test_server_kill import Served, kill, site_over

from luthier.__main__ import main
from luthier.server.authentication import Authenticator
from luthier.server.server_record import STARTED, public_url, running_url
from luthier.store import open_server_store
from luthier.store.server_store import Entry
from luthier.submission.answer_signature import check_with, signed_text
from luthier.submission.signing_key import existing_signing_key


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
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))
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
    authenticator = Authenticator(open_server_store(terminal.store).accounts)
    session = authenticator.finish_login(authenticator.begin_login("ada", "here"), "ada", password)
    assert authenticator.recognise(session, "session") is not None
    link = terminal("user", "invite", "bob", "--url", "https://example.org/")[1].strip()
    address, _, token = link.partition("?token=")
    assert address == "https://example.org/enter"
    assert authenticator.enter(token) is not None
    assert authenticator.enter(token) is None
    assert terminal("user", "remove", "bob")[1] == "removed: bob\n"
    assert terminal("user", "list")[1] == "ada  admin\n"


@pytest.mark.parametrize(
    ("words", "typed", "what"),
    [
        (["serve", "--host", "0.0.0.0"], "", "it has no accounts; add one first: luthier user add"),
        (["serve", "--port", "99999"], "", "invalid port"),
        (["serve", "--proxy", "*"], "", "--proxy *: not an address or network"),
        (["serve", "--signing-key", "/dev/null"], "", "/dev/null: other users can read this secret"),
        (["serve", "--signing-key", "/proc/none/key"], "", "/proc/none/key: cannot be written: No such file"),
        (["serve", "--local", "-1"], "", "--local -1: give 0 or more"),
        (["worker", "--batch", "-1"], "", "--batch -1: give 0 or more"),
        (["user", "add", "ada", "--role", "boss", "--no-password"], "", "--role boss: unknown role"),
        (["user", "add", "ada", "--password-stdin"], "short\n", "password: use 10 to 1000 characters"),
        (["user", "add", "ada", "--no-password"], "", "the server needs an administrator"),
        (["user", "add", "local", "--role", "admin", "--no-password"], "", "'local' is not valid"),
        (["user", "invite", "bob"], "", "'bob' does not exist"),
        (["user", "remove", "bob"], "", "'bob' does not exist"),
    ],
)
def test_what_cannot_be_done_is_one_line_and_changes_nothing(
    terminal: Terminal, words: list[str], typed: str, what: str
) -> None:
    code, said, complaint = terminal(*words, typed=typed)
    assert (code, said) == (2, "")
    assert what in complaint
    assert len(complaint.splitlines()) == 1
    assert not open_server_store(terminal.store).accounts.users()


def test_servers_that_name_one_key_sign_with_it(tmp_path: Path) -> None:
    key, nonce, answers = tmp_path / "keys" / "luthier.pem", b"n" * 32, set()
    given = {"user": "local", "script": "#!/bin/sh\n"}
    for name in ("one", "two"):
        with site_over(str(tmp_path / f"{name}.db"), tmp_path / name) as site:
            served = Served(site, "--no-worker", "--signing-key", str(key))
            served.headers["Luthier-Nonce"] = nonce.hex()
            _, headers, body = served.request("POST", "/api/v1/submissions?form=lines", given)
            answers.add((headers["luthier-signature"], body))
    ((signature, body),) = answers
    is_valid = check_with(bytes.fromhex(existing_signing_key(key).public))
    assert is_valid is not None
    assert is_valid(bytes.fromhex(signature), signed_text(nonce, json.dumps(given).encode(), body))


def test_a_store_in_memory_cannot_be_served(terminal: Terminal) -> None:
    terminal.store = "memory:"
    code, _, complaint = terminal("serve")
    assert code == 2
    assert "a server needs a file or a database" in complaint


def test_an_invitation_names_the_port_in_use(terminal: Terminal, tmp_path: Path) -> None:
    code, said, complaint = terminal("user", "invite", "local")
    assert (code, said) == (2, "")
    assert complaint.startswith("luthier: no server is running with this store; start it with: luthier serve, or give")
    with site_over(terminal.store, tmp_path) as site:
        first, second = Served(site, "--no-worker"), Served(site, "--no-worker")
        assert _invited(terminal).startswith(f"http://{second.netloc}/enter?token=")
        kill(second.process)  # its record stays, and must not mislead
        link = _invited(terminal)
        assert link.startswith(f"http://{first.netloc}/enter?token=")
        token = link.partition("=")[2]
        assert first.request("POST", "/api/v1/session/invitation", {"token": token})[0] == 200
        kill(first.process)
        assert terminal("user", "invite", "local")[0] == 2


def _invited(terminal: Terminal) -> str:
    code, said, complaint = terminal("user", "invite", "local")
    assert code == 0, complaint
    return said.strip()


@pytest.mark.parametrize(
    ("host", "names", "is_https", "url"),
    [
        ("127.0.0.1", [], False, "http://127.0.0.1:81/"),
        ("::1", [], False, "http://[::1]:81/"),
        ("0.0.0.0", [], False, "http://127.0.0.1:81/"),
        ("0.0.0.0", ["box"], False, "http://box:81/"),
        ("10.0.0.5", ["tune.example.org"], True, "https://tune.example.org/"),
        ("10.0.0.5", [], True, None),
    ],
)
def test_the_address_for_browsers(host: str, names: list[str], is_https: bool, url: str | None) -> None:
    assert public_url(host, 81, names, is_https=is_https) == url


def test_a_server_elsewhere_is_named_only_if_it_answers(terminal: Terminal) -> None:
    accounts = open_server_store(terminal.store).accounts
    with socket.create_server(("127.0.0.2", 0)) as listening:
        there = f"http://127.0.0.2:{listening.getsockname()[1]}/"
        for url in (there, "http://127.0.0.1:1/", "http://127.0.0.2:1/"):
            accounts.note(Entry(0, 1.0, "luthier serve", STARTED, url, "process 1 (start 2) on elsewhere"))
        assert running_url(accounts) == there
    assert running_url(accounts) is None
