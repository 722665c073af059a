"""The command `luthier`, also as `python -m luthier`: the command line, with the commands of the server."""

from luthier.cli.app import app, main
from luthier.server import commands

__all__ = ["main"]

commands.register(app)

if __name__ == "__main__":
    main()
