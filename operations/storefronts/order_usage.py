"""What an order's eSIM has used: of its own line, and only while it is the buyer's."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from clients.ocs.moment import read_time
from clients.ocs.wire.package import Package
from operations.deps import Ctx
from operations.services.issuing.evidence import SKEW
from operations.services.issuing.issued_line import has_issued, issued_line
from operations.services.network.package_state import ends_at
from operations.services.network.upstream import reach_for
from operations.services.shop.checkout import OrderNotReady
from operations.storefronts.order_access import OrderRef, any_order
from operations.storefronts.order_example import ORDER
from registry.errors import NotFound, OcsError
from registry.limits import Scope
from registry.operation import Auth, Example, operation
from registry.policy import stamp
from storage.issuing.issuance import IssuanceRow, find_issuance
from storage.shop.order_lists import WholeOrder
from storage.shop.order_status import status_of

Bytes = Annotated[int, Field(description="Bytes")]
USED: "OrderUsage" = {
    "usedBytes": 402653184,
    "totalBytes": 1073741824,
    "remainingBytes": 671088640,
    "expiresAt": "2026-12-20T18:30:00Z",
}


class OrderUsage(TypedDict):
    """Data of all packages that the eSIM was given since it was ordered."""

    usedBytes: Bytes
    totalBytes: Bytes
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
    guessed=True,
    access=any_order,
    title="Get order usage",
    raises=[NotFound, OrderNotReady, OcsError],
    examples=[Example("How much data is left?", {"orderId": ORDER}, USED)],
)
async def get_storefront_order_usage(ctx: Ctx, params: OrderRef, order: WholeOrder) -> OrderUsage:
    """Get the data that an order's eSIM has used and has left, in bytes.

    Read from the charging system now: 502 when it cannot be, never a zero. 409 `order_not_ready` unless the eSIM is the buyer's.

    `usedBytes` is all that was used since the order was created, of packages that are over as well; `totalBytes` is what they held.
    A top-up adds to both.
    """
    del params
    row = await ctx.deps.store.read(find_issuance, organisation=order.row.organisation, key=order.row.id)
    if row is None or row.state != "issued" or status_of(order.row) != "ready" or row.iccid != order.row.iccid:
        raise not_the_buyers(order)
    upstream = await reach_for(ctx.deps, order.row.organisation)
    line = await issued_line(upstream, row)
    if line is None:
        raise not_the_buyers(order)
    held = await upstream.ocs.packages.list_packages(line.subscriber_id)
    if not has_issued(held, row):
        raise not_the_buyers(order)
    ours = {row.package_id, *(top_up.package_id for top_up in order.top_ups)} - {None}
    return usage_of([package for package in held.get("packages", []) if is_counted(package, row, ours)], ctx.now)


def not_the_buyers(order: WholeOrder) -> OrderNotReady:
    """There is no eSIM yet, or somebody else may have it by now, whose use is not shown."""
    status = status_of(order.row)
    text = "The eSIM of this order is not where it was drawn, or without its package" if status == "ready" else f"This order is {status}"
    return OrderNotReady(f"{text}, so there is no usage to show", hint="Usage is told of orders that are ready, whose eSIM the buyer has")


def is_counted(package: Package, row: IssuanceRow, ours: Iterable[int | None]) -> bool:
    """What the order brought, and what came after it. A package of whoever had the SIM before is older."""
    if package.get("subscriberprepaidpackageid") in ours:
        return True
    try:
        assigned = read_time(package.get("tsassigned", ""))
    except ValueError:
        raise unreadable() from None
    return assigned >= datetime.fromtimestamp(row.dispatched, UTC) - SKEW


def usage_of(packages: Sequence[Package], now: float) -> OrderUsage:
    """The sums."""
    return {
        "usedBytes": sum(used(package) for package in packages),
        "totalBytes": sum(package.get("pckdatabyte", 0) for package in packages),
        "remainingBytes": sum(left(package, now) for package in packages),
        "expiresAt": None if (end := end_of(packages, now)) is None else stamp(end),
    }


def end_of(packages: Sequence[Package], now: float) -> float | None:
    """Choice: what has ended says nothing of when the rest does, which may be waiting for its first use."""
    ends = [end.timestamp() for package in packages if (end := ends_at(package)) is not None]
    waiting = any(ends_at(package) is None and left(package, now) for package in packages)
    return max([end for end in ends if end > now or not waiting], default=None)


def used(package: Package) -> int:
    """A counter that is not told is not a zero, unless the package holds no data."""
    found = package.get("useddatabyte")
    if found is None and package.get("pckdatabyte"):
        raise unreadable()
    return found or 0


def left(package: Package, now: float) -> int:
    """What of it can still be used."""
    end = ends_at(package)
    if package.get("active") is False or (end is not None and end.timestamp() <= now):
        return 0
    return max(0, package.get("pckdatabyte", 0) - used(package))


def unreadable() -> OcsError:
    """The charging system left out what its answer must have."""
    return OcsError("The charging system did not tell what a package of this eSIM has used", before_execution=True)
