"""`luthier online`: the service as people start it, and the commands that look at sessions."""

import json
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.online.serving import BEST, PATIENCE_S, SPACE, ServiceProcess, Wire, cost

from luthier.cli.app import main
from luthier.online.service.address import parse_address
from luthier.online.service.remote import RemoteTuner
from luthier.online.store import online_sessions_in
from luthier.store import open_server_store
from luthier.store.server_store import ServerStore, User
from luthier.store.sql import SqlStore

Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def store(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ServerStore]:
    monkeypatch.setenv("LUTHIER_STORE", f"sqlite:///{folder}/x.db")
    monkeypatch.setenv("XDG_DATA_HOME", str(folder / "data"))
    monkeypatch.delenv("LUTHIER_ONLINE", raising=False)
    opened = open_server_store()
    yield opened
    assert isinstance(opened.history, SqlStore)
    opened.history.dispose()


@pytest.fixture
def luthier(store: ServerStore, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """Runs a command; exit code, output and errors."""

    def command(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["luthier", "online", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        said = capsys.readouterr()
        return int(ended.value.code or 0), said.out, said.err

    return command


def run_a_session(folder: Path, name: str, steps: int) -> None:
    process = ServiceProcess(folder, f"sqlite:///{folder}/x.db")
    process.start()
    try:
        with Wire(parse_address(process.address)) as wire:
            wire.hello(name, "node/1")
            wire.run(steps)
    finally:
        process.end()


def test_list_show_stop_and_delete(folder: Path, store: ServerStore, luthier: Command) -> None:
    assert luthier("list") == (0, "no on-line sessions yet; see docs/online.md\n", "")
    run_a_session(folder, "stencil", 200)
    code, said, _ = luthier("list")
    assert code == 0
    assert "stencil" in said
    assert "block=20 depth=3 mode=plain" in said
    _, said, _ = luthier("show", "stencil")
    assert "on-line session 1: stencil, converged" in said
    assert "default:  block=1 depth=1 mode=plain (3.95)" in said
    (listed,) = json.loads(luthier("list", "--json")[1])
    shown = json.loads(luthier("show", "1", "--json")[1])
    assert shown["view"]["best"]["config"] == BEST
    assert shown["settings"]["strategy"] == "pro"
    assert {key: shown[key] for key in listed} == listed
    assert luthier("stop", "stencil")[0] == 0
    assert "stencil, stopped" in luthier("show", "stencil")[1]
    assert luthier("delete", "stencil") == (0, "deleted: on-line session 1 (stencil)\n", "")
    assert online_sessions_in(store).all() == []


def test_sessions_that_do_not_exist_or_are_several(store: ServerStore, luthier: Command) -> None:
    assert luthier("show", "nothing")[::2] == (
        2,
        "luthier: session 'nothing' does not exist; see: luthier online list\n",
    )
    settings = {"space": SPACE.to_json()}
    for author in ("ada", "bob"):
        online_sessions_in(store).create(author, "s", settings, 1.0)
    code, _, error = luthier("stop", "s")
    assert code == 2
    assert "several users have one with this name; give a number: 2, 1" in error
    assert luthier("delete", "2")[0] == 0
    assert "not served" in luthier("show", "s")[1]


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--listen", "5"), "expected unix:PATH, tcp:PORT or tcp:HOST:PORT"),
        (("--listen", "tcp:99999"), "not a port"),
        (("--listen", "unix:/nowhere/x"), "cannot listen"),
        (("--listen", "tcp:1", "list"), "cannot be combined with a command"),
        (("jump",), "No such command"),
    ],
)
def test_wrong_arguments_are_one_line(luthier: Command, words: tuple[str, ...], reason: str) -> None:
    code, said, error = luthier(*words)
    assert code == 2
    assert not said
    assert error.count("\n") == 1
    assert reason in error


@pytest.mark.parametrize("command", ["list", "show", "stop", "delete"])
def test_every_command_has_help_with_an_example(luthier: Command, command: str) -> None:
    code, said, _ = luthier(command, "--help")
    assert code == 0
    assert f"luthier online {command}" in said.split("Example:")[1]


def test_the_token_of_a_service_without_accounts(folder: Path, store: ServerStore, luthier: Command) -> None:
    with Started("--listen", "tcp:0") as (process, said):
        token = folder / "data" / "luthier" / "online-token"
        assert str(token) in said
        assert stat.S_IMODE(token.stat().st_mode) == 0o600
        secret = token.read_text().strip()
        assert secret not in said
        assert luthier("--show-token")[1] == f"{secret}\n"
        address = next(word for word in said.split() if word.startswith("tcp:127.0.0.1:"))
        tuner = RemoteTuner(address, "s", SPACE, token=secret, timeout_s=PATIENCE_S, strategy="pro", samples=1)
        tuner.report(cost(tuner.fetch()))
        assert tuner.best.value == cost(SPACE.default)
        tuner.leave()
    assert process.returncode == 0


def test_with_accounts_no_token_is_made(folder: Path, store: ServerStore) -> None:
    store.accounts.put_user(User("ada", "admin", 1.0))
    with Started("--listen", "tcp:0") as (_, said):
        assert "an API token of a user" in said
    assert not (folder / "data" / "luthier" / "online-token").exists()


def test_the_default_address_is_a_private_socket_in_the_data_directory(folder: Path, store: ServerStore) -> None:
    with Started() as (_, said):
        path = folder / "data" / "luthier" / "online.sock"
        assert f"unix:{path}" in said
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        tuner = RemoteTuner(None, "s", SPACE, timeout_s=PATIENCE_S, strategy="pro", samples=1)
        tuner.report(cost(tuner.fetch()))
        assert tuner.best.value == cost(SPACE.default)
        tuner.leave()
    assert not path.exists()


class Started:
    """`luthier online` in a process of its own; what it said until clients could connect."""

    def __init__(self, *words: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "luthier", "online", *words], stderr=subprocess.PIPE, text=True, env=dict(os.environ)
        )

    def __enter__(self) -> "tuple[subprocess.Popen[str], str]":
        lines: list[str] = []
        assert self._process.stderr is not None
        for line in self._process.stderr:
            lines.append(line)
            if "Ctrl-C" in line:
                break
        return self._process, "".join(lines)

    def __exit__(self, *_: object) -> None:
        self._process.send_signal(signal.SIGTERM)
        self._process.communicate(timeout=PATIENCE_S)
