"""How much sooner a search found what a random search of the same experiment found in the end."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from luthier.errors import LuthierError
from luthier.result.activity import search_runs
from luthier.result.result import Result
from luthier.result.working_time import Pauses, pauses_of, worked_at
from luthier.store.base import ENDED, Record, Store
from luthier.trial import Completed, Lost, Run

_SAME = ("space", "command", "objectives")


@dataclass(frozen=True, slots=True)
class SearchSpeedup:
    """A search compared with experiment number `baseline`, a random search that made `baseline_runs` runs.

    `runs` is after how many runs the search had a value at least as good as the best one of the random search,
    `by_runs` how many times fewer these are, and `by_time` how many times less time it took (Dorier et al. 2022,
    section IV-A). They are None if it has no value as good; `by_time` also if the clock was set, or if the two
    experiments had different numbers of slots.
    """

    baseline: int
    baseline_runs: int
    runs: int | None = None
    by_runs: float | None = None
    by_time: float | None = None

    def sentence(self) -> str:
        """The comparison in words."""
        other = f"experiment {self.baseline} (random search, {self.baseline_runs} runs)"
        if self.runs is None:
            return f"search speed-up over random: none, no value is as good as the best one of {other}"
        factors = [(self.by_runs, "runs"), (self.by_time, "time")]
        said = ", ".join(f"{factor:.3g}x by {what}" for factor, what in factors if factor is not None)
        count = f"{self.runs} run{'' if self.runs == 1 else 's'}"
        return f"search speed-up over random: {said}; as good as the best value of {other} after {count}"


@dataclass(frozen=True, slots=True)
class Search:
    """The runs of an experiment, and the times in which nobody worked on it."""

    runs: Sequence[Run]
    pauses: Pauses = ()

    def finished(self) -> list[Run]:
        """The runs of the search that have ended and were not lost, in the order in which they ended."""
        ended = [run for run in search_runs(self.runs) if run.outcome is not None and not isinstance(run.outcome, Lost)]
        return sorted(ended, key=_ended_at)

    def worked_s(self, until: Run) -> float:
        """The time from the first submission to the end of a run, without pauses."""
        began = min(run.submitted_at for run in self.runs)
        return worked_at(_ended_at(until), self.pauses) - worked_at(began, self.pauses)


def speedup_over_random(store: Store, record: Record, result: Result) -> SearchSpeedup | None:
    """The comparison with the longest random search of the same parameters, command and objective in the store.

    None if there is no such experiment, for a random search itself, and with several objectives.
    """
    experiment = result.experiment
    if experiment.has_front or experiment.optimizer == "random":
        return None
    others = [one for one in store.experiments() if _is_baseline(one, record)]
    if not others:
        return None
    longest = max(others, key=lambda one: (one.runs, one.id))
    try:
        baseline = Search(store.runs(longest.id), pauses_of(longest))
    except LuthierError:
        return None  # it was deleted meanwhile
    found = compared(Search(result.runs, result.pauses), baseline, longest.id, experiment.objective.sign)
    same_slots = longest.settings.get("slots") == record.settings.get("slots")
    return found if found is None or same_slots else replace(found, by_time=None)


def beside_random(store: Store, record: Record, result: Result) -> Result:
    """The result with `over_random`, if its experiment has ended."""
    if record.status not in ENDED:
        return result
    return replace(result, over_random=speedup_over_random(store, record, result))


def _is_baseline(one: Record, record: Record) -> bool:
    return (
        one.id != record.id
        and one.author == record.author
        and one.runs > 0
        and one.settings.get("optimizer") == "random"
        and all(one.settings.get(name) == record.settings.get(name) for name in _SAME)
        and (one.settings.get("command") is not None or one.name == record.name)
    )


def compared(search: Search, randomly: Search, baseline: int, sign: float) -> SearchSpeedup | None:
    """A search compared with a random one, that of the experiment with the number `baseline`."""
    others = randomly.finished()
    values = [value for run in others if (value := _value(run, sign)) is not None]
    if not values:
        return None
    for count, run in enumerate(search.finished(), start=1):
        value = _value(run, sign)
        if value is not None and value <= min(values):
            took_s, random_s = search.worked_s(run), randomly.worked_s(others[-1])
            by_time = random_s / took_s if min(took_s, random_s) > 0.0 else None
            return SearchSpeedup(baseline, len(others), count, len(others) / count, by_time)
    return SearchSpeedup(baseline, len(others))


def _ended_at(run: Run) -> float:
    return run.began_at + (run.duration_s or 0.0)


def _value(run: Run, sign: float) -> float | None:
    """The value of a run, lower is better; None without a number."""
    return sign * run.outcome.value if isinstance(run.outcome, Completed) else None
