"""The on-line service inside of `luthier serve`: a real server process and real clients."""

import html
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest
from tests.server.server_fixtures import Starter
from tests.server.test_server_kill import Served, Site, kill, site_over, wait_until

from luthier import Integer, RemoteTuner, Space
from luthier.errors import InvalidInputError, UnavailableError
from luthier.online.server import serving as pages
from luthier.online.server.serving import OnlineServing, addresses_in
from luthier.online.store import online_sessions_in
from luthier.store import open_server_store
from luthier.store.server_store import ServerStore

SPACE = Space(Integer("block", 1, 64, default=1))


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    monkeypatch.delenv("LUTHIER_ONLINE", raising=False)
    with site_over(str(tmp_path / "x.db"), tmp_path) as found:
        yield found


def socket_of(site: Site) -> Path:
    return site.folder / "data" / "luthier" / "online.sock"


def stop(served: Served) -> None:
    """Stop a server as Ctrl-C does; it has nothing to complain about."""
    served.process.send_signal(signal.SIGINT)
    assert served.process.communicate(timeout=60)[1] == ""
    is_ignored = signal.getsignal(signal.SIGINT) == signal.SIG_IGN  # in tests that run in the background of a shell
    assert served.process.returncode == (0 if is_ignored else 128 + signal.SIGINT)


def work(tuner: RemoteTuner, steps: int) -> None:
    for _ in range(steps):
        config = tuner.fetch()
        tuner.report(1.0 + abs(int(config["block"]) - 20) / 20)


def take_part(address: str, token: str | None = None) -> None:
    """One iteration of a program."""
    tuner = RemoteTuner(address, "loop", SPACE, token=token, timeout_s=30.0)
    work(tuner, 1)
    tuner.leave()


def test_a_program_is_tuned_through_the_default_socket(site: Site) -> None:
    served = Served(site, "--no-worker")
    address = f"unix:{socket_of(site)}"
    tuner = RemoteTuner(address, "loop", SPACE, timeout_s=30.0, strategy="pro", samples=1)

    def shown() -> dict[str, object]:
        return served.json("GET", "/api/v1/online/1")

    work(tuner, 6)  # three with the default, then the search
    wait_until(lambda: shown()["phase"] == "searching" and shown()["default_value"] is not None, "the search is seen")
    assert (shown()["name"], shown()["author"], shown()["client_count"]) == ("loop", "local", 1)
    assert served.json("POST", "/api/v1/online/1/stop")["phase"] == "stopped"

    def has_stopped() -> bool:
        work(tuner, 1)
        return tuner.phase == "stopped"

    wait_until(has_stopped, "the client hears of the stop")
    best = tuner.best.best
    assert [tuner.fetch() for _ in range(3)] == [best] * 3
    known = {"config": dict(best), "value": tuner.best.value, "samples": tuner.best.samples}
    wait_until(lambda: shown()["best"] == known, "the page shows what the clients run")
    tuner.leave()
    assert f"luthier: on-line sessions at {address}\n" in served.said
    stop(served)
    assert not socket_of(site).exists()


def test_a_second_server_says_that_the_socket_is_taken_and_goes_on(site: Site) -> None:
    first = Served(site, "--no-worker")
    take_part(f"unix:{socket_of(site)}")
    second = Served(site, "--no-worker")
    assert "\nluthier: on-line tuning is off on this server: " in second.said
    wait_until(lambda: bool(second.json("GET", "/api/v1/online")["items"]), "it shows what the first one serves")
    stop(second)
    assert socket_of(site).exists()
    kill(first.process)
    third = Served(site, "--no-worker")  # the socket of a killed server is in nobody's way
    take_part(f"unix:{socket_of(site)}")

    def samples() -> int:
        return len(cast("list[object]", third.json("GET", "/api/v1/online/1/samples")["items"]))

    wait_until(lambda: samples() == 2, "the session goes on where it was")
    stop(third)


def test_the_service_can_be_switched_off(site: Site) -> None:
    served = Served(site, "--no-worker", "--online", "none")
    assert served.json("GET", "/api/v1/online")["items"] == []
    assert not socket_of(site).exists()
    assert "on-line" not in served.said
    stop(served)


def test_an_address_that_was_asked_for_must_be_free(site: Site) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"tcp:{taken.getsockname()[1]}"
        process = site.start("serve", "--port", "0", "--no-worker", "--online", address)
        said = process.communicate(timeout=120)[1]
    assert process.returncode != 0
    (line,) = said.splitlines()
    assert line.startswith(f"luthier: tcp:127.0.0.1:{address[4:]}: cannot listen: Address already in use")


def test_addresses(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("LUTHIER_ONLINE", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert addresses_in([]) == [f"unix:{tmp_path}/luthier/online.sock"]
    assert addresses_in(["none"]) == []
    assert addresses_in(["tcp:7000", "unix:/tmp/x"]) == ["tcp:7000", "unix:/tmp/x"]
    for bad in (["none", "tcp:7000"], ["port 7000"], ["tcp:99999"]):
        with pytest.raises(InvalidInputError):
            addresses_in(bad)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / ("x" * 200)))
    assert len(addresses_in([])) == 1  # whether it can be used is seen later


@pytest.fixture
def store(start_server: Starter) -> tuple[ServerStore, dict[str, str]]:
    """The store of a server with accounts, and a token of each."""
    server = start_server()
    tokens = {"root": server.add_user("root", "admin")}
    tokens |= {"ann": server.add_user("ann", "user"), "eve": server.add_user("eve", "viewer")}
    return open_server_store(server.store_url), tokens


def test_tokens_of_users_work_over_tcp_and_those_of_viewers_do_not(
    store: tuple[ServerStore, dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LUTHIER_TOKEN", raising=False)
    monkeypatch.delenv("LUTHIER_TOKEN_FILE", raising=False)
    server_store, tokens = store
    serving = OnlineServing(server_store, ["tcp:0"])
    serving.start()
    try:
        (address,) = serving.addresses
        for name in ("ann", "root"):
            take_part(address, tokens[name])
        assert sorted(record.author for record in online_sessions_in(server_store).all()) == ["ann", "root"]
        for token in (tokens["eve"], "x" * 43, None):
            with pytest.raises(InvalidInputError, match="token"):
                take_part(address, token)
        assert len(online_sessions_in(server_store).all()) == 2
        with pytest.raises(UnavailableError):
            OnlineServing(server_store, [address]).start()
    finally:
        serving.stop()
    port = int(address.rpartition(":")[2])
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.1", port), timeout=10)


def test_nobody_else_may_open_the_socket(site: Site) -> None:
    served = Served(site, "--no-worker")
    assert socket_of(site).stat().st_mode & 0o777 == 0o600
    kill(served.process)


def test_the_examples_of_the_empty_page(
    store: tuple[ServerStore, dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (Path(pages.__file__).parent / "templates" / "online.html").read_text(encoding="utf-8")
    python, c, shell = map(html.unescape, re.findall(r"<pre[^>]*>(.*?)</pre>", page, re.DOTALL))
    serving = OnlineServing(store[0], ["tcp:0"])
    serving.start()
    monkeypatch.setenv("LUTHIER_ONLINE", serving.addresses[0])
    monkeypatch.setenv("LUTHIER_TOKEN", store[1]["ann"])
    names: dict[str, object] = {"work": range(3), "process": lambda *_: None}
    try:
        exec(python, names)
        cast("RemoteTuner", names["tuner"]).leave()
        assert [record.name for record in online_sessions_in(store[0]).all()] == ["my loop"]
    finally:
        serving.stop()
    header = (Path(__file__).parents[3] / "native" / "online" / "luthier_online.h").read_text(encoding="utf-8")
    assert all(f"{call}(" in header for call in re.findall(r"(luthier_\w+)\(", c))
    options = subprocess.run(
        [sys.executable, "-m", "luthier", "tune", "--help"], capture_output=True, text=True, check=True
    )
    assert [word for word in re.findall(r"--[\w-]+", shell) if word not in options.stdout] == []
