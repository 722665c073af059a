"""The command that submits a job with the configuration that was found for similar jobs."""

from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    """Add this command to the command line."""
    app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})(submit)


def submit(
    context: typer.Context,
    script: Annotated[str, typer.Argument(help="The job script.", metavar="SCRIPT")],
    options: Annotated[
        list[str] | None,
        typer.Argument(help="Options of sbatch; after -- arguments of the script.", metavar="[SBATCH OPTIONS]"),
    ] = None,
    no_tuning: Annotated[
        bool,
        typer.Option(
            "--no-tuning", help="Submit the job without asking the server, like LUTHIER=off in the environment."
        ),
    ] = False,
) -> None:
    """Submit a job with the configuration that was found for similar jobs; the script is not changed.

    If the server does not answer within 0.2 s, the job is submitted as it is.

    Example: luthier submit job.sbatch --nodes=4
    """
    from luthier.submission.ask import submit as submit_job

    submit_job([script, *(options or []), *context.args, *(["--no-tuning"] if no_tuning else [])])
