"""More data for an order's eSIM: which plans can be added, and giving up a top-up before it is paid."""

from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypedDict

from clients.payments.records import CheckoutSession
from operations.deps import Ctx
from operations.ledger.payment_intake import is_paid_checkout
from operations.storefronts.hosted_storefronts import PUBLIC_PLAN_EXAMPLE, PublicPlan, render_public_plan
from operations.storefronts.orders import ORDER_TOKEN_EXAMPLE, TOP_UP_ID_EXAMPLE, OrderRef, order_of_any_shop
from operations.storefronts.sales.checkout import addable_plans
from registry.errors import Conflict, NotFound, OcsError, Refusal, Unverifiable
from registry.operation import Auth, Example, Scope, SpendKind, operation
from storage.orders import OrderDetail, OrderRow, find_order


@operation(
    "GET",
    "/api/orders/{orderId}/top-up-options",
    scope=Scope.NONE,
    auth=Auth.STOREFRONT_OPEN,
    enumeration_guarded=True,
    access=order_of_any_shop,
    title="Get top-up options",
    raises=[NotFound, OcsError],
    examples=[Example("What can this eSIM be given?", {"orderId": ORDER_TOKEN_EXAMPLE}, [PUBLIC_PLAN_EXAMPLE])],
)
async def get_storefront_order_top_up_options(ctx: Ctx, _params: OrderRef, order: OrderDetail) -> list[PublicPlan]:
    """List the plans that can be added to an order's eSIM, as its shop displays them.

    Empty when nothing can be: the order is not ready, was cancelled, or nothing that its shop sells fits this eSIM.
    """
    # A shop's currency is for ever that of its first plan, so it is the order's.
    return [render_public_plan(plan, order.row.currency) for plan in await addable_plans(ctx.deps, order.row)]


TOP_UP_PAID_TEXT = "This top-up was paid for, so its checkout is not expired; nothing was changed"


class TopUpRef(OrderRef):
    """Which top-up of which order."""

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
    order = await order_of_any_shop(ctx, params)
    found = next((top_up for top_up in order.top_ups if params.session_id in (top_up.id, top_up.session)), None)
    if found is None:
        raise NotFound(
            "This order has no such top-up checkout", param="sessionId", hint="Name the top-up, tuc_..., or its session at the processor"
        )
    return found


@operation(
    "POST",
    "/api/orders/{orderId}/top-up-checkouts/{sessionId}/cancel",
    spends=SpendKind.NOTHING,
    scope=Scope.NONE,
    auth=Auth.STOREFRONT_OPEN,
    enumeration_guarded=True,
    processor=True,
    access=top_up_of_order,
    title="Cancel top-up checkout",
    raises=[NotFound, CheckoutAlreadyPaid, Unverifiable],
    examples=[
        Example(
            "The buyer changed their mind",
            {"orderId": ORDER_TOKEN_EXAMPLE, "sessionId": TOP_UP_ID_EXAMPLE},
            {"id": TOP_UP_ID_EXAMPLE, "object": "storefront.top_up_checkout", "order": ORDER_TOKEN_EXAMPLE, "status": "expired"},
        )
    ],
)
async def cancel_top_up_checkout(ctx: Ctx, params: TopUpRef, top_up: OrderRow) -> TopUpCheckout:
    """Expire an order's open, unpaid top-up checkout: it cannot be paid any more.

    Again, or after it expired by itself: the same answer. 409 `checkout_already_paid` once it was paid.

    Paid or not is asked of the payment processor, not guessed: 502 `payment_state_unverifiable` where it does not say, or where a
    payment is under way; nothing was changed then, and the call may be repeated.
    """
    await expire_top_up_checkout(ctx, top_up)
    return {"id": top_up.id, "object": "storefront.top_up_checkout", "order": params.order_id, "status": "expired"}


async def expire_top_up_checkout(ctx: Ctx, top_up: OrderRow) -> None:
    if top_up.status != "pending_payment":
        raise CheckoutAlreadyPaid(TOP_UP_PAID_TEXT, hint="GET /api/orders/{orderId} tells where the top-up stands")
    if top_up.session is None:  # its page may have been made a moment ago, and we were not told its id yet
        raise top_up_payment_unverifiable()
    ctx.reached_upstream = True
    require_expired_session(await expire_session(ctx, top_up.payee, top_up.session))
    now = await ctx.deps.store.read(find_order, order=top_up.id)
    if now is not None and now.status != "pending_payment":
        raise CheckoutAlreadyPaid(TOP_UP_PAID_TEXT)


async def expire_session(ctx: Ctx, payee: str, session: str) -> CheckoutSession:
    """The checkout `session` after the processor was asked to close it where it was open. Raises Unverifiable. Waits for the network."""
    payments = ctx.deps.payments
    try:
        found = await payments.find_checkout(payee, session)
        return await payments.expire_checkout(payee, session) if found.status == "open" else found
    except Refusal:
        raise top_up_payment_unverifiable() from None


def require_expired_session(session: CheckoutSession) -> None:
    """Only what has expired cannot be paid. Of what is complete and unpaid the bank has not spoken yet."""
    if is_paid_checkout(session):
        raise CheckoutAlreadyPaid(TOP_UP_PAID_TEXT, hint="What was bought comes as soon as the payment processor has told of it")
    if session.status != "expired":
        raise top_up_payment_unverifiable()


def top_up_payment_unverifiable() -> Unverifiable:
    return Unverifiable(
        "Whether this top-up was paid for could not be found out, so its checkout may be open; nothing is known to have changed",
        hint="Repeat the call in a minute; a checkout that nobody pays expires by itself within an hour of its beginning",
    )
