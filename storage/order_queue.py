"""The queue of orders and top-ups: who works on a row under a lease, and the moves of a row, each a conditional update.

pending_payment -> paid | failed (paid otherwise than agreed); paid -> provisioning -> ready | failed | needs_review -> ready | failed;
provisioning -> paid where it surely never left; failed -> needs_review when an eSIM is named late and no refund has been begun.
A failed order that was paid has a refund: owed -> sending -> done | unknown | failed. What of a top-up is sent is in top_ups.py.
"""

from typing import Annotated, NamedTuple

import sqlalchemy as sa

from storage.engine.drivers import Value
from storage.engine.sql import (
    Command,
    Connection,
    Query,
    RowCondition,
    all_rows,
    changes_one,
    distinct_values,
    first_row,
    row_exists,
    unindexed,
    writes,
)
from storage.issuance import ISSUANCE, UNRESOLVED_ISSUANCE_STATES
from storage.orders import ORDER_COLUMNS, ORDERS_WITH_LEDGER, STOREFRONT_ORDER, OrderRow, forget_access

ORDER_LEASE_MS = 120_000
TO_REFUND = ("owed", "sending", "unknown")


class DueOrganisation(NamedTuple):
    """An organisation that has something due, and since when."""

    organisation: str
    due_ms: int | None


class OrderPayment(NamedTuple):
    """What the processor said of the payment. `code`: it is not what was agreed, so it goes back."""

    email: str | None
    payment_intent: str | None
    amount: int
    code: str | None


class OrderEsim(NamedTuple):
    """What an order got: `sealed` is what installs it."""

    iccid: str
    sealed: str
    package_id: int | None


ORDER_NOW_MS = sa.bindparam("now_ms", type_=sa.BigInteger)
ORDER_NOW = sa.bindparam("now", type_=sa.Double)
THIS_ORDER: sa.ColumnElement[bool] = STOREFRONT_ORDER.c.id == sa.bindparam("order")
MY_ORDER: sa.ColumnElement[bool] = THIS_ORDER & (STOREFRONT_ORDER.c.lease == sa.bindparam("token"))
REFUND_IS_OPEN = STOREFRONT_ORDER.c.refund.in_(TO_REFUND)
UNPAID_STATUS: sa.ColumnElement[str] = sa.literal_column("'pending_payment'", sa.Text)


def is_unpaid(order: sa.FromClause) -> sa.ColumnElement[bool]:
    """Pages that nobody has paid and that somebody is to look at. In the words of the index of just these rows, as the next one is."""
    return order.c.due_ms.is_not(None) & (unindexed(order.c.status) == UNPAID_STATUS)


def is_paid_and_due(order: sa.FromClause) -> sa.ColumnElement[bool]:
    """What has been paid and is not done with."""
    status = unindexed(order.c.status)
    queued = (
        (status == "paid")
        | ((status == "failed") & order.c.refund.in_(TO_REFUND))
        | ((status == "needs_review") & order.c.top_up_of.is_not(None))
    )
    return order.c.due_ms.is_not(None) & (status != UNPAID_STATUS) & queued


def due_query(rows: RowCondition) -> sa.Executable:
    """Organisations with something of these rows, and since when the oldest is due: a step in the index for each of them."""
    place, oldest = distinct_values(STOREFRONT_ORDER, "organisation", rows, "place"), STOREFRONT_ORDER.alias("oldest")
    due = sa.select(sa.func.min(oldest.c.due_ms)).where(rows(oldest), oldest.c.organisation == place.c.value)
    found = sa.select(place.c.value.label("organisation"), due.correlate(place).scalar_subquery().label("due_ms"))
    return found.where(place.c.value.is_not(None))


def pick_order(rows: RowCondition) -> sa.ScalarSelect[str]:
    """The oldest of an organisation that nobody else takes at this moment."""
    due = (rows(STOREFRONT_ORDER), STOREFRONT_ORDER.c.organisation == sa.bindparam("of"), STOREFRONT_ORDER.c.due_ms <= ORDER_NOW_MS)
    found = (
        sa.select(STOREFRONT_ORDER.c.id).where(*due).order_by(STOREFRONT_ORDER.c.due_ms, STOREFRONT_ORDER.c.created, STOREFRONT_ORDER.c.id)
    )
    return found.limit(1).with_for_update(skip_locked=True).scalar_subquery()


DUE_ORGANISATIONS = (
    Query(DueOrganisation, lambda _: due_query(is_paid_and_due)),
    Query(DueOrganisation, lambda _: due_query(is_unpaid)),
)
# Who has paid comes first: pages that nobody paid may be many, and asking about them takes as long as the processor likes.
CLAIM_ORDER = Query(
    str,
    lambda _: (
        sa.update(STOREFRONT_ORDER)
        .where(STOREFRONT_ORDER.c.id == sa.func.coalesce(pick_order(is_paid_and_due), pick_order(is_unpaid)))
        .values(lease=sa.bindparam("token"), due_ms=sa.bindparam("lease_end"))
        .returning(STOREFRONT_ORDER.c.id)
    ),
)
FIND_QUEUED_ORDER = Query(
    OrderRow, lambda _: sa.select(*ORDER_COLUMNS).select_from(ORDERS_WITH_LEDGER).where(STOREFRONT_ORDER.c.id == sa.bindparam("order"))
)
PAY_ORDER = Query(
    str,
    sa.update(STOREFRONT_ORDER)
    .where(THIS_ORDER, STOREFRONT_ORDER.c.status == "pending_payment")
    .values(
        status=sa.bindparam("to"),
        code=sa.bindparam("why"),
        email=sa.bindparam("address"),
        payment_intent=sa.bindparam("intent"),
        paid_amount=sa.bindparam("paid"),
        paid_at=ORDER_NOW,
        refund=sa.bindparam("owed"),
        due_ms=ORDER_NOW_MS,
        lease=None,
        tries=0,
        updated=ORDER_NOW,
    )
    .returning(STOREFRONT_ORDER.c.id),
)
ENDED_WORK: dict[str, object] = {"owner": None, "lease": None, "tries": 0, "updated": ORDER_NOW}
REFUND_OWED = sa.case((STOREFRONT_ORDER.c.paid_amount > 0, "owed"), else_=None)
FAILED_VALUES: dict[str, object] = {
    "status": "failed",
    "code": sa.bindparam("code"),
    "refund": REFUND_OWED,
    "refund_attempt": None,
    "due_ms": sa.case((STOREFRONT_ORDER.c.paid_amount > 0, ORDER_NOW_MS), else_=None),
    **ENDED_WORK,
}
SET_REFUND = Command(
    sa.update(STOREFRONT_ORDER)
    .where(MY_ORDER, STOREFRONT_ORDER.c.status == "failed", REFUND_IS_OPEN)
    .values(
        refund=sa.bindparam("to"),
        lease=None,
        due_ms=sa.bindparam("due_ms"),
        tries=STOREFRONT_ORDER.c.tries + sa.bindparam("tried", type_=sa.Integer),
    )
)
REFUND_ENDED: dict[str, object] = {"lease": None, "due_ms": None, "updated": ORDER_NOW}
# Only a failed order has a refund; of these there are few.
REFUND_OF_ATTEMPT = (STOREFRONT_ORDER.c.refund_attempt == sa.bindparam("attempt")) & (STOREFRONT_ORDER.c.status == "failed")
NEVER_PAID = (STOREFRONT_ORDER.c.status == "pending_payment") & (STOREFRONT_ORDER.c.updated < sa.bindparam("before_then"))
FORGET_PENDING = Query(
    str,
    sa.delete(STOREFRONT_ORDER)
    .where(
        STOREFRONT_ORDER.c.id.in_(
            sa.select(STOREFRONT_ORDER.c.id).where(NEVER_PAID).order_by(STOREFRONT_ORDER.c.updated).limit(sa.bindparam("most"))
        ),
        NEVER_PAID,
    )
    .returning(STOREFRONT_ORDER.c.id),
)


def due_organisations(connection: Connection, *, now_ms: int) -> list[str]:
    """Organisations that have something due, the longest waiting first; a read, so that an idle worker never takes the write lock."""
    due: dict[str, int] = {}
    for place in (place for statement in DUE_ORGANISATIONS for place in connection.all(statement)):
        if place.due_ms is not None and place.due_ms <= now_ms:
            due[place.organisation] = min(place.due_ms, due.get(place.organisation, now_ms))
    return sorted(due, key=lambda organisation: due[organisation])


def claim_order(connection: Connection, *, organisation: str, token: str, now_ms: int) -> OrderRow | None:
    """Take what is due longest, paid before unpaid, for two minutes; then it is due again, whatever became of its worker."""
    taken = connection.first(CLAIM_ORDER, of=organisation, token=token, now_ms=now_ms, lease_end=now_ms + ORDER_LEASE_MS)
    return None if taken is None else connection.first(FIND_QUEUED_ORDER, order=taken)


@changes_one
def work_later(*, order: str, token: str, due_ms: int | None, tried: Annotated[bool, int] = True) -> sa.Executable:
    """Nothing came of it now; False when the lease was lost or the row moved on. Without a time nobody looks again by themselves."""
    return (
        sa.update(STOREFRONT_ORDER)
        .where(MY_ORDER)
        .values(lease=None, due_ms=due_ms, tries=STOREFRONT_ORDER.c.tries + sa.bindparam("tried", type_=sa.Integer))
    )


@changes_one
def hold_order(*, order: str, token: str) -> sa.Executable:
    """Whether a paid order is still leased to `token`, and not sent; it stays so until the commit."""
    return sa.update(STOREFRONT_ORDER).where(MY_ORDER, STOREFRONT_ORDER.c.status == "paid").values(lease=token)


def pay_order(connection: Connection, *, order: str, paid: OrderPayment, now: float) -> bool:
    """The order was paid: it is to be fulfilled, or to be refunded where `paid.code` is set. False: it was known. `now`: Unix seconds."""
    move: dict[str, Value] = {"to": "paid" if paid.code is None else "failed", "why": paid.code, "address": paid.email}
    owed = "owed" if paid.code is not None and paid.amount > 0 else None
    move |= {"intent": paid.payment_intent, "paid": paid.amount, "owed": owed}
    return connection.first(PAY_ORDER, order=order, **move, now=now, now_ms=int(now * 1000)) is not None


@changes_one
def send_order(*, order: str, token: str, owner: str, now: float) -> sa.Executable:
    """The process `owner` is about to send the order; False when it is not leased to `token`. `now`: Unix seconds."""
    return (
        sa.update(STOREFRONT_ORDER)
        .where(MY_ORDER, STOREFRONT_ORDER.c.status == "paid")
        .values(status="provisioning", owner=owner, updated=now)
    )


@writes
def unsend_order(*, order: str) -> sa.Executable:
    """The order surely was not sent and is paid as before; its lease stays."""
    return sa.update(STOREFRONT_ORDER).where(THIS_ORDER, STOREFRONT_ORDER.c.status == "provisioning").values(status="paid", owner=None)


@changes_one
def mark_order_ready(*, order: str, esim: OrderEsim, now: float) -> sa.Executable:
    """The eSIM is the buyer's; False when the order had ended before. `now`: Unix seconds."""
    bought = {"iccid": esim.iccid, "esim": esim.sealed, "package_id": esim.package_id}
    return (
        sa.update(STOREFRONT_ORDER)
        .where(THIS_ORDER, STOREFRONT_ORDER.c.status.in_(["provisioning", "needs_review"]))
        .values(**bought, status="ready", code=None, esim_binding=None, ready_at=now, due_ms=None, **ENDED_WORK)
    )


@changes_one
def fail_order(*, order: str, code: str, now: Annotated[float, "now_ms"]) -> sa.Executable:
    """Nothing is delivered, so what was paid is owed back; False when the order had ended before. `now`: Unix seconds."""
    is_open = STOREFRONT_ORDER.c.status.in_(["paid", "provisioning", "needs_review"])
    return sa.update(STOREFRONT_ORDER).where(THIS_ORDER, is_open).values(FAILED_VALUES)


@all_rows(str)
def fail_refunded_orders(*, account: str, payment_intent: str, code: str, now: Annotated[float, "now_ms"]) -> sa.Executable:
    """What was paid so, and not sent yet, is not sent any more; its ids. What is owed of it is found out by whoever gives it back."""
    # The index of states finds them: few orders are paid and not sent yet.
    return (
        sa.update(STOREFRONT_ORDER)
        .where(
            STOREFRONT_ORDER.c.status == "paid",
            STOREFRONT_ORDER.c.payee == account,
            STOREFRONT_ORDER.c.payment_intent == payment_intent,
        )
        .values(FAILED_VALUES)
        .returning(STOREFRONT_ORDER.c.id)
    )


@row_exists
def review_order(*, order: str, code: str, now: float) -> sa.Executable:
    """Nobody knows what came of the order; False when that was known before. `now`: Unix seconds."""
    return (
        sa.update(STOREFRONT_ORDER)
        .where(THIS_ORDER, STOREFRONT_ORDER.c.status.in_(["paid", "provisioning"]))
        .values(status="needs_review", code=code, due_ms=None, **ENDED_WORK)
        .returning(STOREFRONT_ORDER.c.id)
    )


@row_exists
def reopen_order(*, order: str, code: str, now: float) -> sa.Executable:
    """It was said to have failed, and that is not certain any more; False when its refund has been begun: that stands."""
    return (
        sa.update(STOREFRONT_ORDER)
        .where(
            THIS_ORDER, STOREFRONT_ORDER.c.status == "failed", STOREFRONT_ORDER.c.refund.is_(None) | (STOREFRONT_ORDER.c.refund == "owed")
        )
        .values(status="needs_review", code=code, refund=None, due_ms=None, **ENDED_WORK)
        .returning(STOREFRONT_ORDER.c.id)
    )


@changes_one
def begin_refund(*, order: str, token: str, attempt: str) -> sa.Executable:
    """The refund is about to be sent; False when the order is not leased to `token`, or has no refund to send."""
    return (
        sa.update(STOREFRONT_ORDER)
        .where(MY_ORDER, STOREFRONT_ORDER.c.status == "failed", REFUND_IS_OPEN)
        .values(refund="sending", refund_attempt=attempt)
    )


def set_refund(connection: Connection, *, order: str, token: str, state: str, due_ms: int | None) -> bool:
    """Store how the refund stands and when to look again (`due_ms`); False when the lease was lost or the refund has ended."""
    return connection.run(SET_REFUND, order=order, token=token, to=state, due_ms=due_ms, tried=int(due_ms is not None)) == 1


@first_row(str)
def mark_refund_made(*, attempt: str, now: float) -> sa.Executable:
    """The processor made the refund `attempt`; returns the order, or None where that was known. `now`: Unix seconds."""
    return (
        sa.update(STOREFRONT_ORDER)
        .where(REFUND_OF_ATTEMPT, REFUND_IS_OPEN)
        .values(refund="done", **REFUND_ENDED)
        .returning(STOREFRONT_ORDER.c.id)
    )


@first_row(str)
def mark_refund_failed(*, attempt: str, now: float) -> sa.Executable:
    """The payer's bank or the processor undid the refund `attempt`; returns the order, or None where that was known."""
    # Not of one that is owed: what fell is known of it then, and it is about to be tried anew.
    return (
        sa.update(STOREFRONT_ORDER)
        .where(REFUND_OF_ATTEMPT, STOREFRONT_ORDER.c.refund.in_(["sending", "unknown", "done"]))
        .values(refund="failed", **REFUND_ENDED)
        .returning(STOREFRONT_ORDER.c.id)
    )


@changes_one
def mark_refund_never_made(*, attempt: str, now: Annotated[float, "now_ms"]) -> sa.Executable:
    """The refund `attempt` surely had no effect, so it is owed as before; False where that was known. `now`: Unix seconds."""
    return (
        sa.update(STOREFRONT_ORDER)
        .where(REFUND_OF_ATTEMPT, STOREFRONT_ORDER.c.refund.in_(["sending", "unknown"]))
        .values(refund="owed", lease=None, due_ms=ORDER_NOW_MS, tries=0, updated=ORDER_NOW)
    )


@changes_one
def retry_refund(*, order: str, now: Annotated[float, "now_ms"]) -> sa.Executable:
    """A person has a refund tried once more that had failed, or was given up; False where it has neither. `now`: Unix seconds."""
    # One of unknown outcome goes again as it was; one that was refused goes anew.
    again = sa.case((STOREFRONT_ORDER.c.refund == "unknown", "unknown"), else_="owed")
    return (
        sa.update(STOREFRONT_ORDER)
        .where(THIS_ORDER, STOREFRONT_ORDER.c.status == "failed", STOREFRONT_ORDER.c.refund.in_(["failed", "unknown"]))
        .values(refund=again, lease=None, due_ms=ORDER_NOW_MS, tries=0, updated=now)
    )


@row_exists
def accept_top_up(*, top_up: str, now: float) -> sa.Executable:
    """A person has seen the package of a top-up; False where the top-up does not need review. `now`: Unix seconds."""
    return (
        sa.update(STOREFRONT_ORDER)
        .where(STOREFRONT_ORDER.c.id == top_up, STOREFRONT_ORDER.c.status == "needs_review", STOREFRONT_ORDER.c.top_up_of.is_not(None))
        .values(status="ready", code=None, ready_at=ORDER_NOW, due_ms=None, **ENDED_WORK)
        .returning(STOREFRONT_ORDER.c.id)
    )


@row_exists
def has_stale_top_up(*, before: float) -> sa.Executable:
    """Whether a top-up has been under way for so long that its process may have died; a read. `before`: Unix seconds."""
    return (
        sa.select(STOREFRONT_ORDER.c.id)
        .where(
            STOREFRONT_ORDER.c.status == "provisioning",
            STOREFRONT_ORDER.c.top_up_of.is_not(None),
            STOREFRONT_ORDER.c.updated < before,
        )
        .limit(1)
    )


@all_rows(str)
def lost_orders(*, most: int) -> sa.Executable:
    """Orders whose eSIM may have been drawn by a process that is gone; a read."""
    # What the ledger cannot tell, and the order does not say yet: recovery settles a dead process's rows without knowing what they are for.
    return (
        sa.select(STOREFRONT_ORDER.c.id)
        .select_from(ORDERS_WITH_LEDGER)
        .where(
            STOREFRONT_ORDER.c.status == "provisioning",
            STOREFRONT_ORDER.c.top_up_of.is_(None),
            ISSUANCE.c.state.in_(UNRESOLVED_ISSUANCE_STATES),
        )
        .order_by(STOREFRONT_ORDER.c.updated)
        .limit(most)
    )


@all_rows(OrderRow)
def pending_orders(*, account: str, most: int) -> sa.Executable:
    """Orders of the processor's `account` that buyers may have paid for, newest first."""
    return (
        sa.select(*ORDER_COLUMNS)
        .select_from(ORDERS_WITH_LEDGER)
        .where(
            STOREFRONT_ORDER.c.status == "pending_payment",
            STOREFRONT_ORDER.c.payee == account,
            STOREFRONT_ORDER.c.session.is_not(None),
        )
        .order_by(STOREFRONT_ORDER.c.created.desc())
        .limit(most)
    )


def sweep_pending(connection: Connection, *, before: float, most: int) -> int:
    """Forget the oldest of what was never paid, and what would open it; how many there were. `before`: Unix seconds."""
    gone = connection.all(FORGET_PENDING, before_then=before, most=most)
    if gone:
        forget_access(connection, orders=gone)
    return len(gone)
