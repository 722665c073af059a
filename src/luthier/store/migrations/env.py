"""Entry point of Alembic: migrates with the connection and in the transaction that luthier provides."""

from alembic import context

from luthier.store.tables import VERSION_TABLE, metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    version_table=VERSION_TABLE,
    transactional_ddl=True,
)
with context.begin_transaction():
    context.run_migrations()
