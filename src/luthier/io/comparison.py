"""The comparison on the application that follows a search on its I/O kernel, also after an interrupt."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from luthier.errors import InvalidInputError
from luthier.io.steps import comparison_step, search_step, searched
from luthier.launch import Launch, LaunchRequest, create
from luthier.result.result import Result, conclude
from luthier.spec.experiment import Experiment
from luthier.spec.origin import Origin, origin_in
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
    steps += [comparison_step(one, concluded(store, one)) for one in earlier]
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


def comparisons(store: Store, search: Record) -> list[Record]:
    """The comparisons of what a search found, oldest first."""
    return [one for one in store.experiments() if _search_of(one) == search.uid]


def compared_already(earlier: Sequence[Record], result: Result) -> Record | None:
    """The comparison of the best configuration of a search, of those that were made earlier."""
    best = None if result.winner is None else dict(result.winner.config)
    return next((one for one in reversed(earlier) if one.settings.get("first") == [best]), None)


def is_search(record: Record) -> bool:
    """Whether the best configuration of an experiment is compared on another program afterwards."""
    origin = origin_in(record.settings)
    return origin is not None and origin.data.get("application") is not None


def concluded(store: Store, record: Record) -> Result:
    """The result of a stored experiment."""
    return conclude(Experiment.from_json(record.settings), store.runs(record.id))


def _search_of(record: Record) -> str | None:
    origin = origin_in(record.settings)
    return None if origin is None or origin.searched is None else origin.searched.uid
