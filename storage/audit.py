"""The audit log: who called what, how it ended, how long it took. Never arguments, never secrets.

Writes stand here, each in the transaction of its call; reads and refusals in audit_reads.py. A page is made of both.
"""

from collections.abc import Mapping
from typing import NamedTuple

import sqlalchemy as sa
from sqlmodel import Field

from registry.ports import AuditRecord
from storage import audit_reads
from storage.audit_reads import (
    FIRST_READ,
    AuditReadRow,
    AuditText,
    first_read_id,
    has_audit_read,
    list_audit_reads,
    moment_of_read,
    texts_of_reads,
    unpack_request_id,
)
from storage.engine.connection import Connection, changes_rows
from storage.engine.partitions import History
from storage.engine.statement import Command, Query, selective
from storage.engine.table import TableDescription, table_of
from storage.people import PERSON


class AuditTable(TableDescription, table=True):
    """Who did what, and how it ended. Never arguments; `change` says what a call changed of who gets money and SIMs."""

    id: int | None = Field(default=None, sa_column=sa.Column(sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True))
    at: float = Field(sa_type=sa.Double, index=True)
    organisation: str = Field(sa_type=sa.Text)
    surface: str = Field(sa_type=sa.Text)
    operation: str = Field(sa_type=sa.Text)
    principal: str = Field(sa_type=sa.Text)
    key_id: str = Field(sa_type=sa.Text)
    outcome: str = Field(sa_type=sa.Text)
    status: int
    milliseconds: float = Field(sa_type=sa.Double)
    request_id: str = Field(sa_type=sa.Text)
    change: str | None = Field(default=None, sa_type=sa.Text)
    __table_args__ = (
        sa.Index("audit_organisation", "organisation", "at", "id"),
        sa.Index("audit_operation", "organisation", "operation", "at", "id"),
        sa.Index("audit_principal", "organisation", "principal", "at", "id"),
    )


AUDIT = table_of(AuditTable)

LARGEST_AUDIT_ID = 2**62

LATEST_AUDIT_MOMENT = 1e12

AUDIT_AHEAD_SECONDS = 86_400
"""A row of a later time than this from now is of a clock that is wrong. A list that names no end looks into every partition."""

INSERT_AUDIT_RECORD = Command(sa.insert(AUDIT).values({name: sa.bindparam(name) for name in AuditRecord._fields}))

OLDEST_AUDIT_RECORDS = sa.select(AUDIT.c.id).where(AUDIT.c.at < sa.bindparam("before")).order_by(AUDIT.c.at).limit(sa.bindparam("most"))


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


class AuditFilter(NamedTuple):
    """Which rows; None: whatever it is. `since` is included, `until` is not."""

    operation: str | None = None
    principal: str | None = None
    outcome: str | None = None
    surface: str | None = None
    since: float = 0.0
    until: float = LATEST_AUDIT_MOMENT


AUDIT_FILTERS = ("operation", "principal", "outcome", "surface")

AUDIT_RECORD_COLUMNS = [PERSON.c.name if name == "name" else AUDIT.c[name] for name in AuditRow._fields]


def audit_page(given: frozenset[str]) -> Query[AuditRow]:
    """The page with these filters: each is in the statement only where it is asked for, so that its index is used."""
    return Query(
        AuditRow,
        lambda dialect: (
            sa.select(*AUDIT_RECORD_COLUMNS)
            .join_from(AUDIT, PERSON, AUDIT.c.principal == PERSON.c.id, isouter=True)
            .where(
                AUDIT.c.organisation == sa.bindparam("organisation"),
                AUDIT.c.at >= sa.bindparam("since"),
                AUDIT.c.at < sa.bindparam("until"),
                # Of the same moment the higher id is newer; the first half is what the index is read by.
                AUDIT.c.at <= sa.bindparam("last_at"),
                (AUDIT.c.at < sa.bindparam("last_at")) | (AUDIT.c.id < sa.bindparam("last_id")),
                *(selective(dialect, AUDIT.c[name] == sa.bindparam(name)) for name in AUDIT_FILTERS if name in given),
            )
            .order_by(AUDIT.c.at.desc(), AUDIT.c.id.desc())
            .limit(sa.bindparam("most"))
        ),
    )


AUDIT_PAGES = {
    given: audit_page(given)
    for given in (
        frozenset(name for place, name in enumerate(AUDIT_FILTERS) if bits >> place & 1) for bits in range(1 << len(AUDIT_FILTERS))
    )
}

AUDIT_READ_PAGES = {given: audit_reads.audit_read_page(sorted(given)) for given in AUDIT_PAGES}

PLACE_OF_AUDIT_RECORD = Query(
    float, sa.select(AUDIT.c.at).where(AUDIT.c.id == sa.bindparam("row"), AUDIT.c.organisation == sa.bindparam("organisation"))
)


def append_audit_record(connection: Connection, line: AuditRecord) -> None:
    """The row of a write, in the write's own transaction."""
    connection.run(INSERT_AUDIT_RECORD, **line._asdict())


def list_audit(connection: Connection, *, organisation: str, wanted: AuditFilter, after: int | None, most: int) -> list[AuditRow] | None:
    """An organisation's rows, newest first, behind the row `after`; nothing at all where it has no such row."""
    last_at, last_id = LATEST_AUDIT_MOMENT, LARGEST_AUDIT_ID
    if after is not None:
        place = audit_moment(connection, organisation=organisation, row=after)
        if place is None:
            return None
        last_at, last_id = place, after
    given = (wanted.operation, wanted.principal, wanted.outcome, wanted.surface)
    filters = {name: value for name, value in zip(AUDIT_FILTERS, given, strict=True) if value is not None}
    of, page = {"organisation": organisation, **filters}, frozenset(filters)
    whole = connection.all(AUDIT_PAGES[page], **of, most=most, since=wanted.since, until=wanted.until, last_at=last_at, last_id=last_id)
    last = min(first_read_id(wanted.until), last_id if FIRST_READ <= last_id < LARGEST_AUDIT_ID else first_read_id(last_at))
    reads = list_audit_reads(connection, page=AUDIT_READ_PAGES[page], wanted=of, first=first_read_id(wanted.since), last=last, most=most)
    texts = texts_of_reads(connection, reads)
    short = [read_as_audit_row(row, texts) for row in reads]
    return sorted(whole + short, key=lambda row: (row.at, row.id), reverse=True)[:most]


def audit_moment(connection: Connection, *, organisation: str, row: int) -> float | None:
    """When the call of a row began; nothing where the organisation has no such row."""
    if row >= FIRST_READ:
        return moment_of_read(row) if has_audit_read(connection, organisation=organisation, row=row) else None
    return connection.first(PLACE_OF_AUDIT_RECORD, row=row, organisation=organisation)


def read_as_audit_row(row: AuditReadRow, texts: Mapping[int, AuditText]) -> AuditRow:
    """A read as a row of the log."""
    return AuditRow(
        row.id,
        moment_of_read(row.id),
        texts[row.surface].text,
        texts[row.operation].text,
        texts[row.principal].text,
        texts[row.principal].name,
        texts[row.key].text,
        texts[row.outcome].text,
        row.status,
        row.microseconds / 1000,
        unpack_request_id(row.request),
        None,
    )


@changes_rows
def sweep_audit(*, before: float, most: int) -> sa.Executable:
    """Forget rows older than the retention, the oldest first."""
    return sa.delete(AUDIT).where(AUDIT.c.id.in_(OLDEST_AUDIT_RECORDS), AUDIT.c.at < before)


# Choice: whole rows of the audit log have no time in their ids, which programs of before made one after the other; their time divides them,
# and the counter keeps their ids apart.
AUDIT_HISTORY = History("audit", "at", float, float, float, "id")
