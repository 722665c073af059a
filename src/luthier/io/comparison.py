"""What follows a search on an I/O kernel: the comparison of its best configuration on the application."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from luthier import launch
from luthier.errors import InvalidInputError
from luthier.launch import Done, FollowUp, Launch, LaunchRequest, Told, create
from luthier.result.facts import result_json
from luthier.result.findings import runs_text
from luthier.result.result import Result
from luthier.result.serial import ending_of
from luthier.result.text import duration_text, estimate_text
from luthier.result.tuned_parameters import tuned_parameters, tuned_text
from luthier.result.tuning_return import tuning_return
from luthier.spec.experiment import Experiment
from luthier.spec.origin import Origin, Searched, Step, origin_in
from luthier.spec.script import JobScript
from luthier.store import open_store
from luthier.store.base import ENDED, Record, Store
from luthier.texts import shown
from luthier.trial import Json

SEARCH, COMPARISON = "search", "verification"
KERNEL, APPLICATION = "the I/O kernel", "the application"


@dataclass(frozen=True, slots=True)
class Planned:
    """The comparison after a search: the best configuration of the `kernel` on the `application`, in `pairs` at most.

    0 pairs leave the comparison out; `kernel` describes the I/O kernel for programs.
    """

    kernel: Mapping[str, Json]
    application: JobScript | None
    pairs: int

    def to_json(self) -> dict[str, Json]:
        """The value as JSON."""
        application = None if self.application is None else self.application.to_json()
        return {"kernel": dict(self.kernel), "application": application, "pairs": self.pairs}

    @staticmethod
    def of(experiment: Experiment) -> "Planned | None":
        """What follows an experiment; None if it is not a step of such a tuning."""
        if experiment.origin is None:
            return None
        data = experiment.origin.data
        try:
            kernel, application = data["kernel"], data["application"]
            if not isinstance(kernel, Mapping) or not (application is None or isinstance(application, Mapping)):
                raise TypeError("no kernel")
            script = None if application is None else JobScript.from_json(application)
            return Planned(kernel, script, int(str(data["pairs"])))
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidInputError(
                f"origin: {shown(str(error))} is invalid; the store was written by another program"
            ) from None


def comparison(record: Record, result: Result, store_url: str | None) -> Launch | None:
    """The best configuration of a finished search against the default, on the application.

    None if that was not asked for, if the search is not finished, if the default is the best, or if the same
    configuration has been compared already.
    """
    origin, planned = result.experiment.origin, Planned.of(result.experiment)
    if origin is None or planned is None or planned.application is None or planned.pairs < 1:
        return None
    if record.status not in ENDED:
        return None
    if result.winner is None or result.winner.config == result.experiment.space.default:
        return None
    store = open_store(store_url)
    earlier = comparisons(store, record)
    if compared_already(earlier, result) is not None:
        return None
    steps = [*origin.steps, search_step(record, result, origin.program)]
    steps += [comparison_step(one, launch.open(one.id, store)[1]) for one in earlier]
    found = searched(record, result, origin.program)
    before = Origin(tuple(steps), APPLICATION, found, Planned(planned.kernel, None, 0).to_json())
    compared = replace(
        result.experiment,
        command=planned.application,
        origin=before,
        first=(result.winner.config,),
        budget=2 + 2 * planned.pairs,
        verify_pairs=planned.pairs,
        resample="once",
        optimizer="random",
        options={},
        impact_first="off",
        stop=(),
        prune=None,
        sentinels=0,
        slots=1,
        time_limit_s=None,
        after=(),
        earlier=None,
        refinements=(),
        picker_weights=None,
    )
    name = record.name.removesuffix(f": {SEARCH}")
    return create(LaunchRequest(compared, f"{name}: {COMPARISON}", store_url))


def compared_earlier(record: Record, result: Result, store_url: str | None) -> Record | None:
    """The earlier comparison of the same configuration, where a search that went on found none that is better."""
    return compared_already(comparisons(open_store(store_url), record), result)


def comparisons(store: Store, search: Record) -> list[Record]:
    """The comparisons of what a search found, oldest first."""
    return [one for one in store.experiments() if _search_of(one) == search.uid]


def compared_already(earlier: Sequence[Record], result: Result) -> Record | None:
    """The earlier comparison of the best configuration of a search; None if it was not compared."""
    best = None if result.winner is None else dict(result.winner.config)
    return next((one for one in reversed(earlier) if one.settings.get("first") == [best]), None)


def is_search(record: Record) -> bool:
    """Whether the best configuration of an experiment is compared on another program afterwards."""
    origin = origin_in(record.settings)
    return origin is not None and origin.data.get("application") is not None


def _search_of(record: Record) -> str | None:
    origin = origin_in(record.settings)
    return None if origin is None or origin.searched is None else origin.searched.uid


def search_step(record: Record, result: Result, program: str) -> Step:
    """A finished search: its values are of the `program` that it ran, and not verified."""
    measure = result.experiment.objective.measure
    trials = [trial for trial in (result.default, result.winner) if trial is not None]
    values = " -> ".join(dict.fromkeys(estimate_text(trial.estimate, measure) for trial in trials))
    spent = f"{runs_text(result)}, {duration_text(result.cost_s)} of run time"
    ending = ending_of(record)
    lines = [f"experiment {record.id}, on {program}, not verified: {values} ({spent})", *tuned_lines(record, result)]
    return Step("search", (*lines, *([] if ending is None else [f"ended: {ending}"])), result.cost_s)


def tuned_lines(record: Record, result: Result) -> list[str]:
    """Which parameters were tuned first and last, and why; none if all were tuned all the time."""
    found = tuned_parameters(record, result.experiment, result.runs)
    if found is None:
        return []
    chosen = [step for step in found.steps if step.begin > 0]
    if not chosen:
        return ["impact first: the search ended before parameters were chosen"]
    lines = [f"tuned first, after {chosen[0].begin} configurations: {tuned_text(chosen[0], found.of)}"]
    if set(chosen[-1].names) != set(chosen[0].names):
        lines.append(f"tuned last, after {chosen[-1].begin} configurations: {tuned_text(chosen[-1], found.of)}")
    return lines


def searched(record: Record, result: Result, program: str) -> Searched:
    """The search, as the comparison of its best configuration stores it."""
    found = tuning_return(result)
    return Searched(record.uid, record.id, len(result.runs), program, () if found is None else found.over_time)


def comparison_step(record: Record, result: Result) -> Step:
    """A comparison that was made earlier in the same tuning."""
    return Step("comparison", (f"experiment {record.id}: {result.verdict}",), result.cost_s)


def tell(done: Done) -> Told:
    """Both results for programs, and for people which program was compared, or why none was."""
    search, compared = (done, None) if done.before is None else (done.before, done)
    planned = Planned.of(search.result.experiment)
    plain: dict[str, Json] = {
        "kernel": None if planned is None else dict(planned.kernel),
        "search": result_json(search.record, search.result),
        "verification": None if compared is None else result_json(compared.record, compared.result),
    }
    above, below = list[str](), list[str]()
    if compared is not None:
        above.append(f"experiment {compared.record.id} compared default and best configuration on the application:")
    elif not search.is_interrupted and search.result.winner is not None:
        below.append(_why_nothing_is_compared(planned))
    if not search.is_interrupted:
        below.append(
            f"to continue the search: luthier resume {search.record.id} --budget +30; "
            "then the best configuration is compared again"
        )
    return Told(plain, tuple(above), tuple(below))


def _why_nothing_is_compared(planned: Planned | None) -> str:
    if planned is not None and not planned.pairs:
        return "not compared on the application (--without verify): the values are those of the search"
    return "nothing to compare on the application: no configuration was better than the default"


FOLLOW_UP = FollowUp(is_search, comparison, compared_earlier, tell)
