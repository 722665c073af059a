"""The commands for on-line sessions: tuning of programs while they run."""

import signal
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from luthier.cli.options import AsJson, StoreUrl
from luthier.cli.terminal import cell, print_json, print_view, say, warn
from luthier.errors import InvalidInputError, NotFoundError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rich.table import Table

    from luthier.online.records import OnlineRecord, OnlineSessions
    from luthier.online.service.access import Access
    from luthier.online.service.address import Address
    from luthier.trial import Json

online = typer.Typer(invoke_without_command=True, rich_markup_mode=None)

Session = Annotated[str, typer.Argument(help="The session's name or number; see luthier online list.", metavar="NAME")]


def register(app: typer.Typer) -> None:
    """Add these commands to the command line."""
    app.add_typer(online, name="online")


@online.callback()
def serve_sessions(
    context: typer.Context,
    listen: Annotated[
        list[str] | None,
        typer.Option(
            "--listen",
            help="unix:PATH, tcp:PORT (this machine only) or tcp:HOST:PORT; can be repeated. By default LUTHIER_ONLINE "
            "or a socket in the data directory.",
            metavar="ADDRESS",
        ),
    ] = None,
    show_token: Annotated[
        bool, typer.Option("--show-token", help="Print the token that clients over tcp need, and stop.")
    ] = False,
    install_client: Annotated[
        Path | None,
        typer.Option(
            "--install-client",
            help="Install the client for C, C++, Fortran and MPI programs into a folder, and stop.",
            metavar="DIR",
        ),
    ] = None,
    store: StoreUrl = None,
) -> None:
    """Tune programs while they run: serve their on-line sessions until Ctrl-C; or list, show, stop, delete sessions.

    Example: luthier online --listen unix:/run/user/1000/luthier.sock
    """
    if context.invoked_subcommand is not None:
        if listen or show_token or install_client:
            raise InvalidInputError(
                "--listen, --show-token and --install-client cannot be combined with a command; leave one out"
            )
        context.obj = store
        return
    if install_client is not None:
        _install(install_client)
        return
    if show_token:
        from luthier.online.service.access import kept_token, token_path

        say(kept_token(token_path()))
        return
    _serve(listen or [], store)


@online.command("list")
def list_sessions(context: typer.Context, store: StoreUrl = None, as_json: AsJson = False) -> None:
    """List the on-line sessions.

    Example: luthier online list
    """
    records = _sessions(context, store).all()
    if as_json:
        print_json([_record_json(record) for record in records])
    elif records:
        print_view(_sessions_view(records))
    else:
        say("no on-line sessions yet; see docs/online.md")


@online.command("show")
def show_session(context: typer.Context, name: Session, store: StoreUrl = None, as_json: AsJson = False) -> None:
    """Show an on-line session: its phase, the best configuration and the default, its clients.

    Example: luthier online show stencil
    """
    record = _found(_sessions(context, store), name)
    if as_json:
        print_json({**_record_json(record), "settings": dict(record.settings)})
        return
    say(f"on-line session {record.id}: {record.name}, {_state(record)}")
    for line in _view_lines(record.view or {}):
        say(line)


@online.command("stop")
def stop_session(context: typer.Context, name: Session, store: StoreUrl = None) -> None:
    """Stop the search of an on-line session: its clients go on with the best configuration.

    Example: luthier online stop stencil
    """
    sessions = _sessions(context, store)
    record = _found(sessions, name)
    sessions.request_stop(record.id)
    say(f"on-line session {record.id} ({record.name}): stopped; its clients go on with the best configuration")


@online.command("delete")
def delete_session(context: typer.Context, name: Session, store: StoreUrl = None) -> None:
    """Delete an on-line session and everything that was measured in it.

    Example: luthier online delete stencil
    """
    sessions = _sessions(context, store)
    record = _found(sessions, name)
    sessions.delete(record.id)
    say(f"deleted: on-line session {record.id} ({record.name})")


def _install(folder: Path) -> None:
    from luthier.online.native_client import install_client

    installed = install_client(folder)
    for line in installed.left_out:
        warn(line)
    for path in installed.files:
        say(str(path))
    if any(path.suffix == ".pc" for path in installed.files):
        warn(f"compile with: export PKG_CONFIG_PATH={folder.expanduser().absolute() / 'lib' / 'pkgconfig'}")
        warn("              cc program.c $(pkg-config --cflags --libs luthier-online)")


def _serve(listen: "Sequence[str]", store: str | None) -> None:
    from luthier.folders import data_directory
    from luthier.online.service.access import access_for
    from luthier.online.service.address import default_address, parse_address
    from luthier.online.service.service import OnlineService
    from luthier.store import open_server_store

    if not listen:
        data_directory().mkdir(mode=0o700, parents=True, exist_ok=True)
        listen = [default_address()]
    addresses = [parse_address(text) for text in listen]
    server_store = open_server_store(store)
    access = access_for(server_store.accounts, addresses)
    stopped = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopped.set())
    OnlineService(server_store, listen, access).run(stopped, lambda bound: _say_ready(bound, access))


def _say_ready(addresses: "Sequence[Address]", access: "Access") -> None:
    from luthier.online.service.access import token_path
    from luthier.online.service.address import TcpAddress

    for address in addresses:
        warn(f"on-line sessions at {address}")
        if not isinstance(address, TcpAddress):
            continue
        if access.secret is None:
            warn("its clients need an API token of a user: set LUTHIER_TOKEN or LUTHIER_TOKEN_FILE")
        else:
            warn(f"its clients need a token: set LUTHIER_TOKEN_FILE to {token_path()}")
    warn("press Ctrl-C to stop")


def _sessions(context: typer.Context, store: str | None) -> "OnlineSessions":
    from luthier.online.store import online_sessions_in
    from luthier.store import open_server_store

    return online_sessions_in(open_server_store(store or context.obj))


def _found(sessions: "OnlineSessions", name: str) -> "OnlineRecord":
    """The session with this name or number; a name wins."""
    records = sessions.all()
    named = [record for record in records if record.name == name]
    if len(named) > 1:
        numbers = ", ".join(str(record.id) for record in named)
        raise InvalidInputError(
            f"session {name!r:.80}: several users have one with this name; give a number: {numbers}"
        )
    found = named or [record for record in records if str(record.id) == name]
    if not found:
        raise NotFoundError(f"session {name!r:.80} does not exist; see: luthier online list")
    return found[0]


def _state(record: "OnlineRecord") -> str:
    """The state for people."""
    if record.stop_requested:
        return "stopped"
    from luthier.online.service.sessions import SEEN_S

    if record.seen_at is None or time.time() - record.seen_at > SEEN_S:
        return "not served"
    return str((record.view or {}).get("phase", "running"))


def _record_json(record: "OnlineRecord") -> "dict[str, Json]":
    return {
        "id": record.id,
        "name": record.name,
        "author": record.author,
        "created_at": record.created_at,
        "status": record.status,
        "state": _state(record),
        "seen_at": record.seen_at,
        "view": record.view,
    }


def _sessions_view(records: "Sequence[OnlineRecord]") -> "Table":
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="dim")
    for heading in ("number", "name", "user", "created", "state", "best"):
        table.add_column(heading)
    for record in records:
        created = time.strftime("%Y-%m-%d %H:%M", time.localtime(record.created_at))
        best = _point((record.view or {}).get("best"))
        table.add_row(str(record.id), cell(record.name), cell(record.author), created, _state(record), cell(best))
    return table


def _view_lines(view: "Mapping[str, Json]") -> "Iterator[str]":
    """What a view says, line by line."""
    if not view:
        yield "no client has joined yet"
        return
    yield f"best:     {_point(view.get('best'))}"
    yield f"default:  {_point(view.get('default'))}"
    yield f"steps:    {view.get('steps')}, total {_number(view.get('total'))}"
    if view.get("default_total") is not None:
        steps, total = view.get("compared_steps"), _number(view.get("compared_total"))
        yield f"          {steps} of them compared: {total}; with the default {_number(view['default_total'])}"
    clients = view.get("clients")
    if isinstance(clients, list):
        more = view.get("more_clients")
        yield f"clients:  {len(clients) + (more if isinstance(more, int) else 0)}"
        for client in clients[:20]:
            yield f"          {client.get('name')}: {_settings(client.get('config'))}, {client.get('reports')} reports"


def _point(point: "Json") -> str:
    """A configuration and its value."""
    if not isinstance(point, dict):
        return ""
    value = "not measured" if point.get("value") is None else _number(point["value"])
    return f"{_settings(point.get('config'))} ({value})"


def _settings(config: "Json") -> str:
    return " ".join(f"{name}={value}" for name, value in config.items()) if isinstance(config, dict) else "idle"


def _number(value: "Json") -> str:
    return f"{value:.6g}" if isinstance(value, int | float) else str(value)
