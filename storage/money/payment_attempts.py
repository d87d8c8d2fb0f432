"""Refunds and payouts that were asked for through us: written before the processor is asked, settled by what is known afterwards."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import sqlalchemy as sa

from registry.order_numbers import without_tokens
from storage.connection import Connection
from storage.money.money_tables import PaymentAttemptTable
from storage.statement import Command, Query, table

ATTEMPT = table(PaymentAttemptTable)
AttemptKind = Literal["refund", "payout"]
State = Literal["done", "failed", "unknown"]
OPEN = ("sending", "unknown")


class PaymentAttempt(NamedTuple):
    """An attempt. `claim_key` is its caller's idempotency key, `made` the processor's id of what came of it."""

    id: str
    organisation: str
    account: str
    kind: str
    charge: str | None
    amount: int
    currency: str
    state: str
    processor_key: str
    claim_key: str | None
    made: str | None
    created: int
    updated: int


COLUMNS: Sequence[sa.ColumnElement[object]] = tuple(ATTEMPT.c[name] for name in PaymentAttempt._fields)
UNSETTLED = ATTEMPT.c.state.in_(OPEN)
INSERT = Command(sa.insert(ATTEMPT).values({name: sa.bindparam(name) for name in PaymentAttempt._fields}))
FIND = Query(PaymentAttempt, sa.select(*COLUMNS).where(ATTEMPT.c.id == sa.bindparam("attempt")))
BY_KEY = Query(
    PaymentAttempt,
    sa.select(*COLUMNS)
    .where(
        ATTEMPT.c.organisation == sa.bindparam("organisation"),
        ATTEMPT.c.kind == sa.bindparam("kind"),
        ATTEMPT.c.claim_key == sa.bindparam("claim_key"),
    )
    .order_by(ATTEMPT.c.id.desc())
    .limit(1),
)
OF_CHARGE = Query(
    PaymentAttempt,
    sa.select(*COLUMNS).where(ATTEMPT.c.account == sa.bindparam("account"), ATTEMPT.c.charge == sa.bindparam("charge"), UNSETTLED),
)
OF_ACCOUNT = Query(
    PaymentAttempt,
    sa.select(*COLUMNS)
    .where(ATTEMPT.c.account == sa.bindparam("account"), UNSETTLED)
    .order_by(ATTEMPT.c.created, ATTEMPT.c.id)
    .limit(sa.bindparam("most")),
)
SETTLE = Query(
    PaymentAttempt,
    sa.update(ATTEMPT)
    .where(ATTEMPT.c.id == sa.bindparam("attempt"), UNSETTLED)
    .values(state=sa.bindparam("to"), made=sa.bindparam("found"), updated=sa.bindparam("now"))
    .returning(*COLUMNS),
)
# Refunds that were begun before orders had numbers: their keys hold what opens the order, and are needed until nothing is sent any more.
HIDE_TOKEN = Command(sa.update(ATTEMPT).where(ATTEMPT.c.id == sa.bindparam("attempt")).values(processor_key=sa.bindparam("shown")))
TOUCH = Query(
    PaymentAttempt,
    sa.update(ATTEMPT)
    .where(ATTEMPT.c.id == sa.bindparam("attempt"), UNSETTLED)
    .values(state="unknown", updated=sa.bindparam("now"))
    .returning(*COLUMNS),
)
FORGET = Command(sa.delete(ATTEMPT).where(ATTEMPT.c.id == sa.bindparam("attempt"), ATTEMPT.c.state == "sending"))


def insert_attempt(connection: Connection, *, attempt: PaymentAttempt) -> None:
    """It is about to be sent."""
    connection.run(INSERT, **attempt._asdict())


def find_attempt(connection: Connection, *, attempt: str) -> PaymentAttempt | None:
    """One attempt."""
    return connection.first(FIND, attempt=attempt)


def attempt_by_key(connection: Connection, *, organisation: str, kind: AttemptKind, claim_key: str) -> PaymentAttempt | None:
    """What was asked for under a caller's key, last."""
    return connection.first(BY_KEY, organisation=organisation, kind=kind, claim_key=claim_key)


def open_attempts_of(connection: Connection, *, account: str, charge: str) -> list[PaymentAttempt]:
    """Refunds of a charge that are under way, or that nobody knows the outcome of."""
    return connection.all(OF_CHARGE, account=account, charge=charge)


def open_attempts(connection: Connection, *, account: str, most: int) -> list[PaymentAttempt]:
    """All that is under way or unknown in an account, oldest first; also of an organisation that had the account before."""
    return connection.all(OF_ACCOUNT, account=account, most=most)


def settle_attempt(connection: Connection, *, attempt: str, state: State, made: str | None, now: float) -> bool:
    """Say what came of it; False when that was said before."""
    settled = connection.first(SETTLE, attempt=attempt, to=state, found=made, now=int(now))
    if settled is None:
        return False
    if settled.state not in OPEN and (shown := without_tokens(settled.processor_key)) != settled.processor_key:
        connection.run(HIDE_TOKEN, attempt=attempt, shown=shown)
    return True


def touch_attempt(connection: Connection, *, attempt: str, now: float) -> PaymentAttempt | None:
    """It is about to be sent once more, as it was: what may have had an effect before is forgotten by nobody. None: it was settled."""
    return connection.first(TOUCH, attempt=attempt, now=int(now))


def forget_attempt(connection: Connection, *, attempt: str) -> None:
    """It surely never left."""
    connection.run(FORGET, attempt=attempt)
