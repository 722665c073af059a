"""What tuning a running program found."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from luthier.online.session import OnlineSession
from luthier.online.session_view import SessionView
from luthier.result.text import config_text, estimate_text
from luthier.result.verdict import gain_text
from luthier.result.verification import Duel
from luthier.space import Space
from luthier.statistics.comparison import Comparison
from luthier.statistics.estimate import estimate
from luthier.trial import Config, Estimate, Json


@dataclass(frozen=True, slots=True)
class Troubles:
    """How often the guard put back the last good configuration, and how often configurations did not work."""

    rolled_back: int = 0
    refused: int = 0
    silent: int = 0

    @property
    def sentence(self) -> str:
        """For people; empty if there were none."""
        counts = {
            "the guard acted": self.rolled_back,
            "the program refused a configuration": self.refused,
            "a configuration gave no number": self.silent,
        }
        return "; ".join(
            f"{what} {'once' if count == 1 else f'{count} times'}" for what, count in counts.items() if count
        )


@dataclass(frozen=True, slots=True)
class ProgramResult:
    """The default, what the search found, how they compare, and which of them is the best and in place.

    What was found is the best if the verification has proven that it is better than the default; without a
    verification, if the samples of the search say so.
    """

    space: Space
    best: Config
    found: Config
    default_estimate: Estimate | None
    best_estimate: Estimate | None
    found_estimate: Estimate | None
    comparison: Comparison | None
    verdict: str
    ending: str
    windows: int
    searches: int
    troubles: Troubles

    @classmethod
    def of(
        cls, session: OnlineSession, duel: Duel, ending: str, *, windows: int, troubles: Troubles
    ) -> "ProgramResult":
        """What is known now; the estimates are from the verification if there was one."""
        view, found = session.view(), session.candidate
        best = session.best.best
        comparison = None if duel.has_failures else duel.compare(session.settings.goal)
        if duel.winner_failures or (comparison is not None and comparison.low is not None):
            best = found if comparison is not None and comparison.improved else session.space.default
        estimator, values = session.settings.estimator, {session.space.default: duel.default_values}
        values[found] = duel.winner_values if found != session.space.default else duel.default_values
        return cls(
            space=session.space,
            best=best,
            found=found,
            default_estimate=_estimate(duel.default_values, view, session.space.default, estimator),
            best_estimate=_estimate(values.get(best, ()), view, best, estimator),
            found_estimate=_estimate(values[found], view, found, estimator),
            comparison=comparison,
            verdict=_verdict(session, duel, comparison),
            ending=ending,
            windows=windows,
            searches=session.search,
            troubles=troubles,
        )

    @property
    def improved(self) -> bool:
        """Whether the best configuration is proven to be better than the default."""
        return self.comparison is not None and self.comparison.improved

    def rows(self) -> list[tuple[str, str, str]]:
        """Label, value and configuration of the default and of what was found."""
        rows = [("default", self.space.default, self.default_estimate)]
        if self.best != self.space.default:
            rows.append(("best", self.best, self.best_estimate))
        if self.found not in (self.space.default, self.best):
            rows.append(("tried", self.found, self.found_estimate))
        return [(label, estimate_text(value, ""), config_text(config, self.space)) for label, config, value in rows]

    def to_json(self) -> dict[str, Json]:
        """The result as plain values."""
        comparison = self.comparison
        return {
            "verdict": self.verdict,
            "improved": self.improved,
            "speedup": None
            if comparison is None
            else {
                "value": comparison.speedup,
                "low": comparison.low,
                "high": comparison.high,
                "kind": comparison.kind,
                "pairs": comparison.pairs,
            },
            "default": _point_json(self.space.default, self.default_estimate),
            "best": _point_json(self.best, self.best_estimate),
            "found": _point_json(self.found, self.found_estimate),
            "in_place": dict(self.best if self.improved else self.space.default),
            "ending": self.ending,
            "windows": self.windows,
            "searches": self.searches,
            **asdict(self.troubles),
        }


def _estimate(values: Sequence[float], view: SessionView, config: Config, estimator: str) -> Estimate | None:
    if values:
        return estimate(values, estimator)
    for point in (view.default, view.best, *view.points):
        if point.config == config and point.value is not None:
            return Estimate(point.value, point.samples)
    return None


def _point_json(config: Config, value: Estimate | None) -> dict[str, Json]:
    return {"config": dict(config), "estimate": None if value is None else asdict(value)}


def _verdict(session: OnlineSession, duel: Duel, comparison: Comparison | None) -> str:
    """The answer in one sentence."""
    if session.candidate == session.space.default:
        return "no improvement found: the default is the best of all configurations tried"
    if duel.winner_failures:
        return "no improvement found: the best of the others failed when it was run again"
    if comparison is None or comparison.low is None or comparison.high is None:
        return "not verified: there are too few windows of default and best configuration to compare them"
    low, high = (gain_text(bound, comparison.kind, "") for bound in (comparison.low, comparison.high))
    interval = f"{low} to {high} with 95 % confidence, {comparison.pairs} pairs of windows"
    gain = gain_text(comparison.speedup, comparison.kind, "")
    if comparison.improved:
        return f"{'better by ' if comparison.kind == 'difference' else ''}{gain} better than the default ({interval})"
    if comparison.worsened:
        return f"no improvement found: the best of the others is worse than the default ({interval})"
    return f"no improvement proven: the best of the others is {low} to {high} as good as the default ({interval})"
