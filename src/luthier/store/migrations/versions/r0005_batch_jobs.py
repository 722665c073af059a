"""Add the jobs of a batch system: those of active runs to the experiment, the number of each to its run."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Add the columns; earlier runs have no job."""
    op.add_column("experiments", sa.Column("jobs", sa.Text))
    op.add_column("runs", sa.Column("batch_job", sa.Text))
