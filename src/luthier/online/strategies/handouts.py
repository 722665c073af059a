"""Which client measures which part of a plan."""

from collections import Counter
from collections.abc import Mapping

from luthier.trial import Config


class Handouts:
    """Gives each client one of the samples that are planned and not yet taken; the others run another configuration.

    Only reports change the plan. Asking and leaving only change which client runs what.
    """

    def __init__(self) -> None:
        self.missing: dict[Config, int] = {}
        """How many samples of each configuration are still wanted, the most important first."""

        self._handed: dict[str, Config] = {}
        self._running: Counter[Config] = Counter()

    def plan(self, wanted: Mapping[Config, int]) -> None:
        """Replace the plan; what clients run now counts for the new one as well."""
        self.missing = {config: count for config, count in wanted.items() if count > 0}

    def next(self, client: str, otherwise: Config) -> Config:
        """What a client runs: the same as before until it has reported."""
        if (handed := self._handed.get(client)) is not None:
            return handed
        chosen = otherwise
        for config, count in self.missing.items():
            # Others already run as many as are missing, unless they leave.
            if self._running[config] < count:
                chosen = config
                break
        self._handed[client] = chosen
        self._running[chosen] += 1
        return chosen

    def taken(self, client: str, config: Config) -> None:
        """Note that a client has reported a configuration."""
        self.leave(client)
        if config in self.missing:
            self.missing[config] -= 1
            if self.missing[config] == 0:
                del self.missing[config]

    def leave(self, client: str) -> None:
        """Forget what a client runs."""
        if (handed := self._handed.pop(client, None)) is not None:
            self._running[handed] -= 1
            if self._running[handed] == 0:
                del self._running[handed]
