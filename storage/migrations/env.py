"""Alembic's entry: runs the revisions on the connection `storage.migrate` has opened and locked."""

import sqlalchemy as sa
from alembic import context

from storage import schema

connection = context.config.attributes["connection"]
if not isinstance(connection, sa.Connection):
    raise TypeError("migrations run through storage.migrate, which opens and locks the database")
# Batch mode: SQLite changes a column by copying the table.
context.configure(connection=connection, target_metadata=schema.SQLModel.metadata, render_as_batch=True)
with context.begin_transaction():
    context.run_migrations()
