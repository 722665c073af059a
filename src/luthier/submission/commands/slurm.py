"""The commands for the plug-in of Slurm."""

import os
import shutil
import signal
import threading
from pathlib import Path
from typing import Annotated

import typer

from luthier.cli.options import StoreUrl
from luthier.cli.terminal import say, say_lines
from luthier.errors import InvalidInputError, NotFoundError, UnavailableError

slurm = typer.Typer(
    help="Install the plug-in of Slurm that gives jobs the configuration found for similar jobs.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

Config = Annotated[Path, typer.Option("--config", help="The folder of slurm.conf.", metavar="DIR")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print what would change, and change nothing.")]
_NEXT = "run now: scontrol reconfigure"


def register(app: typer.Typer) -> None:
    """Add these commands to the command line."""
    app.add_typer(slurm, name="slurm")


@slurm.command()
def install(
    url: Annotated[str, typer.Option(help="The address of the server.", metavar="http://HOST:PORT")],
    token_file: Annotated[
        Path | None,
        typer.Option(help="A file with a token of a submitter; by default LUTHIER_TOKEN.", metavar="FILE"),
    ] = None,
    key: Annotated[
        str | None,
        typer.Option(
            envvar="LUTHIER_KEY",
            help="The public key of the server, as luthier slurm key prints it there; by default that of this user's "
            "server on this host.",
            metavar="KEY",
        ),
    ] = None,
    limit_ms: Annotated[int, typer.Option(help="How long a job waits for the server, in milliseconds.")] = 200,
    config: Config = Path("/etc/slurm"),
    dry_run: DryRun = False,
) -> None:
    """Install the plug-in: a program and Lua scripts beside slurm.conf, and two lines in it.

    The token can be read by everybody who submits jobs, so use one of an account with the role submitter. Jobs accept
    answers only if they are signed with the server's key. Install again if luthier-submit.conf has no key: jobs are
    submitted as they are then.

    Example: luthier slurm install --url http://127.0.0.1:8642 --token-file token --dry-run
    """
    from luthier.submission.signing_key import existing_signing_key
    from luthier.submission.slurm_plugins import carry_out, installation

    changes = installation(config, url, _token(token_file), key or existing_signing_key().public, limit_ms)
    if not dry_run:
        carry_out(changes)
    for change in changes:
        say_lines(change.text)
    say(_NEXT if changes and not dry_run else "nothing was changed" if changes else "installed already")


@slurm.command()
def uninstall(config: Config = Path("/etc/slurm"), dry_run: DryRun = False) -> None:
    """Remove the plug-in; slurm.conf is as it was before.

    Example: luthier slurm uninstall --dry-run
    """
    from luthier.submission.slurm_plugins import carry_out, removal

    changes = removal(config)
    if not dry_run:
        carry_out(changes)
    for change in changes:
        say_lines(change.text)
    say(_NEXT if changes and not dry_run else "nothing was changed" if changes else "not installed")


@slurm.command()
def key(
    file: Annotated[
        Path | None,
        typer.Option(help="The file that luthier serve --signing-key names.", metavar="FILE"),
    ] = None,
) -> None:
    """Print the public key of this user's server, for LUTHIER_KEY and luthier slurm install --key on other hosts.

    Example: luthier slurm key
    """
    from luthier.submission.signing_key import existing_signing_key

    say(existing_signing_key(file).public)


@slurm.command()
def collect(
    once: Annotated[bool, typer.Option("--once", help="Ask Slurm once, then exit.")] = False, store: StoreUrl = None
) -> None:
    """Write down how submitted jobs ended, until Ctrl-C; only where luthier serve runs on a host without squeue.

    Example: luthier slurm collect --store postgresql://luthier@db/luthier
    """
    from luthier.store import open_server_store
    from luthier.submission.job_times import JobTimes

    if shutil.which("squeue") is None:
        raise NotFoundError("squeue is not installed here; run this on a host with the commands of Slurm")
    times = JobTimes(open_server_store(store))
    if once:
        new = times.look()
        say(f"{new} job{'' if new == 1 else 's'} ended")
        return
    stopped = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopped.set())
    times.run(stopped)


def _token(file: Path | None) -> str:
    if file is None:
        token = os.environ.get("LUTHIER_TOKEN", "")
        if not token:
            raise InvalidInputError("no token; give --token-file, or set LUTHIER_TOKEN")
        return token
    try:
        return file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise UnavailableError(f"{file}: {reason}") from None
