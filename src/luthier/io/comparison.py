"""From the search on an I/O kernel to the comparison on the application, also after an interrupt."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from luthier.io.pipeline import Pipeline
from luthier.io.steps import comparison_step, search_step, searched
from luthier.io.story import pipeline_program
from luthier.launch.start import Launch, create
from luthier.result.result import Result, conclude
from luthier.spec.experiment import Experiment
from luthier.store import open_store
from luthier.store.base import ENDED, Record, Store
from luthier.trial import Json

SEARCH, COMPARISON = "search", "verification"


def comparison(record: Record, result: Result, store_url: str | None) -> Launch | None:
    """The best configuration of a finished search against the default, on the application.

    None if that was not asked for, if the search is not finished, if the default is the best, or if the same
    configuration has been compared already.
    """
    pipeline = result.experiment.pipeline
    if pipeline is None or pipeline.application is None or pipeline.pairs < 1 or record.status not in ENDED:
        return None
    if result.winner is None or result.winner.config == result.experiment.space.default:
        return None
    store = open_store(store_url)
    earlier = comparisons(store, record)
    if compared_already(earlier, result) is not None:
        return None
    program = pipeline_program(pipeline)
    steps = [*pipeline.steps, search_step(record, result, program)]
    steps += [comparison_step(one, concluded(store, one)) for one in earlier]
    before = Pipeline(tuple(steps), pipeline.kernel, searched=searched(record, result, program))
    compared = replace(
        result.experiment,
        command=pipeline.application,
        pipeline=before,
        first=(result.winner.config,),
        budget=2 + 2 * pipeline.pairs,
        verify_pairs=pipeline.pairs,
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
    return create(compared, f"{record.name.removesuffix(f': {SEARCH}')}: {COMPARISON}", store_url)


def comparisons(store: Store, search: Record) -> list[Record]:
    """The comparisons of what a search found, oldest first."""
    return [one for one in store.experiments() if _search_of(one) == search.uid]


def compared_already(earlier: Sequence[Record], result: Result) -> Record | None:
    """The comparison of the best configuration of a search, of those that were made earlier."""
    best = None if result.winner is None else dict(result.winner.config)
    return next((one for one in reversed(earlier) if one.settings.get("first") == [best]), None)


def is_search(record: Record) -> bool:
    """Whether the best configuration of an experiment is compared on another program afterwards."""
    pipeline = record.settings.get("pipeline")
    return isinstance(pipeline, Mapping) and pipeline.get("application") is not None


def concluded(store: Store, record: Record) -> Result:
    """The result of a stored experiment."""
    return conclude(Experiment.from_json(record.settings), store.runs(record.id))


def _search_of(record: Record) -> str | None:
    found = _searched(record)
    return None if found is None else str(found.get("uid"))


def _searched(record: Record) -> Mapping[str, Json] | None:
    pipeline = record.settings.get("pipeline")
    found = pipeline.get("searched") if isinstance(pipeline, Mapping) else None
    return found if isinstance(found, Mapping) else None
