"""Stores shared by processes, some of which die."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tests.store.samples import a_run, ended

from luthier.store.base import Owner, Store
from luthier.store.server_store import Credential, ServerStore
from luthier.trial import Completed

Opener = Callable[[str], Store]

OPEN_AT_ONCE = """
import sys
import alembic.command, luthier.store.sql, luthier.store.schema  # what takes long, before the start signal
from luthier.store import open_store
print("ready", flush=True)
sys.stdin.readline()
print(open_store(sys.argv[1]).create(sys.argv[2], {}, 0.0).id)
"""

APPEND = """
import sys
from luthier.store import open_store
from tests.store.samples import a_run, ended
from luthier.trial import Completed
store, key, first, count = open_store(sys.argv[1]), *map(int, sys.argv[2:])
print("ready", flush=True)
sys.stdin.readline()
for number in range(first, first + count):
    store.append(key, a_run(number))
    store.append(key, a_run(number))
    store.finish(key, ended(a_run(number), Completed(float(number))))
    print(number, flush=True)
"""

RIVAL = """
import sys
from luthier.errors import NotFoundError
from luthier.store import open_server_store
from luthier.store.base import Owner, RequestedBy
store, me, keys = open_server_store(sys.argv[1]), int(sys.argv[2]), [int(key) for key in sys.argv[3:]]
print("ready", flush=True)
sys.stdin.readline()
print(store.history.create("x", {}, 0.0, RequestedBy("ann", None, "k")).id)
print("nothing" if store.accounts.find("digest", 1.0) is None else "let in")
for key in keys:
    try:
        won = store.queue.delete(key, None) if me % 2 else store.history.claim(key, Owner("here", me, "1"), 1.0, None)
    except NotFoundError:
        won = False
    print("won" if won else "lost")
"""


def start(program: str, *arguments: object) -> "subprocess.Popen[str]":
    """A process that waits for its start signal."""
    return subprocess.Popen(
        [sys.executable, "-c", program, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def at_once(processes: list["subprocess.Popen[str]"]) -> list[list[str]]:
    """Let waiting processes go together; what each of them said."""
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    answers = [process.communicate() for process in processes]
    assert [error for _, error in answers] == [""] * len(processes)
    return [answer.splitlines() for answer, _ in answers]


def test_new_store_is_opened_by_several_at_once(url: str, opening: Opener) -> None:
    numbers = at_once([start(OPEN_AT_ONCE, url, f"experiment {index}") for index in range(4)])
    assert sorted(numbers) == [["1"], ["2"], ["3"], ["4"]]
    assert {record.name for record in opening(url).experiments()} == {f"experiment {index}" for index in range(4)}


def test_many_append_at_once_without_duplicates_or_losses(url: str, opening: Opener) -> None:
    store = opening(url)
    key = store.create("x", {}, 0.0).id
    at_once([start(APPEND, url, key, first, 60) for first in (0, 40, 80)])  # neighbours write the same runs, too
    assert list(store.runs(key)) == [ended(a_run(number), Completed(float(number))) for number in range(140)]


def test_of_rivals_exactly_one_gets_what_there_is_one_of(url: str, reopen: Callable[[], ServerStore]) -> None:
    server_store = reopen()
    keys = [server_store.history.create("x", {}, 0.0).id for _ in range(20)]
    server_store.accounts.grant("digest", Credential(0, "ann", "once", "invitation", 0.0))
    answers = at_once([start(RIVAL, url, index, *keys) for index in range(4)])
    created, entered, *taken = zip(*answers, strict=True)
    assert len(set(created)) == 1
    assert sorted(entered) == ["let in", "nothing", "nothing", "nothing"]
    left = {record.id: record.owner for record in server_store.history.experiments()}
    for key, results in zip(keys, taken, strict=True):
        assert results.count("won") == 1
        winner = results.index("won")
        assert left.get(key) == (None if winner % 2 else Owner("here", winner, "1"))
        assert (key in left) is (winner % 2 == 0)


def test_nothing_acknowledged_is_lost_when_writers_are_killed(tmp_path: Path, opening: Opener) -> None:
    url = f"{tmp_path}/x.db"
    store = opening(url)
    key = store.create("x", {}, 0.0).id
    acknowledged: list[int] = []
    for attempt in range(10):
        first = attempt * 1000
        writer = start(APPEND, url, key, first, 1000)
        assert writer.stdout is not None
        assert writer.stdin is not None
        assert writer.stdout.readline() == "ready\n"
        writer.stdin.write("go\n")
        writer.stdin.flush()
        acknowledged += [int(writer.stdout.readline()) for _ in range(3 + 7 * attempt)]
        writer.kill()
        with writer:  # not communicate(), which passes over what readline() has read ahead
            acknowledged += [int(line) for line in writer.stdout if line.endswith("\n")]
    runs = {run.number: run for run in store.runs(key)}
    assert [runs[number] for number in acknowledged] == [ended(a_run(n), Completed(float(n))) for n in acknowledged]
    assert len(runs) <= len(acknowledged) + 10  # at most the one each of them was at
