"""Reading the schema version of a database, without SQLAlchemy engines or alembic: every start does it."""

import sqlite3
from pathlib import Path
from typing import NamedTuple

from storage.engine.database_url import brief_connection
from storage.engine.sqlite_file import outage_of

REVISIONS = tuple(f"{number:04}" for number in range(1, 32))
"""Oldest first; a test compares them with the files in migrations/versions."""

HEAD = REVISIONS[-1]
SUPPORTED_REVISIONS = frozenset(REVISIONS[-2:])
"""The versions that this program works on: HEAD, and the one before, until `reseller db upgrade` has run beside it."""


class Schema(NamedTuple):
    """The schema of a database.

    `works_from`: the oldest version whose programs work on it, as its migration has said; None where it has said nothing.
    """

    revision: str | None
    works_from: str | None = None

    @property
    def is_newer(self) -> bool:
        """Whether a newer program made it."""
        return self.revision is not None and self.revision not in REVISIONS

    @property
    def is_spoken(self) -> bool:
        """Whether this program works on it: it knows it, or a newer program has only added to what this one knows."""
        return self.revision in SUPPORTED_REVISIONS or (self.is_newer and self.works_from in REVISIONS)


NO_SCHEMA = Schema(None)


def sqlite_schema(path: Path) -> Schema:
    """The schema of a file; of one that is absent or has no version table, no version."""
    if not path.exists():
        return NO_SCHEMA
    # A plain connection rather than a read-only one: reading a log left by a crash needs to write its index.
    raw = sqlite3.connect(path, isolation_level=None)
    try:
        return schema_in(raw)
    except sqlite3.Error as error:
        raise outage_of(error) or error from error
    finally:
        raw.close()


def schema_in(raw: sqlite3.Connection) -> Schema:
    names = "select name from sqlite_master where type='table' and name in ('alembic_version', 'schema_step')"
    tables = {name for (name,) in raw.execute(names)}
    row: tuple[str] | None = raw.execute("select version_num from alembic_version").fetchone() if "alembic_version" in tables else None
    if row is None:
        return NO_SCHEMA
    step: tuple[str] | None = None
    if "schema_step" in tables:
        step = raw.execute("select works_from from schema_step where revision = ?", row).fetchone()
    return Schema(row[0], None if step is None else step[0])


def revision_in(raw: sqlite3.Connection) -> str | None:
    """The version that the open database has."""
    return schema_in(raw).revision


def postgres_schema(url: str) -> Schema:
    """The schema of a PostgreSQL database; of one without a version table, no version."""
    with brief_connection(url) as connection:
        tables = connection.execute("select to_regclass('alembic_version')::text, to_regclass('schema_step')::text").fetchone()
        row = connection.execute("select version_num from alembic_version").fetchone() if tables and tables[0] else None
        if row is None:
            return NO_SCHEMA
        steps = "select works_from from schema_step where revision = %s"
        step = connection.execute(steps, row).fetchone() if tables and tables[1] else None
    return Schema(str(row[0]), None if step is None else str(step[0]))
