"""Keep components and workers in the store, and the periods in which processes worked on an experiment.

Components were files in a folder of the user, the same for all stores. Stores that existed then get a copy of them,
and so does the store in that folder; the files are not changed.
"""

import logging

import sqlalchemy as sa
from alembic import op

from luthier.errors import InvalidInputError
from luthier.folders import data_directory
from luthier.store.tables import escape

revision = "0006"
down_revision = "0005"

log = logging.getLogger(__name__)


def upgrade() -> None:
    """Add tables and a column, and copy the components."""
    op.add_column("experiments", sa.Column("periods", sa.Text))
    components = op.create_table(
        "components",
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("description", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_components"),
    )
    op.create_table(
        "workers",
        sa.Column("host", sa.Text, nullable=False),
        sa.Column("pid", sa.Integer, nullable=False),
        sa.Column("started", sa.Text, nullable=False),
        sa.Column("seen_at", sa.Double, nullable=False),
        sa.PrimaryKeyConstraint("host", "pid", "started", name="pk_workers"),
    )
    if found := _files():
        op.bulk_insert(components, [{"name": name, "description": escape(text)} for name, text in found.items()])


def _files() -> dict[str, str]:
    """The components to copy, by name."""
    connection = op.get_bind()
    try:
        folder = data_directory()
    except InvalidInputError:  # an account without a home folder
        return {}
    queries = [sa.text(f"SELECT 1 FROM {name} LIMIT 1") for name in ("experiments", "users")]  # noqa: S608 constants
    used = any(connection.execute(query).first() for query in queries)
    if not used and connection.engine.url.database != str(folder / "luthier.db"):
        return {}
    texts = {}
    for path in sorted((folder / "components").glob("*.yaml")):
        try:
            texts[path.stem] = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            log.warning("%s: not copied to the store: %s; add it with: luthier component add", path, error)
    return texts
