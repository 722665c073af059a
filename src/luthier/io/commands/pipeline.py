"""The search of `luthier io tune` and the comparison that follows it, when it begins and when it is resumed."""

from typing import TYPE_CHECKING

from luthier.cli.running import work_on
from luthier.cli.terminal import print_json, print_view, say

if TYPE_CHECKING:
    from luthier.launch import Launch
    from luthier.result.result import Result
    from luthier.store.base import Record


def search_and_compare(launch: "Launch", store: str | None, *, quiet: bool, as_json: bool) -> int:
    """Run the search, then the comparison on the application, and print both."""
    from luthier.io.comparison import comparison

    record, result, interrupted = work_on(launch, quiet=quiet)
    following = None if interrupted else comparison(record, result, store)
    compared = None if following is None else work_on(following, quiet=quiet)
    if compared is None and not interrupted:
        compared = _compared_earlier(record, result, store)
    return _tell((record, result), compared, interrupted=interrupted, as_json=as_json)


def _compared_earlier(record: "Record", result: "Result", store: str | None) -> "tuple[Record, Result, bool] | None":
    """The earlier comparison of the same configuration, where a search that went on found none that is better."""
    from luthier import launch
    from luthier.io.comparison import compared_already, comparisons
    from luthier.store import open_store

    found = compared_already(comparisons(open_store(store), record), result)
    return None if found is None else (*launch.open(found.id, store), False)


def resume(number: int, store: str | None, budget: str | None, *, quiet: bool, as_json: bool) -> int | None:
    """Continue a search of `luthier io tune`, then compare its best configuration; None for other experiments."""
    from luthier import launch
    from luthier.io.comparison import comparison, concluded, is_search
    from luthier.store import open_store
    from luthier.store.base import ENDED

    history = open_store(store)
    record = history.experiment(number)
    if not is_search(record):
        return None
    if budget is None and record.status in ENDED:
        result = concluded(history, record)
        following = comparison(record, result, store)
        if following is not None:
            return _tell((record, result), work_on(following, quiet=quiet), interrupted=False, as_json=as_json)
    return search_and_compare(launch.resume(number, store, budget), store, quiet=quiet, as_json=as_json)


def _tell(
    search: "tuple[Record, Result]",
    compared: "tuple[Record, Result, bool] | None",
    *,
    as_json: bool,
    interrupted: bool,
) -> int:
    """Print both results; the exit code is that of `luthier tune`."""
    from luthier.cli.summary import result_view
    from luthier.io.comparison import Planned
    from luthier.result.serial import result_json

    last = search if compared is None else compared[:2]
    if as_json:
        planned = Planned.of(search[1].experiment)
        verified = None if compared is None else result_json(*compared[:2])
        kernel = None if planned is None else dict(planned.kernel)
        print_json({"kernel": kernel, "search": result_json(*search), "verification": verified})
    elif compared is None:
        print_view(result_view(*search))
        if not interrupted:
            _say_why_nothing_is_compared(search[1])
    else:
        say(f"experiment {last[0].id} compared default and best configuration on the application:")
        print_view(result_view(*last))
    if not as_json and not interrupted:
        say(
            f"to continue the search: luthier resume {search[0].id} --budget +30; "
            "then the best configuration is compared again"
        )
    if interrupted or (compared is not None and compared[2]):
        return 130
    return 1 if last[0].status == "no result" else 0


def _say_why_nothing_is_compared(result: "Result") -> None:
    from luthier.io.comparison import Planned

    if result.winner is None:
        return
    planned = Planned.of(result.experiment)
    if planned is not None and not planned.pairs:
        say("not compared on the application (--without verify): the values are those of the search")
    else:
        say("nothing to compare on the application: no configuration was better than the default")
