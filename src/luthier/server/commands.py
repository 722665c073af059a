"""The commands of the server: serve, worker, user."""

import signal
import socket
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, cast

import typer

from luthier.errors import InvalidInputError, NotFoundError, UnavailableError
from luthier.plugins import joined, loaded
from luthier.server.server_record import LOOPBACK, public_url, record_start, running_url
from luthier.spec.signatures import COMMON, OUTPUT, WithHeadings, with_options_of

if TYPE_CHECKING:
    from luthier.launch import Worker
    from luthier.server.authentication import Authenticator
    from luthier.store.server_store import Role, ServerStore

user = typer.Typer(help="Manage the accounts of a server.", no_args_is_help=True, rich_markup_mode=None)

DEFAULT_PORT = 8642
_LARGEST_PORT = 65535
_PACKAGES = "argon2", "cryptography", "fastapi", "fastapi_offline", "jinja2", "plotly", "prometheus_client", "uvicorn"
_EXPERIMENTS, _NAMES = "Experiments that run", "Host names and proxies"
"""Headings of the help."""

StoreUrl = Annotated[
    str | None,
    typer.Option(
        "--store",
        envvar="LUTHIER_STORE",
        help="The store to use.",
        metavar="URL",
        rich_help_panel=OUTPUT,
    ),
]
Local = Annotated[
    int,
    typer.Option(
        help="Experiments at a time that run on this machine; more than one disturb each other's measurements.",
        rich_help_panel=_EXPERIMENTS,
    ),
]
Batch = Annotated[
    int,
    typer.Option(
        help="Experiments at a time that submit their runs to a batch system.",
        rich_help_panel=_EXPERIMENTS,
    ),
]
Name = Annotated[str, typer.Argument(help="The user's name.", metavar="NAME")]
Chosen: TypeAlias = Mapping[str, Any] | None
"""The options of each wing, by its name."""
Url = Annotated[
    str | None,
    typer.Option("--url", help="The address of the server; by default that of the running one.", metavar="URL"),
]


def register(app: typer.Typer) -> None:
    """Add these commands to the command line."""
    app.command(cls=WithHeadings)(_with_options_of_wings(serve))
    app.command()(worker)
    app.add_typer(user, name="user")


def serve(
    host: Annotated[
        str,
        typer.Option(
            help="The address to listen on.",
            rich_help_panel=COMMON,
        ),
    ] = "127.0.0.1",
    port: Annotated[
        int,
        typer.Option(
            help="The port to listen on; 0 for any free port.",
            rich_help_panel=COMMON,
        ),
    ] = DEFAULT_PORT,
    names: Annotated[
        list[str] | None,
        typer.Option(
            "--name",
            help="A host name that browsers use to reach the server; can be repeated.",
            metavar="HOST",
            rich_help_panel=_NAMES,
        ),
    ] = None,
    https: Annotated[
        bool,
        typer.Option(
            "--https",
            help="Browsers reach the server through an HTTPS proxy.",
            rich_help_panel=_NAMES,
        ),
    ] = False,
    proxies: Annotated[
        list[str] | None,
        typer.Option(
            "--proxy",
            help="The address of a proxy whose X-Forwarded-For header is trusted; none by default. Can be repeated.",
            metavar="ADDRESS",
            rich_help_panel=_NAMES,
        ),
    ] = None,
    run_timeout: Annotated[
        str,
        typer.Option(
            "--run-timeout",
            help="Kill a run after this time if its experiment sets no timeout; 0 for no limit.",
            metavar="TIME",
            rich_help_panel=_EXPERIMENTS,
        ),
    ] = "24h",
    local: Local = 1,
    batch: Batch = 50,
    no_worker: Annotated[
        bool,
        typer.Option(
            "--no-worker",
            help="Do not run experiments; leave them to: luthier worker.",
            rich_help_panel=_EXPERIMENTS,
        ),
    ] = False,
    chosen: Chosen = None,
    store: StoreUrl = None,
) -> None:
    """Serve the web pages and the REST API, run the experiments launched there, and tune running programs.

    Example: luthier serve --port 8080
    """
    _require_packages()
    from luthier.server.client_addresses import Proxies
    from luthier.server.connections import Limits

    limits = Limits(Proxies.parse(proxies or ()))
    run_timeout_s = _run_timeout(run_timeout)
    server_store = _server_store(store)
    authenticator = _authenticator(server_store)
    working = _worker(server_store, store, local, batch)
    if host not in LOOPBACK and not authenticator.has_accounts:
        raise InvalidInputError(
            f"--host {host}: other machines could reach the server, and it has no accounts; "
            "add one first: luthier user add NAME --role admin"
        )
    from luthier.server.app import ServerAddress, create_app
    from luthier.server.authentication import LOCAL
    from luthier.server.parts import parts
    from luthier.server.serve import serve as serve_on

    with ExitStack() as services:
        states = {  # first: an option of a wing that is wrong is told whether the port is free or not
            name: services.enter_context(part.serving(server_store, store, (chosen or {}).get(name)))
            for name, part in parts().items()
        }
        listening = services.enter_context(_listening(host, port))
        port = listening.getsockname()[1]
        place = ServerAddress(port, tuple(names or ()) if host in LOOPBACK else (host, *(names or ())), is_https=https)
        public = public_url(host, port, names or (), is_https=https)
        if public is not None:
            record_start(server_store.accounts, public)
        url = public or f"https://{host}:{port}/"
        if authenticator.has_accounts:
            print(f"luthier: log in at {url}", file=sys.stderr)
        else:
            print(
                f"luthier: open {url}enter?token={authenticator.invite(LOCAL)}\n"
                f"luthier: the link works once; for another one: luthier user invite {LOCAL}",
                file=sys.stderr,
            )
        for state in states.values():
            if state.says:
                print(f"luthier: {state.says}", file=sys.stderr)
        print("luthier: press Ctrl-C to stop the server", file=sys.stderr, flush=True)
        stopped = threading.Event()
        looking = None if no_worker else _started(working, stopped)
        app = create_app(
            server_store,
            place,
            run_timeout_s=run_timeout_s,
            has_worker=not no_worker,
            states=states,
        )
        try:
            serve_on(app, listening, limits)
        finally:
            stopped.set()
        if looking is not None:
            looking.join()
    _list_running_experiments(server_store)


def worker(local: Local = 1, batch: Batch = 50, store: StoreUrl = None) -> None:
    """Run the experiments that users launch on a server, until Ctrl-C.

    Any number of workers, on any number of machines, can share a PostgreSQL store. Each experiment is run by one
    process; if that process dies, another one takes over.

    Example: luthier worker --store postgresql://luthier@db/luthier
    """
    server_store = _server_store(store)
    working = _worker(server_store, store, local, batch)
    stopped = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopped.set())
    print("luthier: waiting for experiments; press Ctrl-C to stop", file=sys.stderr, flush=True)
    looking = _started(working, stopped)
    while looking.is_alive():
        looking.join(0.2)  # in short steps: signals are only handled between them
    _list_running_experiments(server_store)


@user.command("add")
def add_user(
    name: Name,
    role: Annotated[str, typer.Option(help="submitter, viewer, user or admin.", metavar="ROLE")] = "user",
    from_stdin: Annotated[
        bool, typer.Option("--password-stdin", help="Read the password from standard input.")
    ] = False,
    no_password: Annotated[
        bool, typer.Option("--no-password", help="No password; the user logs in by invitation or OpenID Connect.")
    ] = False,
    store: StoreUrl = None,
) -> None:
    """Add an account, or change the role and the password of an account.

    Example: luthier user add ada --role admin
    """
    if role not in ("submitter", "viewer", "user", "admin"):
        raise InvalidInputError(f"--role {role}: unknown role; choose submitter, viewer, user or admin")
    authenticator = _authenticator(_server_store(store))
    added = authenticator.add_user(name, cast("Role", role), None if no_password else _password(from_stdin=from_stdin))
    print(f"{added.name}: {added.role}")


@user.command("list")
def list_users(
    store: StoreUrl = None, as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False
) -> None:
    """List the accounts.

    Example: luthier user list
    """
    import json

    users = _server_store(store).accounts.users()
    if as_json:
        print(json.dumps([{"name": one.name, "role": one.role, "disabled": one.disabled} for one in users]))
        return
    for one in users:
        print(f"{one.name}  {one.role}" + ("  disabled" if one.disabled else ""))
    if not users:
        print("no accounts; the server is for one person on this machine")


@user.command("remove")
def remove_user(name: Name, store: StoreUrl = None) -> None:
    """Remove an account. Its experiments remain visible to administrators.

    Example: luthier user remove ada
    """
    _authenticator(_server_store(store)).remove_user(name)
    print(f"removed: {name}")


@user.command("invite")
def invite_user(name: Name, url: Url = None, store: StoreUrl = None) -> None:
    """Print a link with which a user can log in once, within a day.

    Example: luthier user invite ada --url https://luthier.example.org
    """
    from luthier.server.authentication import LOCAL

    server_store = _server_store(store)
    authenticator = _authenticator(server_store)
    if name != LOCAL or authenticator.has_accounts:
        server_store.accounts.user(name)  # raises if the user does not exist
    address = url or running_url(server_store.accounts)
    if address is None:
        raise NotFoundError("no server is running with this store; start it with: luthier serve, or give its --url")
    print(f"{address.rstrip('/')}/enter?token={authenticator.invite(name)}")


@user.command("token")
def add_token(name: Name, store: StoreUrl = None) -> None:
    """Print a new token of a user, which does not expire, such as that of a submitter for the plug-in of Slurm.

    Example: luthier user token slurm
    """
    from luthier.server.authentication import LOCAL

    server_store = _server_store(store)
    authenticator = _authenticator(server_store)
    if name != LOCAL or authenticator.has_accounts:
        server_store.accounts.user(name)  # raises if the user does not exist
    print(authenticator.issue_token(name, "command line", None)[0])


def _with_options_of_wings(command: Callable[..., None]) -> Callable[..., None]:
    """The command with the options that wings add to it."""
    kinds = {wing.name: cast("type[Any]", loaded(wing.options)) for wing in joined() if wing.options}
    return with_options_of(command, "chosen", kinds)


def _require_packages() -> None:
    for name in _PACKAGES:
        if find_spec(name) is None:
            raise NotFoundError(f"the server needs {name}: pip install 'luthier[serve]'")


def _run_timeout(text: str) -> float | None:
    from luthier.spec.durations import parse_duration

    return None if text == "0" else parse_duration(text)


def _server_store(store: str | None) -> "ServerStore":
    from luthier.store import open_server_store

    return open_server_store(store)


def _authenticator(server_store: "ServerStore") -> "Authenticator":
    try:
        from luthier.server.authentication import Authenticator

        return Authenticator(server_store.accounts)
    except ImportError as error:
        raise NotFoundError(f"the server needs {error.name}: pip install 'luthier[serve]'") from None


def _worker(server_store: "ServerStore", store: str | None, local: int, batch: int) -> "Worker":
    from luthier.launch import Worker

    for option, value in (("--local", local), ("--batch", batch)):
        if value < 0:
            raise InvalidInputError(f"{option} {value}: give 0 or more")
    return Worker(server_store, store, local, batch)


def _started(working: "Worker", stopped: threading.Event) -> threading.Thread:
    looking = threading.Thread(target=working.run, args=(stopped,), name="worker")
    looking.start()
    return looking


def _list_running_experiments(server_store: "ServerStore") -> None:
    going_on = [record for record in server_store.queue.waiting() if record.owner is not None]
    if going_on:
        numbers = ", ".join(str(record.id) for record in going_on)
        print(
            f"luthier: these experiments keep running: {numbers}; to stop one: luthier stop NUMBER",
            file=sys.stderr,
        )


def _listening(host: str, port: int) -> socket.socket:
    if not 0 <= port <= _LARGEST_PORT:
        raise InvalidInputError(f"--port {port}: invalid port; use 0 to {_LARGEST_PORT}")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=1024)
    except OSError as error:
        raise UnavailableError(f"{host}:{port}: cannot listen: {error.strerror}; choose another --port") from None


def _password(*, from_stdin: bool) -> str:
    import getpass

    if from_stdin or not sys.stdin.isatty():
        return sys.stdin.readline().rstrip("\n")
    first = getpass.getpass("password: ")
    if first != getpass.getpass("repeat the password: "):
        raise InvalidInputError("the two passwords differ; nothing was changed")
    return first
