"""Schema revisions, run by alembic through `storage.engine.migrate`."""
