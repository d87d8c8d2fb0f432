"""Renewing the access to an order: the tokens that open it end, and its buyer gets a new one by mail, to the address of the payment."""

from operations.deps import Deps
from operations.services.shop.order_letters import tell_new_link
from registry.errors import Conflict, NotFound
from storage.connection import Connection
from storage.shop.order_access import end_access
from storage.shop.orders import OrderRow, find_order

RENEW = "renew_storefront_order_access"


class OrderWithoutAddress(Conflict):
    """Nobody could be sent the new link."""

    code = "order_without_address"


def renew_access(connection: Connection, *, deps: Deps, order: str, organisation: str | None, now: float) -> OrderRow:
    """Ends every token of the order with the number `order`, cookies included, and queues the mail; the order's row.

    `organisation`: whose order it must be; None for whoever runs the service. Refuses an order that is not there, and one without an
    address, whose buyer would lose it for ever.
    """
    row = find_order(connection, order=order)
    if row is None or row.top_up_of is not None or organisation not in (None, row.organisation):
        raise NotFound(
            "There is no order with this number", param="number", hint="list_storefront_orders shows the numbers of orders, onr_..."
        )
    if row.email is None:
        raise no_address(row)
    end_access(connection, order=row.id, now=now)
    tell_new_link(connection, deps, row.id)
    return row


def no_address(row: OrderRow) -> OrderWithoutAddress:
    """The refusal for an order whose buyer cannot be written to."""
    if row.paid_at is None:
        why, hint = "it was not paid for", "The link that opens it stays as it is, and the payment gives it an address"
    else:
        why, hint = "its buyer was erased", "The links that open it stay as they are"
        hint += "" if row.iccid is None else "; rollback_esim_issuance takes the eSIM back"
    return OrderWithoutAddress(f"This order has no address for a new link, because {why}; nothing was changed", param="number", hint=hint)
