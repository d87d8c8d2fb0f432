"""Reading the schema version of a database, without SQLAlchemy engines or alembic: every start does it."""

import sqlite3
from pathlib import Path

from storage.outage import outage
from storage.unreachable import unreachable

REVISIONS = (
    "0001",
    "0002",
    "0003",
    "0004",
    "0005",
    "0006",
    "0007",
    "0008",
    "0009",
    "0010",
    "0011",
    "0012",
    "0013",
    "0014",
    "0015",
    "0018",
    "0019",
)  # oldest first; a test compares them with the files in migrations/versions
HEAD = REVISIONS[-1]
SPOKEN = frozenset({HEAD})
"""The versions that this program works on."""


def sqlite_revision(path: Path) -> str | None:
    """The version of a file; nothing when it is absent or has no version table."""
    if not path.exists():
        return None
    # A plain connection rather than a read-only one: reading a log left by a crash needs to write its index.
    raw = sqlite3.connect(path, isolation_level=None)
    try:
        return revision_in(raw)
    except sqlite3.Error as error:
        raise outage(error) or error from error
    finally:
        raw.close()


def revision_in(raw: sqlite3.Connection) -> str | None:
    """The version the open database has."""
    if raw.execute("select 1 from sqlite_master where type='table' and name='alembic_version'").fetchone() is None:
        return None
    row: tuple[str] | None = raw.execute("select version_num from alembic_version").fetchone()
    return None if row is None else row[0]


def postgres_revision(url: str) -> str | None:
    """The version of a PostgreSQL database; nothing when it has no version table."""
    import psycopg  # only where PostgreSQL is used

    from storage.conninfo import brief_connection  # brings psycopg

    try:
        with brief_connection(url) as connection:
            found = connection.execute("select to_regclass('alembic_version')::text").fetchone()
            if found is None or found[0] is None:
                return None
            row = connection.execute("select version_num from alembic_version").fetchone()
    except (psycopg.OperationalError, psycopg.ProgrammingError) as error:
        raise unreachable(error) from error
    return None if row is None else str(row[0])
