"""What follows a payment, done by the worker: the eSIM is drawn once and is the buyer's, or the money goes back, or a person is told.

Every row is worked on under a lease, several at once, the organisations by turns. What surely was not sent is tried again for an hour
after the payment; whatever a crash interrupts is found by its status: paid, provisioning with the ledger's row beside it, or failed with
its refund owed.

A refund is owed in the transaction that says that nothing was delivered. The processor's key is made of the order's number, and a refund
that was sent under another key keeps that one: so however often it is sent, it is one refund. What of the charge was refunded by hand is
not refunded again.
"""

from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

import anyio

from clients.ocs.places import issuing
from clients.payments.records import Charge, CheckoutSession, Refund
from operations.deps import Deps
from operations.event_types.payment import REFUND_FAILED, RefundEventData
from operations.ledger.issuance import OUTCOME_UNKNOWN, IssuanceOrder, draw_esim
from operations.ledger.issuance_targets import FULFIL_ORDER, OrderNotOurs, OrderTarget
from operations.ledger.orders import (
    announce_order_failed,
    announce_order_ready,
    announce_order_review,
    log_order_refunded,
    mail_refund_failed,
    order_number_of,
)
from operations.ledger.payment_attempts import begin_payment_attempt, send_payment_once, send_refund_attempt
from operations.ledger.payment_intake import PAYMENT_REFUNDED, take_checkout, was_order_refunded
from operations.ledger.payment_records import log_payment_event, payment_record_of, refundable_amount, reserve_refund
from operations.ledger.send_once import BackgroundDispatch, DeferredWrites, audit_settlement
from operations.storefronts.sales.checkout import account_of_sold_plan, sold_terms
from operations.storefronts.sales.top_up_sender import add_top_up_package, look_into_top_up, read_top_up_dispatch, retry_pause
from operations.upstream.connection import upstream_of_organisation
from operations.upstream.resellers import find_template
from registry.call import Surface
from registry.errors import Conflict, NotFound, PaymentsError, Refusal, StoreUnavailable
from storage.engine.sql import Connection
from storage.issuance import find_issuance
from storage.order_queue import (
    ORDER_LEASE_MS,
    accept_top_up,
    begin_refund,
    claim_order,
    due_organisations,
    fail_order,
    has_stale_top_up,
    hold_order,
    lost_orders,
    mark_refund_made,
    retry_refund,
    review_order,
    set_refund,
    work_later,
)
from storage.orders import OrderRow, find_order
from storage.payment_records import (
    AttemptKind,
    PaymentAttempt,
    find_attempt,
    lock_payment_account,
    open_attempts_of,
    put_payment_record,
    touch_attempt,
)
from storage.replicas import REPLICA_LEASE_SECONDS
from storage.top_ups import complete_top_up, lose_orphaned_top_ups

REFUND_ORDER = "refund_storefront_order"
# Choice: the processor keeps keys for a day. After this, what is unknown is for the processor's own word, or a person.
REFUND_PATIENCE_SECONDS = 20 * 3600
REFUND_PAUSES = (5, 15, 60, 300, 900, 3600)
# The tries of one payment: more failed cards than this, and the one that succeeded is not looked for further.
CHARGES_OF_PAYMENT_LIMIT = 100


class NothingToRefund(Conflict):
    """All of the charge was given back already."""

    code = "nothing_left"


class RefundNotOurs(Conflict):
    """Another worker has the order, or its refund has ended."""

    code = "refund_not_ours"


async def refund_order(deps: Deps, deferred: DeferredWrites, row: OrderRow) -> None:
    """One look at a refund that is owed, under the row's lease."""
    attempt = None if row.refund_attempt is None else await deps.store.read(find_attempt, attempt=row.refund_attempt)
    if attempt is not None and attempt.state == "done" and row.refund != "owed":
        await deps.store.write(complete_order_refund, deps=deps, attempt=attempt.id)
    elif attempt is not None and attempt.state == "failed" and row.refund == "sending":
        await deps.store.write(stop_order_refund, deps=deps, row=row, state="failed")
    elif deps.clock.now() - row.updated >= REFUND_PATIENCE_SECONDS and (is_open_attempt(attempt) or row.tries >= len(REFUND_PAUSES)):
        await deps.store.write(stop_order_refund, deps=deps, row=row, state="unknown" if is_open_attempt(attempt) else "failed")
    else:
        await send_order_refund(deps, deferred, row, attempt)


def is_open_attempt(attempt: PaymentAttempt | None) -> bool:
    return attempt is not None and attempt.state in ("sending", "unknown")


async def send_order_refund(deps: Deps, deferred: DeferredWrites, row: OrderRow, before: PaymentAttempt | None) -> None:
    """Send it, as it was sent before where that may have had an effect, and say how it stands."""
    try:
        charge = await find_order_charge(deps, row)
        sending = OrderRefundSending(
            deps, row, charge, before, before.id if before is not None and is_open_attempt(before) else deps.ids.new("att_")
        )
        dispatch = BackgroundDispatch(deps, deferred, organisation=row.organisation, operation_id=REFUND_ORDER)
        concluded = await dispatch.run(lambda: send_payment_once(dispatch, sending))
    except (StoreUnavailable, RefundNotOurs):
        raise
    except NothingToRefund:
        await deps.store.write(note_refund_state, deps=deps, row=row, state="done", due_ms=None)
    except Refusal:  # it surely was not sent
        await deps.store.write(
            note_refund_state,
            deps=deps,
            row=row,
            state="unknown" if is_open_attempt(before) else "owed",
            due_ms=next_refund_try_ms(deps, row),
        )
    else:
        if concluded.unknown:
            await deps.store.write(note_refund_state, deps=deps, row=row, state="unknown", due_ms=next_refund_try_ms(deps, row))
        elif concluded.outcome != "ok":
            await handle_refused_refund(deps, row)


async def handle_refused_refund(deps: Deps, row: OrderRow) -> None:
    """The processor did nothing: because somebody refunded it there a moment ago, or for a reason that a person has to mend."""
    try:
        charge = await find_order_charge(deps, row)
    except StoreUnavailable:
        raise
    except Refusal:
        charge = None
    if charge is not None and charge.amount_refunded >= charge.amount:
        await deps.store.write(note_refund_state, deps=deps, row=row, state="done", due_ms=None)
    else:
        await deps.store.write(stop_order_refund, deps=deps, row=row, state="failed")


async def find_order_charge(deps: Deps, row: OrderRow) -> Charge:
    if row.payment_intent is not None:
        found = await deps.payments.list_charges(row.payee, limit=CHARGES_OF_PAYMENT_LIMIT, payment_intent=row.payment_intent)
        for charge in found.data:
            if charge.status == "succeeded":
                return charge
    raise PaymentsError("The payment processor shows no payment of this order yet; nothing was sent", before_execution=True)


def next_refund_try_ms(deps: Deps, row: OrderRow) -> int:
    return int((deps.clock.now() + retry_pause(REFUND_PAUSES, row.tries)) * 1000)


def note_refund_state(connection: Connection, *, deps: Deps, row: OrderRow, state: str, due_ms: int | None) -> None:
    """How the refund stands after this look; what was heard of it meanwhile is newer."""
    if set_refund(connection, order=row.id, token=row.lease or "", state=state, due_ms=due_ms) and state == "done":
        log_order_refunded(connection, deps, row.id)


def complete_order_refund(connection: Connection, *, deps: Deps, attempt: str) -> None:
    order = mark_refund_made(connection, attempt=attempt, now=deps.clock.now())
    if order is not None:
        log_order_refunded(connection, deps, order)


def stop_order_refund(connection: Connection, *, deps: Deps, row: OrderRow, state: str) -> None:
    """From here on the processor's word or a person settles it; the operator is told."""
    if set_refund(connection, order=row.id, token=row.lease or "", state=state, due_ms=None):
        mail_refund_failed(connection, deps, row.id)
        if state == "failed":
            log_refused_refund(connection, deps, row)


def log_refused_refund(connection: Connection, deps: Deps, row: OrderRow) -> None:
    """Logs that the processor made no refund of an order. One that it made, and that fell, its own word tells of."""
    data: RefundEventData = {
        "refund": None,
        "charge": None,
        "order": row.id,
        "amount": row.paid_amount or 0,
        "currency": row.currency,
        "status": "refused",
        "failure_reason": None,
    }
    log_payment_event(connection, deps, REFUND_FAILED, data, row.organisation, deps.clock.now())


@dataclass(slots=True)
class OrderRefundSending:
    """A refund on its way. `before`: what was sent for it earlier; with the same `id` it is sent again as it was."""

    deps: Deps
    order: OrderRow
    charge: Charge
    before: PaymentAttempt | None
    id: str
    kind: AttemptKind = "refund"

    def begin(self, connection: Connection, *, now: float) -> PaymentAttempt:
        order, charge = self.order, self.charge
        if lock_payment_account(connection, account=order.payee) != order.organisation:
            raise PaymentsError("The account at the payment processor is not the organisation's any more", before_execution=True)
        if not begin_refund(connection, order=order.id, token=order.lease or "", attempt=self.id):
            raise RefundNotOurs("The refund is another worker's, or has ended; nothing was sent")
        if self.before is not None and self.before.id == self.id:
            again = touch_attempt(connection, attempt=self.id, now=now)
            if again is None:
                raise RefundNotOurs("The refund was settled meanwhile; nothing was sent")
            return again
        record = payment_record_of(charge, account=order.payee, organisation=order.organisation, as_of=int(now))
        put_payment_record(connection, record=record)
        if open_attempts_of(connection, account=order.payee, charge=charge.id):
            # What it has taken may come to nothing yet, and would then be given back by nobody.
            raise PaymentsError("The payment is being refunded by another call; nothing was sent", before_execution=True)
        # All of it: the payment is this order's alone, and what was paid otherwise than agreed may be of another currency.
        amount = refundable_amount(connection, account=order.payee, charge=charge.id)
        if amount < 1:
            raise NothingToRefund("All of the payment was given back already")
        if not reserve_refund(connection, account=order.payee, charge=record, amount=amount, now=now):
            raise PaymentsError("Another refund of the same payment is under way; nothing was sent", before_execution=True)
        return begin_payment_attempt(
            connection,
            self.id,
            self.kind,
            organisation=order.organisation,
            account=order.payee,
            charge=charge.id,
            amount=amount,
            currency=charge.currency,
            now=now,
            sent_as=self.processor_key,
        )

    @property
    def processor_key(self) -> str:
        """After one that was refused, never made, or fell, a new key: the processor would only repeat its first answer."""
        key, former = f"order-refund:{self.order.id}", self.order.refund_attempt
        return key if former is None else f"{key}:{former}"

    async def send(self, attempt: PaymentAttempt) -> Refund:
        return await send_refund_attempt(self.deps, attempt, reason=None)


LOST_ORDERS_AT_ONCE = 100


async def review_all_lost_orders(deps: Deps) -> int:
    """How many need review from now on. The ledger's own recovery comes first: what it froze as unknown is found here."""
    now, count = deps.clock.now(), 0
    for order in await deps.store.read(lost_orders, most=LOST_ORDERS_AT_ONCE):
        count += await deps.store.write(review_lost_order, deps=deps, order=order, now=now)
    if await deps.store.read(has_stale_top_up, before=now - REPLICA_LEASE_SECONDS):
        count += await deps.store.write(review_lost_top_ups, deps=deps, now=now)
    return count


def review_lost_order(connection: Connection, *, deps: Deps, order: str, now: float) -> bool:
    news = review_order(connection, order=order, code=OUTCOME_UNKNOWN, now=now)
    if news:
        announce_order_review(connection, deps, order)
    return news


def review_lost_top_ups(connection: Connection, *, deps: Deps, now: float) -> int:
    lost = lose_orphaned_top_ups(connection, code=OUTCOME_UNKNOWN, now=now)
    for top_up in lost:
        announce_order_review(connection, deps, top_up)
    return len(lost)


ORDERS_AT_ONCE = 8
FULFILMENT_STEP_SECONDS = 25.0
FULFILMENT_PATIENCE_SECONDS = 3600
FULFILMENT_PAUSES = (2, 5, 15, 60, 300)
ORDER_TEMPLATE_GONE, ORDER_UNREACHED = "template_not_visible", "provider_unreachable"


class TemplateGone(NotFound):
    """What was sold cannot be made any more."""


class Fulfilment:
    """One worker's part of it. `report` is told what could not be done, without names."""

    def __init__(self, deps: Deps, report: Callable[[str], None]) -> None:
        self._deps, self._report, self._deferred = deps, report, DeferredWrites()

    async def step(self) -> int:
        """Do what is due; how many rows were looked at. StoreUnavailable when there is no beginning without the store."""
        deps = self._deps
        await self._deferred.write_all(deps)
        moved = await review_all_lost_orders(deps)
        places = deque(await deps.store.read(due_organisations, now_ms=self._now_ms()))
        if places:
            moved += await self._work(places)
        if moved:
            deps.post()
            deps.wake_worker()
        return moved

    async def _work(self, places: deque[str]) -> int:
        """Several at once, for as long as a step may take; an organisation with nothing left, or no token left, is out of this step."""
        looked, ends, free = 0, self._deps.clock.monotonic() + FULFILMENT_STEP_SECONDS, anyio.Semaphore(ORDERS_AT_ONCE)
        lost: ExceptionGroup[StoreUnavailable] | None = None

        async def look_at(row: OrderRow) -> None:
            try:
                await self._attend(row)
            finally:
                free.release()

        try:
            async with anyio.create_task_group() as group:
                while places and self._deps.clock.monotonic() < ends:
                    await free.acquire()
                    row = await self._claim(places[0])
                    if row is None:
                        places.popleft()
                        free.release()
                        continue
                    looked += 1
                    places.rotate(-1)
                    group.start_soon(look_at, row)
        except* StoreUnavailable as unavailable:
            lost = unavailable  # raised below: what is raised here is in a group until Python 3.11.3
        if lost is not None:
            raise StoreUnavailable("the store went away in the middle of fulfilment; what was begun goes on when it is back") from lost
        return looked

    async def _claim(self, organisation: str) -> OrderRow | None:
        """The next row of an organisation, if it may be worked on now: what is written upstream is paced, by waiting."""
        deps, token = self._deps, self._deps.ids.new("lse_")
        row = await deps.store.write(claim_order, organisation=organisation, token=token, now_ms=self._now_ms())
        if row is None or row.status not in ("failed", "paid"):  # nothing else sends a write
            return row
        # A top-up takes its token by itself; without one there it would be claimed and put off over and over.
        ask = deps.rate_limiter.until_upstream if row.status == "paid" and row.top_up_of is not None else deps.rate_limiter.take_upstream
        wait = await ask(organisation)
        if wait is None:
            return row
        # Due as it was: it is still the first of its organisation when the next step begins.
        await deps.store.write(work_later, order=row.id, token=token, due_ms=self._now_ms(), tried=False)
        return None

    async def _attend(self, row: OrderRow) -> None:
        """One row. A fault of ours over it ends the step; those that it ends as well are due before it, and do not meet it again."""
        try:
            await self._look_at(row)
        except (StoreUnavailable, anyio.get_cancelled_exc_class()):
            raise
        except BaseException:
            due_ms = self._now_ms() + 2 * ORDER_LEASE_MS
            with anyio.CancelScope(shield=True), suppress(StoreUnavailable):
                await self._deps.store.write(work_later, order=row.id, token=row.lease or "", due_ms=due_ms)
            raise

    async def _look_at(self, row: OrderRow) -> None:
        deps = self._deps
        try:
            if row.status == "pending_payment":
                await look_for_order_payment(deps, row)
            elif row.status == "failed":
                await refund_order(deps, self._deferred, row)
            elif row.status == "needs_review":
                await look_into_top_up(deps, row)
            elif await deps.store.read(was_order_refunded, row=row):
                await deps.store.write(fail_unsent_order, deps=deps, row=row, code=PAYMENT_REFUNDED)
            elif row.top_up_of is not None:
                await add_top_up_package(deps, self._deferred, row)
            else:
                await self._fulfil(row)
        except StoreUnavailable:
            raise
        except (OrderNotOurs, RefundNotOurs):
            return
        except Refusal as refusal:
            self._report(f"an order that is {row.status} could not be worked on yet: {refusal.error_code}")
            await deps.store.write(work_later, order=row.id, token=row.lease or "", due_ms=self._again_ms(row))

    async def _fulfil(self, row: OrderRow) -> None:
        """Draw the eSIM. Whatever is raised here came surely before it was sent."""
        deps = self._deps
        try:
            await self._draw(row)
        except (StoreUnavailable, OrderNotOurs):
            raise
        except TemplateGone:
            await deps.store.write(fail_unsent_order, deps=deps, row=row, code=ORDER_TEMPLATE_GONE)
        except Refusal as refusal:
            if await deps.store.read(find_issuance, organisation=row.organisation, key=row.id) is not None:
                # Its key was used, by whatever: nothing may be drawn, and nothing given back, by itself.
                await deps.store.write(hand_order_to_person, deps=deps, row=row)
            elif deps.clock.now() - (row.paid_at or row.created) >= FULFILMENT_PATIENCE_SECONDS:
                await deps.store.write(fail_unsent_order, deps=deps, row=row, code=ORDER_UNREACHED)
            else:
                raise refusal

    async def _draw(self, row: OrderRow) -> None:
        deps = self._deps
        upstream = await upstream_of_organisation(deps, row.organisation)
        try:
            with issuing():
                await find_template(upstream, row.template_id, "package_template_id")
        except NotFound as gone:
            raise TemplateGone(gone.message) from gone
        with issuing():
            account = await account_of_sold_plan(upstream, row)
        order = IssuanceOrder(row.id, account, row.template_id, patient=True, terms=sold_terms(row))
        dispatch = BackgroundDispatch(deps, self._deferred, organisation=row.organisation, operation_id=FULFIL_ORDER)
        target = OrderTarget(deps, row.id, row.organisation, row.lease)
        await dispatch.run(lambda: draw_esim(dispatch, upstream, order, target))

    def _again_ms(self, row: OrderRow) -> int:
        return self._now_ms() + retry_pause(FULFILMENT_PAUSES, row.tries) * 1000

    def _now_ms(self) -> int:
        return int(self._deps.clock.now() * 1000)


def fail_unsent_order(connection: Connection, *, deps: Deps, row: OrderRow, code: str) -> None:
    if hold_order(connection, order=row.id, token=row.lease or "") and fail_order(
        connection, order=row.id, code=code, now=deps.clock.now()
    ):
        announce_order_failed(connection, deps, row.id)


def hand_order_to_person(connection: Connection, *, deps: Deps, row: OrderRow) -> None:
    if hold_order(connection, order=row.id, token=row.lease or "") and review_order(
        connection, order=row.id, code=OUTCOME_UNKNOWN, now=deps.clock.now()
    ):
        announce_order_review(connection, deps, row.id)


LOOK_AFTER_PAGE_END, LOOK_AFTER_UNREACHED, LOOK_WHILE_CLEARING = 60, 300, 6 * 3600


async def look_for_order_payment(deps: Deps, row: OrderRow) -> None:
    """Ask the processor about an order that nobody told of, under the row's lease: a lost event loses no order."""

    async def later(due_ms: int | None) -> None:
        await deps.store.write(work_later, order=row.id, token=row.lease or "", due_ms=due_ms)

    if row.session is None:
        await later(None)
        return
    try:
        session = await deps.payments.find_checkout(row.payee, row.session)
    except StoreUnavailable:
        raise
    except NotFound:
        await later(None)
        return
    except Refusal:
        await later(int((deps.clock.now() + LOOK_AFTER_UNREACHED) * 1000))
        return
    if not await deps.store.write(take_checkout, deps=deps, account=row.payee, session=session, now=deps.clock.now()):
        await later(next_payment_look_ms(row, session, deps.clock.now()))


def next_payment_look_ms(row: OrderRow, session: CheckoutSession, now: float) -> int | None:
    """When its page has ended; money that is under way may take days; of an unpaid page that has ended nothing comes any more."""
    if session.status == "open":
        return int((max(row.session_ends or session.expires_at, int(now)) + LOOK_AFTER_PAGE_END) * 1000)
    return int((now + LOOK_WHILE_CLEARING) * 1000) if session.status == "complete" else None


OrderDecision = Literal["refund", "added"]
SETTLE_ORDER, REFUND_BY_PERSON = "settle_storefront_order", "settled_by_operator"


class OrderNotSettled(Conflict):
    """There is nothing of this kind to decide about it."""

    code = "order_not_settled"


def fulfil_by_decision(
    connection: Connection, *, deps: Deps, order: str, decision: OrderDecision, by: str, now: float, surface: Surface = "cli"
) -> OrderRow:
    """Writes a person's `decision`, its mail and the audit row; the row as it is then. The worker moves the money."""
    order = order_number_of(connection, named=order)
    row = find_order(connection, order=order)
    if row is None:
        raise NotFound("There is no such order or top-up", param="id")
    if decision == "added":
        apply_added_decision(connection, deps, row, now)
    else:
        apply_refund_decision(connection, deps, row, now)
    audit_settlement(connection, deps, row.organisation, SETTLE_ORDER, f"settled_{decision}", now=now, by=by, surface=surface)
    return find_order(connection, order=order) or row


def apply_added_decision(connection: Connection, deps: Deps, row: OrderRow, now: float) -> None:
    if row.top_up_of is None:
        raise OrderNotSettled(f"{row.id} is an order, not a top-up: `reseller issuance settle` says which eSIM was drawn for it")
    sent = None if row.before is None else read_top_up_dispatch(row.before)
    seen = None if sent is None else sent.named or sent.seen
    # Named where it was seen, so that it is no other top-up's.
    named = seen is not None and row.status == "needs_review" and complete_top_up(connection, top_up=row.id, package=seen, now=now)
    if not named and not accept_top_up(connection, top_up=row.id, now=now):
        raise OrderNotSettled(f"{row.id} is {row.status}; only a top-up that needs review is settled as added")
    announce_order_ready(connection, deps, row.id)


def apply_refund_decision(connection: Connection, deps: Deps, row: OrderRow, now: float) -> None:
    """The money goes back: nothing was delivered, or the refund that did not go is tried once more."""
    if row.status == "failed":
        if not retry_refund(connection, order=row.id, now=now):
            raise OrderNotSettled(f"{row.id} has failed, and its refund is {row.refund or 'not owed'}; there is nothing to try again")
        return
    if row.top_up_of is None and row.ledger not in (None, "rolled_back", "released"):
        raise OrderNotSettled(
            f"{row.id} is {row.status}, and the ledger has a row of it ({row.ledger}): `reseller issuance settle` decides, "
            "and the money follows"
        )
    if row.status != "needs_review" or not fail_order(connection, order=row.id, code=REFUND_BY_PERSON, now=now):
        raise OrderNotSettled(f"{row.id} is {row.status}; only what needs review, or a refund that failed, is settled with --refund")
    announce_order_failed(connection, deps, row.id)
