"""The plug point of search algorithms."""

from collections.abc import Sequence
from typing import Protocol

from luthier.trial import Config, Trial


class Optimizer(Protocol):
    """Suggests configurations and learns from trials. Lower values are better; the engine flips signs.

    An optimizer touches no clock, file or global random state: the same seed and the same calls give the same
    answers, in any process. That is how an experiment resumes: its history is played back to a new optimizer.
    """

    def ask(self, count: int, running: Sequence[Config]) -> Sequence[Config]:
        """Suggest up to `count` distinct configurations of the space, none of them told before or in `running`.

        Fewer answers than asked are legal; an empty answer while nothing runs means that the search is over. An empty
        answer leaves the optimizer as it was.
        """
        ...

    def tell(self, finished: Sequence[Trial]) -> None:
        """Learn from trials.

        A configuration told again replaces what was known of it (its estimate now rests on more runs). Trials may
        arrive in any order, without a number (failed, timed out, pruned, lost), or for configurations that were never
        asked for.
        """
        ...
