"""The commands for jobs at submission."""

import typer

from luthier.submission.commands import slurm, submit


def register(app: typer.Typer) -> None:
    """Add these commands to the command line."""
    slurm.register(app)
    submit.register(app)
