"""What follows when the payment processor tells of an account's money: of a charge, refund, dispute, payout, fee, checkout or invoice.

It tells by events, and by its lists, which are read newest first: they show what an event that was lost would have told.
"""

from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import NamedTuple, TypeAlias, TypeVar

import orjson

from clients.payments.records import ApplicationFee, Charge, CheckoutSession, Dispute, Payout, ProcessorInvoice, ProcessorPage, Refund
from operations.deps import Deps
from operations.ledger.invoices import log_invoice_paid, log_invoice_sent
from operations.ledger.orders import announce_order_failed, log_order_paid, log_order_refunded, mail_refund_failed
from operations.ledger.payment_records import (
    FAILED_TRANSFER_STATUSES,
    ChargeRecord,
    FeeRecord,
    ProcessorRecord,
    RefundRecord,
    load_payment_record,
    log_record_event,
    payment_record_facts,
    payment_record_of,
    refresh_charge_refunds,
    refunded_amount,
    render_transfer,
)
from operations.ledger.send_once import answer_unknown_key, audit_settlement
from operations.vocabulary import is_email, normal_email
from registry.clock import DAY_SECONDS
from registry.errors import NotFound, PaymentsRefused
from registry.ids import Ids
from storage.affiliates import referral_of
from storage.commissions import PlatformFee, add_to_commission, insert_fee
from storage.engine.sql import Connection
from storage.invoices import find_invoice_at_processor, note_invoice_arrival, pay_invoice, sent_invoices
from storage.order_queue import (
    OrderPayment,
    fail_refunded_orders,
    mark_refund_failed,
    mark_refund_made,
    mark_refund_never_made,
    pay_order,
    pending_orders,
)
from storage.orders import OrderRow, order_of_session
from storage.payment_records import (
    AttemptKind,
    PaymentAttempt,
    PaymentRecord,
    charges_of,
    conclude_attempt,
    find_attempt,
    find_payment_record,
    lock_payment_account,
    open_attempts,
    put_payment_record,
    records_of_charge,
)

REFUND_OPERATION, PAYOUT_OPERATION = "operator_billing_create_refund", "operator_billing_create_manual_payout"
ATTEMPT_OPERATIONS: dict[str, str] = {"refund": REFUND_OPERATION, "payout": PAYOUT_OPERATION}
PAYMENT_CREATED = 201


def payment_not_made(kind: AttemptKind) -> PaymentsRefused:
    """The refusal where it is proved that the processor made no refund or payout (`kind`)."""
    return PaymentsRefused(f"The payment processor made no {kind} for this call; no money was moved", hint="Use a new key to try again")


def update_attempt_answer(connection: Connection, deps: Deps, attempt: PaymentAttempt, status: int, body: object, now: float) -> None:
    """Stores `status` and `body` as the answer of the key of `attempt`. A call that still runs stores its own, and its own audit row."""
    if replace_unknown_answer(connection, deps, attempt, status, body) or attempt.state == "unknown":
        outcome, operation = "settled_done" if status == PAYMENT_CREATED else "settled_failed", ATTEMPT_OPERATIONS[attempt.kind]
        audit_settlement(connection, deps, attempt.organisation, operation, outcome, now=now, status=status, by="settlement")


def replace_unknown_answer(connection: Connection, deps: Deps, attempt: PaymentAttempt, status: int, body: object) -> bool:
    """Store `status` and `body` as the answer of the attempt's key, where its answer was that nobody knows; whether that was so."""
    operation, key = ATTEMPT_OPERATIONS[attempt.kind], attempt.claim_key
    return key is not None and answer_unknown_key(connection, deps, attempt.organisation, operation, key, status, body)


def take_processor_record(
    connection: Connection,
    *,
    deps: Deps,
    account: str,
    organisation: str,
    thing: ProcessorRecord,
    as_of: float,
    now: float,
    baseline: bool = False,
) -> bool:
    """Keep it where it is newer than what is known; True where it says something else. That is an event, but for what is a `baseline`:
    it was there before anybody could know of it.

    An old word may still tell that a refund or payout of ours was made at all.
    """
    given_back = known_fee_refund(connection, account, thing) if isinstance(thing, ApplicationFee) else 0
    record = payment_record_of(thing, account=account, organisation=organisation, as_of=as_of)
    known = find_payment_record(connection, account=account, kind=payment_record_facts(thing)[0], id=record.id)
    news = put_payment_record(connection, record=record) and (known is None or known.body != record.body)
    if news and not (baseline and known is None):
        log_record_event(connection, deps, thing, record, None if known is None else orjson.loads(known.body).get("status"), now)
    match thing:
        case Refund() | Payout():
            record_attempt_made(connection, deps=deps, account=account, thing=thing, now=now)
        case ApplicationFee():
            record_fee(connection, deps=deps, organisation=organisation, fee=thing, before=given_back, now=now)
        case _:
            pass
    charge = thing.id if isinstance(thing, Charge) else thing.charge if isinstance(thing, Refund) else None
    if charge is not None:
        refresh_charge_refunds(connection, account=account, charge=charge, now=now)
        take_order_refunds(connection, deps=deps, account=account, charge=charge, now=now)
    return news


def known_fee_refund(connection: Connection, account: str, fee: ApplicationFee) -> int:
    record = find_payment_record(connection, account=account, kind="fee", id=fee.id)
    return 0 if record is None else load_payment_record(record, FeeRecord)["amount_refunded"]


def record_fee(connection: Connection, *, deps: Deps, organisation: str, fee: ApplicationFee, before: int, now: float) -> None:
    """A platform fee is final when the processor has collected it; what was given back since `before` is a negative fee of its month.

    Choice: its own word about the fee is the only one that counts, for invoices and sales alike. What a payment says about itself is
    written by whoever has the account.
    """
    month, after = datetime.fromtimestamp(fee.created, UTC).strftime("%Y-%m"), known_fee_refund(connection, fee.account, fee)
    amounts = {fee.id: fee.amount}
    if after > before:
        amounts[f"{fee.id}:refunded:{after}"] = before - after
    for ref, amount in amounts.items():
        record_platform_fee(
            connection, ref=ref, organisation=organisation, month=month, currency=fee.currency, amount=amount, now=now, ids=deps.ids
        )


def record_attempt_made(connection: Connection, *, deps: Deps, account: str, thing: Refund | Payout, now: float) -> None:
    """The processor tells of a refund or payout: if it is of an attempt, that one has been made, and its key answers with it.

    An account's owner may write any metadata, so what it names must be that account's, of this charge, amount and currency.
    """
    named = thing.metadata.get("attempt")
    attempt = None if named is None else find_attempt(connection, attempt=named)
    if attempt is None or not is_result_of_attempt(thing, attempt, account):
        return
    update_refunded_order(connection, deps, attempt, thing, now)
    if conclude_attempt(connection, attempt=attempt.id, state="done", made=thing.id, now=now):
        update_attempt_answer(connection, deps, attempt, PAYMENT_CREATED, render_transfer(thing), now)


def update_refunded_order(connection: Connection, deps: Deps, attempt: PaymentAttempt, thing: Refund | Payout, now: float) -> None:
    """An order that the refund is of stands as the refund does; where the buyer did not get it, the operator is told.

    The newest word counts, which was kept before: this one may be old.
    """
    record = find_payment_record(connection, account=attempt.account, kind="refund", id=thing.id)
    if (thing.status if record is None else load_payment_record(record, RefundRecord)["status"]) not in FAILED_TRANSFER_STATUSES:
        made = mark_refund_made(connection, attempt=attempt.id, now=now)
        if made is not None:
            log_order_refunded(connection, deps, made)
        return
    order = mark_refund_failed(connection, attempt=attempt.id, now=now)
    if order is not None:
        mail_refund_failed(connection, deps, order)


def is_result_of_attempt(thing: Refund | Payout, attempt: PaymentAttempt, account: str) -> bool:
    kind, charge = ("refund", thing.charge) if isinstance(thing, Refund) else ("payout", None)
    wanted = (attempt.account, attempt.kind, attempt.charge, attempt.amount, attempt.currency)
    return wanted == (account, kind, charge, thing.amount, thing.currency)


COMMISSION_MONTHS = 12


def record_platform_fee(
    connection: Connection, *, ref: str, organisation: str, month: str, currency: str, amount: int, now: float, ids: Ids
) -> None:
    """Keep a fee that has become final, and give its affiliate the share; to be called inside the write that makes it final.

    `ref` names what the fee came from: recorded again it has no effect. A fee that is taken back is a negative amount with a `ref`
    of its own. `month` is `YYYY-MM`, `amount` in minor units of `currency`.
    """
    fee = PlatformFee(ref, organisation, month, currency, amount, now)
    if not insert_fee(connection, fee=fee):
        return
    referral = referral_of(connection, organisation=organisation)
    if referral is not None and earns_commission(month, referral.created):
        add_to_commission(connection, id=ids.new("com_"), affiliate=referral.affiliate, fee=fee)


def earns_commission(month: str, referred: float) -> bool:
    """Whether fees of the month earn a commission.

    Choice: twelve calendar months, in UTC: the one in which the organisation was referred, whole, and the eleven after it.
    """
    began, year, number = datetime.fromtimestamp(referred, UTC), int(month[:4]), int(month[5:])
    return 0 <= (year - began.year) * 12 + number - began.month < COMMISSION_MONTHS


PAYMENT_MISMATCH, PAYMENT_REFUNDED = "payment_mismatch", "payment_refunded"


def take_checkout(connection: Connection, *, deps: Deps, account: str, session: CheckoutSession, now: float) -> bool:
    """Orders and top-ups alike; True where it was news. Of a checkout that is not paid, or is of nothing of ours, nothing follows.

    Choice: what was paid otherwise than agreed is not delivered, whatever the difference: it fails, and all of it goes back.
    """
    row = order_of_session(connection, session=session.id, payee=account)
    if row is None or not is_paid_checkout(session):
        return False
    # The currency of the order, and no more than its price: a promotion may have made it less.
    agreed = session.currency == row.currency and 0 <= session.amount_total <= row.amount
    code = None if agreed else PAYMENT_MISMATCH
    address = None if session.email is None or not is_email(session.email) else normal_email(session.email)
    paid = OrderPayment(address, session.payment_intent, session.amount_total, code)
    news = pay_order(connection, order=row.id, paid=paid, now=now)
    if news:
        tell = log_order_paid if code is None else announce_order_failed
        tell(connection, deps, row.id)
    return news


def take_order_refunds(connection: Connection, *, deps: Deps, account: str, charge: str, now: float) -> None:
    """An order whose whole payment went back before anything was sent for it, whoever gave it back, is not delivered.

    Choice: a part that went back is a discount. Of an order that was delivered, or is being, the refund is its operator's own affair.
    """
    record = find_payment_record(connection, account=account, kind="charge", id=charge)
    intent = None if record is None else load_payment_record(record, ChargeRecord)["payment_intent"]
    if record is None or intent is None or not is_fully_refunded(connection, record):
        return
    for order in fail_refunded_orders(connection, account=account, payment_intent=intent, code=PAYMENT_REFUNDED, now=now):
        announce_order_failed(connection, deps, order)


def was_order_refunded(connection: Connection, *, row: OrderRow) -> bool:
    """Whether the payment of `row` went back whole. Ask before it is sent: the refund may have been told of before the payment."""
    charges = [] if row.payment_intent is None else charges_of(connection, account=row.payee, payment_intent=row.payment_intent)
    return any(is_fully_refunded(connection, charge) for charge in charges)


def is_fully_refunded(connection: Connection, charge: PaymentRecord) -> bool:
    refunds = records_of_charge(connection, account=charge.account, kind="refund", charge=charge.id)
    return refunded_amount(charge, refunds) >= load_payment_record(charge, ChargeRecord)["amount"]


def is_paid_checkout(session: CheckoutSession) -> bool:
    """Whether money came in for `session`, or its page cost nothing and was completed; open and expired pages may look alike."""
    return session.payment_status == "paid" or (session.status == "complete" and session.payment_status == "no_payment_required")


def take_invoice_payment(connection: Connection, *, deps: Deps, account: str, invoice: ProcessorInvoice, now: float) -> bool:
    """Mark our invoice paid; told again it has no effect. To be called inside the webhook's transaction.

    Choice: paid is what the processor calls paid, also by credit or by money that came past it. The platform fee is earned when the
    processor tells that it collected one, not here.

    False: the account has no such invoice of ours, or it is void, or comes to another amount. One that was being handed over when we
    lost sight of it is found by the id that it carries.
    """
    if invoice.status != "paid":
        return False
    named = invoice.metadata.get("invoice", "")
    found = find_invoice_at_processor(connection, account=account, processor_invoice=invoice.id, invoice=named)
    if found is None or (found.total_cents, found.currency) != (invoice.total, invoice.currency):
        return False
    moment = int(now) if invoice.paid_at is None else invoice.paid_at
    if found.status == "draft":
        arrived = note_invoice_arrival(connection, invoice=found.id, processor_invoice=invoice.id, issued_at=moment, now=now)
        if arrived is not None:
            log_invoice_sent(connection, deps, arrived)
    row = pay_invoice(connection, invoice=found.id, processor_invoice=invoice.id, pay_url=invoice.pay_url, paid_at=moment, now=now)
    if row is not None:
        log_invoice_paid(connection, deps, row)
    return row is not None or found.status == "paid"


SYNC_LIMIT, SYNC_PAGE = 1000, 100
# Choice: as long as the charging system gets for a draw. A call that was sent has ended long before.
SYNC_PATIENCE_SECONDS = 900
LOGGED_SECONDS = 90 * DAY_SECONDS
# How far the processor's clock may be from ours.
PROCESSOR_SKEW_SECONDS = 300
ListedRecord = TypeVar("ListedRecord", Charge, Refund, Dispute, Payout, ApplicationFee)
AskForList: TypeAlias = Callable[..., Awaitable[ProcessorPage[ListedRecord]]]


class SyncedPaymentAccount(NamedTuple):
    """An organisation's account."""

    organisation: str
    account: str
    baseline: bool


class SyncedList(NamedTuple):
    """What was read of a list: how much of it was news, and back to when; 0: there is nothing older."""

    news: int
    since: int


async def sync_payments(deps: Deps, *, organisation: str, account: str, baseline: bool = False) -> int:
    """Reads the lists of `account`; how many records were new or newer. Waits for the network; raises the processor's Refusal.

    `baseline`: the account was connected just now. What it did before that is stored, and is no event.
    """
    place, ask, began = SyncedPaymentAccount(organisation, account, baseline), deps.payments, deps.clock.now()
    # Charges come first, so that refunds and fees find theirs.
    charges = await sync_list(deps, place, partial(ask.list_charges, account))
    refunds = await sync_list(deps, place, partial(ask.list_refunds, account))
    disputes = await sync_list(deps, place, partial(ask.list_disputes, account))
    payouts = await sync_list(deps, place, partial(ask.list_payouts, account))
    fees = await sync_list(deps, place, ask.list_fees)
    settled = await sync_attempts(deps, place, payouts.since, began - SYNC_PATIENCE_SECONDS)
    paid = await sync_invoices(deps, place) + await sync_orders(deps, place)
    return charges.news + refunds.news + disputes.news + payouts.news + fees.news + settled + paid


async def sync_list(deps: Deps, place: SyncedPaymentAccount, ask: AskForList[ListedRecord]) -> SyncedList:
    """Page by page, each kept before the next is asked for. A word is of the second in which it was asked for."""
    seen, news, last = 0, 0, None
    while True:
        asked = int(deps.clock.now())
        found = await ask(limit=SYNC_PAGE, starting_after=last)
        things: Sequence[ProcessorRecord] = found.data
        news += await deps.store.write(take_listed_records, deps=deps, place=place, things=things, as_of=asked, now=deps.clock.now())
        seen += len(things)
        if not found.has_more or not things:
            return SyncedList(news, 0)
        if seen >= SYNC_LIMIT:
            return SyncedList(news, things[-1].created)
        last = things[-1].id


def take_listed_records(
    connection: Connection, *, deps: Deps, place: SyncedPaymentAccount, things: Sequence[ProcessorRecord], as_of: int, now: float
) -> int:
    if lock_payment_account(connection, account=place.account) != place.organisation:
        return 0
    word = {"account": place.account, "organisation": place.organisation}
    own = [thing for thing in things if not isinstance(thing, ApplicationFee) or thing.account == place.account]
    # Choice: what is older than the log keeps events is no news of today, though it is heard of for the first time.
    old = now - LOGGED_SECONDS
    return sum(
        take_processor_record(
            connection, deps=deps, **word, thing=thing, as_of=as_of, now=now, baseline=place.baseline or thing.created < old
        )
        for thing in own
    )


async def sync_attempts(deps: Deps, place: SyncedPaymentAccount, payouts_since: int, before: float) -> int:
    """What was sent by then and never heard of again, and is not there either, was never made.

    `before` counts from the beginning of the reading: what was sent while the lists were read may be on none of them.
    """
    found = await deps.store.read(open_attempts, account=place.account, most=SYNC_PAGE)
    settled = 0
    for attempt in found:
        # Not since it was begun: a refund of an order is sent again, and then its time begins anew.
        if attempt.updated <= before and await is_absent_at_processor(deps, place, attempt, payouts_since):
            settled += await deps.store.write(record_absent_attempt, deps=deps, attempt=attempt, now=deps.clock.now())
    return settled


async def is_absent_at_processor(deps: Deps, place: SyncedPaymentAccount, attempt: PaymentAttempt, payouts_since: int) -> bool:
    """The whole of what could hold it was read; had it been there, the attempt would be settled by now."""
    if attempt.charge is None:
        return payouts_since <= attempt.created - PROCESSOR_SKEW_SECONDS
    return (await sync_list(deps, place, partial(deps.payments.list_refunds, place.account, charge=attempt.charge))).since == 0


def record_absent_attempt(connection: Connection, *, deps: Deps, attempt: PaymentAttempt, now: float) -> bool:
    lock_payment_account(connection, account=attempt.account)
    failed = record_attempt_never_made(connection, deps=deps, attempt=attempt, now=now)
    if failed and attempt.charge is not None:
        refresh_charge_refunds(connection, account=attempt.account, charge=attempt.charge, now=now)
    return failed


async def sync_invoices(deps: Deps, place: SyncedPaymentAccount) -> int:
    """Invoices that the processor has collected and nobody told of."""
    paid = 0
    for sent in await deps.store.read(sent_invoices, organisation=place.organisation, account=place.account, most=SYNC_LIMIT):
        try:
            invoice = await deps.payments.find_invoice(place.account, sent.processor_invoice)
        except NotFound:
            continue
        if invoice.status == "paid":
            paid += await deps.store.write(take_invoice_payment, deps=deps, account=place.account, invoice=invoice, now=deps.clock.now())
    return paid


async def sync_orders(deps: Deps, place: SyncedPaymentAccount) -> int:
    """Orders of shops whose buyers have paid and nobody told of."""
    paid = 0
    for order in await deps.store.read(pending_orders, account=place.account, most=SYNC_LIMIT):
        try:
            session = await deps.payments.find_checkout(place.account, order.session or "")
        except NotFound:
            continue
        paid += await deps.store.write(take_checkout, deps=deps, account=place.account, session=session, now=deps.clock.now())
    return paid


def record_attempt_never_made(connection: Connection, *, deps: Deps, attempt: PaymentAttempt, now: float) -> bool:
    if not conclude_attempt(connection, attempt=attempt.id, state="failed", made=None, now=now):
        return False
    mark_refund_never_made(connection, attempt=attempt.id, now=now)
    refusal = payment_not_made("refund" if attempt.kind == "refund" else "payout")
    update_attempt_answer(connection, deps, attempt, refusal.status, refusal.body(deps.ids.new("req_")), now)
    return True
