"""The commands of on-line tuning, and the options of `luthier serve` for it."""

from dataclasses import dataclass
from typing import Annotated

import typer


@dataclass(frozen=True, slots=True)
class OnlineServeOptions:
    """Where the server listens for programs that are tuned while they run."""

    online: Annotated[
        list[str] | None,
        typer.Option(
            "--online",
            help="Where running programs reach the server: unix:PATH, tcp:PORT or tcp:HOST:PORT; can be repeated. "
            "By default LUTHIER_ONLINE or a socket in the data directory; none disables it.",
            metavar="ADDRESS",
            rich_help_panel="Programs that run",
        ),
    ] = None

    def __post_init__(self) -> None:
        from luthier.online.server.serving import addresses_in

        if self.online:
            addresses_in(self.online)
