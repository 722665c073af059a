"""Create the tables of experiments and runs."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Create both tables."""
    op.create_table(
        "experiments",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("uid", sa.Text, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("settings", sa.Text, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("stop_requested", sa.Boolean, nullable=False),
        sa.Column("owner_host", sa.Text),
        sa.Column("owner_pid", sa.Integer),
        sa.Column("owner_started", sa.Text),
        sa.Column("seen_at", sa.Double),
        sa.Column("result", sa.Text),
        sa.PrimaryKeyConstraint("id", name="pk_experiments"),
        sa.UniqueConstraint("uid", name="uq_experiments_uid"),
    )
    op.create_table(
        "runs",
        sa.Column("experiment_id", sa.Integer, nullable=False),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("trial", sa.Integer, nullable=False),
        sa.Column("purpose", sa.Text, nullable=False),
        sa.Column("config", sa.Text, nullable=False),
        sa.Column("submitted_at", sa.Double, nullable=False),
        sa.Column("submit_order", sa.Integer, nullable=False),
        sa.Column("finish_order", sa.Integer),
        sa.Column("started_at", sa.Double),
        sa.Column("duration_s", sa.Double),
        sa.Column("outcome", sa.Text),
        sa.Column("reason", sa.Text),
        sa.Column("value", sa.Double),
        sa.Column("others", sa.Text),
        sa.Column("at_least", sa.Double),
        sa.Column("metrics", sa.Text),
        sa.Column("logs", sa.Text),
        sa.PrimaryKeyConstraint("experiment_id", "number", name="pk_runs"),
        sa.ForeignKeyConstraint(["experiment_id"], ["experiments.id"], name="fk_runs_experiment_id"),
        sa.UniqueConstraint("experiment_id", "submit_order", name="uq_runs_experiment_id_submit_order"),
        sa.UniqueConstraint("experiment_id", "finish_order", name="uq_runs_experiment_id_finish_order"),
    )


def downgrade() -> None:
    """Drop both tables, and with them every history."""
    op.drop_table("runs")
    op.drop_table("experiments")
