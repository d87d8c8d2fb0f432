"""Schema versions: which one a database has, and how it gets to the one this program needs.

The lock comes first and the version is read under it, so that of several starters one migrates and the others find it done.
Alembic is imported only when there is something to do: it takes half a second.
"""

from pathlib import Path

from storage.address import is_sqlite, sqlite_path
from storage.revision import HEAD, REVISIONS, postgres_revision, sqlite_revision

__all__ = ["HEAD", "REVISIONS", "SchemaMismatch", "behind", "current_revision", "downgrade", "ensure_current", "upgrade"]

SCRIPTS = Path(__file__).parent / "migrations"


class SchemaMismatch(Exception):
    """The database has another schema version than this program, and the program must not change it by itself."""


def current_revision(url: str) -> str | None:
    """The schema version of a database; nothing for an empty or absent one. Waits for no lock."""
    return sqlite_revision(sqlite_path(url)) if is_sqlite(url) else postgres_revision(url)


def behind(url: str) -> bool:
    """Whether the database needs `upgrade`. Refuses one that is newer than this program."""
    revision = current_revision(url)
    refuse_unknown(revision)
    return revision != HEAD


def ensure_current(url: str) -> bool:
    """What a server does at start: migrate an SQLite file, refuse a PostgreSQL database that is behind. Whether it migrated."""
    if not behind(url):
        return False
    if not is_sqlite(url):
        raise SchemaMismatch(
            f"the database is at schema version {current_revision(url)}, this program needs {HEAD}: run `reseller db upgrade`"
        )
    return upgrade(url)


def upgrade(url: str) -> bool:
    """Bring the database to HEAD; whether there was anything to do."""
    return run(url, HEAD)


def downgrade(url: str, revision: str) -> bool:
    """Take the database back to a revision, or to `base` (which drops every table)."""
    return run(url, revision)


def refuse_unknown(revision: str | None) -> None:
    """A version we do not know was written by a newer program."""
    if revision is not None and revision not in REVISIONS:
        raise SchemaMismatch(f"the database is at schema version {revision!r}, this program knows up to {HEAD}: run the newer program")


def run(url: str, target: str) -> bool:
    """Move to a revision in one locked transaction."""
    from storage.locked import locked  # SQLAlchemy engines, only when something changes

    with locked(url) as database:
        revision = database.revision()
        refuse_unknown(revision)
        if revision == target or (revision is None and target == "base"):
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
