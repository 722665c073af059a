"""Keep the jobs that were tuned, in columns, with what was found for them."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    """Add three tables; the experiments that ended before are examined when jobs are first matched."""
    op.create_table(
        "job_records",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("experiment_id", sa.Integer),
        sa.Column("change", sa.Integer, nullable=False),
        sa.Column("is_active", sa.Boolean, nullable=False),
        sa.Column("submitted_at", sa.Double, nullable=False),
        sa.Column("utc_offset_s", sa.Integer, nullable=False),
        sa.Column("nodes", sa.Integer, nullable=False),
        sa.Column("user_name", sa.Text, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("program", sa.Text, nullable=False),
        sa.Column("command", sa.Text, nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("component", sa.Text, nullable=False),
        sa.Column("config", sa.Text, nullable=False),
        sa.Column("environment", sa.Text, nullable=False),
        sa.Column("options", sa.Text, nullable=False),
        sa.Column("measure", sa.Text, nullable=False),
        sa.Column("default_value", sa.Double, nullable=False),
        sa.Column("best_value", sa.Double, nullable=False),
        sa.Column("speedup", sa.Double, nullable=False),
        sa.Column("withdrawn", sa.Text),
        sa.PrimaryKeyConstraint("id", name="pk_job_records"),
        sa.UniqueConstraint("experiment_id", name="uq_job_records_experiment_id"),
        sa.ForeignKeyConstraint(["experiment_id"], ["experiments.id"], name="fk_job_records_experiment_id"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_job_records_change", "job_records", ["change"])
    changes = op.create_table(
        "job_record_changes",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("number", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_job_record_changes"),
    )
    op.bulk_insert(changes, [{"id": 1, "number": 0}])
    op.create_table(
        "examined_experiments",
        sa.Column("experiment_id", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("experiment_id", name="pk_examined_experiments"),
        sa.ForeignKeyConstraint(["experiment_id"], ["experiments.id"], name="fk_examined_experiments_experiment_id"),
    )
