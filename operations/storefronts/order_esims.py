"""The eSIM of an order: the data that it has used, and taking it back to stock."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Annotated, NamedTuple

from pydantic import Field
from typing_extensions import TypedDict

from clients.ocs.wire.package import Package
from clients.ocs.wire.values import parse_wire_time
from operations.deps import Ctx
from operations.ledger.evidence import DRAW_CLOCK_SKEW
from operations.ledger.issuance import MANUAL_RECONCILIATION
from operations.ledger.rollback import LineHasPackages, find_issued_line, has_issued_package, roll_back_issuance, rollback_unknown
from operations.storefronts.orders import ORDER_TOKEN_EXAMPLE, READY_ORDER_EXAMPLE, Order, OrderRef, order_of_any_shop, render_order
from operations.storefronts.sales.checkout import OrderNotReady
from operations.upstream.connection import upstream_of_organisation
from operations.upstream.lines import Line, package_end
from registry.clock import rfc3339_utc
from registry.errors import Conflict, NotFound, OcsError
from registry.limits import Scope
from registry.operation import Auth, Example, operation
from storage.engine.connection import Connection
from storage.issuance import IssuanceRow, find_issuance
from storage.orders import OrderDetail, find_order_detail, order_status_of
from storage.rollbacks import rollback_is_running
from storage.sealing import Keyring

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
async def get_storefront_order_usage(ctx: Ctx, params: OrderRef, order: OrderDetail) -> OrderUsage:
    """Get the data that an order's eSIM has used and has left, in bytes.

    Read from the charging system now: 502 when it cannot be, never a zero. 409 `order_not_ready` unless the eSIM is the buyer's.

    `usedBytes` is all that was used since the order was created, of packages that are over as well; `totalBytes` is what they held.
    A top-up adds to both.
    """
    del params
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
    return sum_order_usage([package for package in held.get("packages", []) if is_package_of_order(package, row, ours)], ctx.now)


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


def sum_order_usage(packages: Sequence[Package], now: float) -> OrderUsage:
    """The sums."""
    return {
        "usedBytes": sum(used_order_bytes(package) for package in packages),
        "totalBytes": sum(package.get("pckdatabyte", 0) for package in packages),
        "remainingBytes": sum(usable_order_bytes(package, now) for package in packages),
        "expiresAt": None if (end := end_of_order_packages(packages, now)) is None else rfc3339_utc(end),
    }


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
    """What of it can still be used."""
    end = package_end(package)
    if package.get("active") is False or (end is not None and end.timestamp() <= now):
        return 0
    return max(0, package.get("pckdatabyte", 0) - used_order_bytes(package))


def order_usage_unreadable() -> OcsError:
    """The charging system left out what its answer must have."""
    return OcsError("The charging system did not tell what a package of this eSIM has used", before_execution=True)


ROLLED_BACK_ORDER_EXAMPLE: Order = {**READY_ORDER_EXAMPLE, "status": "rolled_back", "esim": None, "cancelled_at": "2026-11-28T08:00:00Z"}


class ReturnableOrder(NamedTuple):
    """An order with its row of the ledger, where it has one, and the line that its eSIM is."""

    order: OrderDetail
    row: IssuanceRow | None
    line: Line | None


async def order_to_return(ctx: Ctx, params: OrderRef) -> ReturnableOrder:
    """The line is looked for only where something can be given back. The organisation's own way to the charging system is used."""
    order = await order_of_any_shop(ctx, params)
    row = await ctx.deps.store.read(find_issuance, organisation=order.row.organisation, key=order.row.id)
    if row is not None and row.state != order.row.ledger:  # it moved on between the two reads
        order = await order_of_any_shop(ctx, params)
    line = None
    if row is not None and order_status_of(order.row) == "ready" and row.state == "issued":
        line = await find_issued_line(await upstream_of_organisation(ctx.deps, order.row.organisation), row)
    ctx.stage()
    return ReturnableOrder(order, row, line)


@operation(
    "DELETE",
    "/api/orders/{orderId}",
    scope=Scope.NONE,
    auth=Auth.STOREFRONT,
    access=order_to_return,
    title="Roll back order",
    raises=[NotFound, OrderNotReady, LineHasPackages, Conflict, OcsError],
    examples=[Example("The buyer returns the eSIM", {"orderId": ORDER_TOKEN_EXAMPLE}, ROLLED_BACK_ORDER_EXAMPLE)],
)
async def rollback_storefront_order(ctx: Ctx, params: OrderRef, held: ReturnableOrder) -> Order:
    """Take a ready order's eSIM back: its package goes, the SIM returns to stock.

    Nothing is refunded: operator_billing_create_refund does. Again: answers as before. MANUAL_RECONCILIATION_REQUIRED: do not repeat.

    Only `ready` orders roll back; another status is 409 `order_not_ready`. The outcomes are told apart: 200, the order with status
    `rolled_back`; 409 `line_has_packages`, where a top-up or another package is on the line: have it removed first; 409
    `top_up_under_way`, where one may come any moment; 409 `idempotency_in_progress`, where the shop's owner or another call takes it
    back just now: repeat it in a second; and 502 `MANUAL_RECONCILIATION_REQUIRED`, where the charging system did not say: the order
    is `rollback_unknown`, its eSIM is never issued again by itself, and a person has to settle it. Any other 502 changed nothing. A
    profile that was downloaded does not return to stock. The storefront key is needed always.
    """
    order, row, line = held
    if order_status_of(order.row) == "rolled_back":
        return render_order(ctx.deps.keyring, order, named=params.order_id)
    answer = partial(render_rolled_back_order, named=params.order_id, keyring=ctx.deps.keyring)
    concluded = await roll_back_issuance(ctx, *require_returnable_order(order, row, line), answer)
    ctx.deps.wake_worker()
    return concluded.body


def require_returnable_order(order: OrderDetail, row: IssuanceRow | None, line: Line | None) -> tuple[Line, IssuanceRow]:
    """Refuse what cannot be taken back; nothing is sent then."""
    status = order_status_of(order.row)
    if row is not None and row.state == "rollback_pending":
        raise rollback_is_running()
    if row is not None and row.state == "rollback_unknown":
        raise rollback_unknown(row)
    if status != "ready" or row is None or row.state != "issued":
        raise OrderNotReady(
            f"Only an order that is ready can be rolled back, and this one is {status}; nothing was taken back",
            hint="GET /api/orders/{orderId} tells where it stands",
        )
    if line is None:
        raise OrderNotReady(
            "The eSIM of this order is not in the account any more that it was drawn from; nothing was taken back",
            hint="Its owner moved it, and takes it back where it is now",
        )
    if row.package_id is None:
        raise OrderNotReady(
            "The package of this order is not known, so a person has to take it back; nothing was taken back", code=MANUAL_RECONCILIATION
        )
    return line, row


def render_rolled_back_order(connection: Connection, row: IssuanceRow, *, named: str, keyring: Keyring) -> Order:
    """The order as it is in the transaction that ends the roll-back."""
    found = find_order_detail(connection, order=row.key)
    if found is None:
        raise RuntimeError("an order that was read just now is not there")
    return render_order(keyring, found, named=named)
