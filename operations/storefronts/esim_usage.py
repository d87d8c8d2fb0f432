"""The data that the eSIM of an order has used, and has left."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from clients.ocs.packages import Package
from clients.ocs.times import parse_wire_time
from operations.deps import Ctx
from operations.ledger.evidence import DRAW_CLOCK_SKEW
from operations.ledger.rollback import find_issued_line, has_issued_package
from operations.storefronts.orders import ORDER_TOKEN_EXAMPLE, OrderRef, order_of_any_shop
from operations.storefronts.sales.checkout import OrderNotReady
from operations.upstream.connection import upstream_of_organisation
from operations.upstream.lines import package_end
from registry.clock import rfc3339_utc
from registry.errors import NotFound, OcsError
from registry.operation import Auth, Example, Scope, operation
from storage.issuance import IssuanceRow, find_issuance
from storage.orders import OrderDetail, order_status_of

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
