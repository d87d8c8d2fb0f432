"""Reading an account's money back from the processor, newest first: what a missed event would have told, and what nobody was told yet."""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import NamedTuple, TypeAlias, TypeVar

from clients.payments.records import ApplicationFee, Charge, Dispute, Listed, Payout, Refund
from operations.deps import Deps
from operations.services.payments.charge_refunds import refresh_refunds
from operations.services.payments.invoice_payment import take_payment
from operations.services.payments.payment_attempts import settle_as_failed
from operations.services.payments.payment_intake import take_word
from operations.services.payments.payment_records import Money
from operations.services.shop.order_payment import take_checkout
from registry.errors import NotFound
from storage.connection import Connection
from storage.money.payment_attempts import PaymentAttempt, open_attempts
from storage.money.payment_records import lock_account
from storage.money.sent_invoices import sent_invoices
from storage.shop.order_queue import pending_orders

MOST, PAGE = 1000, 100
# Choice: as long as the charging system gets for a draw. A call that was sent has ended long before.
PATIENCE_SECONDS = 900
# How far the processor's clock may be from ours.
SKEW_SECONDS = 300
T = TypeVar("T", Charge, Refund, Dispute, Payout, ApplicationFee)
Ask: TypeAlias = Callable[..., Awaitable[Listed[T]]]


class Place(NamedTuple):
    """An organisation's account."""

    organisation: str
    account: str


class Kept(NamedTuple):
    """What was read of a list: how much of it was news, and back to when; 0: there is nothing older."""

    news: int
    since: int


async def bring_up_to_date(deps: Deps, *, organisation: str, account: str) -> int:
    """How many records were new or newer. Raises what the processor fails at; what was read before that is kept."""
    place, ask, began = Place(organisation, account), deps.payments, deps.clock.now()
    # Charges come first, so that refunds and fees find theirs.
    charges = await keep(deps, place, partial(ask.list_charges, account))
    refunds = await keep(deps, place, partial(ask.list_refunds, account))
    disputes = await keep(deps, place, partial(ask.list_disputes, account))
    payouts = await keep(deps, place, partial(ask.list_payouts, account))
    fees = await keep(deps, place, ask.list_fees)
    settled = await settle_attempts(deps, place, payouts.since, began - PATIENCE_SECONDS)
    paid = await settle_invoices(deps, place) + await settle_orders(deps, place)
    return charges.news + refunds.news + disputes.news + payouts.news + fees.news + settled + paid


async def keep(deps: Deps, place: Place, ask: Ask[T]) -> Kept:
    """Page by page, each kept before the next is asked for. A word is of the second in which it was asked for."""
    seen, news, last = 0, 0, None
    while True:
        asked = int(deps.clock.now())
        found = await ask(limit=PAGE, starting_after=last)
        things: Sequence[Money] = found.data
        news += await deps.store.write(take_all, deps=deps, place=place, things=things, as_of=asked, now=deps.clock.now())
        seen += len(things)
        if not found.has_more or not things:
            return Kept(news, 0)
        if seen >= MOST:
            return Kept(news, things[-1].created)
        last = things[-1].id


def take_all(connection: Connection, *, deps: Deps, place: Place, things: Sequence[Money], as_of: int, now: float) -> int:
    """The account's own among them, if it is still the organisation's."""
    if lock_account(connection, account=place.account) != place.organisation:
        return 0
    word = {"account": place.account, "organisation": place.organisation}
    own = [thing for thing in things if not isinstance(thing, ApplicationFee) or thing.account == place.account]
    return sum(take_word(connection, deps=deps, **word, thing=thing, as_of=as_of, now=now) for thing in own)


async def settle_attempts(deps: Deps, place: Place, payouts_since: int, before: float) -> int:
    """What was sent by then and never heard of again, and is not there either, was never made.

    `before` counts from the beginning of the reading: what was sent while the lists were read may be on none of them.
    """
    found = await deps.store.read(open_attempts, account=place.account, most=PAGE)
    settled = 0
    for attempt in found:
        # Not since it was begun: a refund of an order is sent again, and then its time begins anew.
        if attempt.updated <= before and await is_absent(deps, place, attempt, payouts_since):
            settled += await deps.store.write(give_up, deps=deps, attempt=attempt, now=deps.clock.now())
    return settled


async def is_absent(deps: Deps, place: Place, attempt: PaymentAttempt, payouts_since: int) -> bool:
    """The whole of what could hold it was read; had it been there, the attempt would be settled by now."""
    if attempt.charge is None:
        return payouts_since <= attempt.created - SKEW_SECONDS
    return (await keep(deps, place, partial(deps.payments.list_refunds, place.account, charge=attempt.charge))).since == 0


def give_up(connection: Connection, *, deps: Deps, attempt: PaymentAttempt, now: float) -> bool:
    """What was taken for it is there again."""
    lock_account(connection, account=attempt.account)
    failed = settle_as_failed(connection, deps=deps, attempt=attempt, now=now)
    if failed and attempt.charge is not None:
        refresh_refunds(connection, account=attempt.account, charge=attempt.charge, now=now)
    return failed


async def settle_invoices(deps: Deps, place: Place) -> int:
    """Invoices that the processor has collected and nobody told of."""
    paid = 0
    for sent in await deps.store.read(sent_invoices, organisation=place.organisation, account=place.account, most=MOST):
        try:
            invoice = await deps.payments.find_invoice(place.account, sent.processor_invoice)
        except NotFound:
            continue
        if invoice.status == "paid":
            paid += await deps.store.write(take_payment, account=place.account, invoice=invoice, now=deps.clock.now())
    return paid


async def settle_orders(deps: Deps, place: Place) -> int:
    """Orders of shops whose buyers have paid and nobody told of."""
    paid = 0
    for order in await deps.store.read(pending_orders, account=place.account, most=MOST):
        try:
            session = await deps.payments.find_checkout(place.account, order.session or "")
        except NotFound:
            continue
        paid += await deps.store.write(take_checkout, deps=deps, account=place.account, session=session, now=deps.clock.now())
    return paid
