"""The commands for the parts of luthier that are written in C."""

from typing import Annotated

import typer

from luthier.cli.options import AsJson
from luthier.cli.terminal import cell, print_json, print_view, say, warn
from luthier.errors import UnavailableError

native = typer.Typer(
    help="Build the parts of luthier that are written in C: preload libraries and programs.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

Names = Annotated[list[str] | None, typer.Argument(help="Names; see luthier native list.", metavar="NAME...")]


def register(app: typer.Typer) -> None:
    """Add these commands to the command line."""
    app.add_typer(native, name="native")


@native.command("list")
def list_parts(as_json: AsJson = False) -> None:
    """List the parts: what they are for, and whether they are built.

    Example: luthier native list
    """
    from rich.table import Table

    from luthier.compiled import parts

    known = parts()
    if as_json:
        print_json(
            [
                {"name": name, "purpose": one.purpose, "missing": one.missing(), "path": str(one.built() or "") or None}
                for name, one in known.items()
            ]
        )
        return
    table = Table(box=None, pad_edge=False, header_style="dim")
    for heading in ("name", "state", "purpose"):
        table.add_column(heading)
    for name, one in known.items():
        state = "built" if one.built() else one.missing() or "not built yet"
        table.add_row(name, cell(state), cell(one.purpose))
    print_view(table)


@native.command("build")
def build_parts(names: Names = None) -> int:
    """Build parts ahead of their first use: the named ones, by default all that can be built here.

    Example: luthier native build io io-mpi
    """
    from luthier.compiled import part, parts

    failed = 0
    for one in [part(name) for name in names] if names else list(parts().values()):
        try:
            say(f"{one.name}: {one.build()}")
        except UnavailableError as error:
            warn(str(error))
            failed += 1
    return 1 if failed else 0


@native.command("path")
def path_of_parts(
    names: Annotated[list[str], typer.Argument(help="Names; see luthier native list.", metavar="NAME...")],
) -> None:
    """Print the path of a part, or several with colons between them; they are built first if necessary.

    Example: LD_PRELOAD=$(luthier native path io) ./program
    """
    from luthier.compiled import preload

    say(preload(names))
