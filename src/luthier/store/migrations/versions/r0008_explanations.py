"""Keep what the default and the best configuration of an experiment did under the counters."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    """Add a table."""
    op.create_table(
        "explanations",
        sa.Column("experiment_id", sa.Integer, nullable=False),
        sa.Column("content", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("experiment_id", name="pk_explanations"),
        sa.ForeignKeyConstraint(["experiment_id"], ["experiments.id"], name="fk_explanations_experiment_id"),
    )
