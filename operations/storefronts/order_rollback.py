"""Taking an order's eSIM back: the same row of the ledger, and the same steps, as the operator's own roll-back."""

from functools import partial
from typing import NamedTuple

from operations.deps import Ctx
from operations.services.issuing.issued_line import LineHasPackages, issued_line
from operations.services.issuing.purpose import MANUAL
from operations.services.issuing.rollback import manual, roll_back
from operations.services.network.lines import Line
from operations.services.network.upstream import reach_for
from operations.services.shop.checkout import OrderNotReady
from operations.storefronts.order_access import OrderRef, any_order
from operations.storefronts.order_example import ORDER, READY
from operations.storefronts.order_shape import Order, whole_shown
from registry.errors import Conflict, NotFound, OcsError
from registry.limits import Scope
from registry.operation import Auth, Example, operation
from storage.connection import Connection
from storage.issuing.issuance import IssuanceRow, find_issuance
from storage.issuing.rollbacks import rollback_running
from storage.secrets.sealing import Keyring
from storage.shop.order_lists import WholeOrder, whole_order
from storage.shop.order_status import status_of

TAKEN_BACK: Order = {**READY, "status": "rolled_back", "esim": None, "cancelled_at": "2026-11-28T08:00:00Z"}


class Held(NamedTuple):
    """An order with its row of the ledger, where it has one, and the line that its eSIM is."""

    order: WholeOrder
    row: IssuanceRow | None
    line: Line | None


async def order_to_return(ctx: Ctx, params: OrderRef) -> Held:
    """The line is looked for only where something can be given back. The organisation's own way to the charging system is used."""
    order = await any_order(ctx, params)
    row = await ctx.deps.store.read(find_issuance, organisation=order.row.organisation, key=order.row.id)
    if row is not None and row.state != order.row.ledger:  # it moved on between the two reads
        order = await any_order(ctx, params)
    line = None
    if row is not None and status_of(order.row) == "ready" and row.state == "issued":
        line = await issued_line(await reach_for(ctx.deps, order.row.organisation), row)
    ctx.stage()
    return Held(order, row, line)


@operation(
    "DELETE",
    "/api/orders/{orderId}",
    scope=Scope.NONE,
    auth=Auth.STOREFRONT,
    access=order_to_return,
    title="Roll back order",
    raises=[NotFound, OrderNotReady, LineHasPackages, Conflict, OcsError],
    examples=[Example("The buyer returns the eSIM", {"orderId": ORDER}, TAKEN_BACK)],
)
async def rollback_storefront_order(ctx: Ctx, params: OrderRef, held: Held) -> Order:
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
    if status_of(order.row) == "rolled_back":
        return whole_shown(ctx.deps.keyring, order, named=params.order_id)
    answer = partial(order_shown, named=params.order_id, keyring=ctx.deps.keyring)
    concluded = await roll_back(ctx, *require_ready(order, row, line), answer)
    ctx.deps.wake_worker()
    return concluded.body


def require_ready(order: WholeOrder, row: IssuanceRow | None, line: Line | None) -> tuple[Line, IssuanceRow]:
    """Refuse what cannot be taken back; nothing is sent then."""
    status = status_of(order.row)
    if row is not None and row.state == "rollback_pending":
        raise rollback_running()
    if row is not None and row.state == "rollback_unknown":
        raise manual(row)
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
        raise OrderNotReady("The package of this order is not known, so a person has to take it back; nothing was taken back", code=MANUAL)
    return line, row


def order_shown(connection: Connection, row: IssuanceRow, *, named: str, keyring: Keyring) -> Order:
    """The order as it is in the transaction that ends the roll-back."""
    found = whole_order(connection, order=row.key)
    if found is None:
        raise RuntimeError("an order that was read just now is not there")
    return whole_shown(keyring, found, named=named)
