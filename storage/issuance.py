"""The issuance ledger: one row per key, for ever. Its transitions are conditional updates; nothing is read and then written.

dispatching -> issued | failed | outcome_unknown -> issued | failed | manual_reconciliation_required -> issued | failed
failed -> manual_reconciliation_required, when its own answer comes after all and names an eSIM.
issued -> rollback_pending -> rolled_back | rollback_unknown -> rolled_back | issued; a SIM that was freed past us is `released`.
What is `claimed` and not sent yet is told by the idempotency claim alone (claims.py). A row keeps its ICCID in `held` from issued on
until it is known to be back in stock: it is unique, so no two keys have one eSIM.
"""

from collections.abc import Sequence
from typing import Annotated, Literal, NamedTuple

import sqlalchemy as sa
from sqlmodel import Field

from registry.errors import Conflict
from storage.engine.sql import (
    BigInt,
    Command,
    Connection,
    Key,
    Query,
    TableDescription,
    bound_list,
    changes_one,
    first_row,
    insert_once,
    pack_rows,
)
from storage.expired_keys import LEDGER_OPERATION, is_key_expired, key_has_expired

DREW_ONE = sa.text("iccid IS NOT NULL")
REMOVABLE_ISSUANCE = sa.text("coalesce(held, '') = '' AND substr(\"key\", 1, 4) NOT IN ('ord_', 'onr_')")


class IssuanceRow(NamedTuple):
    """A row of the ledger. `period` and `steps` are JSON text; times are Unix seconds."""

    organisation: Key
    key: Key
    operation: str
    claim_key: str | None
    principal: str
    account_id: BigInt
    template_id: BigInt
    validity_days: BigInt | None
    period: str | None
    intent: str | None
    state: str
    owner: str
    stock: str
    iccid: str | None
    held: Annotated[str, Field(unique=True)] | None
    replied: str | None
    subscriber_id: BigInt | None
    sim_id: BigInt | None
    package_id: BigInt | None
    steps: str | None
    note: str | None
    dispatched: float
    updated: float
    clear_since: float | None
    clear_seconds: float | None = None
    obstacle: str | None = None


class IssuanceTable(TableDescription, row=IssuanceRow, table=True):
    """One eSIM drawn from an account's stock, under one key for ever.

    `claim_key` and `operation` name the idempotency claim whose stored answer follows the row. `held` is the ICCID while it is this
    row's, so that no two rows have it; `iccid` stays for the record. `replied` is one that an answer named and that was not taken.
    `clear_seconds`: for how long nothing was seen since `clear_since`, by the clocks of those who looked. `obstacle`: what hindered
    settling it when it was looked into last (operations/ledger/evidence.py).
    """

    due_ms: BigInt
    lease: str | None
    __table_args__ = (
        sa.Index("issuance_due", "state", "due_ms"),
        sa.Index("issuance_unknown", "organisation", "due_ms", sqlite_where=sa.text("state || '' = 'outcome_unknown'")),
        sa.Index("issuance_unknown_of", "organisation", "account_id", "due_ms", sqlite_where=sa.text("state || '' = 'outcome_unknown'")),
        sa.Index("issuance_account", "account_id", "state", "updated"),
        sa.Index("issuance_package", "package_id"),
        sa.Index("issuance_claim", "organisation", "claim_key"),
        sa.Index("issuance_of_state", "state", "organisation", "dispatched", "key"),
        sa.Index("issuance_of_account", "account_id", "organisation", "state", "dispatched", "key"),
        sa.Index("issuance_of_iccid", "organisation", "iccid", sqlite_where=DREW_ONE),
        # Rows without an eSIM, and of no order, by the time they ended.
        sa.Index("issuance_ended", "updated", sqlite_where=REMOVABLE_ISSUANCE),
    )


ISSUANCE = IssuanceTable.table

IssuanceState = Literal[
    "dispatching",
    "issued",
    "failed",
    "outcome_unknown",
    "manual_reconciliation_required",
    "rollback_pending",
    "rolled_back",
    "rollback_unknown",
    "released",
]

UNRESOLVED_ISSUANCE_STATES = ("outcome_unknown", "manual_reconciliation_required")

OPEN_ISSUANCE_STATES = ("dispatching", *UNRESOLVED_ISSUANCE_STATES)


class NewIssuance(NamedTuple):
    """What is about to be sent, and for whom. `lease` is the call's own name: what it did not begin it does not take back."""

    organisation: str
    key: str
    operation: str
    claim_key: str | None
    principal: str
    account_id: int
    template_id: int
    validity_days: int | None
    period: str | None
    intent: str | None
    owner: str
    lease: str
    stock: str


class DrawnSim(NamedTuple):
    """What the charging system gave: the SIM, its line and the package on it."""

    iccid: str
    subscriber_id: int | None
    sim_id: int | None
    package_id: int | None


class IssuanceHolder(NamedTuple):
    held: str
    organisation: str
    key: str
    intent: str | None


ISSUANCE_COLUMNS: Sequence[sa.ColumnElement[object]] = tuple(ISSUANCE.c[name] for name in IssuanceRow._fields)

THIS_ISSUANCE: sa.ColumnElement[bool] = (ISSUANCE.c.organisation == sa.bindparam("organisation")) & (ISSUANCE.c.key == sa.bindparam("key"))

SENT_NOW: dict[str, object] = {"state": "dispatching", "dispatched": sa.bindparam("now"), "updated": sa.bindparam("now"), "due_ms": 0}

INSERT_ISSUANCE = Command(insert_once(ISSUANCE, NewIssuance._fields, **SENT_NOW, key=["organisation", "key"]))

HOLDER_COLUMNS: Sequence[sa.ColumnElement[object]] = tuple(ISSUANCE.c[name] for name in IssuanceHolder._fields)

LIST_ISSUANCE_HOLDERS = Query(
    IssuanceHolder,
    lambda dialect: sa.select(*HOLDER_COLUMNS).where(ISSUANCE.c.held.in_(bound_list(dialect, "iccids"))),
)


def begin_issuance(connection: Connection, *, row: NewIssuance, now: float) -> None:
    """The row, before the call is sent. A second one under the same key is refused, whatever became of the first. `now`: Unix seconds."""
    if connection.run(INSERT_ISSUANCE, **row._asdict(), now=now) == 0:
        raise Conflict(
            "An eSIM was asked for under this key before; nothing was sent now",
            code="idempotency_in_progress",
            hint="Repeat it in a second",
        )
    # After the INSERT, which waits for whoever removes a row of this key: what they kept of it is seen now.
    if is_key_expired(connection, organisation=row.organisation, operation=LEDGER_OPERATION, key=row.key):
        raise key_has_expired()


@changes_one
def unsend_issuance(*, organisation: str, key: str, lease: str) -> sa.Executable:
    """Delete the row of a call that surely never left; False when the call `lease` has no such row."""
    return sa.delete(ISSUANCE).where(THIS_ISSUANCE, ISSUANCE.c.lease == lease, ISSUANCE.c.state == "dispatching")


@first_row(IssuanceRow)
def find_issuance(*, organisation: str, key: str) -> sa.Executable:
    return sa.select(*ISSUANCE_COLUMNS).where(THIS_ISSUANCE)


def find_issuance_spelled(connection: Connection, *, organisation: str, keys: Sequence[str]) -> IssuanceRow | None:
    """The row of the first of the spellings `keys` that has one, or None."""
    rows = (find_issuance(connection, organisation=organisation, key=key) for key in keys)
    return next((row for row in rows if row is not None), None)


@first_row(IssuanceRow)
def issuance_of_claim(*, organisation: str, operation: str, claim_key: str) -> sa.Executable:
    """The row that a call with this idempotency key began, or None."""
    return sa.select(*ISSUANCE_COLUMNS).where(
        ISSUANCE.c.organisation == organisation,
        ISSUANCE.c.claim_key == claim_key,
        ISSUANCE.c.operation == operation,
    )


@first_row(IssuanceHolder)
def holder_of_iccid(*, iccid: str) -> sa.Executable:
    return sa.select(*HOLDER_COLUMNS).where(ISSUANCE.c.held == iccid)


def holders_of_iccids(connection: Connection, *, iccids: Sequence[str]) -> list[IssuanceHolder]:
    return connection.all(LIST_ISSUANCE_HOLDERS, iccids=pack_rows([[iccid] for iccid in iccids])) if iccids else []


@first_row(IssuanceRow)
def release_holder(*, holder: IssuanceHolder, now: float, note: str) -> sa.Executable:
    """Take an ICCID that is back in stock from the row that had it; None where it did not have it. `now`: Unix seconds."""
    return (
        sa.update(ISSUANCE)
        .where(THIS_ISSUANCE, ISSUANCE.c.held == holder.held)
        .values(
            state=sa.case((ISSUANCE.c.state.in_(["rollback_pending", "rollback_unknown"]), "rolled_back"), else_="released"),
            held=None,
            note=note,
            updated=now,
        )
    )


@first_row(IssuanceRow)
def mark_issued(*, organisation: str, key: str, drawn: DrawnSim, now: float, note: str | None = None) -> sa.Executable:
    """The eSIM is this key's; None when the row was settled before. `held` decides between two keys. `now`: Unix seconds."""
    return (
        sa.update(ISSUANCE)
        .where(THIS_ISSUANCE, ISSUANCE.c.state.in_(OPEN_ISSUANCE_STATES))
        .values(
            state="issued",
            iccid=sa.bindparam("iccid"),
            held=sa.bindparam("iccid"),
            subscriber_id=sa.bindparam("subscriber_id"),
            sim_id=sa.bindparam("sim_id"),
            package_id=sa.bindparam("package_id"),
            note=note,
            updated=now,
            lease=None,
            obstacle=None,
        )
    )


@first_row(IssuanceRow)
def mark_issuance_failed(*, organisation: str, key: str, now: float, note: str) -> sa.Executable:
    """Nothing was drawn; None when the row was settled before. `now`: Unix seconds."""
    return (
        sa.update(ISSUANCE)
        .where(THIS_ISSUANCE, ISSUANCE.c.state.in_(OPEN_ISSUANCE_STATES))
        .values(state="failed", note=note, updated=now, lease=None, obstacle=None)
    )


# `replied` names an eSIM that was not believed.
REPLIED_OR_KEPT = sa.func.coalesce(sa.bindparam("replied", type_=sa.Text), ISSUANCE.c.replied)


@first_row(IssuanceRow)
def mark_issuance_unknown(*, organisation: str, key: str, now: Annotated[float, "due_ms"], replied: str | None = None) -> sa.Executable:
    """Nobody knows any more what came of it; None when it was not under way. `replied` names an eSIM that was not believed."""
    return (
        sa.update(ISSUANCE)
        .where(THIS_ISSUANCE, ISSUANCE.c.state == "dispatching")
        .values(state="outcome_unknown", replied=REPLIED_OR_KEPT, updated=now, due_ms=sa.bindparam("due_ms"))
    )


@first_row(IssuanceRow)
def keep_issuance_unknown(*, organisation: str, key: str, now: Annotated[float, "due_ms"], replied: str | None = None) -> sa.Executable:
    """Nobody knows yet what came of it; None when that was not unknown. `replied` names an eSIM that was not believed."""
    return (
        sa.update(ISSUANCE)
        .where(THIS_ISSUANCE, ISSUANCE.c.state == "outcome_unknown")
        .values(replied=REPLIED_OR_KEPT, updated=now, due_ms=sa.bindparam("due_ms"))
    )


@first_row(IssuanceRow)
def dispute_failure(*, organisation: str, key: str, replied: str, now: float) -> sa.Executable:
    """It was settled as failed, and a late answer names an eSIM: only a person can tell; None when it is not failed."""
    return (
        sa.update(ISSUANCE)
        .where(THIS_ISSUANCE, ISSUANCE.c.state == "failed")
        .values(
            state="manual_reconciliation_required",
            replied=sa.bindparam("replied", type_=sa.Text),
            note="an answer came after it had been settled as failed",
            obstacle="late_answer",
            updated=now,
        )
    )


@first_row(str)
def unresolved_like(*, organisation: str, principal: str, account_id: int, template_id: int, since: float, key: str) -> sa.Executable:
    """The newest other key than `key` of the same caller, account and template whose outcome is unknown, of those sent after `since`."""
    return (
        sa.select(ISSUANCE.c.key)
        .where(
            ISSUANCE.c.account_id == account_id,
            ISSUANCE.c.state.in_(UNRESOLVED_ISSUANCE_STATES),
            # Not a bare column: SQLite would take the index that begins with it, and read every row of the organisation at each draw.
            sa.func.coalesce(ISSUANCE.c.organisation, "") == sa.bindparam("organisation", type_=sa.Text),
            ISSUANCE.c.principal == principal,
            ISSUANCE.c.template_id == template_id,
            ISSUANCE.c.dispatched >= since,
            ISSUANCE.c.key != key,
        )
        .order_by(ISSUANCE.c.dispatched.desc())
        .limit(1)
    )


@first_row(IssuanceRow)
def issuance_of_package(*, package_id: int) -> sa.Executable:
    """The row that put the package on a line and has its eSIM still, or None."""
    return (
        sa.select(*ISSUANCE_COLUMNS)
        .where(ISSUANCE.c.package_id == package_id, ISSUANCE.c.held.is_not(None))
        .order_by(ISSUANCE.c.updated.desc())
        .limit(1)
    )
