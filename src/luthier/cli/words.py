"""Commands whose words after -- are a command line or flags, kept apart from their own arguments."""

from typing import Any

from luthier.spec.signatures import WithHeadings

WORDS = "luthier.words"
"""The key of the words in `context.meta`; missing without --."""


class WithWords(WithHeadings):
    """A command that keeps the words after -- for itself, and whose options are listed below headings."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put the words after -- aside, and parse the others."""
        if "--" in args:
            at = args.index("--")
            ctx.meta[WORDS] = args[at + 1 :]
            args = args[:at]
        return super().parse_args(ctx, args)
