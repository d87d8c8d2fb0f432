"""Schema versions: which one a database has, and how it gets to the one this program needs.

The lock comes first and the version is read under it, so that of several starters one migrates and the others find it done.
Alembic is imported only when there is something to do: it takes half a second.
"""

import threading
from pathlib import Path

from storage.engine.database_url import TablesInUse, is_sqlite_url, sqlite_path
from storage.engine.revision import HEAD, REVISIONS, SUPPORTED_REVISIONS, Schema, postgres_schema, sqlite_schema

MIGRATION_TRIES = 15
MIGRATION_PAUSE_SECONDS = 1.0
SCRIPTS = Path(__file__).parent.parent / "migrations"


class SchemaMismatch(Exception):
    """The database has another schema version than this program, and the program must not change it by itself."""


def current_schema(url: str) -> Schema:
    """The schema of a database; without a version for an empty or absent one. Waits for no lock."""
    return sqlite_schema(sqlite_path(url)) if is_sqlite_url(url) else postgres_schema(url)


def current_revision(url: str) -> str | None:
    """The schema version of a database; nothing for an empty or absent one. Waits for no lock."""
    return current_schema(url).revision


def needs_upgrade(url: str) -> bool:
    """Whether the database needs `upgrade`. Refuses one that a newer program has changed in a way that this one does not work on."""
    schema = current_schema(url)
    refuse_unknown(schema)
    return not schema.is_newer and schema.revision != HEAD


def ensure_current(url: str) -> bool:
    """What a server does at start: migrate an SQLite file, refuse a PostgreSQL database that is too far behind. Whether it migrated."""
    if not needs_upgrade(url):
        return False
    if is_sqlite_url(url):
        return upgrade_database(url)
    if (revision := current_revision(url)) not in SUPPORTED_REVISIONS:
        raise SchemaMismatch(f"the database is at schema version {revision}, this program needs {HEAD}: run `reseller db upgrade`")
    return False


def upgrade_database(url: str) -> bool:
    """Bring the database to HEAD; whether there was anything to do. One that is newer, and that this program works on, stays as it is."""
    return migrate_to(url, HEAD)


def downgrade_database(url: str, revision: str) -> bool:
    """Take the database back to a revision, or to `base` (which drops every table)."""
    return migrate_to(url, revision)


def refuse_unknown(schema: Schema) -> None:
    """A version that we do not know was written by a newer program; where that has only added something, this one works on it."""
    if schema.is_newer and not schema.is_spoken:
        raise SchemaMismatch(
            f"the database is at schema version {schema.revision!r}, this program knows up to {HEAD}: run the newer program"
        )


def migrate_to(url: str, target: str) -> bool:
    """Move to a revision; tried again for a minute while somebody uses the tables, and lets go of them in between for all who wait."""
    for _ in range(MIGRATION_TRIES - 1):
        try:
            return migrate_once(url, target)
        except TablesInUse:
            threading.Event().wait(MIGRATION_PAUSE_SECONDS)
    return migrate_once(url, target)


def migrate_once(url: str, target: str) -> bool:
    """Move to a revision in one locked transaction."""
    from storage.engine.migration_lock import migration_lock  # SQLAlchemy engines, only when something changes

    with migration_lock(url) as database:
        schema = database.schema()
        refuse_unknown(schema)
        revision = schema.revision
        if schema.is_newer or revision == target or (revision is None and target == "base"):
            return False
        database.prepare(revision)
        import alembic.command
        from alembic.config import Config

        config = Config()
        config.set_main_option("script_location", str(SCRIPTS).replace("%", "%%"))
        config.set_main_option("path_separator", "os")
        config.attributes["connection"] = database.connection
        forward = target != "base" and (revision is None or REVISIONS.index(target) > REVISIONS.index(revision))
        (alembic.command.upgrade if forward else alembic.command.downgrade)(config, target)
        database.check()
    return True
