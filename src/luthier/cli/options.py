"""The options and arguments that several commands share."""

from typing import Annotated

import typer

from luthier.spec.signatures import COMMON, OUTPUT

StoreUrl = Annotated[
    str | None,
    typer.Option(
        "--store",
        envvar="LUTHIER_STORE",
        show_envvar=True,
        help="Where experiments are stored: a file or postgresql://...",
        metavar="URL",
        rich_help_panel=OUTPUT,
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.", rich_help_panel=OUTPUT)]
Number = Annotated[int, typer.Argument(help="The experiment's number; see luthier list.", metavar="NUMBER")]
RunnerName = Annotated[
    str | None,
    typer.Option(
        "--runner",
        help="Where to run: local (this machine), slurm, psij:pbs, dask (workers on this machine), "
        "dask:tcp://HOST:PORT and so on.",
        metavar="NAME",
        rich_help_panel=COMMON,
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Do not show progress.", rich_help_panel=OUTPUT)]
