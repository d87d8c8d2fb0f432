"""Issuances whose outcome is unknown, claimed under a lease by one worker at a time (storage.md 7), and what it found."""

from collections.abc import Sequence

import sqlalchemy as sa

from storage.connection import Connection
from storage.issuance import ISSUANCE, OPEN, ROW, IssuanceRow
from storage.statement import Command, Query

LEASE_MS = 120_000
COLUMNS: Sequence[sa.ColumnElement[object]] = tuple(ISSUANCE.c[name] for name in IssuanceRow._fields)
UNKNOWN = ISSUANCE.c.state == "outcome_unknown"
PICK = (
    sa.select(ISSUANCE.c.organisation, ISSUANCE.c.key)
    .where(UNKNOWN, ISSUANCE.c.due_ms <= sa.bindparam("now_ms", type_=sa.BigInteger))
    .order_by(ISSUANCE.c.due_ms)
    .limit(sa.bindparam("most"))
    .with_for_update(skip_locked=True)
)
CLAIM = Query(
    IssuanceRow,
    sa.update(ISSUANCE)
    .where(sa.tuple_(ISSUANCE.c.organisation, ISSUANCE.c.key).in_(PICK))
    .values(lease=sa.bindparam("token"), due_ms=sa.bindparam("lease_end"))
    .returning(*COLUMNS),
)
DUE = Query(
    IssuanceRow,
    sa.select(*COLUMNS)
    .where(UNKNOWN, ISSUANCE.c.due_ms <= sa.bindparam("now_ms", type_=sa.BigInteger))
    .order_by(ISSUANCE.c.due_ms)
    .limit(1),
)
HOLD = Command(sa.update(ISSUANCE).where(ROW, UNKNOWN, ISSUANCE.c.lease == sa.bindparam("held_by")).values(lease=sa.bindparam("held_by")))
LATER = Command(
    sa.update(ISSUANCE)
    .where(ROW, UNKNOWN, ISSUANCE.c.lease == sa.bindparam("held_by"))
    .values(lease=None, due_ms=sa.bindparam("next_ms"), clear_since=sa.bindparam("clear_since"))
)
HAND_OVER = Query(
    IssuanceRow,
    sa.update(ISSUANCE)
    .where(ROW, UNKNOWN)
    .values(state="manual_reconciliation_required", lease=None, updated=sa.bindparam("now"))
    .returning(*COLUMNS),
)
RIVALS = Query(
    IssuanceRow,
    sa.select(*COLUMNS).where(
        ISSUANCE.c.account_id == sa.bindparam("account_id"),
        ISSUANCE.c.state.in_(OPEN),
        ISSUANCE.c.template_id == sa.bindparam("template_id"),
    ),
)
KNOWN = Query(
    IssuanceRow,
    sa.select(*COLUMNS).where(
        ISSUANCE.c.account_id == sa.bindparam("account_id"),
        ISSUANCE.c.iccid.is_not(None),
        ISSUANCE.c.held.is_not(None) | (ISSUANCE.c.updated >= sa.bindparam("since")),
    ),
)
OF_ONE: sa.ColumnElement[bool] = ISSUANCE.c.organisation == sa.func.coalesce(sa.bindparam("of", type_=sa.Text), ISSUANCE.c.organisation)
UNSETTLED = Query(
    IssuanceRow,
    sa.select(*COLUMNS)
    .where(OF_ONE, ISSUANCE.c.state.in_(["outcome_unknown", "manual_reconciliation_required", "rollback_unknown"]))
    .order_by(ISSUANCE.c.dispatched)
    .limit(sa.bindparam("most")),
)
ALL = Query(IssuanceRow, sa.select(*COLUMNS).where(OF_ONE).order_by(ISSUANCE.c.dispatched.desc()).limit(sa.bindparam("most")))
HELD = Query(IssuanceRow, sa.select(*COLUMNS).where(ISSUANCE.c.held.is_not(None)).order_by(ISSUANCE.c.dispatched, ISSUANCE.c.key))


def is_due(connection: Connection, *, now_ms: int) -> bool:
    """Whether there is anything to look into; a read, so that an idle worker never takes the write lock."""
    return connection.first(DUE, now_ms=now_ms) is not None


def claim_unknown(connection: Connection, *, token: str, now_ms: int, most: int) -> list[IssuanceRow]:
    """Take what is due; it is due again when the lease ends."""
    return connection.all(CLAIM, token=token, now_ms=now_ms, lease_end=now_ms + LEASE_MS, most=most)


def hold(connection: Connection, *, row: IssuanceRow, token: str) -> bool:
    """Whether the row is still this worker's, and unsettled; nobody takes it before the transaction ends."""
    return connection.run(HOLD, of=row.organisation, named=row.key, held_by=token) == 1


def look_later(connection: Connection, *, row: IssuanceRow, token: str, next_ms: int, clear_since: float | None) -> bool:
    """Nothing is proved yet; False when the lease was lost or the row was settled."""
    return connection.run(LATER, of=row.organisation, named=row.key, held_by=token, next_ms=next_ms, clear_since=clear_since) == 1


def hand_over(connection: Connection, *, organisation: str, key: str, now: float) -> IssuanceRow | None:
    """No evidence settles it: from now on only a person does."""
    return connection.first(HAND_OVER, of=organisation, named=key, now=now)


def rivals_of(connection: Connection, *, row: IssuanceRow) -> list[IssuanceRow]:
    """Other unsettled rows of the same account and template, those that are under way among them."""
    found = connection.all(RIVALS, account_id=row.account_id, template_id=row.template_id)
    return [rival for rival in found if (rival.organisation, rival.key) != (row.organisation, row.key)]


def known_of(connection: Connection, *, account_id: int, since: float) -> list[IssuanceRow]:
    """Rows that tell of an ICCID of the account: those that have one, and those that gave one up since a moment."""
    return connection.all(KNOWN, account_id=account_id, since=since)


def unsettled(connection: Connection, *, most: int, organisation: str | None = None) -> Sequence[IssuanceRow]:
    """What nobody knows the outcome of, of one organisation or of all, oldest first."""
    return connection.all(UNSETTLED, most=most, of=organisation)


def newest_issuances(connection: Connection, *, most: int, organisation: str | None = None) -> Sequence[IssuanceRow]:
    """The newest rows, of one organisation or of all."""
    return connection.all(ALL, most=most, of=organisation)


def held_issuances(connection: Connection) -> Sequence[IssuanceRow]:
    """Every row that has its eSIM, in the order in which they were drawn."""
    return connection.all(HELD)
