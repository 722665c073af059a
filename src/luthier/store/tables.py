"""The tables of an SQL store."""

import re

from sqlalchemy import (
    Boolean,
    Column,
    Double,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
)
from sqlalchemy.engine import Dialect
from sqlalchemy.types import TypeDecorator

VERSION_TABLE = "luthier_version"
"""Not the default name of Alembic, which other programs in the same database may use."""

_UNSAFE = re.compile("[\x00\x10\ud800-\udfff]")
_ESCAPED = re.compile("\x10([0-9a-f]{4})")


def escape(text: str) -> str:
    """Text that any database accepts: NUL, lone surrogates and DLE (0x10) become DLE and four hexadecimal digits."""
    return _UNSAFE.sub(lambda match: f"\x10{ord(match[0]):04x}", text)


def unescape(text: str) -> str:
    """The inverse of `escape`."""
    return _ESCAPED.sub(lambda match: chr(int(match[1], 16)), text) if "\x10" in text else text


class AnyText(TypeDecorator[str]):
    """Text with any characters, including those that databases reject."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:  # noqa: ARG002 SQLAlchemy's signature
        """Escape before writing."""
        return None if value is None else escape(value)

    def process_result_value(self, value: str | None, dialect: Dialect) -> str | None:  # noqa: ARG002 SQLAlchemy's signature
        """Unescape after reading."""
        return unescape(value) if isinstance(value, str) else value  # a damaged row may contain any type


metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)

# Long columns come last, because SQLite reads a row from its beginning. Numbers are never reused (autoincrement): a
# page or worker that still has the number of a deleted experiment must not get another experiment.
experiments = Table(
    "experiments",
    metadata,
    Column("id", Integer, nullable=False),
    Column("uid", AnyText, nullable=False),
    Column("name", AnyText, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("status", Text, nullable=False),
    Column("stop_requested", Boolean, nullable=False),
    Column("kill_requested", Boolean, nullable=False),
    Column("owner_host", AnyText),
    Column("owner_pid", Integer),
    Column("owner_started", AnyText),
    Column("owner_claim", Text),
    Column("seen_at", Double),
    Column("unattended", Boolean, nullable=False),
    Column("author", AnyText, nullable=False),
    Column("shared", Boolean, nullable=False),
    Column("request_key", AnyText),
    Column("result", AnyText),
    Column("settings", AnyText, nullable=False),
    Column("source", AnyText),
    Column("jobs", AnyText),
    Column("periods", AnyText),
    PrimaryKeyConstraint("id"),
    UniqueConstraint("uid"),
    UniqueConstraint("author", "request_key"),
    Index(None, "status"),
    sqlite_autoincrement=True,
)

runs = Table(
    "runs",
    metadata,
    Column("experiment_id", Integer, ForeignKey("experiments.id"), nullable=False),
    Column("number", Integer, nullable=False),
    Column("trial", Integer, nullable=False),
    Column("purpose", Text, nullable=False),
    Column("config", AnyText, nullable=False),
    Column("submitted_at", Double, nullable=False),
    Column("submit_order", Integer, nullable=False),
    Column("finish_order", Integer),
    Column("started_at", Double),
    Column("duration_s", Double),
    Column("outcome", Text),
    Column("reason", AnyText),
    Column("value", Double),
    Column("others", AnyText),
    Column("at_least", Double),
    Column("metrics", AnyText),
    Column("logs", AnyText),
    Column("uid", Text, nullable=False),
    Column("batch_job", AnyText),
    PrimaryKeyConstraint("experiment_id", "number"),
    UniqueConstraint("experiment_id", "submit_order"),
    UniqueConstraint("experiment_id", "finish_order"),
)

explanations = Table(
    "explanations",
    metadata,
    Column("experiment_id", Integer, ForeignKey("experiments.id"), nullable=False),
    Column("content", AnyText, nullable=False),
    PrimaryKeyConstraint("experiment_id"),
)

learned = Table(
    "learnt",
    metadata,
    Column("name", Text, nullable=False),
    Column("content", AnyText, nullable=False),
    PrimaryKeyConstraint("name"),
)

users = Table(
    "users",
    metadata,
    Column("name", AnyText, nullable=False),
    Column("role", Text, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("password_hash", AnyText),
    Column("disabled", Boolean, nullable=False),
    PrimaryKeyConstraint("name"),
)

credentials = Table(
    "passes",
    metadata,
    Column("id", Integer, nullable=False),
    Column("digest", AnyText, nullable=False),
    Column("user_name", AnyText, nullable=False),
    Column("kind", Text, nullable=False),
    Column("label", AnyText, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("expires_at", Double),
    Column("used_at", Double),
    PrimaryKeyConstraint("id"),
    UniqueConstraint("digest"),
    Index(None, "user_name"),
    sqlite_autoincrement=True,
)

components = Table(
    "components",
    metadata,
    Column("name", AnyText, nullable=False),
    Column("description", AnyText, nullable=False),
    PrimaryKeyConstraint("name"),
)

approvals = Table(
    "approvals",
    metadata,
    Column("component", AnyText, nullable=False),
    Column("variable", AnyText, nullable=False),
    Column("version", Text, nullable=False),
    Column("approved_by", AnyText, nullable=False),
    Column("approved_at", Double, nullable=False),
    Column("allowed", AnyText, nullable=False),
    PrimaryKeyConstraint("component", "variable"),
)

workers = Table(
    "workers",
    metadata,
    Column("host", AnyText, nullable=False),
    Column("pid", Integer, nullable=False),
    Column("started", AnyText, nullable=False),
    Column("seen_at", Double, nullable=False),
    PrimaryKeyConstraint("host", "pid", "started"),
)

audit = Table(
    "audit",
    metadata,
    Column("id", Integer, nullable=False),
    Column("at", Double, nullable=False),
    Column("user_name", AnyText, nullable=False),
    Column("action", AnyText, nullable=False),
    Column("target", AnyText, nullable=False),
    Column("detail", AnyText, nullable=False),
    PrimaryKeyConstraint("id"),
)
