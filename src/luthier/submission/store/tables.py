"""The tables of jobs that were tuned, and of jobs that were submitted."""

from sqlalchemy import (
    Boolean,
    Column,
    Double,
    ForeignKey,
    Index,
    Integer,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
)

from luthier.store.tables import AnyText, metadata

job_records = Table(
    "job_records",
    metadata,
    Column("id", Integer, nullable=False),
    Column("experiment_id", Integer, ForeignKey("experiments.id")),
    Column("change", Integer, nullable=False),
    Column("is_active", Boolean, nullable=False),
    Column("submitted_at", Double, nullable=False),
    Column("utc_offset_s", Integer, nullable=False),
    Column("nodes", Integer, nullable=False),
    Column("user_name", AnyText, nullable=False),
    Column("name", AnyText, nullable=False),
    Column("program", AnyText, nullable=False),
    Column("command", AnyText, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("component", AnyText, nullable=False),
    Column("config", AnyText, nullable=False),
    Column("environment", AnyText, nullable=False),
    Column("options", AnyText, nullable=False),
    Column("measure", AnyText, nullable=False),
    Column("default_value", Double, nullable=False),
    Column("best_value", Double, nullable=False),
    Column("speedup", Double, nullable=False),
    Column("withdrawn", AnyText),
    PrimaryKeyConstraint("id"),
    UniqueConstraint("experiment_id"),
    Index(None, "change"),
    sqlite_autoincrement=True,
)

# Its one row is updated by every change of `job_records`: the lock on it orders the changes as they are committed.
job_record_changes = Table(
    "job_record_changes",
    metadata,
    Column("id", Integer, nullable=False),
    Column("number", Integer, nullable=False),
    PrimaryKeyConstraint("id"),
)

# The experiments that ended and of which it is known whether they make a job record.
examined_experiments = Table(
    "examined_experiments",
    metadata,
    Column("experiment_id", Integer, ForeignKey("experiments.id"), nullable=False),
    PrimaryKeyConstraint("experiment_id"),
)

submissions = Table(
    "submissions",
    metadata,
    Column("id", Integer, nullable=False),
    Column("at", Double, nullable=False),
    Column("utc_offset_s", Integer, nullable=False),
    Column("author", AnyText, nullable=False),
    Column("decision", Text, nullable=False),
    Column("record_id", Integer),
    Column("experiment_id", Integer),
    Column("score", Double),
    Column("confirmed", Boolean),
    Column("job_id", AnyText),
    Column("state", AnyText),
    Column("elapsed_s", Double),
    Column("nodes", Integer, nullable=False),
    Column("user_name", AnyText, nullable=False),
    Column("name", AnyText, nullable=False),
    Column("program", AnyText, nullable=False),
    Column("component", AnyText),
    Column("command", AnyText, nullable=False),
    Column("reason", AnyText, nullable=False),
    Column("by_field", AnyText),
    Column("environment", AnyText, nullable=False),
    PrimaryKeyConstraint("id"),
    Index("ix_submissions_author", "author", "id"),
    Index("ix_submissions_record_id", "record_id", "id"),
    Index("ix_submissions_decision", "decision", "at"),
    sqlite_autoincrement=True,
)
