"""Keep which variables an administrator approved for jobs of other people."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    """Add a table; nothing is approved for what was registered before."""
    op.create_table(
        "approvals",
        sa.Column("component", sa.Text, nullable=False),
        sa.Column("variable", sa.Text, nullable=False),
        sa.Column("version", sa.Text, nullable=False),
        sa.Column("approved_by", sa.Text, nullable=False),
        sa.Column("approved_at", sa.Double, nullable=False),
        sa.Column("allowed", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("component", "variable", name="pk_approvals"),
    )
