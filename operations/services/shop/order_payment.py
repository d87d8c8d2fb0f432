"""A checkout that was paid: the order moves on, once for ever, whoever tells of it and however often."""

from clients.payments.records import CheckoutSession
from operations.deps import Deps
from operations.services.payments.charge_refunds import refunded_of
from operations.services.payments.payment_records import ChargeRecord, shown
from operations.services.people.addresses import is_address, normal
from operations.services.shop.order_letters import tell_failed
from registry.errors import NotFound, Refusal, StoreUnavailable
from storage.connection import Connection
from storage.money.payment_records import PaymentRecord, charges_of, find_record, records_of
from storage.shop.order_queue import Paid, fail_given_back, pay_order, work_later
from storage.shop.orders import OrderRow, order_of_session

PAYMENT_MISMATCH, PAYMENT_REFUNDED = "payment_mismatch", "payment_refunded"
AFTER_ITS_END, UNREACHED, CLEARING = 60, 300, 6 * 3600


def take_checkout(connection: Connection, *, deps: Deps, account: str, session: CheckoutSession, now: float) -> bool:
    """Orders and top-ups alike; True where it was news. Of a checkout that is not paid, or is of nothing of ours, nothing follows.

    Choice: what was paid otherwise than agreed is not delivered, whatever the difference: it fails, and all of it goes back.
    """
    row = order_of_session(connection, session=session.id, payee=account)
    if row is None or not is_paid(session):
        return False
    code = None if is_as_agreed(row, session) else PAYMENT_MISMATCH
    address = None if session.email is None or not is_address(session.email) else normal(session.email)
    paid = Paid(address, session.payment_intent, session.amount_total, code)
    news = pay_order(connection, order=row.id, paid=paid, now=now)
    if news and code is not None:
        tell_failed(connection, deps, row.id)
    return news


def take_refunds(connection: Connection, *, deps: Deps, account: str, charge: str, now: float) -> None:
    """An order whose whole payment went back before anything was sent for it, by whosever hand, is not delivered.

    Choice: a part that went back is a discount. Of an order that was delivered, or is being, the refund is its operator's own affair.
    """
    record = find_record(connection, account=account, kind="charge", id=charge)
    intent = None if record is None else shown(record, ChargeRecord)["payment_intent"]
    if record is None or intent is None or not went_back(connection, record):
        return
    for order in fail_given_back(connection, account=account, payment_intent=intent, code=PAYMENT_REFUNDED, now=now):
        tell_failed(connection, deps, order)


def was_refunded(connection: Connection, *, row: OrderRow) -> bool:
    """To be asked before it is sent: the refund may have been told of before the payment, or during a draw that came to nothing."""
    charges = [] if row.payment_intent is None else charges_of(connection, account=row.payee, payment_intent=row.payment_intent)
    return any(went_back(connection, charge) for charge in charges)


def went_back(connection: Connection, charge: PaymentRecord) -> bool:
    """All of it, by what is known."""
    refunds = records_of(connection, account=charge.account, kind="refund", charge=charge.id)
    return refunded_of(charge, refunds) >= shown(charge, ChargeRecord)["amount"]


def is_paid(session: CheckoutSession) -> bool:
    """Money has come in, or the buyer has completed a page of no cost: one that is open, or has expired, says so of itself as well."""
    return session.payment_status == "paid" or (session.status == "complete" and session.payment_status == "no_payment_required")


def is_as_agreed(row: OrderRow, session: CheckoutSession) -> bool:
    """The currency of the order, and no more than its price: a promotion may have made it less."""
    return session.currency == row.currency and 0 <= session.amount_total <= row.amount


async def look_for_payment(deps: Deps, row: OrderRow) -> None:
    """Ask the processor about an order that nobody told of, under the row's lease: a lost event loses no order."""
    token = row.lease or ""
    if row.session is None:
        await deps.store.write(work_later, order=row.id, token=token, due_ms=None)
        return
    try:
        session = await deps.payments.find_checkout(row.payee, row.session)
    except StoreUnavailable:
        raise
    except NotFound:
        await deps.store.write(work_later, order=row.id, token=token, due_ms=None)
        return
    except Refusal:
        due_ms = int((deps.clock.now() + UNREACHED) * 1000)
        await deps.store.write(work_later, order=row.id, token=token, due_ms=due_ms)
        return
    if not await deps.store.write(take_checkout, deps=deps, account=row.payee, session=session, now=deps.clock.now()):
        await deps.store.write(work_later, order=row.id, token=token, due_ms=next_look_ms(row, session, deps.clock.now()))


def next_look_ms(row: OrderRow, session: CheckoutSession, now: float) -> int | None:
    """When its page has ended; money that is under way may take days; of an unpaid page that has ended nothing comes any more."""
    if session.status == "open":
        return int((max(row.session_ends or session.expires_at, int(now)) + AFTER_ITS_END) * 1000)
    return int((now + CLEARING) * 1000) if session.status == "complete" else None
