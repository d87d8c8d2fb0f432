"""The one sending of a refund or payout: commit that it goes, send it, commit what came of it."""

from collections.abc import Awaitable
from typing import Protocol

import orjson

from clients.payments.records import Payout, Refund
from operations.deps import Deps
from operations.services.issuing.errand import Errand
from operations.services.payments.charge_refunds import refresh_refunds
from operations.services.payments.payment_attempts import CREATED, UNKNOWN, not_made, unknown_outcome
from operations.services.payments.payment_intake import take_word
from operations.services.payments.payment_records import payout_shown, refund_shown
from registry.errors import Refusal
from registry.payments_errors import PaymentsError
from registry.ports import Conclusion
from storage.connection import Connection
from storage.money.payment_attempts import AttemptKind, PaymentAttempt, find_attempt, forget_attempt, settle_attempt
from storage.money.payment_records import find_record, lock_account

LATEST_SECONDS = 60.0


class Sending(Protocol):
    """What is sent: its own checks and rows, and the call."""

    @property
    def id(self) -> str:
        """The attempt's."""
        ...

    @property
    def kind(self) -> AttemptKind:
        """A refund or a payout."""
        ...

    def begin(self, connection: Connection, *, now: float) -> PaymentAttempt:
        """Check it and write the attempt, under the account's lock; it may run again."""
        ...

    def send(self) -> Awaitable[Refund | Payout]:
        """Ask the processor, once `begin` was committed."""
        ...


async def send_once(ctx: Errand, sending: Sending) -> Conclusion:
    """What its caller and its key are answered. Raises what surely came before it was sent; the key is free then."""
    deps = ctx.deps
    named = {"attempt": sending.id, "request_id": ctx.request_id}
    sent = unknown_outcome(sending.kind)
    ctx.if_unsent(take_back, attempt=sending.id, now=ctx.now)
    began = deps.clock.monotonic()
    await ctx.dispatch((sent.status, sent.body(ctx.request_id)), sending.begin, now=deps.clock.now())
    ctx.if_lost(settle_unknown, **named, now=ctx.now)
    try:
        require_in_time(deps, began)
        made = await sending.send()
    except PaymentsError as error:
        if error.before_execution:
            raise
        return await ctx.conclude(settle_unknown, **named, now=deps.clock.now())
    except Refusal as refusal:
        return await ctx.conclude(settle_refused, **named, refusal=refusal, now=deps.clock.now())
    return await ctx.conclude(settle_made, deps=deps, attempt=sending.id, made=made, now=deps.clock.now())


def require_in_time(deps: Deps, began: float) -> None:
    """What stood still for long may have been taken for dead, and may be settled as never made: it must not be sent any more."""
    if deps.clock.monotonic() - began > LATEST_SECONDS:
        raise PaymentsError(
            "The server stood still when it was about to send the call, so it was not sent; no money was moved",
            hint="Repeat the call with the same key",
            retry_after=1,
            before_execution=True,
        )


def the_attempt(connection: Connection, attempt: str) -> PaymentAttempt:
    """The row, with everything about the account's money standing still."""
    found = find_attempt(connection, attempt=attempt)
    if found is None:
        raise RuntimeError(f"there is no attempt {attempt}")
    lock_account(connection, account=found.account)
    return find_attempt(connection, attempt=attempt) or found


def refresh(connection: Connection, attempt: PaymentAttempt, now: float) -> None:
    """What is left of the charge, now that the attempt has changed."""
    if attempt.charge is not None:
        refresh_refunds(connection, account=attempt.account, charge=attempt.charge, now=now)


def take_back(connection: Connection, *, attempt: str, now: float) -> None:
    """It was not sent: what was taken for it is there again."""
    found = find_attempt(connection, attempt=attempt)
    if found is not None:
        lock_account(connection, account=found.account)
        forget_attempt(connection, attempt=attempt)
        refresh(connection, found, now)


def settle_made(connection: Connection, *, deps: Deps, attempt: str, made: Refund | Payout, now: float) -> Conclusion:
    """The processor made it. Its word is of the second of the making: every event about it is as new or newer."""
    found = the_attempt(connection, attempt)
    settle_attempt(connection, attempt=attempt, state="done", made=made.id, now=now)
    # The account may have gone to another organisation while the processor was asked.
    owner = lock_account(connection, account=found.account)
    word = {"account": found.account, "organisation": owner or found.organisation}
    take_word(connection, deps=deps, **word, thing=made, as_of=made.created, now=now)
    refresh(connection, found, now)
    shown = refund_shown(made) if isinstance(made, Refund) else payout_shown(made)
    return Conclusion(CREATED, shown, False, "ok")


def settle_unknown(connection: Connection, *, attempt: str, request_id: str, now: float) -> Conclusion:
    """Nobody knows, unless an event has told meanwhile. What was taken stays taken."""
    found = the_attempt(connection, attempt)
    if settle_attempt(connection, attempt=attempt, state="unknown", made=None, now=now):
        refusal = unknown_outcome("refund" if found.kind == "refund" else "payout")
        return Conclusion(refusal.status, refusal.body(request_id), True, UNKNOWN)
    return told_meanwhile(connection, found, request_id)


def settle_refused(connection: Connection, *, attempt: str, request_id: str, refusal: Refusal, now: float) -> Conclusion:
    """The processor did nothing: what was taken is there again."""
    found = the_attempt(connection, attempt)
    if not settle_attempt(connection, attempt=attempt, state="failed", made=None, now=now):
        return told_meanwhile(connection, found, request_id)
    refresh(connection, found, now)
    return Conclusion(refusal.status, refusal.body(request_id), False, refusal.error_code)


def told_meanwhile(connection: Connection, attempt: PaymentAttempt, request_id: str) -> Conclusion:
    """An event said that it was made, before its own answer did not; or another worker, or the lists, that it never was."""
    kind: AttemptKind = "refund" if attempt.kind == "refund" else "payout"
    if attempt.state == "failed":
        refusal = not_made(kind)
        return Conclusion(refusal.status, refusal.body(request_id), False, refusal.error_code)
    record = None if attempt.made is None else find_record(connection, account=attempt.account, kind=kind, id=attempt.made)
    if record is None:
        raise RuntimeError(f"the attempt {attempt.id} is {attempt.state} and there is no record of what it made")
    return Conclusion(CREATED, orjson.loads(record.body), False, "ok")
