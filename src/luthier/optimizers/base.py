"""The plug point of search algorithms."""

from collections.abc import Sequence
from typing import Protocol

from luthier.trial import Config, Trial


class Optimizer(Protocol):
    """Suggests configurations and learns from trials. Lower values are better; the engine flips signs.

    An answer depends only on the seed, on the trials that were told and their order, on `count` and on `running`. It
    does not matter how often or when the optimizer was asked before, whether the answers were run, or whether trials
    were told one by one or several at once; no clock, file or global random state is used. So an experiment can be
    resumed in another process: a new optimizer is told the history and continues as the first one would have.
    """

    def ask(self, count: int, running: Sequence[Config]) -> Sequence[Config]:
        """Suggest up to `count` distinct configurations of the space, none of them told before or in `running`.

        Fewer answers than asked are legal; an empty answer while nothing runs means that the search is over.
        """
        ...

    def tell(self, finished: Sequence[Trial]) -> None:
        """Learn from trials.

        A configuration told again replaces what was known of it (its estimate now rests on more runs). Trials may
        arrive in any order, without a number (failed, timed out, pruned, lost), or for configurations that were never
        asked for.
        """
        ...
