"""Giving a buyer's money back when nothing was delivered: owed in the transaction that says so, sent by the worker, once.

The processor's key is made of the order's number, and a refund that was sent under another key keeps that one: so however often it is
sent, it is one refund. What of the charge was refunded by hand is not refunded again.
"""

from dataclasses import dataclass

from clients.payments.records import Charge, Refund
from operations.deps import Deps
from operations.services.issuing.errand import Debts, WorkerErrand
from operations.services.pauses import pause
from operations.services.payments.charge_refunds import left_of, reserve
from operations.services.payments.payment_attempts import new_attempt, send_refund
from operations.services.payments.payment_dispatch import send_once
from operations.services.payments.payment_records import record_of
from operations.services.shop.order_letters import tell_refund_failed
from registry.errors import Conflict, Refusal, StoreUnavailable
from registry.payments_errors import PaymentsError
from storage.connection import Connection
from storage.money.payment_attempts import AttemptKind, PaymentAttempt, find_attempt, insert_attempt, open_attempts_of, touch_attempt
from storage.money.payment_records import lock_account, put_record
from storage.shop.order_queue import begin_refund, refund_was_made, set_refund
from storage.shop.orders import OrderRow

REFUND_ORDER = "refund_storefront_order"
# Choice: the processor keeps keys for a day. After this, what is unknown is for the processor's own word, or a person.
PATIENCE_SECONDS = 20 * 3600
PAUSES = (5, 15, 60, 300, 900, 3600)
# The tries of one payment: more failed cards than this, and the one that succeeded is not looked for further.
TRIES_OF_A_PAYMENT = 100


class NothingLeft(Conflict):
    """All of the charge was given back already."""

    code = "nothing_left"


class Elsewhere(Conflict):
    """Another worker has the order, or its refund has ended."""

    code = "refund_not_ours"


async def refund_order(deps: Deps, debts: Debts, row: OrderRow) -> None:
    """One look at a refund that is owed, under the row's lease."""
    attempt = None if row.refund_attempt is None else await deps.store.read(find_attempt, attempt=row.refund_attempt)
    if attempt is not None and attempt.state == "done" and row.refund != "owed":
        await deps.store.write(refund_was_made, attempt=attempt.id, now=deps.clock.now())
    elif attempt is not None and attempt.state == "failed" and row.refund == "sending":
        await deps.store.write(give_up, deps=deps, row=row, state="failed")
    elif deps.clock.now() - row.updated >= PATIENCE_SECONDS and (is_open(attempt) or row.tries >= len(PAUSES)):
        await deps.store.write(give_up, deps=deps, row=row, state="unknown" if is_open(attempt) else "failed")
    else:
        await send(deps, debts, row, attempt)


def is_open(attempt: PaymentAttempt | None) -> bool:
    """It may have had its effect."""
    return attempt is not None and attempt.state in ("sending", "unknown")


async def send(deps: Deps, debts: Debts, row: OrderRow, before: PaymentAttempt | None) -> None:
    """Send it, as it was sent before where that may have had an effect, and say how it stands."""
    try:
        charge = await charge_of(deps, row)
        sending = OrderRefund(deps, row, charge, before, before.id if before is not None and is_open(before) else deps.ids.new("att_"))
        errand = WorkerErrand(deps, debts, organisation=row.organisation, operation_id=REFUND_ORDER)
        concluded = await errand.run(lambda: send_once(errand, sending))
    except (StoreUnavailable, Elsewhere):
        raise
    except NothingLeft:
        await deps.store.write(stands, row=row, state="done", due_ms=None)
    except Refusal:  # it surely was not sent
        await deps.store.write(stands, row=row, state="unknown" if is_open(before) else "owed", due_ms=again_ms(deps, row))
    else:
        if concluded.unknown:
            await deps.store.write(stands, row=row, state="unknown", due_ms=again_ms(deps, row))
        elif concluded.outcome != "ok":
            await refused(deps, row)


async def refused(deps: Deps, row: OrderRow) -> None:
    """The processor did nothing: because somebody refunded it there a moment ago, or for a reason that a person has to mend."""
    try:
        charge = await charge_of(deps, row)
    except StoreUnavailable:
        raise
    except Refusal:
        charge = None
    if charge is not None and charge.amount_refunded >= charge.amount:
        await deps.store.write(stands, row=row, state="done", due_ms=None)
    else:
        await deps.store.write(give_up, deps=deps, row=row, state="failed")


async def charge_of(deps: Deps, row: OrderRow) -> Charge:
    """What the buyer paid, as the processor knows it now."""
    if row.payment_intent is not None:
        found = await deps.payments.list_charges(row.payee, limit=TRIES_OF_A_PAYMENT, payment_intent=row.payment_intent)
        for charge in found.data:
            if charge.status == "succeeded":
                return charge
    raise PaymentsError("The payment processor shows no payment of this order yet; nothing was sent", before_execution=True)


def again_ms(deps: Deps, row: OrderRow) -> int:
    """When to try again."""
    return int((deps.clock.now() + pause(PAUSES, row.tries)) * 1000)


def stands(connection: Connection, *, row: OrderRow, state: str, due_ms: int | None) -> None:
    """How the refund stands after this look; what was heard of it meanwhile is newer."""
    set_refund(connection, order=row.id, token=row.lease or "", state=state, due_ms=due_ms)


def give_up(connection: Connection, *, deps: Deps, row: OrderRow, state: str) -> None:
    """From here on the processor's word or a person settles it; the operator is told."""
    if set_refund(connection, order=row.id, token=row.lease or "", state=state, due_ms=None):
        tell_refund_failed(connection, deps, row.id)


@dataclass(slots=True)
class OrderRefund:
    """A refund on its way. `before`: what was sent for it earlier; with the same `id` it is sent again as it was."""

    deps: Deps
    order: OrderRow
    charge: Charge
    before: PaymentAttempt | None
    id: str
    attempt: PaymentAttempt | None = None
    kind: AttemptKind = "refund"

    def begin(self, connection: Connection, *, now: float) -> PaymentAttempt:
        """Take what is left of the charge, and say on the order that it goes."""
        order, charge = self.order, self.charge
        if lock_account(connection, account=order.payee) != order.organisation:
            raise PaymentsError("The account at the payment processor is not the organisation's any more", before_execution=True)
        if not begin_refund(connection, order=order.id, token=order.lease or "", attempt=self.id):
            raise Elsewhere("The refund is another worker's, or has ended; nothing was sent")
        if self.before is not None and self.before.id == self.id:
            self.attempt = touch_attempt(connection, attempt=self.id, now=now)
            if self.attempt is None:
                raise Elsewhere("The refund was settled meanwhile; nothing was sent")
            return self.attempt
        record = record_of(charge, account=order.payee, organisation=order.organisation, as_of=int(now))
        put_record(connection, record=record)
        if open_attempts_of(connection, account=order.payee, charge=charge.id):
            # What it has taken may come to nothing yet, and would then be given back by nobody.
            raise PaymentsError("The payment is being refunded by another call; nothing was sent", before_execution=True)
        # All of it: the payment is this order's alone, and what was paid otherwise than agreed may be of another currency.
        amount = left_of(connection, account=order.payee, charge=charge.id)
        if amount < 1:
            raise NothingLeft("All of the payment was given back already")
        if not reserve(connection, account=order.payee, charge=record, amount=amount, now=now):
            raise PaymentsError("Another refund of the same payment is under way; nothing was sent", before_execution=True)
        self.attempt = new_attempt(
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
        insert_attempt(connection, attempt=self.attempt)
        return self.attempt

    @property
    def processor_key(self) -> str:
        """After one that was refused, never made, or fell, a new key: the processor would only repeat its first answer."""
        key, former = f"order-refund:{self.order.id}", self.order.refund_attempt
        return key if former is None else f"{key}:{former}"

    async def send(self) -> Refund:
        """Ask the processor for it."""
        return await send_refund(self.deps, self.attempt, reason=None)
