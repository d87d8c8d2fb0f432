"""Refunds and payouts that are sent through us once, and what their keys answer."""

import hashlib
from typing import Literal

import orjson

from clients.payments.records import Refund
from operations.deps import Ctx, Deps
from registry.errors import PaymentsRefused
from registry.ports import AuditRecord
from storage.audit import append_audit_record
from storage.claims import find_claim, resolve_unknown_claim
from storage.engine.sql import Connection
from storage.payment_records import AttemptKind, PaymentAttempt, attempt_by_key, find_payment_record, insert_attempt
from storage.sealing import claim_field

REFUND_OPERATION, PAYOUT_OPERATION = "operator_billing_create_refund", "operator_billing_create_manual_payout"
ATTEMPT_OPERATIONS: dict[str, str] = {"refund": REFUND_OPERATION, "payout": PAYOUT_OPERATION}
PAYMENT_OUTCOME_UNKNOWN = "OUTCOME_UNKNOWN"
PROCESSOR_KEY_LIMIT = 255
PAYMENT_CREATED = 201


def payment_not_made(kind: AttemptKind) -> PaymentsRefused:
    """The refusal where it is proved that the processor made no refund or payout (`kind`)."""
    return PaymentsRefused(f"The payment processor made no {kind} for this call; no money was moved", hint="Use a new key to try again")


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


def update_attempt_answer(connection: Connection, deps: Deps, attempt: PaymentAttempt, status: int, body: object, now: float) -> None:
    """Stores `status` and `body` as the answer of the key of `attempt`. A call that still runs stores its own, and its own audit row."""
    if replace_unknown_answer(connection, deps, attempt, status, body) or attempt.state == "unknown":
        outcome = "settled_done" if status == PAYMENT_CREATED else "settled_failed"
        operation, request = ATTEMPT_OPERATIONS[attempt.kind], deps.ids.new("req_")
        record = AuditRecord(now, attempt.organisation, "worker", operation, "settlement", "", outcome, status, 0.0, request)
        append_audit_record(connection, record)


def replace_unknown_answer(connection: Connection, deps: Deps, attempt: PaymentAttempt, status: int, body: object) -> bool:
    """Store `status` and `body` as the answer of the attempt's key, where its answer was that nobody knows; whether that was so."""
    operation, key = ATTEMPT_OPERATIONS[attempt.kind], attempt.claim_key
    if key is None:
        return False
    sealed = deps.keyring.seal(orjson.dumps(body).decode(), org_id=attempt.organisation, field=claim_field(operation, key))
    return resolve_unknown_claim(
        connection, organisation=attempt.organisation, operation=operation, key=key, state="done", status=status, body=sealed
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
