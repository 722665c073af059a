"""Write the settings of experiments as they are declared now: `objectives` and `slots`."""

import json

import sqlalchemy as sa
from alembic import op

from luthier.store.tables import escape, unescape

revision = "0004"
down_revision = "0003"

_experiments = sa.table("experiments", sa.column("id", sa.Integer), sa.column("settings", sa.Text))


def upgrade() -> None:
    """Rewrite the settings of every experiment."""
    connection = op.get_bind()
    for number, text in connection.execute(sa.select(_experiments.c.id, _experiments.c.settings)).all():
        try:
            settings = _renamed(json.loads(unescape(text)))
        except (TypeError, ValueError):
            continue  # a damaged row is reported when it is read
        written = escape(json.dumps(settings, ensure_ascii=False, separators=(",", ":")))
        connection.execute(sa.update(_experiments).where(_experiments.c.id == number).values(settings=written))


def _renamed(settings: dict[str, object]) -> dict[str, object]:
    """`measure`, `goal` and `further` became `objectives`, `workers` became `slots`."""
    if not isinstance(settings, dict):
        raise TypeError("not the settings of an experiment")
    if "workers" in settings:
        settings["slots"] = settings.pop("workers")
    if "measure" in settings:
        first = {"measure": settings.pop("measure"), "goal": settings.pop("goal", "minimize")}
        further = settings.pop("further", [])
        settings["objectives"] = [first, *(further if isinstance(further, list) else [])]
    return settings
