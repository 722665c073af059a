"""What a configuration found by tuning does for jobs in production."""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from luthier.result.verdict import ratio_text
from luthier.result.verification import CONFIDENCE_TO_END_EARLY, FEWEST_PAIRS
from luthier.statistics.comparison import Comparison, compare
from luthier.statistics.estimate import median_of
from luthier.submission.store.submitted import EndedJob

COMPLETED = "COMPLETED"
FAILED = frozenset(["FAILED", "OUT_OF_MEMORY", "TIMEOUT"])
"""States of jobs that may have ended so because of their configuration."""


@dataclass(frozen=True, slots=True)
class Effect:
    """Equal jobs with and without the configuration: the comparison of pairs of completed ones, and failures.

    `comparison` is None without a pair. It is tested after every job, so it has the stricter confidence that the
    verification uses while it goes on.
    """

    comparison: Comparison | None
    failed: int
    ended: int
    default_failed: int
    default_ended: int

    @property
    def harm(self) -> str | None:
        """Why the configuration must not be used any more; None if there is no proof of harm."""
        found = self.comparison
        if found is not None and found.pairs >= FEWEST_PAIRS and found.worsened:
            slower = ratio_text(found.reversed().speedup)
            return f"jobs became {slower} slower than with the default ({found.pairs} pairs of jobs)"
        if _chance_of_failures(self) < 1.0 - CONFIDENCE_TO_END_EARLY:
            return (
                f"{self.failed} of {self.ended} jobs failed, with the default {self.default_failed} of "
                f"{self.default_ended}"
            )
        return None


def effect_of(jobs: Sequence[EndedJob], *, with_earlier: bool = True) -> Effect:
    """The effect of a configuration on jobs that ended, oldest first.

    With `with_earlier`, jobs that ran with the default before there was a record count too: enough to notice harm. A
    gain is only claimed from jobs that kept the default at the same time, because machines change.
    """
    defaults = [job for job in jobs if job.decision == "default" or (with_earlier and job.decision == "none")]
    tuned = [job for job in jobs if job.decision == "set"]
    pairs = _pairs(defaults, tuned)
    comparison = None
    if pairs:
        before, after = zip(*pairs, strict=True)
        comparison = compare(before, after, confidence=CONFIDENCE_TO_END_EARLY)
    return Effect(comparison, *_failures(tuned), *_failures(defaults))


def _failures(jobs: Sequence[EndedJob]) -> tuple[int, int]:
    failed = sum(job.state in FAILED for job in jobs)
    return failed, failed + sum(job.state == COMPLETED for job in jobs)


def _pairs(defaults: Sequence[EndedJob], tuned: Sequence[EndedJob]) -> list[tuple[float, float]]:
    """The times of equal jobs: each with the default, and the one with the configuration that is nearest in time.

    They are in units of what such a job takes with the default, so that long and short jobs can be compared together.
    """
    left: dict[tuple[object, ...], list[EndedJob]] = defaultdict(list)
    for job in tuned:
        if job.state == COMPLETED and job.elapsed_s:
            left[_kind(job)].append(job)
    pairs: list[tuple[tuple[object, ...], float, float]] = []
    for job in reversed(defaults):  # the newest first: an old one must not take the partner of a newer one
        others = left[_kind(job)]
        if job.state != COMPLETED or not job.elapsed_s or not others:
            continue
        at = job.job.submitted_at
        nearest = min(others, key=lambda other: abs((other.job.submitted_at - at).total_seconds()))
        others.remove(nearest)
        pairs.append((_kind(job), job.elapsed_s, nearest.elapsed_s or 0.0))
    usual = {kind: median_of([before for each, before, _ in pairs if each == kind]) for kind, _, _ in pairs}
    return [(before / usual[kind], after / usual[kind]) for kind, before, after in pairs]


def _kind(ended: EndedJob) -> tuple[object, ...]:
    """Equal jobs are compared: of one user, with the same command on as many nodes."""
    job = ended.job
    return job.user, job.program, job.command, job.nodes


def _chance_of_failures(effect: Effect) -> float:
    """The chance of this many failures with the configuration, if it makes no difference (Fisher's exact test)."""
    total, failed = effect.ended + effect.default_ended, effect.failed + effect.default_failed
    if not effect.ended or not effect.default_ended:
        return 1.0
    ways = math.comb(total, effect.ended)
    most = min(failed, effect.ended)
    worse = (
        math.comb(failed, count) * math.comb(total - failed, effect.ended - count)
        for count in range(effect.failed, most + 1)
    )
    return sum(worse) / ways
