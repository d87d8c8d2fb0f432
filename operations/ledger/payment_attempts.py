"""Refunds and payouts that are sent through us once: how each attempt begins, its one sending, and the three ways in which it is settled by
what the processor answered.
"""

import hashlib
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import Literal, Protocol

import orjson

from clients.payments.records import Payout, Refund
from operations.deps import Ctx, Deps
from operations.ledger.payment_intake import (
    ATTEMPT_OPERATIONS,
    PAYMENT_CREATED,
    payment_not_made,
    replace_unknown_answer,
    take_processor_record,
)
from operations.ledger.payment_records import refresh_charge_refunds, render_transfer
from operations.ledger.send_once import UNKNOWN, Dispatch, SendOutcome, send_once
from registry.errors import PaymentsError, Refusal
from registry.ports import Conclusion
from storage.claims import find_claim
from storage.engine.sql import Connection
from storage.payment_records import (
    AttemptKind,
    PaymentAttempt,
    attempt_by_key,
    conclude_attempt,
    find_attempt,
    find_payment_record,
    forget_attempt,
    insert_attempt,
    lock_payment_account,
)

PAYMENT_OUTCOME_UNKNOWN = "OUTCOME_UNKNOWN"
PROCESSOR_KEY_LIMIT = 255
PAYMENT_DISPATCH_SECONDS = 60.0


def processor_key_of(kind: AttemptKind | Literal["evidence"], claim_key: str | None, attempt: str) -> str:
    """The idempotency key that the processor gets: the caller's `claim_key`, or the id of the `attempt` where the caller gave none."""
    key = f"{kind}:{claim_key or attempt}"
    return key if len(key) <= PROCESSOR_KEY_LIMIT else f"{kind}:{hashlib.sha256(key.encode()).hexdigest()}"


def begin_payment_attempt(
    connection: Connection,
    id: str,
    kind: AttemptKind,
    *,
    organisation: str,
    account: str,
    amount: int,
    currency: str,
    now: float,
    charge: str | None = None,
    claim_key: str | None = None,
    sent_as: str | None = None,
) -> PaymentAttempt:
    """Writes the row of a refund or payout that is about to be sent, and returns it; `now`: Unix seconds, `amount`: minor units.

    `sent_as` is the processor's key where it does not follow from the caller's `claim_key`.
    """
    attempt = PaymentAttempt(
        id=id,
        organisation=organisation,
        account=account,
        kind=kind,
        charge=charge,
        amount=amount,
        currency=currency,
        state="sending",
        processor_key=sent_as or processor_key_of(kind, claim_key, id),
        claim_key=claim_key,
        made=None,
        created=int(now),
        updated=int(now),
    )
    insert_attempt(connection, attempt=attempt)
    return attempt


async def send_refund_attempt(deps: Deps, attempt: PaymentAttempt, *, reason: str | None) -> Refund:
    """Ask the processor for what `attempt` says. Waits for the network; raises the processor's refusal."""
    if attempt.charge is None:
        raise RuntimeError("a refund is of a charge")
    return await deps.payments.refund(
        attempt.account,
        charge=attempt.charge,
        amount=attempt.amount,
        reason=reason,
        key=attempt.processor_key,
        metadata={"attempt": attempt.id},
    )


async def correct_unknown_answer(ctx: Ctx, kind: AttemptKind) -> None:
    """Replaces the answer OUTCOME_UNKNOWN of the caller's key, where its attempt of `kind` was settled after the call had died."""
    key, organisation = ctx.call.idempotency_key, ctx.organisation
    if key is None:
        return

    def find(connection: Connection) -> PaymentAttempt | None:
        """The attempt of a key whose answer is older than what is known of it."""
        claim = find_claim(connection, organisation=organisation, operation=ATTEMPT_OPERATIONS[kind], key=key, now=int(ctx.now))
        if claim is None or claim.state != "unknown":
            return None
        found = attempt_by_key(connection, organisation=organisation, kind=kind, claim_key=key)
        return found if found is not None and found.state in ("done", "failed") else None

    settled = await ctx.deps.store.read(find)
    if settled is not None:
        await ctx.deps.store.write(correct_attempt_answer, deps=ctx.deps, attempt=settled, kind=kind)


def correct_attempt_answer(connection: Connection, *, deps: Deps, attempt: PaymentAttempt, kind: AttemptKind) -> None:
    """Replace the answer of the key of `attempt`, where it says that nobody knows."""
    record = None if attempt.made is None else find_payment_record(connection, account=attempt.account, kind=kind, id=attempt.made)
    if record is not None:
        replace_unknown_answer(connection, deps, attempt, PAYMENT_CREATED, orjson.loads(record.body))
    elif attempt.state == "failed":
        refusal = payment_not_made(kind)
        replace_unknown_answer(connection, deps, attempt, refusal.status, refusal.body(deps.ids.new("req_")))


class PaymentSending(Protocol):
    """What is sent: its own checks and rows, and the call."""

    @property
    def id(self) -> str: ...

    @property
    def kind(self) -> AttemptKind:
        """A refund or a payout."""
        ...

    def begin(self, connection: Connection, *, now: float) -> PaymentAttempt:
        """Check it and write the attempt, under the account's lock, and return it; may run again. `now`: Unix seconds."""
        ...

    def send(self, attempt: PaymentAttempt) -> Awaitable[Refund | Payout]:
        """Ask the processor for what `attempt`, the one that `begin` wrote, says. Waits for the network; raises its refusal."""
        ...


async def send_payment_once(ctx: Dispatch, sending: PaymentSending) -> Conclusion:
    """Sends `sending` once; the answer of its caller and its key. Raises only what came before the call, and frees the key then."""
    return await send_once(ctx, PaymentDispatch(ctx.deps, sending, ctx.request_id))


@dataclass(slots=True)
class PaymentDispatch:
    """The sending of a refund or payout. `request_id` stands in the answers that are refusals."""

    deps: Deps
    payment: PaymentSending
    request_id: str
    attempt: PaymentAttempt | None = None
    """As `begin` wrote it."""

    @property
    def lost_answer(self) -> tuple[int, object]:
        refusal = unknown_payment(self.payment.kind)
        return refusal.status, refusal.body(self.request_id)

    def begin(self, connection: Connection, *, now: float) -> None:
        self.attempt = self.payment.begin(connection, now=now)

    async def send(self, waited: float) -> SendOutcome[Refund | Payout]:
        """Ask the processor. What stood still for long may have been settled as never made: it must not be sent any more."""
        if self.attempt is None:
            raise RuntimeError("money is moved when its attempt was written")
        try:
            if waited > PAYMENT_DISPATCH_SECONDS:
                raise PaymentsError(
                    "The server stood still when it was about to send the call, so it was not sent; no money was moved",
                    hint="Repeat the call with the same key",
                    retry_after=1,
                    before_execution=True,
                )
            return await self.payment.send(self.attempt)
        except PaymentsError as error:
            if error.before_execution:
                raise
            return UNKNOWN
        except Refusal as refusal:
            return refusal

    def settle(self, connection: Connection, *, outcome: SendOutcome[Refund | Payout], now: float) -> Conclusion:
        named = {"attempt": self.payment.id, "request_id": self.request_id}
        if outcome is UNKNOWN:
            return record_payment_unknown(connection, **named, now=now)
        if isinstance(outcome, Refusal):
            return record_payment_refused(connection, **named, refusal=outcome, now=now)
        return record_payment_made(connection, deps=self.deps, attempt=self.payment.id, made=outcome, now=now)

    def unsend(self, connection: Connection, *, now: float) -> None:
        found = find_attempt(connection, attempt=self.payment.id)
        if found is not None:
            lock_payment_account(connection, account=found.account)
            forget_attempt(connection, attempt=self.payment.id)
            refresh_attempt_charge(connection, found, now)


def lock_payment_attempt(connection: Connection, attempt: str) -> PaymentAttempt:
    """The row of `attempt`, under the lock of its account: nothing else about that account's money changes meanwhile."""
    found = find_attempt(connection, attempt=attempt)
    if found is None:
        raise RuntimeError(f"there is no attempt {attempt}")
    lock_payment_account(connection, account=found.account)
    return find_attempt(connection, attempt=attempt) or found


def refresh_attempt_charge(connection: Connection, attempt: PaymentAttempt, now: float) -> None:
    """Compute anew what is left of the charge of `attempt`."""
    if attempt.charge is not None:
        refresh_charge_refunds(connection, account=attempt.account, charge=attempt.charge, now=now)


def record_payment_made(connection: Connection, *, deps: Deps, attempt: str, made: Refund | Payout, now: float) -> Conclusion:
    """The processor made it. The record is as of the second in which it was made: every event about it is as new or newer."""
    found = lock_payment_attempt(connection, attempt)
    conclude_attempt(connection, attempt=attempt, state="done", made=made.id, now=now)
    # The account may have gone to another organisation while the processor was asked.
    owner = lock_payment_account(connection, account=found.account)
    account, organisation = found.account, owner or found.organisation
    take_processor_record(connection, deps=deps, account=account, organisation=organisation, thing=made, as_of=made.created, now=now)
    refresh_attempt_charge(connection, found, now)
    return Conclusion(PAYMENT_CREATED, render_transfer(made), False, "ok")


def record_payment_unknown(connection: Connection, *, attempt: str, request_id: str, now: float) -> Conclusion:
    """Nobody knows, unless an event has told meanwhile. What was reserved stays reserved."""
    found = lock_payment_attempt(connection, attempt)
    if conclude_attempt(connection, attempt=attempt, state="unknown", made=None, now=now):
        refusal = unknown_payment("refund" if found.kind == "refund" else "payout")
        return Conclusion(refusal.status, refusal.body(request_id), True, PAYMENT_OUTCOME_UNKNOWN)
    return answer_of_settled_attempt(connection, found, request_id)


def record_payment_refused(connection: Connection, *, attempt: str, request_id: str, refusal: Refusal, now: float) -> Conclusion:
    found = lock_payment_attempt(connection, attempt)
    if not conclude_attempt(connection, attempt=attempt, state="failed", made=None, now=now):
        return answer_of_settled_attempt(connection, found, request_id)
    refresh_attempt_charge(connection, found, now)
    return Conclusion(refusal.status, refusal.body(request_id), False, refusal.error_code, nothing_done=True)


def answer_of_settled_attempt(connection: Connection, attempt: PaymentAttempt, request_id: str) -> Conclusion:
    """An event said that it was made, before its own answer did not; or another worker, or the lists, that it never was."""
    kind: AttemptKind = "refund" if attempt.kind == "refund" else "payout"
    if attempt.state == "failed":
        refusal = payment_not_made(kind)
        return Conclusion(refusal.status, refusal.body(request_id), False, refusal.error_code)
    record = None if attempt.made is None else find_payment_record(connection, account=attempt.account, kind=kind, id=attempt.made)
    if record is None:
        raise RuntimeError(f"the attempt {attempt.id} is {attempt.state} and there is no record of what it made")
    return Conclusion(PAYMENT_CREATED, orjson.loads(record.body), False, "ok")


def unknown_payment(kind: AttemptKind) -> PaymentsError:
    """The refusal that keeps its key and what was taken for it."""
    return PaymentsError(
        f"Whether the {kind} was made is not known. Keep the key: it is found out by itself, and never sent twice",
        code=PAYMENT_OUTCOME_UNKNOWN,
        outcome_unknown=True,
        hint=f"Repeat the call with the same key later to learn what came of it; operator_billing_list_{kind}s shows it too",
    )
