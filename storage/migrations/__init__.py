"""Schema revisions, run by alembic through `storage.migrate`."""
