"""The data of an order's eSIM: what it has used, which plans can be added, and giving up a top-up before it is paid."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypedDict

from clients.ocs.packages import Package
from clients.ocs.times import parse_wire_time
from clients.payments.records import CheckoutSession
from operations.deps import Ctx
from operations.ledger.evidence import DRAW_CLOCK_SKEW
from operations.ledger.payment_intake import is_paid_checkout
from operations.ledger.rollback import find_issued_line, has_issued_package
from operations.storefronts.hosted_storefronts import PUBLIC_PLAN_EXAMPLE, PublicPlan, render_public_plan
from operations.storefronts.orders import (
    ORDER_TOKEN_EXAMPLE,
    TOP_UP_ID_EXAMPLE,
    OrderRef,
    order_of_any_shop,
)
from operations.storefronts.sales.checkout import OrderNotReady, addable_plans
from operations.upstream.connection import upstream_of_organisation
from operations.upstream.lines import package_end
from registry.clock import rfc3339_utc
from registry.errors import Conflict, NotFound, OcsError, Refusal, Unverifiable
from registry.limits import Scope
from registry.operation import Auth, Example, operation
from storage.issuance import IssuanceRow, find_issuance
from storage.orders import OrderDetail, OrderRow, find_order, order_status_of


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
    """The session as the processor has it, after it was asked to close it where it was open."""
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


OrderUsageBytes = Annotated[int, Field(description="Bytes")]
ORDER_USAGE_EXAMPLE: "OrderUsage" = {
    "usedBytes": 402653184,
    "totalBytes": 1073741824,
    "remainingBytes": 671088640,
    "expiresAt": "2026-12-20T18:30:00Z",
}


class OrderUsage(TypedDict):
    """Data of all packages that the eSIM was given since it was ordered."""

    usedBytes: OrderUsageBytes
    totalBytes: OrderUsageBytes
    remainingBytes: Annotated[int, Field(description="Bytes that can still be used: of packages that are neither over nor blocked")]
    expiresAt: Annotated[
        str | None,
        Field(description="When the last package in use ends, RFC 3339 UTC; null while all that is left waits for its first use"),
    ]


@operation(
    "GET",
    "/api/orders/{orderId}/usage",
    scope=Scope.NONE,
    auth=Auth.STOREFRONT_OPEN,
    enumeration_guarded=True,
    access=order_of_any_shop,
    title="Get order usage",
    raises=[NotFound, OrderNotReady, OcsError],
    examples=[Example("How much data is left?", {"orderId": ORDER_TOKEN_EXAMPLE}, ORDER_USAGE_EXAMPLE)],
)
async def get_storefront_order_usage(ctx: Ctx, _params: OrderRef, order: OrderDetail) -> OrderUsage:
    """Get the data that an order's eSIM has used and has left, in bytes.

    Read from the charging system now: 502 when it cannot be, never a zero. 409 `order_not_ready` unless the eSIM is the buyer's.

    `usedBytes` is all that was used since the order was created, of packages that are over as well; `totalBytes` is what they held.
    A top-up adds to both.
    """
    row = await ctx.deps.store.read(find_issuance, organisation=order.row.organisation, key=order.row.id)
    if row is None or row.state != "issued" or order_status_of(order.row) != "ready" or row.iccid != order.row.iccid:
        raise esim_not_the_buyers(order)
    upstream = await upstream_of_organisation(ctx.deps, order.row.organisation)
    line = await find_issued_line(upstream, row)
    if line is None:
        raise esim_not_the_buyers(order)
    held = await upstream.ocs.packages.list_packages(line.subscriber_id)
    if not has_issued_package(held, row):
        raise esim_not_the_buyers(order)
    ours = {row.package_id, *(top_up.package_id for top_up in order.top_ups)} - {None}
    packages = [package for package in held.get("packages", []) if is_package_of_order(package, row, ours)]
    end = end_of_order_packages(packages, ctx.now)
    return {
        "usedBytes": sum(used_order_bytes(package) for package in packages),
        "totalBytes": sum(package.get("pckdatabyte", 0) for package in packages),
        "remainingBytes": sum(usable_order_bytes(package, ctx.now) for package in packages),
        "expiresAt": None if end is None else rfc3339_utc(end),
    }


def esim_not_the_buyers(order: OrderDetail) -> OrderNotReady:
    """There is no eSIM yet, or somebody else may have it by now, whose use is not shown."""
    status = order_status_of(order.row)
    text = "The eSIM of this order is not where it was drawn, or without its package" if status == "ready" else f"This order is {status}"
    return OrderNotReady(f"{text}, so there is no usage to show", hint="Usage is told of orders that are ready, whose eSIM the buyer has")


def is_package_of_order(package: Package, row: IssuanceRow, ours: Iterable[int | None]) -> bool:
    """What the order brought, and what came after it. A package of whoever had the SIM before is older."""
    if package.get("subscriberprepaidpackageid") in ours:
        return True
    try:
        assigned = parse_wire_time(package.get("tsassigned", ""))
    except ValueError:
        raise order_usage_unreadable() from None
    return assigned >= datetime.fromtimestamp(row.dispatched, UTC) - DRAW_CLOCK_SKEW


def end_of_order_packages(packages: Sequence[Package], now: float) -> float | None:
    """Choice: what has ended says nothing of when the rest does, which may be waiting for its first use."""
    ends = [end.timestamp() for package in packages if (end := package_end(package)) is not None]
    waiting = any(package_end(package) is None and usable_order_bytes(package, now) for package in packages)
    return max([end for end in ends if end > now or not waiting], default=None)


def used_order_bytes(package: Package) -> int:
    """A counter that is not told is not a zero, unless the package holds no data."""
    found = package.get("useddatabyte")
    if found is None and package.get("pckdatabyte"):
        raise order_usage_unreadable()
    return found or 0


def usable_order_bytes(package: Package, now: float) -> int:
    end = package_end(package)
    if package.get("active") is False or (end is not None and end.timestamp() <= now):
        return 0
    return max(0, package.get("pckdatabyte", 0) - used_order_bytes(package))


def order_usage_unreadable() -> OcsError:
    return OcsError("The charging system did not tell what a package of this eSIM has used", before_execution=True)
