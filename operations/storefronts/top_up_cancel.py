"""Giving up a top-up before it is paid: its page at the payment processor is closed, or it is said why not."""

from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypedDict

from clients.payments.records import CheckoutSession
from operations.deps import Ctx
from operations.storefronts.order_access import OrderId, any_order
from operations.storefronts.order_example import ORDER, TOP_UP
from registry.errors import Conflict, NotFound, Refusal, Unverifiable
from registry.limits import Scope
from registry.model import CamelInput
from registry.operation import Auth, Example, operation
from storage.shop.orders import OrderRow, find_order

PAID = "This top-up was paid for, so its checkout is not expired; nothing was changed"


class TopUpRef(CamelInput):
    """Which top-up of which order."""

    order_id: OrderId
    session_id: Annotated[str, Field(description="Top-up id, tuc_..., or the payment processor's id of its checkout session.")]


class TopUpCheckout(TypedDict):
    """A top-up's page to pay on."""

    id: Annotated[str, Field(description="tuc_...")]
    object: Literal["storefront.top_up_checkout"]
    order: Annotated[str, Field(description="What you named the order by")]
    status: Literal["expired"]


class CheckoutAlreadyPaid(Conflict):
    """Money has come in for it."""

    code = "checkout_already_paid"


async def top_up_of_order(ctx: Ctx, params: TopUpRef) -> OrderRow:
    """A top-up of this very order; another order's is not found, like one that never was."""
    order = await any_order(ctx, params)
    found = next((top_up for top_up in order.top_ups if params.session_id in (top_up.id, top_up.session)), None)
    if found is None:
        raise NotFound(
            "This order has no such top-up checkout", param="sessionId", hint="Name the top-up, tuc_..., or its session at the processor"
        )
    return found


@operation(
    "POST",
    "/api/orders/{orderId}/top-up-checkouts/{sessionId}/cancel",
    scope=Scope.NONE,
    auth=Auth.STOREFRONT_OPEN,
    guessed=True,
    processor=True,
    access=top_up_of_order,
    title="Cancel top-up checkout",
    raises=[NotFound, CheckoutAlreadyPaid, Unverifiable],
    examples=[
        Example(
            "The buyer changed their mind",
            {"orderId": ORDER, "sessionId": TOP_UP},
            {"id": TOP_UP, "object": "storefront.top_up_checkout", "order": ORDER, "status": "expired"},
        )
    ],
)
async def cancel_top_up_checkout(ctx: Ctx, params: TopUpRef, top_up: OrderRow) -> TopUpCheckout:
    """Expire an order's open, unpaid top-up checkout: it cannot be paid any more.

    Again, or after it expired by itself: the same answer. 409 `checkout_already_paid` once it was paid.

    Paid or not is asked of the payment processor, not guessed: 502 `payment_state_unverifiable` where it does not say, or where a
    payment is under way; nothing was changed then, and the call may be repeated.
    """
    await close(ctx, top_up)
    return {"id": top_up.id, "object": "storefront.top_up_checkout", "order": params.order_id, "status": "expired"}


async def close(ctx: Ctx, top_up: OrderRow) -> None:
    """Return when it is known to have expired unpaid."""
    if top_up.status != "pending_payment":
        raise CheckoutAlreadyPaid(PAID, hint="GET /api/orders/{orderId} tells where the top-up stands")
    if top_up.session is None:  # its page may have been made a moment ago, and we were not told its id yet
        raise unverifiable()
    ctx.reached_upstream = True
    judge(await expired(ctx, top_up.payee, top_up.session))
    now = await ctx.deps.store.read(find_order, order=top_up.id)
    if now is not None and now.status != "pending_payment":
        raise CheckoutAlreadyPaid(PAID)


async def expired(ctx: Ctx, payee: str, session: str) -> CheckoutSession:
    """The session as the processor has it, after it was asked to close it where it was open."""
    payments = ctx.deps.payments
    try:
        found = await payments.find_checkout(payee, session)
        return await payments.expire_checkout(payee, session) if found.status == "open" else found
    except Refusal:
        raise unverifiable() from None


def judge(session: CheckoutSession) -> None:
    """Only what has expired cannot be paid. Of what is complete and unpaid the bank has not spoken yet."""
    if session.payment_status == "paid" or (session.status == "complete" and session.payment_status == "no_payment_required"):
        raise CheckoutAlreadyPaid(PAID, hint="What was bought comes as soon as the payment processor has told of it")
    if session.status != "expired":
        raise unverifiable()


def unverifiable() -> Unverifiable:
    """It is not guessed."""
    return Unverifiable(
        "Whether this top-up was paid for could not be found out, so its checkout may be open; nothing is known to have changed",
        hint="Repeat the call in a minute; a checkout that nobody pays expires by itself within an hour of its beginning",
    )
