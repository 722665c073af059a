"""Tune a PostgreSQL while it serves: `python examples/online/postgresql/run.py`; options go to `luthier tune`.

It starts a throw-away PostgreSQL without a port and two clients that query it all the time, tunes settings that take
effect without a restart, and counts the queries that failed meanwhile: none. It needs psycopg (luthier[postgresql]).
"""

import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

PARAMETERS = ("random_page_cost=1.1,2,4@4", "work_mem=1MB,4MB,16MB,64MB@4MB", "jit=on,off")
TABLES = (
    "CREATE TABLE bills AS SELECT i AS id, md5(i::text) AS payer, i / 2 AS amount FROM generate_series(1, 60000) i",
    "CREATE TABLE orders AS SELECT i * 7 % 60000 + 1 bill, (i * 7 + 1) % 150 AS day FROM generate_series(1, 60000) i",
    "ALTER TABLE bills ADD PRIMARY KEY (id)",
    "CREATE INDEX ON orders (day)",
)
DAYS, ORDERS_A_DAY = 150, 400
QUERY = "SELECT count(*), sum(amount) FROM orders JOIN bills ON bills.id = orders.bill WHERE day = %s"
CLIENTS = 2
PAUSE_S = 0.002


def programs() -> Path:
    """The folder with PostgreSQL's own programs."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: float(path.parts[-3]))
    return (found[-1] if found else Path(shutil.which("initdb") or "/usr/bin/initdb").resolve()).parent


@contextmanager
def server(folder: Path) -> Iterator[None]:
    """A PostgreSQL whose socket, data and log are in a folder."""
    user = "postgres" if os.geteuid() == 0 else None  # it refuses to run as root
    if user is not None:
        shutil.chown(folder, user)
    log = "-c log_min_duration_statement=0 -c log_line_prefix='%u ' -c logging_collector=off"
    options = f"-c listen_addresses= -c unix_socket_directories={folder} -c fsync=off {log}"

    def run(program: str, *arguments: str) -> None:
        subprocess.run(
            [programs() / program, "-D", folder / "data", *arguments],
            user=user,
            cwd=folder,
            env={"LC_ALL": "C.UTF-8", "PATH": os.defpath},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            check=True,
        )

    run("initdb", "-U", "tuner", "-A", "trust", "-E", "UTF8", "--no-sync")
    run("pg_ctl", "start", "-w", "-s", "-l", str(folder / "log"), "-o", options)
    try:
        yield
    finally:
        run("pg_ctl", "stop", "-m", "immediate", "-s")


def connect(folder: Path, user: str) -> psycopg.Connection:
    """A connection to the server; a prepared statement would keep the plan that was made with older settings."""
    return psycopg.connect(host=str(folder), user=user, dbname="postgres", autocommit=True, prepare_threshold=None)


def fill(folder: Path) -> None:
    """Make the table and the user of the clients."""
    with connect(folder, "tuner") as connection:
        for statement in TABLES:
            connection.execute(statement)
        connection.execute("CREATE ROLE app LOGIN")
        connection.execute("GRANT SELECT ON bills, orders TO app")
        connection.execute("VACUUM ANALYZE")


class Users(threading.Thread):
    """One client: a query after the other, and a moment in between; counts queries and errors."""

    def __init__(self, folder: Path, ended: threading.Event) -> None:
        super().__init__(daemon=True)
        self.queries = 0
        self.errors: list[str] = []
        self._folder, self._ended = folder, ended

    def run(self) -> None:
        """Query until the end."""
        while not self._ended.wait(PAUSE_S):
            try:
                with connect(self._folder, "app") as connection:
                    self._use(connection)
            except psycopg.Error as error:
                self.errors.append(str(error))

    def _use(self, connection: psycopg.Connection) -> None:
        while not self._ended.wait(PAUSE_S):
            self.queries += 1
            found = connection.execute(QUERY, [self.queries % DAYS]).fetchone()
            if found is None or found[0] != ORDERS_A_DAY:
                self.errors.append(f"the answer was {found}")


def tune(folder: Path, options: list[str]) -> int:
    """Call luthier as one would on the command line."""
    names = [parameter.partition("=")[0] for parameter in PARAMETERS]
    psql = ["psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-h", str(folder), "-U", "tuner", "postgres"]
    for name in names:
        psql += ["-c", f"ALTER SYSTEM SET {name} = '{{{name}}}'"]
    psql += ["-c", "SELECT pg_reload_conf()"]
    command = [sys.executable, "-m", "luthier", "tune", "--online"]
    for parameter in PARAMETERS:
        command += ["-p", parameter]
    command += ["--reload", shlex.join(psql), "--read", f"log:{folder}/log:^app .*duration: (\\S+) ms  execute"]
    command += ["--every", "2s", "--name", f"postgresql {folder.name}"]
    print("luthier", shlex.join([*command[3:], *options]), file=sys.stderr)
    return subprocess.run([*command, *options], check=False).returncode


def main(options: list[str]) -> int:
    """Start the server and its clients, tune, and count the errors."""
    with tempfile.TemporaryDirectory(prefix="luthier-postgresql-") as place:
        folder, ended = Path(place), threading.Event()
        with server(folder):
            fill(folder)
            users = [Users(folder, ended) for _ in range(CLIENTS)]
            for one in users:
                one.start()
            try:
                code = tune(folder, options)
            finally:
                ended.set()
                for one in users:
                    one.join(60)
    errors = [text for one in users for text in one.errors]
    print(f"served {sum(one.queries for one in users)} queries with {len(errors)} errors", *map(json.dumps, errors[:5]))
    return code or bool(errors)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
