"""Settling by a person what nothing else settles: a top-up that may be on its line, and a refund that does not go. Audited."""

from typing import Literal

from operations.deps import Deps
from operations.services.shop.order_letters import tell_failed, tell_ready
from operations.services.shop.order_opening import number_of
from operations.services.shop.top_up_evidence import read_sent
from registry.errors import Conflict, NotFound
from registry.ports import Line
from storage.calls.audit import append_line
from storage.connection import Connection
from storage.shop.order_queue import accept_top_up, fail_order, owe_again
from storage.shop.orders import OrderRow, find_order
from storage.shop.top_ups import settle_ready

Decision = Literal["refund", "added"]
SETTLE, GIVEN_BACK = "settle_storefront_order", "settled_by_operator"


class OrderNotSettled(Conflict):
    """There is nothing of this kind to decide about it."""

    code = "order_not_settled"


def settle_order(connection: Connection, *, deps: Deps, order: str, decision: Decision, by: str, now: float) -> OrderRow:
    """The decision, its mail and the audit row, in one transaction; the row as it is then. Money goes by way of the worker."""
    order = number_of(connection, named=order)
    row = find_order(connection, order=order)
    if row is None:
        raise NotFound("There is no such order or top-up", param="id")
    if decision == "added":
        settle_added(connection, deps, row, now)
    else:
        settle_refund(connection, deps, row, now)
    append_line(connection, Line(now, row.organisation, "cli", SETTLE, by, "", f"settled_{decision}", 200, 0.0, deps.ids.new("req_")))
    return find_order(connection, order=order) or row


def settle_added(connection: Connection, deps: Deps, row: OrderRow, now: float) -> None:
    """The package is on the line, as somebody has seen there."""
    if row.top_up_of is None:
        raise OrderNotSettled(f"{row.id} is an order, not a top-up: `reseller issuance settle` says which eSIM was drawn for it")
    seen = None if row.before is None else read_sent(row.before).seen
    # Named where it was seen, so that it is no other top-up's.
    named = seen is not None and row.status == "needs_review" and settle_ready(connection, top_up=row.id, package=seen, now=now)
    if not named and not accept_top_up(connection, top_up=row.id, now=now):
        raise OrderNotSettled(f"{row.id} is {row.status}; only a top-up that needs review is settled as added")
    tell_ready(connection, deps, row.id)


def settle_refund(connection: Connection, deps: Deps, row: OrderRow, now: float) -> None:
    """The money goes back: nothing was delivered, or the refund that did not go is tried once more."""
    if row.status == "failed":
        if not owe_again(connection, order=row.id, now=now):
            raise OrderNotSettled(f"{row.id} has failed, and its refund is {row.refund or 'not owed'}; there is nothing to try again")
        return
    if row.top_up_of is None and row.ledger is not None:
        raise OrderNotSettled(
            f"{row.id} is {row.status}, and the ledger has a row of it ({row.ledger}): `reseller issuance settle` decides, "
            "and the money follows"
        )
    if row.status != "needs_review" or not fail_order(connection, order=row.id, code=GIVEN_BACK, now=now):
        raise OrderNotSettled(f"{row.id} is {row.status}; only what needs review, or a refund that failed, is settled with --refund")
    tell_failed(connection, deps, row.id)
