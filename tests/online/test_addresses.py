"""Addresses, and sockets to listen on: private, and nothing but a stale socket is removed."""

import os
import socket
import stat
from pathlib import Path

import pytest

from luthier.errors import InvalidInputError, LuthierError, UnavailableError
from luthier.online.service.address import TcpAddress, UnixAddress, default_address, parse_address
from luthier.online.service.service import address_of, listen, stop_listening


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("unix:/run/x.sock", UnixAddress("/run/x.sock")),
        ("tcp:7000", TcpAddress("127.0.0.1", 7000)),
        ("tcp:0.0.0.0:0", TcpAddress("0.0.0.0", 0)),
        ("tcp:node3:7000", TcpAddress("node3", 7000)),
        ("tcp:[::1]:7000", TcpAddress("::1", 7000)),
    ],
)
def test_addresses(text: str, address: UnixAddress | TcpAddress) -> None:
    assert parse_address(text) == address
    assert parse_address(str(address)) == address


@pytest.mark.parametrize(
    "text",
    ["", "unix:", "tcp:", "7000", "tcp:x", "tcp:-1", "tcp:65536", "tcp:²", "udp:1", "unix:/" + "a" * 200, "unix:\0"],
)
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(InvalidInputError):
        parse_address(text)


def test_the_default_address(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.delenv("LUTHIER_ONLINE", raising=False)
    assert default_address() == f"unix:{tmp_path}/luthier/online.sock"
    monkeypatch.setenv("LUTHIER_ONLINE", "tcp:9")
    assert default_address() == "tcp:9"


def test_a_unix_socket_is_private_and_removed_at_the_end(folder: Path) -> None:
    before = os.umask(0)
    try:
        address = UnixAddress(str(folder / "s"))
        listening = listen(address)
        assert stat.S_IMODE((folder / "s").stat().st_mode) == 0o600
        assert os.umask(0) == 0
        stop_listening(listening, address)
    finally:
        os.umask(before)
    assert not (folder / "s").exists()


def test_a_living_service_is_not_disturbed(folder: Path) -> None:
    address = UnixAddress(str(folder / "s"))
    with listen(address) as living:
        with pytest.raises(UnavailableError, match="already listening"):
            listen(address)
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(address.path)
            living.accept()[0].close()


def test_a_stale_socket_is_replaced(folder: Path) -> None:
    address = UnixAddress(str(folder / "s"))
    listen(address).close()  # as a killed service leaves it
    assert (folder / "s").exists()
    with listen(address):
        pass


def test_nothing_but_a_socket_is_removed(folder: Path) -> None:
    (folder / "file").write_text("mine")
    (folder / "folder").mkdir()
    (folder / "link").symlink_to(folder / "file")
    (folder / "dangling").symlink_to(folder / "nothing")
    for name in ("file", "folder", "link", "dangling"):
        with pytest.raises(InvalidInputError, match="not a socket"):
            listen(UnixAddress(str(folder / name)))
    assert (folder / "file").read_text() == "mine"
    assert (folder / "dangling").is_symlink()


def test_the_socket_of_a_successor_is_not_removed(folder: Path) -> None:
    address = UnixAddress(str(folder / "s"))
    old = listen(address)
    (folder / "s").unlink()
    with listen(address):
        stop_listening(old, address)
        assert (folder / "s").exists()


def test_tcp_is_on_loopback_and_says_its_port() -> None:
    address = parse_address("tcp:0")
    with listen(address) as listening:
        chosen = address_of(listening, address)
        assert listening.getsockname()[0] == "127.0.0.1"
        assert isinstance(chosen, TcpAddress)
        assert chosen.port == listening.getsockname()[1] != 0
        with pytest.raises(UnavailableError, match="cannot listen"):
            listen(chosen)


@pytest.mark.parametrize("text", ["unix:/nowhere/at/all", "tcp:no..host:1"])
def test_addresses_that_cannot_be_listened_on(text: str) -> None:
    with pytest.raises(LuthierError, match="cannot listen"):
        listen(parse_address(text))
