"""The commands for jobs at submission, and the options of `luthier serve` for them."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from luthier.errors import InvalidInputError
from luthier.submission.commands import slurm, submit

_MOST_KEPT = 0.5
_HEADING = "Jobs at submission"
"""A heading of the help."""


@dataclass(frozen=True, slots=True)
class SubmissionServeOptions:
    """How jobs at submission are decided about."""

    keep_default: Annotated[
        float,
        typer.Option(
            "--keep-default",
            help="The share of matching jobs that keep the default, for comparison; 0 to 0.5.",
            metavar="SHARE",
            rich_help_panel=_HEADING,
        ),
    ] = 0.0
    signing_key: Annotated[
        Path | None,
        typer.Option(
            "--signing-key",
            help="The file with the key that signs answers to submitted jobs; by default in the data directory.",
            metavar="FILE",
            rich_help_panel=_HEADING,
        ),
    ] = None
    accounts_are_logins: Annotated[
        bool,
        typer.Option(
            "--accounts-are-logins",
            help="Accounts have the names of cluster users: a job gets what the account of its user found.",
            rich_help_panel=_HEADING,
        ),
    ] = False

    def __post_init__(self) -> None:
        if not 0.0 <= self.keep_default <= _MOST_KEPT:
            raise InvalidInputError(f"--keep-default {self.keep_default:g}: give a share from 0 to {_MOST_KEPT:g}")


def register(app: typer.Typer) -> None:
    """Add these commands to the command line."""
    slurm.register(app)
    submit.register(app)
