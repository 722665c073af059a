"""The command `luthier`, also as `python -m luthier`: the command line, with the commands of the server."""

import sys
from functools import cache
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from collections.abc import Callable

    from typer import Typer

    from luthier.plugins import Wing

__all__ = ["main"]

_WINGS = {
    "luthier.online": "luthier.online:WING",
    "luthier.submission": "luthier.submission.wing:WING",
    "luthier.io": "luthier.io:WING",
}


def main() -> None:
    """Run the command line."""
    words = sys.argv[1:]
    if words[:1] == ["submit"] and len(words) > 1 and not words[1].startswith("-"):
        # Before every job: importing the rest of the command line takes longer than sbatch does.
        from luthier.submission.ask import main as submit

        submit(words[1:])
    app_with_wings()
    from luthier.cli.app import main as call

    call()


@cache
def join_wings() -> None:
    """Add the wings that are shipped with luthier to the core of this process."""
    from importlib.util import find_spec

    from luthier.plugins import join, loaded

    join([cast("Wing", loaded(where)) for package, where in _WINGS.items() if find_spec(package) is not None])


@cache
def app_with_wings() -> "Typer":
    """The whole command line."""
    join_wings()
    from luthier.cli.app import app
    from luthier.plugins import joined, loaded
    from luthier.server import commands

    commands.register(app)
    for wing in joined():
        if wing.commands:
            cast("Callable[[Typer], None]", loaded(wing.commands))(app)
    return app


if __name__ == "__main__":
    main()
