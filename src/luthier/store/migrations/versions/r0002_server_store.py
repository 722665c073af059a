"""Tables and columns for servers: queued experiments, users, credentials and the audit log."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Extend experiments, and create the new tables."""
    if op.get_bind().dialect.name == "sqlite":
        _remake_experiments()
    else:
        _extend_experiments()
    op.create_index("ix_experiments_status", "experiments", ["status"])
    op.create_table(
        "users",
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("role", sa.Text, nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("password_hash", sa.Text),
        sa.Column("disabled", sa.Boolean, nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_users"),
    )
    op.create_table(
        "passes",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("digest", sa.Text, nullable=False),
        sa.Column("user_name", sa.Text, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("label", sa.Text, nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("expires_at", sa.Double),
        sa.Column("used_at", sa.Double),
        sa.PrimaryKeyConstraint("id", name="pk_passes"),
        sa.UniqueConstraint("digest", name="uq_passes_digest"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_passes_user_name", "passes", ["user_name"])
    op.create_table(
        "audit",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("user_name", sa.Text, nullable=False),
        sa.Column("action", sa.Text, nullable=False),
        sa.Column("target", sa.Text, nullable=False),
        sa.Column("detail", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_audit"),
    )


def _extend_experiments() -> None:
    """Add the columns to the table."""
    for name in ("unattended", "shared"):
        op.add_column("experiments", sa.Column(name, sa.Boolean, nullable=False, server_default=sa.false()))
        op.alter_column("experiments", name, server_default=None)
    op.add_column("experiments", sa.Column("author", sa.Text, nullable=False, server_default=""))
    op.alter_column("experiments", "author", server_default=None)
    op.add_column("experiments", sa.Column("request_key", sa.Text))
    op.add_column("experiments", sa.Column("source", sa.Text))
    op.create_unique_constraint("uq_experiments_author_request_key", "experiments", ["author", "request_key"])


def _remake_experiments() -> None:
    """Copy the experiments to a new table: SQLite cannot change how an existing table numbers its rows.

    Runs refer to experiments by the name of the table; the foreign keys are checked at the end of the transaction.
    """
    op.execute("PRAGMA defer_foreign_keys = ON")
    op.execute("CREATE TABLE old_experiments AS SELECT * FROM experiments")
    op.drop_table("experiments")
    op.create_table(
        "experiments",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("uid", sa.Text, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("stop_requested", sa.Boolean, nullable=False),
        sa.Column("owner_host", sa.Text),
        sa.Column("owner_pid", sa.Integer),
        sa.Column("owner_started", sa.Text),
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
        "id, uid, name, created_at, status, stop_requested, owner_host, owner_pid, owner_started, seen_at, result, "
        "settings"
    )
    op.execute(
        f"INSERT INTO experiments ({kept}, unattended, author, shared) "  # noqa: S608 a constant
        f"SELECT {kept}, 0, '', 0 FROM old_experiments"
    )
    op.drop_table("old_experiments")
