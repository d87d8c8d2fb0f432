"""What the ledgers hold, read behind the service's back."""

from typing import NamedTuple

import sqlalchemy as sa

from storage.audit import AUDIT_READ, AuditReadRow, AuditTable, read_as_audit_row, texts_of_reads
from storage.claims import ClaimTable
from storage.confirm_tokens import ConfirmTokenTable
from storage.engine.sql import Command, Connection, Query
from storage.quota import QuotaTable

AUDIT, CLAIM, TOKEN, QUOTA = AuditTable.table, ClaimTable.table, ConfirmTokenTable.table, QuotaTable.table


class AuditRow(NamedTuple):
    at: float
    organisation: str
    surface: str
    operation: str
    principal: str
    key_id: str
    outcome: str
    status: int
    milliseconds: float
    request_id: str


class ClaimRow(NamedTuple):
    key: str
    state: str
    owner: str
    status: int | None
    expires_at: int | None


class UsedRow(NamedTuple):
    organisation: str
    used: int


class TokenRow(NamedTuple):
    operation: str
    expires_at: float


class SealedRow(NamedTuple):
    """A stored answer as it lies in the database."""

    body: str


AUDIT_ROWS = sa.select(*(AUDIT.c[name] for name in AuditRow._fields)).order_by(AUDIT.c.id)
AUDITED = Query(AuditRow, AUDIT_ROWS)
READS = Query(AuditReadRow, sa.select(*(AUDIT_READ.c[name] for name in AuditReadRow._fields)).order_by(AUDIT_READ.c.id))
AUDITED_OF = Query(AuditRow, AUDIT_ROWS.where(AUDIT.c.organisation == sa.bindparam("organisation")))
CLAIMED = Query(ClaimRow, sa.select(*(CLAIM.c[name] for name in ClaimRow._fields)).order_by(CLAIM.c.key))
USED = Query(UsedRow, sa.select(QUOTA.c.organisation, QUOTA.c.used))
USED_BY = Query(UsedRow, sa.select(QUOTA.c.organisation, QUOTA.c.used).where(QUOTA.c.organisation == sa.bindparam("organisation")))
PENDING = Query(TokenRow, sa.select(TOKEN.c.operation, TOKEN.c.expires_at))
SEALED = Query(SealedRow, sa.select(CLAIM.c.body).where(CLAIM.c.body.is_not(None)))
SET_USED = Command(
    lambda dialect: (
        dialect.insert(QUOTA)
        .values(organisation=sa.bindparam("organisation"), period=sa.bindparam("period"), used=sa.bindparam("used"))
        .on_conflict_do_update(index_elements=["organisation", "period"], set_={"used": sa.bindparam("used")})
    )
)


def audited(connection: Connection) -> list[AuditRow]:
    """The audit log, writes before reads, oldest first."""
    return connection.all(AUDITED) + reads(connection)


def audited_by(connection: Connection, *, request: str) -> list[AuditRow]:
    return [row for row in audited(connection) if row.request_id == request]


def audited_of(connection: Connection, *, organisation: str) -> list[AuditRow]:
    """What one organisation's calls left in it."""
    return connection.all(AUDITED_OF, organisation=organisation) + [row for row in reads(connection) if row.organisation == organisation]


def reads(connection: Connection) -> list[AuditRow]:
    rows = connection.all(READS)
    texts = texts_of_reads(connection, rows)
    whole = [(texts[row.organisation].text, read_as_audit_row(row, texts)) for row in rows]
    return [AuditRow(row.at, organisation, *row[2:5], row.key_id, *row[7:11]) for organisation, row in whole]


def claimed(connection: Connection) -> list[ClaimRow]:
    return connection.all(CLAIMED)


def used(connection: Connection) -> dict[str, int]:
    """Calls charged or leased by organisation, over all periods."""
    total: dict[str, int] = {}
    for row in connection.all(USED):
        total[row.organisation] = total.get(row.organisation, 0) + row.used
    return total


def used_by(connection: Connection, *, organisation: str) -> int:
    """Calls charged or leased by one organisation, over all periods: it is asked often where there are many."""
    return sum(row.used for row in connection.all(USED_BY, organisation=organisation))


def pending(connection: Connection) -> list[TokenRow]:
    return connection.all(PENDING)


def set_used(connection: Connection, *, organisation: str, period: str, used: int) -> None:
    """Pretend that so many calls were made in a period."""
    connection.run(SET_USED, organisation=organisation, period=period, used=used)


def sealed(connection: Connection) -> list[SealedRow]:
    return connection.all(SEALED)
