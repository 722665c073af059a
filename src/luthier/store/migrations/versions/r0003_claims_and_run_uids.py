"""Add identifiers of claims and runs, and requests to kill the active runs of an experiment."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Extend experiments and runs."""
    if op.get_bind().dialect.name == "sqlite":
        _remake_experiments()
    else:
        op.add_column("experiments", sa.Column("kill_requested", sa.Boolean, nullable=False, server_default=sa.false()))
        op.alter_column("experiments", "kill_requested", server_default=None)
        op.add_column("experiments", sa.Column("owner_claim", sa.Text))
        op.execute("UPDATE experiments SET owner_claim = '' WHERE owner_host IS NOT NULL")
    op.add_column("runs", sa.Column("uid", sa.Text, nullable=False, server_default=""))
    if op.get_bind().dialect.name != "sqlite":
        op.alter_column("runs", "uid", server_default=None)


def _remake_experiments() -> None:
    """Copy the experiments to a new table: SQLite adds columns only after the long texts, which it would have to read.

    The largest number so far is kept, so that the number of a deleted experiment is not used again.
    """
    op.execute("PRAGMA defer_foreign_keys = ON")
    op.execute("CREATE TABLE old_experiments AS SELECT * FROM experiments")
    op.execute("CREATE TABLE old_sequence AS SELECT seq FROM sqlite_sequence WHERE name = 'experiments'")
    op.drop_index("ix_experiments_status", "experiments")
    op.drop_table("experiments")
    op.create_table(
        "experiments",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("uid", sa.Text, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("stop_requested", sa.Boolean, nullable=False),
        sa.Column("kill_requested", sa.Boolean, nullable=False),
        sa.Column("owner_host", sa.Text),
        sa.Column("owner_pid", sa.Integer),
        sa.Column("owner_started", sa.Text),
        sa.Column("owner_claim", sa.Text),
        sa.Column("seen_at", sa.Double),
        sa.Column("unattended", sa.Boolean, nullable=False),
        sa.Column("author", sa.Text, nullable=False),
        sa.Column("shared", sa.Boolean, nullable=False),
        sa.Column("request_key", sa.Text),
        sa.Column("result", sa.Text),
        sa.Column("settings", sa.Text, nullable=False),
        sa.Column("source", sa.Text),
        sa.PrimaryKeyConstraint("id", name="pk_experiments"),
        sa.UniqueConstraint("uid", name="uq_experiments_uid"),
        sa.UniqueConstraint("author", "request_key", name="uq_experiments_author_request_key"),
        sqlite_autoincrement=True,
    )
    kept = (
        "id, uid, name, created_at, status, stop_requested, owner_host, owner_pid, owner_started, seen_at, unattended, "
        "author, shared, request_key, result, settings, source"
    )
    op.execute(
        f"INSERT INTO experiments ({kept}, kill_requested, owner_claim) "  # noqa: S608 a constant
        f"SELECT {kept}, 0, CASE WHEN owner_host IS NULL THEN NULL ELSE '' END FROM old_experiments"
    )
    op.execute("DELETE FROM sqlite_sequence WHERE name = 'experiments'")
    op.execute("INSERT INTO sqlite_sequence (name, seq) SELECT 'experiments', seq FROM old_sequence")
    op.create_index("ix_experiments_status", "experiments", ["status"])
    op.drop_table("old_sequence")
    op.drop_table("old_experiments")
