"""Alembic's entry: runs the revisions on the connection `storage.engine.migrate` has opened and locked.

Each revision from 0016 on says `expands`: whether it only adds what a program of the version before does not need, so that such a program
goes on working on the new schema. It is written into the database, where that program reads it.
"""

from collections.abc import Collection, Mapping

import sqlalchemy as sa
from alembic import context
from alembic.runtime.migration import MigrationContext, MigrationInfo
from alembic.script.base import Script

from storage import metadata
from storage.replicas import SchemaStepTable

STEP = SchemaStepTable.table
connection = context.config.attributes["connection"]
if not isinstance(connection, sa.Connection):
    raise TypeError("migrations run through storage.engine.migrate, which opens and locks the database")


def note_step(ctx: MigrationContext, step: MigrationInfo, heads: Collection[object], run_args: Mapping[str, object]) -> None:
    """Write down beside which programs the version that was just made may be in use. Alembic names the arguments."""
    del ctx, heads, run_args
    if not sa.inspect(connection).has_table(STEP.name):
        return
    connection.execute(sa.delete(STEP).where(STEP.c.revision == step.up_revision_id))
    revision = step.up_revision
    if step.is_upgrade and isinstance(revision, Script):
        before = revision.down_revision
        works_from = connection.scalar(sa.select(STEP.c.works_from).where(STEP.c.revision == before)) or before
        expands: object = vars(revision.module)["expands"]
        works_from = works_from if expands is True else revision.revision
        connection.execute(sa.insert(STEP).values(revision=revision.revision, works_from=works_from))


# Batch mode: SQLite changes a column by copying the table.
context.configure(connection=connection, target_metadata=metadata.SQLModel.metadata, render_as_batch=True, on_version_apply=note_step)
with context.begin_transaction():
    context.run_migrations()
