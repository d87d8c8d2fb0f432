"""The queue of orders and top-ups: who works on a row under a lease, and the moves of a row, each a conditional update.

pending_payment -> paid | failed (paid otherwise than agreed); paid -> provisioning -> ready | failed | needs_review -> ready | failed;
provisioning -> paid where it surely never left; failed -> needs_review when an eSIM is named late and no refund has been begun.
A failed order that was paid has a refund: owed -> sending -> done | unknown | failed. What of a top-up is sent is in top_ups.py.
"""

from typing import NamedTuple

import sqlalchemy as sa

from storage.connection import Connection
from storage.issuing.issuance import ISSUANCE, UNSETTLED
from storage.next_values import Rows, next_values
from storage.shop.order_access import forget_access
from storage.shop.orders import COLUMNS, JOINED, ORDER, OrderRow
from storage.statement import Command, Query, Value, unindexed

LEASE_MS = 120_000
TO_REFUND = ("owed", "sending", "unknown")


class Moved(NamedTuple):
    """A row that was written."""

    id: str


class Place(NamedTuple):
    """An organisation that has something due, and since when."""

    organisation: str
    due_ms: int | None


class Paid(NamedTuple):
    """What the processor said of the payment. `code`: it is not what was agreed, so it goes back."""

    email: str | None
    payment_intent: str | None
    amount: int
    code: str | None


class Esim(NamedTuple):
    """What an order got: `sealed` is what installs it."""

    iccid: str
    sealed: str
    package_id: int | None


NOW_MS = sa.bindparam("now_ms", type_=sa.BigInteger)
NOW = sa.bindparam("now", type_=sa.Double)
THIS: sa.ColumnElement[bool] = ORDER.c.id == sa.bindparam("named")
MINE: sa.ColumnElement[bool] = THIS & (ORDER.c.lease == sa.bindparam("mine"))
REFUNDED = ORDER.c.refund.in_(TO_REFUND)
UNPAID_STATUS: sa.ColumnElement[str] = sa.literal_column("'pending_payment'", sa.Text)


def unpaid(order: sa.FromClause) -> sa.ColumnElement[bool]:
    """Pages that nobody has paid and that somebody is to look at. In the words of the index of just these rows, as the next one is."""
    return order.c.due_ms.is_not(None) & (unindexed(order.c.status) == UNPAID_STATUS)


def paid(order: sa.FromClause) -> sa.ColumnElement[bool]:
    """What has been paid and is not done with."""
    status = unindexed(order.c.status)
    queued = (
        (status == "paid")
        | ((status == "failed") & order.c.refund.in_(TO_REFUND))
        | ((status == "needs_review") & order.c.top_up_of.is_not(None))
    )
    return order.c.due_ms.is_not(None) & (status != UNPAID_STATUS) & queued


def due_in(rows: Rows) -> Query[Place]:
    """Organisations with something of these rows, and since when the oldest is due: a step in the index for each of them."""
    place, oldest = next_values(ORDER, "organisation", rows, "place"), ORDER.alias("oldest")
    due = sa.select(sa.func.min(oldest.c.due_ms)).where(rows(oldest), oldest.c.organisation == place.c.value)
    found = sa.select(place.c.value.label("organisation"), due.correlate(place).scalar_subquery().label("due_ms"))
    return Query(Place, found.where(place.c.value.is_not(None)))


def pick(rows: Rows) -> sa.ScalarSelect[str]:
    """The oldest of an organisation that nobody else takes at this moment."""
    due = (rows(ORDER), ORDER.c.organisation == sa.bindparam("of"), ORDER.c.due_ms <= NOW_MS)
    found = sa.select(ORDER.c.id).where(*due).order_by(ORDER.c.due_ms, ORDER.c.created, ORDER.c.id)
    return found.limit(1).with_for_update(skip_locked=True).scalar_subquery()


DUE_PLACES = (due_in(paid), due_in(unpaid))
# Who has paid comes first: pages that nobody paid may be many, and asking about them takes as long as the processor likes.
CLAIM = Query(
    Moved,
    sa.update(ORDER)
    .where(ORDER.c.id == sa.func.coalesce(pick(paid), pick(unpaid)))
    .values(lease=sa.bindparam("token"), due_ms=sa.bindparam("lease_end"))
    .returning(ORDER.c.id),
)
FIND = Query(OrderRow, sa.select(*COLUMNS).select_from(JOINED).where(ORDER.c.id == sa.bindparam("named")))
LATER = Command(
    sa.update(ORDER)
    .where(MINE)
    .values(lease=None, due_ms=sa.bindparam("due_ms"), tries=ORDER.c.tries + sa.bindparam("tried", type_=sa.Integer))
)
HOLD = Command(sa.update(ORDER).where(MINE, ORDER.c.status == "paid").values(lease=sa.bindparam("mine")))
PAY = Query(
    Moved,
    sa.update(ORDER)
    .where(THIS, ORDER.c.status == "pending_payment")
    .values(
        status=sa.bindparam("to"),
        code=sa.bindparam("why"),
        email=sa.bindparam("address"),
        payment_intent=sa.bindparam("intent"),
        paid_amount=sa.bindparam("paid"),
        paid_at=NOW,
        refund=sa.bindparam("owed"),
        due_ms=NOW_MS,
        lease=None,
        tries=0,
        updated=NOW,
    )
    .returning(ORDER.c.id),
)
SEND = Command(
    sa.update(ORDER)
    .where(MINE, ORDER.c.status == "paid")
    .values(status="provisioning", owner=sa.bindparam("by"), updated=sa.bindparam("now"))
)
UNSEND = Command(sa.update(ORDER).where(THIS, ORDER.c.status == "provisioning").values(status="paid", owner=None))
SETTLED: dict[str, object] = {"owner": None, "lease": None, "tries": 0, "updated": NOW}
READY = Query(
    Moved,
    sa.update(ORDER)
    .where(THIS, ORDER.c.status.in_(["provisioning", "needs_review"]))
    .values(
        status="ready",
        code=None,
        iccid=sa.bindparam("has"),
        esim=sa.bindparam("sealed"),
        esim_binding=None,
        package_id=sa.bindparam("package"),
        ready_at=NOW,
        due_ms=None,
        **SETTLED,
    )
    .returning(ORDER.c.id),
)
OWED = sa.case((ORDER.c.paid_amount > 0, "owed"), else_=None)
FAILED: dict[str, object] = {
    "status": "failed",
    "code": sa.bindparam("why"),
    "refund": OWED,
    "refund_attempt": None,
    "due_ms": sa.case((ORDER.c.paid_amount > 0, NOW_MS), else_=None),
    **SETTLED,
}
FAIL = Query(
    Moved,
    sa.update(ORDER).where(THIS, ORDER.c.status.in_(["paid", "provisioning", "needs_review"])).values(FAILED).returning(ORDER.c.id),
)
# The index of states finds them: few orders are paid and not sent yet.
FAIL_GIVEN_BACK = Query(
    Moved,
    sa.update(ORDER)
    .where(ORDER.c.status == "paid", ORDER.c.payee == sa.bindparam("account"), ORDER.c.payment_intent == sa.bindparam("intent"))
    .values(FAILED)
    .returning(ORDER.c.id),
)
REVIEW = Query(
    Moved,
    sa.update(ORDER)
    .where(THIS, ORDER.c.status.in_(["paid", "provisioning"]))
    .values(status="needs_review", code=sa.bindparam("why"), due_ms=None, **SETTLED)
    .returning(ORDER.c.id),
)
REOPEN = Query(
    Moved,
    sa.update(ORDER)
    .where(THIS, ORDER.c.status == "failed", ORDER.c.refund.is_(None) | (ORDER.c.refund == "owed"))
    .values(status="needs_review", code=sa.bindparam("why"), refund=None, due_ms=None, **SETTLED)
    .returning(ORDER.c.id),
)
BEGIN_REFUND = Command(
    sa.update(ORDER).where(MINE, ORDER.c.status == "failed", REFUNDED).values(refund="sending", refund_attempt=sa.bindparam("attempt"))
)
SET_REFUND = Command(
    sa.update(ORDER)
    .where(MINE, ORDER.c.status == "failed", REFUNDED)
    .values(
        refund=sa.bindparam("to"), lease=None, due_ms=sa.bindparam("due_ms"), tries=ORDER.c.tries + sa.bindparam("tried", type_=sa.Integer)
    )
)
ENDED: dict[str, object] = {"lease": None, "due_ms": None, "updated": NOW}
# Only a failed order has a refund; of these there are few.
OF_ATTEMPT = (ORDER.c.refund_attempt == sa.bindparam("attempt")) & (ORDER.c.status == "failed")
MADE = Query(Moved, sa.update(ORDER).where(OF_ATTEMPT, REFUNDED).values(refund="done", **ENDED).returning(ORDER.c.id))
# Not of one that is owed: what fell is known of it then, and it is about to be tried anew.
FELL = Query(
    Moved,
    sa.update(ORDER)
    .where(OF_ATTEMPT, ORDER.c.refund.in_(["sending", "unknown", "done"]))
    .values(refund="failed", **ENDED)
    .returning(ORDER.c.id),
)
NEVER_MADE = Command(
    sa.update(ORDER)
    .where(OF_ATTEMPT, ORDER.c.refund.in_(["sending", "unknown"]))
    .values(refund="owed", lease=None, due_ms=NOW_MS, tries=0, updated=NOW)
)
OWE_AGAIN = Query(
    Moved,
    sa.update(ORDER)
    .where(THIS, ORDER.c.status == "failed", ORDER.c.refund.in_(["failed", "unknown"]))
    .values(
        # One of unknown outcome goes again as it was; one that was refused goes anew.
        refund=sa.case((ORDER.c.refund == "unknown", "unknown"), else_="owed"),
        lease=None,
        due_ms=NOW_MS,
        tries=0,
        updated=NOW,
    )
    .returning(ORDER.c.id),
)
ACCEPT = Query(
    Moved,
    sa.update(ORDER)
    .where(THIS, ORDER.c.status == "needs_review", ORDER.c.top_up_of.is_not(None))
    .values(status="ready", code=None, ready_at=NOW, due_ms=None, **SETTLED)
    .returning(ORDER.c.id),
)
# What the ledger cannot tell, and the order does not say yet: recovery settles a dead process's rows without knowing what they are for.
LOST = Query(
    Moved,
    sa.select(ORDER.c.id)
    .select_from(JOINED)
    .where(ORDER.c.status == "provisioning", ORDER.c.top_up_of.is_(None), ISSUANCE.c.state.in_(UNSETTLED))
    .order_by(ORDER.c.updated)
    .limit(sa.bindparam("most")),
)
STALE_TOP_UP = Query(
    Moved,
    sa.select(ORDER.c.id)
    .where(ORDER.c.status == "provisioning", ORDER.c.top_up_of.is_not(None), ORDER.c.updated < sa.bindparam("before_then"))
    .limit(1),
)
PENDING = Query(
    OrderRow,
    sa.select(*COLUMNS)
    .select_from(JOINED)
    .where(ORDER.c.status == "pending_payment", ORDER.c.payee == sa.bindparam("account"), ORDER.c.session.is_not(None))
    .order_by(ORDER.c.created.desc())
    .limit(sa.bindparam("most")),
)
NEVER_PAID = (ORDER.c.status == "pending_payment") & (ORDER.c.updated < sa.bindparam("before_then"))
FORGET = Query(
    Moved,
    sa.delete(ORDER)
    .where(ORDER.c.id.in_(sa.select(ORDER.c.id).where(NEVER_PAID).order_by(ORDER.c.updated).limit(sa.bindparam("most"))), NEVER_PAID)
    .returning(ORDER.c.id),
)


def due_places(connection: Connection, *, now_ms: int) -> list[str]:
    """Organisations that have something due, the longest waiting first; a read, so that an idle worker never takes the write lock."""
    due: dict[str, int] = {}
    for place in (place for statement in DUE_PLACES for place in connection.all(statement)):
        if place.due_ms is not None and place.due_ms <= now_ms:
            due[place.organisation] = min(place.due_ms, due.get(place.organisation, now_ms))
    return sorted(due, key=lambda organisation: due[organisation])


def claim_order(connection: Connection, *, organisation: str, token: str, now_ms: int) -> OrderRow | None:
    """Take what is due longest, paid before unpaid, for two minutes; then it is due again, whatever became of its worker."""
    taken = connection.first(CLAIM, of=organisation, token=token, now_ms=now_ms, lease_end=now_ms + LEASE_MS)
    return None if taken is None else connection.first(FIND, named=taken.id)


def work_later(connection: Connection, *, order: str, token: str, due_ms: int | None, tried: bool = True) -> bool:
    """Nothing came of it now; False when the lease was lost or the row moved on. Without a time nobody looks again by themselves."""
    return connection.run(LATER, named=order, mine=token, due_ms=due_ms, tried=int(tried)) == 1


def hold_order(connection: Connection, *, order: str, token: str) -> bool:
    """Whether a paid order is this worker's still, and not sent; it stays so until the commit."""
    return connection.run(HOLD, named=order, mine=token) == 1


def pay_order(connection: Connection, *, order: str, paid: Paid, now: float) -> bool:
    """It was paid, once for ever: to be fulfilled, or, where it was not paid as agreed, to be given back."""
    move: dict[str, Value] = {"to": "paid" if paid.code is None else "failed", "why": paid.code, "address": paid.email}
    owed = "owed" if paid.code is not None and paid.amount > 0 else None
    move |= {"intent": paid.payment_intent, "paid": paid.amount, "owed": owed}
    return connection.first(PAY, named=order, **move, now=now, now_ms=int(now * 1000)) is not None


def send_order(connection: Connection, *, order: str, token: str, owner: str, now: float) -> bool:
    """It is about to be sent by this process; False when it is not this worker's to send."""
    return connection.run(SEND, named=order, mine=token, by=owner, now=now) == 1


def unsend_order(connection: Connection, *, order: str) -> None:
    """It surely never left; whoever has the lease says when it is tried again."""
    connection.run(UNSEND, named=order)


def make_ready(connection: Connection, *, order: str, esim: Esim, now: float) -> bool:
    """The eSIM is the buyer's; False when the order had ended before."""
    values: dict[str, Value] = {"has": esim.iccid, "sealed": esim.sealed, "package": esim.package_id}
    return connection.first(READY, named=order, **values, now=now) is not None


def fail_order(connection: Connection, *, order: str, code: str, now: float) -> bool:
    """Nothing is delivered, so what was paid is owed back; False when it had ended before."""
    return connection.first(FAIL, named=order, why=code, now=now, now_ms=int(now * 1000)) is not None


def fail_given_back(connection: Connection, *, account: str, payment_intent: str, code: str, now: float) -> list[str]:
    """What was paid so, and not sent yet, is not sent any more; its ids. What is owed of it is found out by whoever gives it back."""
    found = connection.all(FAIL_GIVEN_BACK, account=account, intent=payment_intent, why=code, now=now, now_ms=int(now * 1000))
    return [order.id for order in found]


def review_order(connection: Connection, *, order: str, code: str, now: float) -> bool:
    """Nobody knows what came of it; False when that was known before."""
    return connection.first(REVIEW, named=order, why=code, now=now) is not None


def reopen_order(connection: Connection, *, order: str, code: str, now: float) -> bool:
    """It was said to have failed, and that is not certain any more; False when its refund has been begun: that stands."""
    return connection.first(REOPEN, named=order, why=code, now=now) is not None


def begin_refund(connection: Connection, *, order: str, token: str, attempt: str) -> bool:
    """The refund is about to be sent; False when it is not this worker's to send."""
    return connection.run(BEGIN_REFUND, named=order, mine=token, attempt=attempt) == 1


def set_refund(connection: Connection, *, order: str, token: str, state: str, due_ms: int | None) -> bool:
    """How the refund stands after this look; False when the lease was lost or it has ended."""
    return connection.run(SET_REFUND, named=order, mine=token, to=state, due_ms=due_ms, tried=int(due_ms is not None)) == 1


def refund_was_made(connection: Connection, *, attempt: str, now: float) -> str | None:
    """The processor made what was asked for; the order, where that was news."""
    found = connection.first(MADE, attempt=attempt, now=now)
    return None if found is None else found.id


def refund_fell(connection: Connection, *, attempt: str, now: float) -> str | None:
    """The payer's bank did not take it, or the processor withdrew it; the order, where that was news."""
    found = connection.first(FELL, attempt=attempt, now=now)
    return None if found is None else found.id


def refund_was_never_made(connection: Connection, *, attempt: str, now: float) -> bool:
    """It is proved that what was sent had no effect: the refund is owed as before."""
    return connection.run(NEVER_MADE, attempt=attempt, now=now, now_ms=int(now * 1000)) == 1


def owe_again(connection: Connection, *, order: str, now: float) -> bool:
    """A person has a refund tried once more that had failed, or was given up; False where it has neither."""
    return connection.first(OWE_AGAIN, named=order, now=now, now_ms=int(now * 1000)) is not None


def accept_top_up(connection: Connection, *, top_up: str, now: float) -> bool:
    """A person has seen that the package is there; False where the top-up does not need review."""
    return connection.first(ACCEPT, named=top_up, now=now) is not None


def has_stale_top_up(connection: Connection, *, before: float) -> bool:
    """Whether a top-up has been under way for so long that its process may have died; a read."""
    return connection.first(STALE_TOP_UP, before_then=before) is not None


def lost_orders(connection: Connection, *, most: int) -> list[str]:
    """Orders whose eSIM may have been drawn by a process that is gone; a read."""
    return [row.id for row in connection.all(LOST, most=most)]


def pending_orders(connection: Connection, *, account: str, most: int) -> list[OrderRow]:
    """What buyers may have paid for, the newest first."""
    return connection.all(PENDING, account=account, most=most)


def sweep_pending(connection: Connection, *, before: float, most: int) -> int:
    """Forget the oldest of what was never paid, and what would open it; how many there were."""
    gone = [row.id for row in connection.all(FORGET, before_then=before, most=most)]
    if gone:
        forget_access(connection, orders=gone)
    return len(gone)
