"""Connections to Dask clusters, and a cluster on this machine: `python -m luthier.runners.dask_cluster WORKERS`.

The local cluster is a process of its own, in another session than luthier: a Ctrl-C in the terminal does not reach it,
and it ends with luthier, whatever ends that: it waits for the end of its standard input. Its connections need a
certificate that exists in the memory of these processes only, as other users of the machine can reach its ports too.
"""

import json
import logging
import re
import select
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl

from luthier.errors import InvalidInputError, NotFoundError, UnavailableError
from luthier.texts import shown

if TYPE_CHECKING:
    from distributed import Client, Security

CONNECT_S = 10.0
"""How long to wait for a scheduler."""

START_S = 120.0
"""How long a local cluster may take to start on a busy machine."""

_ADDRESS = re.compile(r"(tcp|tls|ws|wss|ucx|ucxx)://(\[[0-9A-Fa-f:.]+\]|[\w.-]+):[0-9]{1,5}", re.ASCII)
_KEYS = ("tls_ca_file", "tls_client_cert", "tls_client_key")


@dataclass(frozen=True, slots=True)
class DaskPlace:
    """Where runs are made: an address or a scheduler file, "" for a cluster on this machine; what each run needs."""

    address: str = ""
    resources: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))

    def __str__(self) -> str:
        return f"dask:{self.address}" if self.address else "dask"


def place_of(argument: str) -> DaskPlace:
    """Read `tcp://HOST:PORT`, or the absolute path of a scheduler file, each with `?NAME=AMOUNT&...` for resources."""
    address, _, query = argument.partition("?")
    if address and not address.startswith("/") and not _ADDRESS.fullmatch(address):
        raise InvalidInputError(
            f"dask: {shown(address)} is not an address; write tcp://HOST:PORT, tls://HOST:PORT or /PATH/SCHEDULER.json"
        )
    resources = {}
    for name, amount in parse_qsl(query, keep_blank_values=True):
        try:
            resources[name] = float(amount)
        except ValueError:
            resources[name] = -1.0
        if not 0 < resources[name] < float("inf"):
            raise InvalidInputError(f"dask: {shown(name)} needs a number above 0, for example ?{shown(name)}=1")
    if resources and not address:
        raise InvalidInputError("dask: a cluster on this machine has no resources; remove them, or give an address")
    return DaskPlace(address, resources)


def require_dask() -> None:
    """Raise unless Dask is installed, and keep it from writing to the terminal if nobody else uses it here."""
    is_ours = "distributed" not in sys.modules
    try:
        import distributed  # noqa: F401
    except ImportError:
        raise NotFoundError("dask: the package is not installed; pip install 'luthier[dask]'") from None
    if is_ours:
        for name in ("distributed", "distributed.client", "tornado"):
            logging.getLogger(name).setLevel(logging.CRITICAL)  # luthier reports what matters, in one line


@dataclass(slots=True)
class SchedulerConnection:
    """A client of a scheduler; `scheduler` identifies it, and `cluster` is the process of a local one."""

    client: "Client"
    scheduler: str
    cluster: "subprocess.Popen[bytes] | None" = None

    def close(self) -> None:
        """Disconnect, and end a local cluster."""
        with suppress(Exception):
            self.client.close(timeout=CONNECT_S)
        if self.cluster is not None:
            _end(self.cluster)


def connect(place: DaskPlace, workers: int) -> SchedulerConnection:
    """Connect to a scheduler, or start a cluster on this machine with this many workers."""
    require_dask()
    if not place.address:
        return _started(workers)
    try:
        return _connected(_address_in(place.address) if place.address.startswith("/") else place.address)
    except (OSError, ValueError, KeyError) as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise UnavailableError(f"{place}: the scheduler cannot be reached: {reason[:200]}") from error


def _address_in(file: str) -> str:
    """The address in a scheduler file; Dask itself would wait for such a file without end."""
    return str(json.loads(Path(file).read_bytes())["address"])


def _connected(address: str, security: "Security | None" = None) -> SchedulerConnection:
    from distributed import Client

    client = Client(address, security=security, timeout=CONNECT_S, set_as_default=False, name="luthier")
    return SchedulerConnection(client, str(client.scheduler_info()["id"]))


def _started(workers: int) -> SchedulerConnection:
    """Start a cluster on this machine and connect to it."""
    from distributed import Security

    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "luthier.runners.dask_cluster", str(workers)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            start_new_session=True,
        )
        try:
            told = json.loads(_first_line(process))
            security = Security(require_encryption=True, **{name: told[name] for name in _KEYS})
            connection = _connected(told["address"], security)
        except (OSError, ValueError) as error:
            _end(process)
            errors.seek(0)
            said = errors.read().decode(errors="replace").strip().rpartition("\n")[2] or str(error)
            raise UnavailableError(f"dask: the cluster on this machine did not start: {said[:200]}") from error
    connection.cluster = process
    return connection


def _first_line(process: "subprocess.Popen[bytes]") -> bytes:
    if process.stdout is None or not select.select([process.stdout], [], [], START_S)[0]:
        raise TimeoutError(f"it took longer than {START_S:g} s")
    return process.stdout.readline()


def _end(process: "subprocess.Popen[bytes]") -> None:
    for pipe in filter(None, (process.stdin, process.stdout)):
        with suppress(OSError):
            pipe.close()
    try:
        process.wait(CONNECT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def main(workers: int) -> None:
    """Be a cluster until luthier ends."""
    import dask
    from distributed import LocalCluster, Security

    # Nannies would set OMP_NUM_THREADS=1 and others for tuned programs, and serve pages that nobody asked for.
    quiet: dict[str, object] = {"scheduler.http.routes": [], "worker.http.routes": [], "nanny.pre-spawn-environ": {}}
    security = Security.temporary()
    with (
        dask.config.set({f"distributed.{name}": value for name, value in quiet.items()}),
        LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            host="127.0.0.1",
            security=security,
            memory_limit=0,
            dashboard_address="127.0.0.1:0",
            scheduler_kwargs={"dashboard": False},
            silence_logs=logging.CRITICAL,
        ) as cluster,
    ):
        keys = {name: getattr(security, name) for name in _KEYS}
        sys.stdout.write(json.dumps({"address": cluster.scheduler_address, **keys}) + "\n")
        sys.stdout.close()
        sys.stdin.buffer.read()


if __name__ == "__main__":
    main(int(sys.argv[1]))
