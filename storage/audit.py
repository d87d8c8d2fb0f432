"""The audit log: who called what, how it ended, how long it took. Never arguments, never secrets."""

from collections.abc import Sequence

import sqlalchemy as sa

from registry.ports import Line
from storage.connection import Connection
from storage.schema import AuditTable
from storage.statement import Command, table

AUDIT = table(AuditTable)
INSERT = Command(sa.insert(AUDIT).values({name: sa.bindparam(name) for name in Line._fields}))
SWEEP = Command(sa.delete(AUDIT).where(AUDIT.c.at < sa.bindparam("before")))


def append_line(connection: Connection, line: Line) -> None:
    """The row of a write, in the write's own transaction."""
    connection.run(INSERT, **line._asdict())


def append_lines(connection: Connection, *, lines: Sequence[Line]) -> None:
    """The buffered rows of reads and refusals."""
    connection.run_many(INSERT, [line._asdict() for line in lines])


def sweep_audit(connection: Connection, *, before: float) -> int:
    """Forget rows older than the retention."""
    return connection.run(SWEEP, before=before)
