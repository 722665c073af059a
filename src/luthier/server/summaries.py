"""One experiment in a listing, as one particular person sees it."""

from luthier.server.access import Principal
from luthier.store.base import Json, Record
from luthier.store.ownership import status_text
from luthier.store.server_store import shown_author

_CONCLUDED = ("verdict", "improved", "speedup", "low", "high", "value", "kind", "cost_s")


def summary_of(record: Record, who: Principal) -> dict[str, Json]:
    """What listings show; no run is read for it."""
    result = record.result or {}
    return {
        "id": record.id,
        "name": record.name,
        "status": status_text(record),
        "author": shown_author(record.author),
        "shared": record.shared,
        "created_at": record.created_at,
        "runs": record.runs,
        "budget": record.settings.get("budget"),
        **{name: result.get(name) for name in _CONCLUDED},
        "mine": record.author == who.name,
        "may_change": who.may_change(record),
    }
