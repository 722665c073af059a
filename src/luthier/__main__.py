"""The command `luthier`, also as `python -m luthier`: the command line, with the commands of the server."""

import sys
from functools import cache

__all__ = ["main"]


def main() -> None:
    """Run the command line."""
    words = sys.argv[1:]
    if words[:1] == ["submit"] and len(words) > 1 and not words[1].startswith("-"):
        # Before every job: importing the rest of the command line takes longer than sbatch does.
        from luthier.submission.ask import main as submit

        submit(words[1:])
    _with_commands_of_the_server()
    from luthier.cli.app import main as call

    call()


@cache
def _with_commands_of_the_server() -> None:
    from luthier.cli.app import app
    from luthier.server import commands

    commands.register(app)


if __name__ == "__main__":
    main()
