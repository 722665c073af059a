"""The help of commands with many options: headings, with the options that are used most first."""

from typing import Any

from typer.core import TyperCommand

COMMON = "Most used options"
OUTPUT = "Output and store"


class WithHeadings(TyperCommand):
    """A command whose options are listed below headings: those in `rich_help_panel`, in the order of the options."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments, then the options of each heading."""
        below: dict[str, list[tuple[str, str]]] = {"Arguments": [], COMMON: []}
        last: list[tuple[str, str]] = []
        for parameter in self.get_params(ctx):
            if (row := parameter.get_help_record(ctx)) is not None:
                is_argument = parameter.param_type_name == "argument"
                heading = "Arguments" if is_argument else getattr(parameter, "rich_help_panel", None) or OUTPUT
                (last if heading == OUTPUT else below.setdefault(heading, [])).append(row)
        for heading, rows in {**below, OUTPUT: last}.items():
            if rows:
                with formatter.section(heading):
                    formatter.write_dl(rows)
