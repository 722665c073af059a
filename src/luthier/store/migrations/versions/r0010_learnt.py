"""Keep what was learned from the experiments of a store."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    """Add a table."""
    op.create_table(
        "learnt",
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("content", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_learnt"),
    )
