"""Refunds and payouts that are sent through us once: what they answer while nobody knows, and how they are settled."""

import hashlib
from typing import Literal

import orjson

from clients.payments.records import Payout, Refund
from operations.deps import Ctx, Deps
from operations.services.payments.payment_records import GONE, RefundRecord, payout_shown, refund_shown, shown
from operations.services.shop.order_letters import tell_refund_failed
from registry.ids import Ids
from registry.payments_errors import PaymentsError, PaymentsRefused
from registry.ports import Line
from storage.calls.audit import append_line
from storage.calls.claims import find_claim, settle_unknown
from storage.connection import Connection
from storage.money.payment_attempts import AttemptKind, PaymentAttempt, attempt_by_key, find_attempt, settle_attempt
from storage.money.payment_records import find_record
from storage.secrets.sealed_fields import claim_field
from storage.shop.order_queue import refund_fell, refund_was_made, refund_was_never_made

REFUND, PAYOUT = "operator_billing_create_refund", "operator_billing_create_manual_payout"
OPERATIONS: dict[str, str] = {"refund": REFUND, "payout": PAYOUT}
UNKNOWN = "OUTCOME_UNKNOWN"
LONGEST_KEY = 255
CREATED = 201


def unknown_outcome(kind: AttemptKind) -> PaymentsError:
    """The refusal that keeps its key and what was taken for it."""
    return PaymentsError(
        f"Whether the {kind} was made is not known. Keep the key: it is found out by itself, and never sent twice",
        code=UNKNOWN,
        outcome_unknown=True,
        hint=f"Repeat the call with the same key later to learn what came of it; operator_billing_list_{kind}s shows it too",
    )


def not_made(kind: AttemptKind) -> PaymentsRefused:
    """What was found out: the processor has no such thing."""
    return PaymentsRefused(f"The payment processor made no {kind} for this call; no money was moved", hint="Use a new key to try again")


def processor_key(kind: AttemptKind | Literal["evidence"], claim_key: str | None, attempt: str) -> str:
    """The caller's key as the processor gets it; without one, the attempt is its own."""
    key = f"{kind}:{claim_key or attempt}"
    return key if len(key) <= LONGEST_KEY else f"{kind}:{hashlib.sha256(key.encode()).hexdigest()}"


def new_attempt(
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
    """One that is about to be sent; `sent_as` is the processor's key where it does not follow from the caller's."""
    return PaymentAttempt(
        id=id,
        organisation=organisation,
        account=account,
        kind=kind,
        charge=charge,
        amount=amount,
        currency=currency,
        state="sending",
        processor_key=sent_as or processor_key(kind, claim_key, id),
        claim_key=claim_key,
        made=None,
        created=int(now),
        updated=int(now),
    )


async def send_refund(deps: Deps, attempt: PaymentAttempt | None, *, reason: str | None) -> Refund:
    """Ask the processor for what an attempt says."""
    if attempt is None or attempt.charge is None:
        raise RuntimeError("a refund is sent when its attempt was written")
    return await deps.payments.refund(
        attempt.account,
        charge=attempt.charge,
        amount=attempt.amount,
        reason=reason,
        key=attempt.processor_key,
        metadata={"attempt": attempt.id},
    )


def settle_by_word(connection: Connection, *, deps: Deps, account: str, thing: Refund | Payout, now: float) -> None:
    """The processor tells of a refund or payout: if it is of an attempt, that one has been made, and its key answers with it.

    An account's owner may write any metadata, so what it names must be that account's, of this charge, amount and currency.
    """
    named = thing.metadata.get("attempt")
    attempt = None if named is None else find_attempt(connection, attempt=named)
    if attempt is None or not is_of(thing, attempt, account):
        return
    follow(connection, deps, attempt, thing, now)
    if settle_attempt(connection, attempt=attempt.id, state="done", made=thing.id, now=now):
        shown = refund_shown(thing) if isinstance(thing, Refund) else payout_shown(thing)
        keep_answer(connection, deps, attempt, CREATED, shown, now)


def follow(connection: Connection, deps: Deps, attempt: PaymentAttempt, thing: Refund | Payout, now: float) -> None:
    """An order that the refund is of stands as the refund does; where the buyer did not get it, the operator is told.

    The newest word counts, which was kept before: this one may be old.
    """
    record = find_record(connection, account=attempt.account, kind="refund", id=thing.id)
    if (thing.status if record is None else shown(record, RefundRecord)["status"]) not in GONE:
        refund_was_made(connection, attempt=attempt.id, now=now)
        return
    order = refund_fell(connection, attempt=attempt.id, now=now)
    if order is not None:
        tell_refund_failed(connection, deps, order)


def is_of(thing: Refund | Payout, attempt: PaymentAttempt, account: str) -> bool:
    """Whether the thing is what the attempt asked for."""
    kind, charge = ("refund", thing.charge) if isinstance(thing, Refund) else ("payout", None)
    wanted = (attempt.account, attempt.kind, attempt.charge, attempt.amount, attempt.currency)
    return wanted == (account, kind, charge, thing.amount, thing.currency)


def settle_as_failed(connection: Connection, *, deps: Deps, attempt: PaymentAttempt, now: float) -> bool:
    """It is proved that the processor never made it."""
    if not settle_attempt(connection, attempt=attempt.id, state="failed", made=None, now=now):
        return False
    refund_was_never_made(connection, attempt=attempt.id, now=now)
    refusal = not_made("refund" if attempt.kind == "refund" else "payout")
    keep_answer(connection, deps, attempt, refusal.status, refusal.body(deps.ids.new("req_")), now)
    return True


def keep_answer(connection: Connection, deps: Deps, attempt: PaymentAttempt, status: int, body: object, now: float) -> None:
    """What the key answers from now on. A call that is still running says it by itself, and is its own audit row."""
    if rewrite(connection, deps, attempt, status, body) or attempt.state == "unknown":
        append_line(connection, audit_of(deps.ids, attempt, status, now))


def rewrite(connection: Connection, deps: Deps, attempt: PaymentAttempt, status: int, body: object) -> bool:
    """Give a key its answer, if its answer was that nobody knows."""
    operation, key = OPERATIONS[attempt.kind], attempt.claim_key
    if key is None:
        return False
    sealed = deps.keyring.seal(orjson.dumps(body).decode(), org_id=attempt.organisation, field=claim_field(operation, key))
    return settle_unknown(
        connection, organisation=attempt.organisation, operation=operation, key=key, state="done", status=status, body=sealed
    )


def audit_of(ids: Ids, attempt: PaymentAttempt, status: int, now: float) -> Line:
    """The audit row of a settlement by the processor's word."""
    outcome = "settled_done" if status == CREATED else "settled_failed"
    operation = OPERATIONS[attempt.kind]
    return Line(now, attempt.organisation, "worker", operation, "settlement", "", outcome, status, 0.0, ids.new("req_"))


async def mend_answer(ctx: Ctx, kind: AttemptKind) -> None:
    """A key whose call died before its attempt was settled still says that nobody knows: what is known by now is its answer."""
    key = ctx.call.idempotency_key
    if key is not None:
        named = {"organisation": ctx.organisation, "claim_key": key}
        found = await ctx.deps.store.read(settled_meanwhile, kind=kind, now=int(ctx.now), **named)
        if found is not None:
            await ctx.deps.store.write(mend, deps=ctx.deps, attempt=found, kind=kind)


def settled_meanwhile(connection: Connection, *, organisation: str, kind: AttemptKind, claim_key: str, now: int) -> PaymentAttempt | None:
    """The attempt of a key whose answer is older than what is known of it."""
    claim = find_claim(connection, organisation=organisation, operation=OPERATIONS[kind], key=claim_key, now=now)
    if claim is None or claim.state != "unknown":
        return None
    found = attempt_by_key(connection, organisation=organisation, kind=kind, claim_key=claim_key)
    return found if found is not None and found.state in ("done", "failed") else None


def mend(connection: Connection, *, deps: Deps, attempt: PaymentAttempt, kind: AttemptKind) -> None:
    """Only an answer that says nobody knows gives way."""
    record = None if attempt.made is None else find_record(connection, account=attempt.account, kind=kind, id=attempt.made)
    if record is not None:
        rewrite(connection, deps, attempt, CREATED, orjson.loads(record.body))
    elif attempt.state == "failed":
        refusal = not_made(kind)
        rewrite(connection, deps, attempt, refusal.status, refusal.body(deps.ids.new("req_")))
