"""On-line sessions in a store, as a service would leave them."""

import time

from luthier.online.records import OnlineRecord
from luthier.online.store import online_sessions_in
from luthier.store.server_store import ServerStore
from luthier.trial import Config, Json, Sample

SPACE: dict[str, Json] = {
    "parameters": [
        {
            "kind": "integer",
            "name": "block",
            "low": 8,
            "high": 256,
            "step": 2,
            "scale": "log",
            "default": 8,
            "unit": "",
        },
        {"kind": "choice", "name": "mode", "values": ["eager", "lazy"], "default": "eager", "ordered": False},
    ],
    "constraints": ["block > 4"],
}
SETTINGS: dict[str, Json] = {
    "space": SPACE,
    "strategy": "auto",
    "samples": "adaptive",
    "estimator": "minimum",
    "goal": "minimize",
    "baseline": 3,
    "watch": True,
    "seed": 0,
}
DEFAULT: dict[str, Json] = {"block": 8, "mode": "eager"}
BEST: dict[str, Json] = {"block": 64, "mode": "lazy"}


def a_view(**changes: Json) -> dict[str, Json]:
    """A session that searches, with two clients and 40 steps."""
    now = time.time()
    clients: list[Json] = [
        {"name": f"node{number}/4711", "config": BEST, "since": now - 3, "reports": 40 + number, "last": 1.25}
        for number in (1, 2)
    ]
    return {
        "phase": "searching",
        "search": 2,
        "strategy": "auto",
        "goal": "minimize",
        "best": {"config": BEST, "value": 1.25, "samples": 3},
        "default": {"config": DEFAULT, "value": 2.5, "samples": 3},
        "clients": clients,
        "more_clients": 0,
        "steps": 40,
        "total": 60.0,
        "compared_steps": 36,
        "compared_total": 50.0,
        "default_total": 90.0,
        "default_step": 2.6,
        "history": [[step, 2.5 - step / 32] for step in range(1, 41)],
        "points": [{"config": BEST, "value": 1.25, "samples": 3}, {"config": DEFAULT, "value": 2.5, "samples": 3}],
        "changes": [{"at": now - 20, "step": 22, "factor": 1.8}],
        **changes,
    }


def a_session(
    store: ServerStore,
    name: str = "stencil",
    author: str = "local",
    view: dict[str, Json] | None = None,
    **settings: Json,
) -> OnlineRecord:
    """A session that a service has just written, with three samples."""
    made = online_sessions_in(store).create(author, name, {**SETTINGS, **settings}, time.time())
    values = (2.5, None, 1.25)
    samples = [
        Sample(number, 1, "node1/4711", Config({"block": 8 * number, "mode": "lazy"}), value, 100.0 + number)
        for number, value in enumerate(values, 1)
    ]
    online_sessions_in(store).append(made.id, samples)
    online_sessions_in(store).update(made.id, seen_at=time.time(), view=a_view() if view is None else view)
    return online_sessions_in(store).get(made.id)
