"""Orders as they are read: one with its shop and its top-ups, and lists of them, newest first."""

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

import sqlalchemy as sa

from storage.connection import Connection
from storage.listed import listed, packed
from storage.shop.order_status import SHOWN_STATUS
from storage.shop.orders import ORDER, ORDERS, OrderRow, find_order, top_ups_of
from storage.shop.storefronts import STOREFRONT, storefront_of
from storage.statement import Query, unindexed


class WholeOrder(NamedTuple):
    """An order, the slug of the shop that sold it, and its top-ups, paid or not, oldest first."""

    row: OrderRow
    shop: str
    top_ups: Sequence[OrderRow]


class ShopName(NamedTuple):
    """What a shop is called in addresses."""

    id: str
    slug: str


class Place(NamedTuple):
    """Where an order stands in its list."""

    created: float
    id: str


FIRST = Place(2.0**62, "")
NAMED = Query(
    ShopName,
    sa.select(STOREFRONT.c.id, STOREFRONT.c.slug).where(
        STOREFRONT.c.slug == sa.bindparam("slug"), STOREFRONT.c.organisation == sa.bindparam("organisation")
    ),
)


def given(name: str) -> sa.ColumnElement[str]:
    """A filter's value; a cast, since a text that is only compared with another has no type of its own."""
    return sa.cast(sa.bindparam(name), sa.Text)


OWN = (ORDER.c.organisation == sa.bindparam("organisation")) & ORDER.c.top_up_of.is_(None)
PLACE = Query(Place, sa.select(ORDER.c.created, ORDER.c.id).where(OWN, ORDER.c.id == sa.bindparam("named")))
# As one comparison of a pair, which both databases look up in the index: a page far behind costs no more than the first.
BEHIND: sa.ColumnElement[bool] = sa.tuple_(ORDER.c.created, ORDER.c.id) < sa.tuple_(
    sa.bindparam("before", type_=sa.Double), sa.bindparam("after", type_=sa.Text)
)
LIST = Query(
    OrderRow,
    ORDERS.where(
        OWN,
        BEHIND,
        (given("storefront") == "") | (ORDER.c.storefront == given("storefront")),
        (given("email") == "") | (ORDER.c.email == given("email")),
        ((given("status") == "") & (ORDER.c.status != "pending_payment")) | (given("status") == SHOWN_STATUS),
    )
    .order_by(ORDER.c.created.desc(), ORDER.c.id.desc())
    .limit(sa.bindparam("most")),
)
OF_BUYER = Query(
    OrderRow,
    # Not by the organisation, whose orders are many: SQLite would take the index that begins with it.
    ORDERS.where(
        unindexed(ORDER.c.organisation) == sa.bindparam("organisation"),
        ORDER.c.top_up_of.is_(None),
        BEHIND,
        ORDER.c.storefront == sa.bindparam("storefront"),
        ORDER.c.email == sa.bindparam("email"),
        ORDER.c.status != "pending_payment",
    )
    .order_by(ORDER.c.created.desc(), ORDER.c.id.desc())
    .limit(sa.bindparam("most")),
)
TOP_UPS = Query(
    OrderRow,
    lambda dialect: ORDERS.where(ORDER.c.top_up_of.in_(sa.select(listed(dialect, "orders", "given", id=sa.Text).c.id))).order_by(
        ORDER.c.created, ORDER.c.id
    ),
)
SHOPS = Query(
    ShopName,
    lambda dialect: sa.select(STOREFRONT.c.id, STOREFRONT.c.slug).where(
        STOREFRONT.c.id.in_(sa.select(listed(dialect, "shops", "given", id=sa.Text).c.id))
    ),
)


def whole_order(connection: Connection, *, order: str) -> WholeOrder | None:
    """An order by its number; nothing for a top-up's, which is no order."""
    row = find_order(connection, order=order)
    if row is None or row.top_up_of is not None:
        return None
    shop = storefront_of(connection, storefront=row.storefront)
    return WholeOrder(row, "" if shop is None else shop.slug, top_ups_of(connection, order=order))


def shop_named(connection: Connection, *, slug: str, organisation: str) -> ShopName | None:
    """One of the organisation's shops, published or not."""
    return connection.first(NAMED, slug=slug, organisation=organisation)


def place_of(connection: Connection, *, organisation: str, order: str) -> Place | None:
    """Where one of the organisation's orders stands."""
    return connection.first(PLACE, organisation=organisation, named=order)


def list_orders(
    connection: Connection,
    *,
    organisation: str,
    storefront: str | None = None,
    email: str | None = None,
    status: str | None = None,
    after: Place = FIRST,
    most: int,
) -> list[WholeOrder]:
    """Orders of an organisation, newest first; without a status those that were paid for."""
    rows = connection.all(
        LIST,
        organisation=organisation,
        storefront=storefront or "",
        email=email or "",
        status=status or "",
        before=after.created,
        after=after.id,
        most=most,
    )
    return wholes(connection, rows)


def orders_of_buyer(
    connection: Connection, *, organisation: str, storefront: str, email: str, after: Place = FIRST, most: int
) -> list[WholeOrder]:
    """What one address paid for in one shop, newest first; found by the address, however many orders the shop has."""
    named = {"organisation": organisation, "storefront": storefront, "email": email}
    return wholes(connection, connection.all(OF_BUYER, **named, before=after.created, after=after.id, most=most))


def wholes(connection: Connection, rows: Sequence[OrderRow]) -> list[WholeOrder]:
    """Each with its shop and its top-ups, in two statements for all."""
    if not rows:
        return []
    top_ups: defaultdict[str | None, list[OrderRow]] = defaultdict(list)
    for top_up in connection.all(TOP_UPS, orders=packed([[row.id] for row in rows])):
        top_ups[top_up.top_up_of].append(top_up)
    shops = {shop.id: shop.slug for shop in connection.all(SHOPS, shops=packed([[id] for id in {row.storefront for row in rows}]))}
    return [WholeOrder(row, shops.get(row.storefront, ""), top_ups[row.id]) for row in rows]
