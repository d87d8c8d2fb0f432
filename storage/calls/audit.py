"""The audit log: who called what, how it ended, how long it took. Never arguments, never secrets.

Writes stand here, each in the transaction of its call; reads and refusals in audit_reads.py. A page is made of both.
"""

from collections.abc import Mapping
from typing import NamedTuple

import sqlalchemy as sa

from registry.ports import Line
from storage.calls import audit_reads
from storage.calls.audit_reads import (
    FIRST_READ,
    NamedText,
    ReadRow,
    first_read,
    has_read,
    list_reads,
    moment_of,
    texts_of_reads,
    unpacked_request,
)
from storage.connection import Connection
from storage.schema import AuditTable, PersonTable
from storage.statement import Command, Query, selective, table

AUDIT, PERSON = table(AuditTable), table(PersonTable)
NEWEST = 2**62
LATEST = 1e12
INSERT = Command(sa.insert(AUDIT).values({name: sa.bindparam(name) for name in Line._fields}))
OLDEST = sa.select(AUDIT.c.id).where(AUDIT.c.at < sa.bindparam("before")).order_by(AUDIT.c.at).limit(sa.bindparam("most"))
SWEEP = Command(sa.delete(AUDIT).where(AUDIT.c.id.in_(OLDEST)))


class AuditRow(NamedTuple):
    """A row as an organisation's admin sees it; `name` is that of the principal, where it is a person who has one."""

    id: int
    at: float
    surface: str
    operation: str
    principal: str
    name: str | None
    key_id: str
    outcome: str
    status: int
    milliseconds: float
    request_id: str
    change: str | None


class At(NamedTuple):
    """When a row's call began."""

    at: float


class Wanted(NamedTuple):
    """Which rows; None: whatever it is. `since` is included, `until` is not."""

    operation: str | None = None
    principal: str | None = None
    outcome: str | None = None
    surface: str | None = None
    since: float = 0.0
    until: float = LATEST


FILTERS = ("operation", "principal", "outcome", "surface")
COLUMNS = [PERSON.c.name if name == "name" else AUDIT.c[name] for name in AuditRow._fields]


def page_of(given: frozenset[str]) -> Query[AuditRow]:
    """The page with these filters: each is in the statement only where it is asked for, so that its index is used."""
    return Query(
        AuditRow,
        lambda dialect: (
            sa.select(*COLUMNS)
            .join_from(AUDIT, PERSON, AUDIT.c.principal == PERSON.c.id, isouter=True)
            .where(
                AUDIT.c.organisation == sa.bindparam("organisation"),
                AUDIT.c.at >= sa.bindparam("since"),
                AUDIT.c.at < sa.bindparam("until"),
                # Of the same moment the higher id is newer; the first half is what the index is read by.
                AUDIT.c.at <= sa.bindparam("last_at"),
                (AUDIT.c.at < sa.bindparam("last_at")) | (AUDIT.c.id < sa.bindparam("last_id")),
                *(selective(dialect, AUDIT.c[name] == sa.bindparam(name)) for name in FILTERS if name in given),
            )
            .order_by(AUDIT.c.at.desc(), AUDIT.c.id.desc())
            .limit(sa.bindparam("most"))
        ),
    )


PAGES = {
    given: page_of(given)
    for given in (frozenset(name for place, name in enumerate(FILTERS) if bits >> place & 1) for bits in range(1 << len(FILTERS)))
}
READ_PAGES = {given: audit_reads.page_of(sorted(given)) for given in PAGES}

PLACE = Query(At, sa.select(AUDIT.c.at).where(AUDIT.c.id == sa.bindparam("row"), AUDIT.c.organisation == sa.bindparam("organisation")))


def append_line(connection: Connection, line: Line) -> None:
    """The row of a write, in the write's own transaction."""
    connection.run(INSERT, **line._asdict())


def list_audit(connection: Connection, *, organisation: str, wanted: Wanted, after: int | None, most: int) -> list[AuditRow] | None:
    """An organisation's rows, newest first, behind the row `after`; nothing at all where it has no such row."""
    last_at, last_id = LATEST, NEWEST
    if after is not None:
        place = place_of(connection, organisation=organisation, row=after)
        if place is None:
            return None
        last_at, last_id = place, after
    given = (wanted.operation, wanted.principal, wanted.outcome, wanted.surface)
    filters = {name: value for name, value in zip(FILTERS, given, strict=True) if value is not None}
    of, page = {"organisation": organisation, **filters}, frozenset(filters)
    whole = connection.all(PAGES[page], **of, most=most, since=wanted.since, until=wanted.until, last_at=last_at, last_id=last_id)
    last = min(first_read(wanted.until), last_id if FIRST_READ <= last_id < NEWEST else first_read(last_at))
    reads = list_reads(connection, page=READ_PAGES[page], wanted=of, first=first_read(wanted.since), last=last, most=most)
    texts = texts_of_reads(connection, reads)
    short = [shown(row, texts) for row in reads]
    return sorted(whole + short, key=lambda row: (row.at, row.id), reverse=True)[:most]


def place_of(connection: Connection, *, organisation: str, row: int) -> float | None:
    """When the call of a row began; nothing where the organisation has no such row."""
    if row >= FIRST_READ:
        return moment_of(row) if has_read(connection, organisation=organisation, row=row) else None
    place = connection.first(PLACE, row=row, organisation=organisation)
    return None if place is None else place.at


def shown(row: ReadRow, texts: Mapping[int, NamedText]) -> AuditRow:
    """A read as a row of the log."""
    return AuditRow(
        row.id,
        moment_of(row.id),
        texts[row.surface].text,
        texts[row.operation].text,
        texts[row.principal].text,
        texts[row.principal].name,
        texts[row.key].text,
        texts[row.outcome].text,
        row.status,
        row.microseconds / 1000,
        unpacked_request(row.request),
        None,
    )


def sweep_audit(connection: Connection, *, before: float, most: int) -> int:
    """Forget rows older than the retention, the oldest first."""
    return connection.run(SWEEP, before=before, most=most)
