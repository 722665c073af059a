"""Keep the on-line sessions of running programs and their samples."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    """Add two tables."""
    op.create_table(
        "online_sessions",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("uid", sa.Text, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("author", sa.Text, nullable=False),
        sa.Column("shared", sa.Boolean, nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("seen_at", sa.Double),
        sa.Column("settings", sa.Text, nullable=False),
        sa.Column("view", sa.Text),
        sa.PrimaryKeyConstraint("id", name="pk_online_sessions"),
        sa.UniqueConstraint("uid", name="uq_online_sessions_uid"),
        sa.UniqueConstraint("author", "name", name="uq_online_sessions_author_name"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "online_samples",
        sa.Column("session_id", sa.Integer, nullable=False),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("search", sa.Integer, nullable=False),
        sa.Column("client", sa.Text, nullable=False),
        sa.Column("config", sa.Text, nullable=False),
        sa.Column("value", sa.Double),
        sa.Column("at", sa.Double, nullable=False),
        sa.PrimaryKeyConstraint("session_id", "number", name="pk_online_samples"),
        sa.ForeignKeyConstraint(["session_id"], ["online_sessions.id"], name="fk_online_samples_session_id"),
    )
