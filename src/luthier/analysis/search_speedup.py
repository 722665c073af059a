"""How much sooner a search found what a random search of the same experiment found in the end."""

from collections.abc import Sequence
from dataclasses import dataclass

from luthier.analysis.activity import ended_at, search_runs, work_spans, worked_until
from luthier.errors import LuthierError
from luthier.spec.experiment import Experiment
from luthier.store.base import Record, Store
from luthier.trial import Completed, Lost, Run

_SAME = ("space", "command", "objectives")


@dataclass(frozen=True, slots=True)
class SearchSpeedup:
    """A search compared with experiment number `baseline`, a random search that made `baseline_runs` runs.

    `runs` is after how many runs the search had a value at least as good as the best one of the random search,
    `by_runs` how many times fewer these are, and `by_time` how many times less time it took (Dorier et al. 2022,
    section IV-A). They are None if it has no value as good; `by_time` also if the clock was set.
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


def speedup_over_random(store: Store, record: Record, experiment: Experiment) -> SearchSpeedup | None:
    """The comparison with the longest random search of the same parameters, command and objective in the store.

    None if there is no such experiment, for a random search itself, and with several objectives.
    """
    if experiment.has_front or experiment.optimizer == "random":
        return None
    others = [one for one in store.experiments() if _is_baseline(one, record)]
    if not others:
        return None
    longest = max(others, key=lambda one: (one.runs, one.id))
    try:
        return compared(store.runs(record.id), store.runs(longest.id), longest.id, experiment.objective.sign)
    except LuthierError:
        return None  # it was deleted meanwhile


def _is_baseline(one: Record, record: Record) -> bool:
    return (
        one.id != record.id
        and one.author == record.author
        and one.runs > 0
        and one.settings.get("optimizer") == "random"
        and all(one.settings.get(name) == record.settings.get(name) for name in _SAME)
        and (one.settings.get("command") is not None or one.name == record.name)
    )


def compared(runs: Sequence[Run], random_runs: Sequence[Run], baseline: int, sign: float) -> SearchSpeedup | None:
    """The search of `runs` compared with `random_runs`, the search of the experiment with the number `baseline`."""
    own, others = _finished(runs), _finished(random_runs)
    values = [value for run in others if (value := _value(run, sign)) is not None]
    if not values:
        return None
    target, spans = min(values), work_spans(search_runs(runs))
    for count, run in enumerate(own, start=1):
        value = _value(run, sign)
        if value is not None and value <= target:
            took_s = worked_until(spans, ended_at(run))
            random_s = sum(end - begin for begin, end in work_spans(search_runs(random_runs)))
            by_time = random_s / took_s if took_s > 0.0 else None
            return SearchSpeedup(baseline, len(others), count, len(others) / count, by_time)
    return SearchSpeedup(baseline, len(others))


def _finished(runs: Sequence[Run]) -> list[Run]:
    """The runs of the search that have ended and were not lost, in the order in which they ended."""
    ended = [run for run in search_runs(runs) if run.outcome is not None and not isinstance(run.outcome, Lost)]
    return sorted(ended, key=ended_at)


def _value(run: Run, sign: float) -> float | None:
    """The value of a run, lower is better; None without a number."""
    return sign * run.outcome.value if isinstance(run.outcome, Completed) else None
