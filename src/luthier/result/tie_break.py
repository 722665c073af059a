"""Which configuration runs again when all have been tried and there are runs left."""

from collections.abc import Sequence

from luthier.policies.base import Progress, completed_values
from luthier.result.recommendation import is_reliable
from luthier.statistics.estimate import median_of
from luthier.statistics.noise import noise_of

_FEWEST_REPEATS = 2
_DOUBT = 0.02  # a rival with a smaller chance of being better is ruled out


def contender(progress: Progress, running: Sequence[int]) -> int | None:
    """The best trial or its strongest rival, whichever ran less often; None if the best one is certain.

    As in LUCB (Kalyanakrishnan et al. 2012), only the two trials that the decision depends on are repeated. The
    strongest rival has the largest chance of being better, given the noise of all repeats; to estimate that noise, the
    best trial is repeated first. `running` lists the running trials; nothing is chosen before all have a value.
    """
    best = progress.best
    if best is None or any(not completed_values(progress.trials[at]) for at in running):
        return None
    repeats = sum(len(values) - 1 for values in progress.repeats)
    if repeats < _FEWEST_REPEATS:
        return best if repeats + running.count(best) < _FEWEST_REPEATS else None
    if all(min(values) == max(values) for values in progress.repeats):
        return None
    known = {at: completed_values(trial) for at, trial in enumerate(progress.trials) if is_reliable(trial)}
    middles = {at: median_of(values) for at, values in known.items() if values}
    counts = {at: len(known[at]) + running.count(at) for at in middles}
    noise = noise_of([*progress.repeats, *([middle] for middle in middles.values())])

    def chance(rival: int) -> float:
        difference = noise.place(middles[rival]) - noise.place(middles[best])
        return noise.chance_below(difference, counts[best] * counts[rival] / (counts[best] + counts[rival]))

    rival = max((at for at in middles if at != best), key=chance, default=None)
    if rival is None or chance(rival) < _DOUBT:
        return None
    return min(best, rival, key=counts.__getitem__)
