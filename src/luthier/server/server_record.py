"""The address of a running server, recorded in the audit log of its store, so that other commands find it."""

import platform
import re
import socket
import time
from collections.abc import Iterator, Sequence
from urllib.parse import urlsplit

from luthier.store.ownership import is_running, this_process
from luthier.store.server_store import Accounts, Entry

LOOPBACK = ("127.0.0.1", "localhost", "::1")
STARTED = "start server"
_WHO = "luthier serve"
_PROCESS = re.compile(r"process (?P<pid>\d+) \(start (?P<started>\w+)\) on (?P<host>.+)")
_PAGE = 1000
_MOST_PAGES = 100
_ANSWER_S = 3.0


def public_url(host: str, port: int, names: Sequence[str], *, is_https: bool) -> str | None:
    """The address for browsers; None for an HTTPS proxy without a name, whose address is unknown."""
    if is_https:
        return f"https://{names[0]}/" if names else None
    own = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104  # it is not listened on here
    name = names[0] if names else own
    return f"http://{f'[{name}]' if ':' in name else name}:{port}/"


def record_start(accounts: Accounts, url: str) -> None:
    """Record that this process serves at this address."""
    me = this_process()
    detail = f"process {me.pid} (start {me.started}) on {me.host}"
    accounts.note(Entry(0, time.time(), _WHO, STARTED, url, detail))


def running_url(accounts: Accounts) -> str | None:
    """The address of the server that was started last and still runs; None without one."""
    tried = set()
    for entry in _starts(accounts):
        if (entry.target, entry.detail) not in tried and _answers(entry):
            return entry.target
        tried.add((entry.target, entry.detail))
    return None


def _starts(accounts: Accounts) -> Iterator[Entry]:
    before: int | None = None
    for _ in range(_MOST_PAGES):
        page = accounts.entries(before=before, limit=_PAGE)
        yield from (entry for entry in page if entry.action == STARTED)
        if len(page) < _PAGE:
            return
        before = page[-1].id


def _answers(entry: Entry) -> bool:
    """Whether this server runs: by its process on this machine, else by a connection to its address."""
    found = _PROCESS.fullmatch(entry.detail)
    if found is None:
        return False
    if found["host"] == platform.node():
        return is_running(int(found["pid"]), found["started"])
    address = urlsplit(entry.target)
    if address.hostname in LOOPBACK:  # of that machine, not of this one
        return False
    port = address.port or (443 if address.scheme == "https" else 80)
    try:
        with socket.create_connection((address.hostname or "", port), timeout=_ANSWER_S):
            return True
    except OSError:
        return False
