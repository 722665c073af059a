"""The tables of on-line sessions."""

from sqlalchemy import Boolean, Column, Double, ForeignKey, Integer, PrimaryKeyConstraint, Table, Text, UniqueConstraint

from luthier.store.tables import AnyText, metadata

online_sessions = Table(
    "online_sessions",
    metadata,
    Column("id", Integer, nullable=False),
    Column("uid", Text, nullable=False),
    Column("name", AnyText, nullable=False),
    Column("author", AnyText, nullable=False),
    Column("shared", Boolean, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("status", Text, nullable=False),
    Column("seen_at", Double),
    Column("settings", AnyText, nullable=False),
    Column("view", AnyText),
    PrimaryKeyConstraint("id"),
    UniqueConstraint("uid"),
    UniqueConstraint("author", "name"),
    sqlite_autoincrement=True,
)

online_samples = Table(
    "online_samples",
    metadata,
    Column("session_id", Integer, ForeignKey("online_sessions.id"), nullable=False),
    Column("number", Integer, nullable=False),
    Column("search", Integer, nullable=False),
    Column("client", AnyText, nullable=False),
    Column("config", AnyText, nullable=False),
    Column("value", Double),
    Column("at", Double, nullable=False),
    PrimaryKeyConstraint("session_id", "number"),
)
