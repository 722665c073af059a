"""One experiment in a list, as one user sees it."""

from luthier.result.serial import record_json
from luthier.server.authentication import Principal
from luthier.store.base import Record
from luthier.store.server_store import shown_author
from luthier.trial import Json

_RESULT_FIELDS = ("verdict", "improved", "speedup", "low", "high", "value", "kind", "cost_s")


def summary_of(record: Record, who: Principal) -> dict[str, Json]:
    """The fields that lists show; no run is read for it."""
    listed, result = record_json(record), record.result or {}
    return {
        "id": listed.pop("number"),
        **listed,
        "author": shown_author(record.author),
        "shared": record.shared,
        **{name: result.get(name) for name in _RESULT_FIELDS},
        "mine": record.author == who.name,
        "may_change": who.may_change(record),
    }
