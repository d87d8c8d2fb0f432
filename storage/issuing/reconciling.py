"""Issuances whose outcome is unknown, claimed under a lease by one worker at a time (storage.md 7), and what it found."""

from collections.abc import Collection, Sequence
from typing import NamedTuple

import sqlalchemy as sa

from storage.connection import Connection
from storage.issuing.issuance import ISSUANCE, OPEN, ROW, IssuanceRow
from storage.listed import listed, packed
from storage.next_values import next_values
from storage.statement import Command, Query, unindexed

LEASE_MS = 120_000


class Unproven(NamedTuple):
    """That a row could not be settled by what was seen: since when nothing of a draw was, for how many seconds, and what hindered it."""

    clear_since: float | None
    clear_seconds: float | None
    obstacle: str


class Place(NamedTuple):
    """Whose row of which account is due."""

    organisation: str
    account_id: int


class Known(NamedTuple):
    """What a row of the ledger tells of an ICCID: it has it, or it had it and gave it back."""

    organisation: str
    key: str
    state: str
    iccid: str
    held: str | None
    package_id: int | None


COLUMNS: Sequence[sa.ColumnElement[object]] = tuple(ISSUANCE.c[name] for name in IssuanceRow._fields)
UNKNOWN_STATE: sa.ColumnElement[str] = sa.literal_column("'outcome_unknown'", sa.Text)


def unknown(issuance: sa.FromClause) -> sa.ColumnElement[bool]:
    """In the words of the indexes of just these rows."""
    return unindexed(issuance.c.state) == UNKNOWN_STATE


UNKNOWN = unknown(ISSUANCE)
IS_DUE = (UNKNOWN, ISSUANCE.c.due_ms <= sa.bindparam("now_ms", type_=sa.BigInteger))
PICK = (
    sa.select(ISSUANCE.c.organisation, ISSUANCE.c.key)
    .where(*IS_DUE, ISSUANCE.c.organisation == sa.bindparam("of"), ISSUANCE.c.account_id == sa.bindparam("account_id"))
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


def next_due_after() -> sa.Select[str, int]:
    """The oldest of the organisation that comes next: a step in the index for each, whatever number of rows it has."""
    place, oldest = next_values(ISSUANCE, "organisation", unknown, "place"), ISSUANCE.alias("oldest")
    of_place = (unknown(oldest), oldest.c.organisation == place.c.value)
    due = sa.select(sa.func.min(oldest.c.due_ms)).where(*of_place).correlate(place).scalar_subquery()
    account = sa.select(oldest.c.account_id).where(*of_place).order_by(oldest.c.due_ms).limit(1).correlate(place).scalar_subquery()
    return (
        sa.select(place.c.value.label("organisation"), account.label("account_id"))
        .where(place.c.value.is_not(None), due <= sa.bindparam("now_ms", type_=sa.BigInteger))
        .order_by(place.c.value <= sa.bindparam("after", type_=sa.Text), place.c.value)
        .limit(1)
    )


NEXT_DUE = Query(Place, next_due_after())
GIVE_UP_LEASE = Command(
    sa.update(ISSUANCE).where(UNKNOWN, ISSUANCE.c.lease == sa.bindparam("token")).values(lease=None, due_ms=sa.bindparam("next_ms"))
)
HOLD = Command(sa.update(ISSUANCE).where(ROW, UNKNOWN, ISSUANCE.c.lease == sa.bindparam("held_by")).values(lease=sa.bindparam("held_by")))
LATER = Command(
    sa.update(ISSUANCE)
    .where(ROW, UNKNOWN, ISSUANCE.c.lease == sa.bindparam("held_by"))
    .values(lease=None, due_ms=sa.bindparam("next_ms"), **{name: sa.bindparam(name) for name in Unproven._fields})
)
HAND_OVER = Query(
    IssuanceRow,
    sa.update(ISSUANCE)
    .where(ROW, UNKNOWN)
    .values(state="manual_reconciliation_required", lease=None, updated=sa.bindparam("now"), obstacle=sa.bindparam("obstacle"))
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
KNOWN_COLUMNS: Sequence[sa.ColumnElement[object]] = tuple(ISSUANCE.c[name] for name in Known._fields)
HOLDING = Query(
    Known,
    lambda dialect: sa.select(*KNOWN_COLUMNS).where(
        ISSUANCE.c.held.in_(sa.select(listed(dialect, "iccids", "given", iccid=sa.Text).c.iccid)),
        ISSUANCE.c.account_id == sa.bindparam("account_id"),
    ),
)
OF_ACCOUNT = (ISSUANCE.c.account_id == sa.bindparam("account_id"), ISSUANCE.c.iccid.is_not(None))
# What has given its eSIM back holds none: of those rows there may be any number, and the newest alone are read.
GAVE_BACK = Query(
    Known,
    sa.union_all(
        sa.select(*KNOWN_COLUMNS).where(*OF_ACCOUNT, ISSUANCE.c.state.in_(["rollback_pending", "rollback_unknown"])),
        sa.select(*KNOWN_COLUMNS).where(
            *OF_ACCOUNT, ISSUANCE.c.state.in_(["rolled_back", "released"]), ISSUANCE.c.updated >= sa.bindparam("since")
        ),
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


def next_due(connection: Connection, *, now_ms: int, after: str) -> Place | None:
    """Of the next organisation in turn what is due longest; a read, so that an idle worker never takes the write lock."""
    return connection.first(NEXT_DUE, now_ms=now_ms, after=after)


def claim_unknown(connection: Connection, *, place: Place, token: str, now_ms: int, most: int) -> list[IssuanceRow]:
    """Take what is due of one account; it is due again when the lease ends."""
    named = {"of": place.organisation, "account_id": place.account_id}
    return connection.all(CLAIM, **named, token=token, now_ms=now_ms, lease_end=now_ms + LEASE_MS, most=most)


def give_up_lease(connection: Connection, *, token: str, now_ms: int) -> int:
    """What was taken and not looked into is due at once."""
    return connection.run(GIVE_UP_LEASE, token=token, next_ms=now_ms)


def hold(connection: Connection, *, row: IssuanceRow, token: str) -> bool:
    """Whether the row is still this worker's, and unsettled; nobody takes it before the transaction ends."""
    return connection.run(HOLD, of=row.organisation, named=row.key, held_by=token) == 1


def look_later(connection: Connection, *, row: IssuanceRow, token: str, next_ms: int, unproven: Unproven) -> bool:
    """Nothing is proved yet; False when the lease was lost or the row was settled."""
    return connection.run(LATER, of=row.organisation, named=row.key, held_by=token, next_ms=next_ms, **unproven._asdict()) == 1


def hand_over(connection: Connection, *, organisation: str, key: str, obstacle: str, now: float) -> IssuanceRow | None:
    """No evidence settles it, for this reason: from now on only a person does."""
    return connection.first(HAND_OVER, of=organisation, named=key, obstacle=obstacle, now=now)


def rivals_of(connection: Connection, *, row: IssuanceRow) -> list[IssuanceRow]:
    """Other unsettled rows of the same account and template, those that are under way among them."""
    found = connection.all(RIVALS, account_id=row.account_id, template_id=row.template_id)
    return [rival for rival in found if (rival.organisation, rival.key) != (row.organisation, row.key)]


def known_of(connection: Connection, *, account_id: int, iccids: Collection[str], since: float) -> list[Known]:
    """Rows of the account that give an ICCID back or did since a moment, and those that have such a one or one of these."""
    gave_back = connection.all(GAVE_BACK, account_id=account_id, since=since)
    asked = {*iccids, *(row.iccid for row in gave_back)}
    return connection.all(HOLDING, account_id=account_id, iccids=packed([[iccid] for iccid in asked])) + gave_back if asked else []


def unsettled(connection: Connection, *, most: int, organisation: str | None = None) -> Sequence[IssuanceRow]:
    """What nobody knows the outcome of, of one organisation or of all, oldest first."""
    return connection.all(UNSETTLED, most=most, of=organisation)


def newest_issuances(connection: Connection, *, most: int, organisation: str | None = None) -> Sequence[IssuanceRow]:
    """The newest rows, of one organisation or of all."""
    return connection.all(ALL, most=most, of=organisation)


def held_issuances(connection: Connection) -> Sequence[IssuanceRow]:
    """Every row that has its eSIM, in the order in which they were drawn."""
    return connection.all(HELD)
