"""Keep submitted jobs and what was decided about each."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    """Add a table."""
    op.create_table(
        "submissions",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("utc_offset_s", sa.Integer, nullable=False),
        sa.Column("author", sa.Text, nullable=False),
        sa.Column("decision", sa.Text, nullable=False),
        sa.Column("record_id", sa.Integer),
        sa.Column("experiment_id", sa.Integer),
        sa.Column("score", sa.Double),
        sa.Column("confirmed", sa.Boolean),
        sa.Column("job_id", sa.Text),
        sa.Column("state", sa.Text),
        sa.Column("elapsed_s", sa.Double),
        sa.Column("nodes", sa.Integer, nullable=False),
        sa.Column("user_name", sa.Text, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("program", sa.Text, nullable=False),
        sa.Column("component", sa.Text),
        sa.Column("command", sa.Text, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("by_field", sa.Text),
        sa.Column("environment", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_submissions"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_submissions_author", "submissions", ["author", "id"])
    op.create_index("ix_submissions_record_id", "submissions", ["record_id", "id"])
    op.create_index("ix_submissions_decision", "submissions", ["decision", "at"])
