"""Reading an account's money back from the processor, newest first: what a missed event would have told, and what nobody was told yet."""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import NamedTuple, TypeAlias, TypeVar

from clients.payments.records import ApplicationFee, Charge, Dispute, Payout, ProcessorPage, Refund
from operations.deps import Deps
from operations.ledger.payment_attempts import payment_not_made, update_attempt_answer
from operations.ledger.payment_intake import take_checkout, take_invoice_payment, take_processor_record
from operations.ledger.payment_records import ProcessorRecord, refresh_charge_refunds
from registry.errors import NotFound
from storage.engine.connection import Connection
from storage.invoices import sent_invoices
from storage.order_queue import mark_refund_never_made, pending_orders
from storage.payment_attempts import PaymentAttempt, conclude_attempt, open_attempts
from storage.payment_records import lock_payment_account

SYNC_LIMIT, SYNC_PAGE = 1000, 100
# Choice: as long as the charging system gets for a draw. A call that was sent has ended long before.
SYNC_PATIENCE_SECONDS = 900
# How far the processor's clock may be from ours.
PROCESSOR_SKEW_SECONDS = 300
ListedRecord = TypeVar("ListedRecord", Charge, Refund, Dispute, Payout, ApplicationFee)
AskForList: TypeAlias = Callable[..., Awaitable[ProcessorPage[ListedRecord]]]


class SyncedPaymentAccount(NamedTuple):
    """An organisation's account."""

    organisation: str
    account: str


class SyncedList(NamedTuple):
    """What was read of a list: how much of it was news, and back to when; 0: there is nothing older."""

    news: int
    since: int


async def sync_payments(deps: Deps, *, organisation: str, account: str) -> int:
    """How many records were new or newer. Raises what the processor fails at; what was read before that is kept."""
    place, ask, began = SyncedPaymentAccount(organisation, account), deps.payments, deps.clock.now()
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
    """The account's own among them, if it is still the organisation's."""
    if lock_payment_account(connection, account=place.account) != place.organisation:
        return 0
    word = {"account": place.account, "organisation": place.organisation}
    own = [thing for thing in things if not isinstance(thing, ApplicationFee) or thing.account == place.account]
    return sum(take_processor_record(connection, deps=deps, **word, thing=thing, as_of=as_of, now=now) for thing in own)


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
    """What was taken for it is there again."""
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
            paid += await deps.store.write(take_invoice_payment, account=place.account, invoice=invoice, now=deps.clock.now())
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
    """It is proved that the processor never made it."""
    if not conclude_attempt(connection, attempt=attempt.id, state="failed", made=None, now=now):
        return False
    mark_refund_never_made(connection, attempt=attempt.id, now=now)
    refusal = payment_not_made("refund" if attempt.kind == "refund" else "payout")
    update_attempt_answer(connection, deps, attempt, refusal.status, refusal.body(deps.ids.new("req_")), now)
    return True
