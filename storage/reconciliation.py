"""Issuances whose outcome is unknown, claimed under a lease by one worker at a time, and what it found."""

from collections.abc import Collection, Sequence
from typing import NamedTuple

import sqlalchemy as sa

from storage.engine.sql import (
    Command,
    Connection,
    Query,
    all_rows,
    bound_list,
    changes_one,
    changes_rows,
    distinct_values,
    first_row,
    pack_rows,
    unindexed,
)
from storage.issuance import ISSUANCE, ISSUANCE_COLUMNS, OPEN_ISSUANCE_STATES, THIS_ISSUANCE, IssuanceRow

RECONCILE_LEASE_MS = 120_000


class ReconcileFinding(NamedTuple):
    """That a row could not be settled by what was seen: since when nothing of a draw was, for how many seconds, and what hindered it."""

    clear_since: float | None
    clear_seconds: float | None
    obstacle: str


class DueAccount(NamedTuple):
    organisation: str
    account_id: int


class LedgerEntry(NamedTuple):
    """What a row of the ledger tells of an ICCID: it has it, or it had it and gave it back."""

    organisation: str
    key: str
    state: str
    iccid: str
    held: str | None
    package_id: int | None


UNKNOWN_STATE: sa.ColumnElement[str] = sa.literal_column("'outcome_unknown'", sa.Text)


def is_unknown(issuance: sa.FromClause) -> sa.ColumnElement[bool]:
    """In the words of the indexes of just these rows."""
    return unindexed(issuance.c.state) == UNKNOWN_STATE


ISSUANCE_IS_UNKNOWN = is_unknown(ISSUANCE)
ISSUANCE_IS_DUE = (ISSUANCE_IS_UNKNOWN, ISSUANCE.c.due_ms <= sa.bindparam("now_ms", type_=sa.BigInteger))
PICK_UNKNOWN = (
    sa.select(ISSUANCE.c.organisation, ISSUANCE.c.key)
    .where(*ISSUANCE_IS_DUE, ISSUANCE.c.organisation == sa.bindparam("organisation"), ISSUANCE.c.account_id == sa.bindparam("account_id"))
    .order_by(ISSUANCE.c.due_ms)
    .limit(sa.bindparam("most"))
    .with_for_update(skip_locked=True)
)
CLAIM_UNKNOWN = Query(
    IssuanceRow,
    (
        sa.update(ISSUANCE)
        .where(sa.tuple_(ISSUANCE.c.organisation, ISSUANCE.c.key).in_(PICK_UNKNOWN))
        .values(lease=sa.bindparam("token"), due_ms=sa.bindparam("lease_end"))
    ),
)


def next_due_query() -> sa.Select[str, int]:
    """The oldest of the organisation that comes next: a step in the index for each, whatever number of rows it has."""
    place, oldest = distinct_values(ISSUANCE, "organisation", is_unknown, "place"), ISSUANCE.alias("oldest")
    of_place = (is_unknown(oldest), oldest.c.organisation == place.c.value)
    due = sa.select(sa.func.min(oldest.c.due_ms)).where(*of_place).correlate(place).scalar_subquery()
    account = sa.select(oldest.c.account_id).where(*of_place).order_by(oldest.c.due_ms).limit(1).correlate(place).scalar_subquery()
    return (
        sa.select(place.c.value.label("organisation"), account.label("account_id"))
        .where(place.c.value.is_not(None), due <= sa.bindparam("now_ms", type_=sa.BigInteger))
        .order_by(place.c.value <= sa.bindparam("after", type_=sa.Text), place.c.value)
        .limit(1)
    )


RIVAL_ISSUANCES = Query(
    IssuanceRow,
    lambda _: sa.select(*ISSUANCE_COLUMNS).where(
        ISSUANCE.c.account_id == sa.bindparam("account_id"),
        ISSUANCE.c.state.in_(OPEN_ISSUANCE_STATES),
        ISSUANCE.c.template_id == sa.bindparam("template_id"),
    ),
)
LEDGER_ENTRY_COLUMNS: Sequence[sa.ColumnElement[object]] = tuple(ISSUANCE.c[name] for name in LedgerEntry._fields)
LIST_HOLDING = Query(
    LedgerEntry,
    lambda dialect: sa.select(*LEDGER_ENTRY_COLUMNS).where(
        ISSUANCE.c.held.in_(bound_list(dialect, "iccids")),
        ISSUANCE.c.account_id == sa.bindparam("account_id"),
    ),
)
ISSUANCE_OF_ACCOUNT = (ISSUANCE.c.account_id == sa.bindparam("account_id"), ISSUANCE.c.iccid.is_not(None))
# What has given its eSIM back holds none: of those rows there may be any number, and the newest alone are read.
LIST_GIVEN_BACK = Query(
    LedgerEntry,
    lambda _: sa.union_all(
        sa.select(*LEDGER_ENTRY_COLUMNS).where(*ISSUANCE_OF_ACCOUNT, ISSUANCE.c.state.in_(["rollback_pending", "rollback_unknown"])),
        sa.select(*LEDGER_ENTRY_COLUMNS).where(
            *ISSUANCE_OF_ACCOUNT, ISSUANCE.c.state.in_(["rolled_back", "released"]), ISSUANCE.c.updated >= sa.bindparam("since")
        ),
    ),
)
ISSUANCE_OF_ORGANISATION: sa.ColumnElement[bool] = ISSUANCE.c.organisation == sa.func.coalesce(
    sa.bindparam("organisation", type_=sa.Text), ISSUANCE.c.organisation
)


@first_row(DueAccount)
def next_due_account(*, now_ms: int, after: str) -> sa.Executable:
    """Of the next organisation in turn what is due longest; a read, so that an idle worker never takes the write lock."""
    return next_due_query()


def claim_unknown_issuances(connection: Connection, *, place: DueAccount, token: str, now_ms: int, most: int) -> list[IssuanceRow]:
    """Lease at most `most` due rows of one account to `token`; they are due again when the lease ends. `now_ms`: Unix milliseconds."""
    named = {"organisation": place.organisation, "account_id": place.account_id}
    return connection.all(CLAIM_UNKNOWN, **named, token=token, now_ms=now_ms, lease_end=now_ms + RECONCILE_LEASE_MS, most=most)


@changes_rows
def return_unknown_issuances(*, token: str, now_ms: int) -> sa.Executable:
    """Make rows that `token` has taken and not looked into due at `now_ms` (Unix milliseconds); returns how many."""
    return sa.update(ISSUANCE).where(ISSUANCE_IS_UNKNOWN, ISSUANCE.c.lease == token).values(lease=None, due_ms=now_ms)


RECONCILE_LATER = Command(
    sa.update(ISSUANCE)
    .where(THIS_ISSUANCE, ISSUANCE_IS_UNKNOWN, ISSUANCE.c.lease == sa.bindparam("held_by"))
    .values(lease=None, due_ms=sa.bindparam("next_ms"), **{name: sa.bindparam(name) for name in ReconcileFinding._fields})
)


@changes_one
def hold_unknown(*, row: IssuanceRow, token: str) -> sa.Executable:
    """Whether the row is still leased to `token` and unsettled; nobody takes it before the transaction ends."""
    return sa.update(ISSUANCE).where(THIS_ISSUANCE, ISSUANCE_IS_UNKNOWN, ISSUANCE.c.lease == token).values(lease=token)


@changes_one
def hold_issuance(*, organisation: str, key: str) -> sa.Executable:
    """Whether there is such a row; nobody else settles it before the transaction ends, and what is read of it then is its newest state."""
    return sa.update(ISSUANCE).where(THIS_ISSUANCE).values(state=ISSUANCE.c.state)


def reconcile_later(connection: Connection, *, row: IssuanceRow, token: str, next_ms: int, unproven: ReconcileFinding) -> bool:
    """Store what could not be proved, and look again at `next_ms`; False when the lease was lost or the row was settled."""
    return (
        connection.run(RECONCILE_LATER, organisation=row.organisation, key=row.key, held_by=token, next_ms=next_ms, **unproven._asdict())
        == 1
    )


@first_row(IssuanceRow)
def require_manual(*, organisation: str, key: str, obstacle: str, now: float) -> sa.Executable:
    """The row after it was left to a person, because of `obstacle`; None where it was settled. `now`: Unix seconds."""
    return (
        sa.update(ISSUANCE)
        .where(THIS_ISSUANCE, ISSUANCE_IS_UNKNOWN)
        .values(state="manual_reconciliation_required", lease=None, updated=now, obstacle=obstacle)
    )


def rival_issuances(connection: Connection, *, row: IssuanceRow) -> list[IssuanceRow]:
    """Other unsettled rows of the same account and template, those that are under way among them."""
    found = connection.all(RIVAL_ISSUANCES, account_id=row.account_id, template_id=row.template_id)
    return [rival for rival in found if (rival.organisation, rival.key) != (row.organisation, row.key)]


def ledger_entries_of(connection: Connection, *, account_id: int, iccids: Collection[str], since: float) -> list[LedgerEntry]:
    """Rows of the account that give an ICCID back or did since a moment, and those that have such a one or one of these."""
    gave_back = connection.all(LIST_GIVEN_BACK, account_id=account_id, since=since)
    asked = {*iccids, *(row.iccid for row in gave_back)}
    return connection.all(LIST_HOLDING, account_id=account_id, iccids=pack_rows([[iccid] for iccid in asked])) + gave_back if asked else []


@all_rows(IssuanceRow)
def unresolved_issuances(*, most: int, organisation: str | None = None) -> sa.Executable:
    """What nobody knows the outcome of, of one organisation or of all, oldest first."""
    return (
        sa.select(*ISSUANCE_COLUMNS)
        .where(ISSUANCE_OF_ORGANISATION, ISSUANCE.c.state.in_(["outcome_unknown", "manual_reconciliation_required", "rollback_unknown"]))
        .order_by(ISSUANCE.c.dispatched)
        .limit(most)
    )


@all_rows(IssuanceRow)
def newest_issuances(*, most: int, organisation: str | None = None) -> sa.Executable:
    """The newest rows, of one organisation or of all."""
    return sa.select(*ISSUANCE_COLUMNS).where(ISSUANCE_OF_ORGANISATION).order_by(ISSUANCE.c.dispatched.desc()).limit(most)


@all_rows(IssuanceRow)
def held_issuances() -> sa.Executable:
    """Every row that has its eSIM, in the order in which they were drawn."""
    return sa.select(*ISSUANCE_COLUMNS).where(ISSUANCE.c.held.is_not(None)).order_by(ISSUANCE.c.dispatched, ISSUANCE.c.key)
