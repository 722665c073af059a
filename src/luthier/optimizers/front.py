"""The Pareto front: the trials that no other one beats in every objective."""

from collections.abc import Sequence

from luthier.trial import Trial


def values_of(trial: Trial) -> tuple[float, ...] | None:
    """The estimates of every objective, the first one first; None where there is no number."""
    if trial.estimate is None:
        return None
    return trial.estimate.value, *(other.value for other in trial.others)


def front_of(trials: Sequence[Trial]) -> list[int]:
    """The positions of the non-dominated trials, by their first objective; lower is better, the earliest of equals.

    A trial is dominated by one that is no worse in any objective and not the same in all.
    """
    known = [(values, position) for position, trial in enumerate(trials) if (values := values_of(trial)) is not None]
    if known and len(known[0][0]) == 1:
        return [min(known)[1]]
    front: list[tuple[tuple[float, ...], int]] = []
    # In this order a trial is dominated only by one that came before it, and then by one of the front.
    for values, position in sorted(known):
        if not any(all(a <= b for a, b in zip(better, values, strict=True)) for better, _ in front):
            front.append((values, position))
    return [position for _, position in front]
