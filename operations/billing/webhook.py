"""What the payment processor tells of connected accounts: signed, each event once, in any order."""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field, JsonValue
from typing_extensions import TypedDict

from clients.payments.port import BadEvent
from clients.payments.records import Account, ApplicationFee, Charge, CheckoutSession, Dispute, Event, Payout, ProcessorInvoice, Refund
from operations.deps import Ctx, Deps
from operations.services.payments.connect_status import detach, take_account
from operations.services.payments.invoice_payment import take_payment
from operations.services.payments.payment_intake import take_word
from operations.services.shop.order_payment import take_checkout
from registry.call import Call
from registry.caller import Caller
from registry.errors import BadRequest, Unauthorized
from registry.limits import Scope
from registry.model import Input
from registry.operation import Auth, Example, operation
from storage.connection import Connection
from storage.money.payment_events import take_event
from storage.money.payment_records import lock_account

SIGNATURE = "stripe-signature"
PROCESSOR = Caller(kind="internal", principal="processor", scopes=int(Scope.READ | Scope.ANY))
UPDATED, DEAUTHORIZED, INVOICE_PAID = "account.updated", "account.application.deauthorized", "invoice.paid"
CHECKOUT = "checkout.session."
CHECKOUT_PAID = ("checkout.session.completed", "checkout.session.async_payment_succeeded")


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


RECEIVED: Received = {"received": True}
CHARGE: JsonValue = {
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
    """The processor, or a 401 that says the same whatever was wrong."""
    await read_event(deps, call, now)
    return PROCESSOR


async def read_event(deps: Deps, call: Call, now: float) -> Event:
    """The event in the bytes as they came."""
    signature = call.headers.get(SIGNATURE)
    try:
        return deps.payments.read_event(await call.body(), signature or "", now)
    except BadEvent as bad:
        if bad.signed:
            # The processor sends it again for days: whoever reads its list of failed deliveries sees that this build cannot read it.
            raise BadRequest(f"The event is signed, and {bad.reason}", code="event_unreadable") from None
        raise Unauthorized(
            "The event is not signed as the payment processor signs it",
            presented=signature is not None,
            hint="Stripe-Signature: t=UNIX,v1=HEX over the exact bytes, with SERVICE_PAYMENTS_WEBHOOK_SECRET, at most 300 s old",
        ) from None


@operation(
    "POST",
    "/v1/operator-billing/payments-webhook",
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
                "data": {"object": CHARGE},
            },
            RECEIVED,
        )
    ],
)
async def operator_billing_payments_webhook(ctx: Ctx, params: PaymentsNotice) -> Received:
    """Take an event of the payment processor.

    Called by the processor alone, with its signature header instead of a bearer; any other body is 401.

    The signature is checked over the raw bytes with a tolerance of 300 s, and each event has its effect once: account status, paid
    invoices, paid orders of shops, and the records of charges, refunds, disputes, payouts and application fees. Events may come in any
    order: the newest word of a thing stays. An event of an account that no organisation has, of a kind that nothing reads, or of the
    other mode (test or live) is answered 200 and has no effect. 503: nothing was done, and the processor sends it again.
    """
    del params
    event = await read_event(ctx.deps, ctx.call, ctx.now)
    if event.live is not ctx.deps.payments.live:
        return await ctx.settle(RECEIVED)
    return await ctx.settle(RECEIVED, take, deps=ctx.deps, event=event, now=ctx.now)


def take(connection: Connection, *, deps: Deps, event: Event, now: float) -> None:
    """Remember it and do what it says in one transaction; what it has no effect on may be told again when it has."""
    account = account_of(event)
    owner = None if account is None else lock_account(connection, account=account)
    if account is None or not is_read(event):
        return
    # A buyer who paid into an account that was let go of since then is owed an eSIM, or the money, all the same.
    if owner is None and not isinstance(event.record, CheckoutSession):
        return
    if take_event(connection, id=event.id, type=event.type, account=event.account, now=now):
        effect(connection, deps=deps, event=event, account=account, owner=owner or "", now=now)


def account_of(event: Event) -> str | None:
    """Whose money it is about. Application fees are the service's own, and name the account that paid them.

    One that happened in a connected account is what that account, a platform itself, kept of others: nothing of ours.
    """
    if isinstance(event.record, ApplicationFee):
        return event.record.account if event.account is None else None
    return event.account


def is_read(event: Event) -> bool:
    """Whether anything here has a use for it. A checkout session is kept in mind, though only a paid one has an effect."""
    if isinstance(event.record, Charge | Refund | Dispute | Payout | ApplicationFee):
        return True
    return event.type in (UPDATED, DEAUTHORIZED, INVOICE_PAID) or event.type.startswith(CHECKOUT)


def effect(connection: Connection, *, deps: Deps, event: Event, account: str, owner: str, now: float) -> None:
    """What an event does that is new."""
    if event.type == DEAUTHORIZED:
        detach(connection, account=account, as_of=event.created, now=now)
        return
    match event.record:
        case Charge() | Refund() | Dispute() | Payout() | ApplicationFee() as thing:
            take_word(connection, deps=deps, account=account, organisation=owner, thing=thing, as_of=event.created, now=now)
        case Account() as told if event.type == UPDATED and told.id == account:
            take_account(connection, account=told, as_of=event.created, now=now)
        case ProcessorInvoice() as invoice if event.type == INVOICE_PAID:
            take_payment(connection, account=account, invoice=invoice, now=now)
        case CheckoutSession() as session if event.type in CHECKOUT_PAID:
            take_checkout(connection, deps=deps, account=account, session=session, now=now)
        case _:
            pass
