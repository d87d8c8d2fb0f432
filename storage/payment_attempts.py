"""Refunds and payouts that were asked for through us: written before the processor is asked, concluded by what is known afterwards.

What of each charge is refunded or about to be is reserved, so that no two refunds take the same cent.
"""

from collections.abc import Sequence
from typing import Annotated, Literal, NamedTuple

import sqlalchemy as sa
from sqlmodel import Field

from registry.ids import without_order_tokens
from storage.engine.connection import (
    Command,
    Connection,
    Query,
    StatementBuild,
    all_rows,
    changes_one,
    first_row,
    insert_once,
    returning,
    writes,
)
from storage.engine.table import BigInt, Key, TableDescription, table_of


class PaymentAttempt(NamedTuple):
    """An attempt. `claim_key` is its caller's idempotency key, `made` the processor's id of what came of it."""

    id: Key
    organisation: str
    account: str
    kind: str
    charge: str | None
    amount: BigInt
    currency: str
    state: str
    processor_key: str
    claim_key: str | None
    made: str | None
    created: BigInt
    updated: BigInt


class PaymentAttemptTable(TableDescription, row=PaymentAttempt, table=True):
    """A refund or a payout (`kind`) that was asked for through us. `state`: sending, done, failed or unknown.

    `processor_key`: the processor's key of it; `claim_key`: the caller's own. `made`: the processor's id of what came of it.
    """

    __table_args__ = (
        sa.Index("payment_attempt_claim", "organisation", "kind", "claim_key"),
        sa.Index("payment_attempt_charge", "account", "charge"),
        sa.Index("payment_attempt_state", "account", "state"),
    )


class ChargeRefundsTable(TableDescription, table=True):
    """What of a charge may still be refunded through us: taken before the processor is asked, so that no two refunds take the same cent.

    `reserved` is what was taken and not given back, in all; never more than `amount`, which is the charge's.
    """

    account: str = Field(primary_key=True)
    charge: str = Field(primary_key=True)
    amount: BigInt
    reserved: BigInt
    updated: BigInt


PAYMENT_ATTEMPT = table_of(PaymentAttemptTable)

AttemptKind = Literal["refund", "payout"]

PaymentAttemptState = Literal["done", "failed", "unknown"]

OPEN_ATTEMPT_STATES = ("sending", "unknown")

ATTEMPT_COLUMNS: Sequence[sa.ColumnElement[object]] = tuple(PAYMENT_ATTEMPT.c[name] for name in PaymentAttempt._fields)

ATTEMPT_IS_OPEN = PAYMENT_ATTEMPT.c.state.in_(OPEN_ATTEMPT_STATES)

CONCLUDE_ATTEMPT = Query(
    PaymentAttempt,
    sa.update(PAYMENT_ATTEMPT)
    .where(PAYMENT_ATTEMPT.c.id == sa.bindparam("attempt"), ATTEMPT_IS_OPEN)
    .values(state=sa.bindparam("to"), made=sa.bindparam("found"), updated=sa.bindparam("now"))
    .returning(*ATTEMPT_COLUMNS),
)

# Refunds that were begun before orders had numbers: their keys hold what opens the order, and are needed until nothing is sent any more.
HIDE_TOKEN = Command(
    sa.update(PAYMENT_ATTEMPT).where(PAYMENT_ATTEMPT.c.id == sa.bindparam("attempt")).values(processor_key=sa.bindparam("shown"))
)


@writes
def insert_attempt(*, attempt: PaymentAttempt) -> sa.Executable:
    """Insert an attempt that is about to be sent."""
    return sa.insert(PAYMENT_ATTEMPT).values(attempt._asdict())


@first_row(PaymentAttempt)
def find_attempt(*, attempt: str) -> sa.Executable:
    """The attempt with this id, or None."""
    return sa.select(*ATTEMPT_COLUMNS).where(PAYMENT_ATTEMPT.c.id == attempt)


@first_row(PaymentAttempt)
def attempt_by_key(*, organisation: str, kind: AttemptKind, claim_key: str) -> sa.Executable:
    """The newest attempt under a caller's key, or None."""
    return (
        sa.select(*ATTEMPT_COLUMNS)
        .where(
            PAYMENT_ATTEMPT.c.organisation == organisation,
            PAYMENT_ATTEMPT.c.kind == kind,
            PAYMENT_ATTEMPT.c.claim_key == claim_key,
        )
        .order_by(PAYMENT_ATTEMPT.c.id.desc())
        .limit(1)
    )


@all_rows(PaymentAttempt)
def open_attempts_of(*, account: str, charge: str) -> sa.Executable:
    """Refunds of a charge that are under way, or that nobody knows the outcome of."""
    return sa.select(*ATTEMPT_COLUMNS).where(PAYMENT_ATTEMPT.c.account == account, PAYMENT_ATTEMPT.c.charge == charge, ATTEMPT_IS_OPEN)


@all_rows(PaymentAttempt)
def open_attempts(*, account: str, most: int) -> sa.Executable:
    """All that is under way or unknown in an account, oldest first; also of an organisation that had the account before."""
    return (
        sa.select(*ATTEMPT_COLUMNS)
        .where(PAYMENT_ATTEMPT.c.account == account, ATTEMPT_IS_OPEN)
        .order_by(PAYMENT_ATTEMPT.c.created, PAYMENT_ATTEMPT.c.id)
        .limit(most)
    )


def conclude_attempt(connection: Connection, *, attempt: str, state: PaymentAttemptState, made: str | None, now: float) -> bool:
    """Store what came of an attempt, and the id `made` at the processor; False when that was known. `now`: Unix seconds."""
    settled = connection.first(CONCLUDE_ATTEMPT, attempt=attempt, to=state, found=made, now=int(now))
    if settled is None:
        return False
    if settled.state not in OPEN_ATTEMPT_STATES and (shown := without_order_tokens(settled.processor_key)) != settled.processor_key:
        connection.run(HIDE_TOKEN, attempt=attempt, shown=shown)
    return True


@first_row(PaymentAttempt)
def touch_attempt(*, attempt: str, now: Annotated[float, int]) -> sa.Executable:
    """It is about to be sent once more, as it was: what may have had an effect before is forgotten by nobody. None: it was settled."""
    return returning(
        sa.update(PAYMENT_ATTEMPT).where(PAYMENT_ATTEMPT.c.id == attempt, ATTEMPT_IS_OPEN).values(state="unknown", updated=now),
        ATTEMPT_COLUMNS,
    )


@writes
def forget_attempt(*, attempt: str) -> sa.Executable:
    """Delete an attempt that surely never left."""
    return sa.delete(PAYMENT_ATTEMPT).where(PAYMENT_ATTEMPT.c.id == attempt, PAYMENT_ATTEMPT.c.state == "sending")


CHARGE_REFUNDS = table_of(ChargeRefundsTable)


class ChargeRefunds(NamedTuple):
    """A charge's amount, and what of it was taken and not given back."""

    amount: int
    reserved: int


REFUND_OF_CHARGE: sa.ColumnElement[bool] = (CHARGE_REFUNDS.c.account == sa.bindparam("account")) & (
    CHARGE_REFUNDS.c.charge == sa.bindparam("charge")
)

RESERVED_WITH_MORE: sa.ColumnElement[int] = CHARGE_REFUNDS.c.reserved + sa.bindparam("amount", type_=sa.BigInteger)


@writes
def open_refunds(*, account: str, charge: str, amount: int, reserved: int, now: Annotated[float, int]) -> StatementBuild:
    """Insert the row of a charge at its first refund; amounts in minor units. `now`: Unix seconds."""
    values = {"account": account, "charge": charge, "amount": amount, "reserved": reserved, "updated": now}
    return insert_once(CHARGE_REFUNDS, key=["account", "charge"], **values)


@first_row(ChargeRefunds)
def find_refunds(*, account: str, charge: str) -> sa.Executable:
    """What is reserved of a charge; None: nobody has refunded it through us yet."""
    return sa.select(CHARGE_REFUNDS.c.amount, CHARGE_REFUNDS.c.reserved).where(REFUND_OF_CHARGE)


@writes
def set_refund_reserved(*, account: str, charge: str, reserved: int, now: Annotated[float, int]) -> sa.Executable:
    """Set what is reserved of a charge, by all that is known now; the caller has locked the account. `now`: Unix seconds."""
    return sa.update(CHARGE_REFUNDS).where(REFUND_OF_CHARGE).values(reserved=reserved, updated=now)


@changes_one
def add_refund_reserved(*, account: str, charge: str, amount: int, now: Annotated[float, int]) -> sa.Executable:
    """Reserve `amount` (minor units) more of a charge; False where less is left. `now`: Unix seconds."""
    return (
        sa.update(CHARGE_REFUNDS)
        .where(REFUND_OF_CHARGE, CHARGE_REFUNDS.c.amount >= RESERVED_WITH_MORE)
        .values(reserved=RESERVED_WITH_MORE, updated=sa.bindparam("now", type_=sa.BigInteger))
    )
