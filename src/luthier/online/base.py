"""The plug point of strategies: what each process of a running program runs next."""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from luthier.trial import Config


@dataclass(frozen=True, slots=True)
class Standing:
    """What a search has found: the best configuration, the estimate of its value and the samples behind it.

    Before anything was measured, `best` is where the search starts and `value` is None.
    """

    best: Config
    value: float | None
    samples: int
    converged: bool


class Strategy(Protocol):
    """Decides what the clients of a running program run. Lower values are better; the session flips signs.

    In contrast to an optimizer it may suggest the same configuration any number of times: a client always runs
    something, and that is the best known configuration if nothing else is to be measured.

    The state depends only on the seed and on the reports in their order. Which client asked for what decides only who
    runs which of the wanted configurations. So a search is restored by reporting its samples again to a new strategy.
    """

    def next(self, client: str) -> Config:
        """A valid configuration for the next iteration of a client.

        A client that asks again before it has reported gets the same one, or the best one of a converged search.
        """
        ...

    def report(self, client: str, config: Config, value: float | None) -> None:
        """Learn what one iteration of a client gave; None if the configuration failed.

        Any valid configuration may be reported by any client, whether it was handed out or not.
        """
        ...

    def leave(self, client: str) -> None:
        """Forget a client: what it was to measure is handed to another one."""
        ...

    @property
    def standing(self) -> Standing:
        """The best configuration so far, and whether the search has converged."""
        ...


@runtime_checkable
class SlowStrategy(Protocol):
    """What a strategy has in addition if its decisions take long, so that a service need not wait for them.

    While `deferred` is set, `report` only takes note, and `is_due` says that `decide` must be called, in any thread,
    before anything else is asked or reported. By default `report` decides immediately.
    """

    deferred: bool

    @property
    def is_due(self) -> bool:
        """Whether a decision is needed."""
        ...

    def decide(self) -> None:
        """Make the decision."""
        ...
