"""What the payment processor tells of connected accounts: signed, each event once, in any order."""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field, JsonValue
from typing_extensions import TypedDict

from clients.payments.port import BadProcessorEvent
from clients.payments.records import (
    ApplicationFee,
    Charge,
    CheckoutSession,
    ConnectedAccount,
    Dispute,
    Payout,
    ProcessorEvent,
    ProcessorInvoice,
    Refund,
)
from operations.deps import Ctx, Deps
from operations.ledger.payment_accounts import keep_payment_account_status
from operations.ledger.payment_intake import take_checkout, take_invoice_payment, take_processor_record
from registry.call import Call
from registry.caller import Caller
from registry.errors import BadRequest, Unauthorized
from registry.operation import Auth, Example, Input, Scope, SpendKind, operation
from storage.connect_accounts import detach_connect_account
from storage.engine.sql import Connection
from storage.payment_records import lock_payment_account, take_payment_event

PROCESSOR_SIGNATURE_HEADER = "stripe-signature"
PROCESSOR_CALLER = Caller(kind="internal", principal="processor", scopes=int(Scope.READ | Scope.ANY))
PAYMENT_ACCOUNT_UPDATED, PAYMENT_ACCOUNT_DEAUTHORIZED = "account.updated", "account.application.deauthorized"
INVOICE_PAID_EVENT = "invoice.paid"
CHECKOUT_EVENT_PREFIX = "checkout.session."
CHECKOUT_PAID_EVENTS = ("checkout.session.completed", "checkout.session.async_payment_succeeded")


class PaymentsNotice(Input):
    """An event as the processor sends it. What is not named here is skipped."""

    model_config = ConfigDict(extra="ignore", json_schema_extra={"additionalProperties": True})

    id: Annotated[JsonValue, Field(description="The event, evt_...")] = None
    type: Annotated[JsonValue, Field(description="What happened, such as charge.succeeded.")] = None
    account: Annotated[JsonValue, Field(description="The connected account it happened in, acct_...")] = None
    created: Annotated[JsonValue, Field(description="When, Unix seconds.")] = None
    livemode: Annotated[JsonValue, Field(description="Whether real money moved.")] = None
    data: Annotated[JsonValue, Field(description="`object`: what it is about, as it was then.")] = None


class Received(TypedDict):
    """Taken, or nothing to do."""

    received: Literal[True]


PAYMENTS_EVENT_RECEIVED: Received = {"received": True}
EVENT_CHARGE_EXAMPLE: JsonValue = {
    "id": "ch_3QxAbCdEfGhIjKlM",
    "object": "charge",
    "amount": 1490,
    "amount_refunded": 0,
    "currency": "eur",
    "status": "succeeded",
    "refunded": False,
    "disputed": False,
    "payment_intent": "pi_3QxAbCdEfGhIjKlM",
    "metadata": {},
    "created": 1795255199,
}


async def prove_processor(deps: Deps, call: Call, now: float) -> Caller:
    """The processor, whose event is the evidence of `call`; or a 401 that says the same whatever was wrong. `now`: Unix seconds."""
    signature = call.headers.get(PROCESSOR_SIGNATURE_HEADER)
    try:
        call.evidence = await deps.payments.read_event(await call.body(), signature or "", now)
    except BadProcessorEvent as bad:
        if bad.signed:
            # The processor sends it again for days: whoever reads its list of failed deliveries sees that this build cannot read it.
            raise BadRequest(f"The event is signed, and {bad.reason}", code="event_unreadable") from None
        raise Unauthorized(
            "The event is not signed as the payment processor signs it",
            presented=signature is not None,
            hint="Stripe-Signature: t=UNIX,v1=HEX over the exact bytes, with SERVICE_PAYMENTS_WEBHOOK_SECRET, at most 300 s old",
        ) from None
    return PROCESSOR_CALLER


@operation(
    "POST",
    "/v1/operator-billing/payments-webhook",
    spends=SpendKind.NOTHING,
    scope=Scope.NONE,
    auth=Auth.SIGNATURE,
    proof=prove_processor,
    limited=False,
    title="Receive payment processor event",
    examples=[
        Example(
            "A charge succeeded in a connected account",
            {
                "id": "evt_1QxAbCdEfGhIjKlM",
                "object": "event",
                "type": "charge.succeeded",
                "account": "acct_1QxFjordConnected",
                "created": 1795255200,
                "livemode": False,
                "data": {"object": EVENT_CHARGE_EXAMPLE},
            },
            PAYMENTS_EVENT_RECEIVED,
        )
    ],
)
async def operator_billing_payments_webhook(ctx: Ctx, _params: PaymentsNotice) -> Received:
    """Take an event of the payment processor.

    Called by the processor alone, with its signature header instead of a bearer; any other body is 401.

    The signature is checked over the raw bytes with a tolerance of 300 s, and each event has its effect once: account status, paid
    invoices, paid orders of shops, and the records of charges, refunds, disputes, payouts and application fees. Events may come in any
    order: the newest word of a thing stays. An event of an account that no organisation has, of a kind that nothing reads, or of the
    other mode (test or live) is answered 200 and has no effect. 503: nothing was done, and the processor sends it again.
    """
    event = ctx.call.evidence
    if not isinstance(event, ProcessorEvent):
        raise RuntimeError("the proof hands the event on that it has verified")
    if event.live is not ctx.deps.payments.live:
        return await ctx.settle(PAYMENTS_EVENT_RECEIVED)
    return await ctx.settle(PAYMENTS_EVENT_RECEIVED, take_payments_event, deps=ctx.deps, event=event, now=ctx.now)


def take_payments_event(connection: Connection, *, deps: Deps, event: ProcessorEvent, now: float) -> None:
    """Remember it and do what it says in one transaction; what it has no effect on may be told again when it has."""
    account = payment_account_of_event(event)
    owner = None if account is None else lock_payment_account(connection, account=account)
    if account is None or not is_payments_event_read(event):
        return
    # A buyer who paid into an account that was let go of since then is owed an eSIM, or the money, all the same.
    if owner is None and not isinstance(event.record, CheckoutSession):
        return
    if take_payment_event(connection, id=event.id, type=event.type, account=event.account, now=now):
        apply_payments_event(connection, deps=deps, event=event, account=account, owner=owner or "", now=now)


def payment_account_of_event(event: ProcessorEvent) -> str | None:
    """Whose money it is about. Application fees are the service's own, and name the account that paid them.

    One that happened in a connected account is what that account, a platform itself, kept of others: nothing of ours.
    """
    if isinstance(event.record, ApplicationFee):
        return event.record.account if event.account is None else None
    return event.account


def is_payments_event_read(event: ProcessorEvent) -> bool:
    """Whether anything here has a use for it. A checkout session is kept in mind, though only a paid one has an effect."""
    if isinstance(event.record, Charge | Refund | Dispute | Payout | ApplicationFee):
        return True
    return event.type in (PAYMENT_ACCOUNT_UPDATED, PAYMENT_ACCOUNT_DEAUTHORIZED, INVOICE_PAID_EVENT) or event.type.startswith(
        CHECKOUT_EVENT_PREFIX
    )


def apply_payments_event(connection: Connection, *, deps: Deps, event: ProcessorEvent, account: str, owner: str, now: float) -> None:
    if event.type == PAYMENT_ACCOUNT_DEAUTHORIZED:
        detach_connect_account(connection, account=account, as_of=event.created, now=now)
        return
    match event.record:
        case Charge() | Refund() | Dispute() | Payout() | ApplicationFee() as thing:
            take_processor_record(connection, deps=deps, account=account, organisation=owner, thing=thing, as_of=event.created, now=now)
        case ConnectedAccount() as told if event.type == PAYMENT_ACCOUNT_UPDATED and told.id == account:
            keep_payment_account_status(connection, deps=deps, account=told, as_of=event.created, now=now)
        case ProcessorInvoice() as invoice if event.type == INVOICE_PAID_EVENT:
            take_invoice_payment(connection, deps=deps, account=account, invoice=invoice, now=now)
        case CheckoutSession() as session if event.type in CHECKOUT_PAID_EVENTS:
            take_checkout(connection, deps=deps, account=account, session=session, now=now)
        case _:
            pass
