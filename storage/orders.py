"""Orders of shops, and the top-ups of their eSIMs: what is written once, how rows are found and listed. Their queue is in order_queue.py.

The status of an order is what its row says until it is ready, and from then on what the ledger says of its eSIM. It is said
twice, for a row that was read and for the database, which filters by it; both go by the same words.
"""

import hashlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Annotated, Literal, NamedTuple

import sqlalchemy as sa
from sqlmodel import Field

from storage.engine.sql import (
    BigInt,
    Command,
    Connection,
    Key,
    Query,
    TableDescription,
    all_rows,
    bound_list,
    changes_one,
    changes_rows,
    first_row,
    pack_rows,
    unindexed,
    writes,
)
from storage.issuance import ISSUANCE, UNRESOLVED_ISSUANCE_STATES
from storage.storefronts import STOREFRONT, storefront_of

OrderState = Literal["pending_payment", "paid", "provisioning", "ready", "failed", "needs_review"]

LEDGER_FIELDS = ("ledger", "ledger_updated")


class OrderRow(NamedTuple):
    """A row as it is kept, and beside it what the ledger says of its eSIM (`ledger` is the state of issuance.py)."""

    id: Key
    top_up_of: str | None
    organisation: str
    storefront: str
    plan: str
    bought: str
    template_id: BigInt
    account_id: BigInt | None
    amount: BigInt
    currency: str
    email: str | None
    language: str
    status: OrderState
    code: str | None
    payee: str
    session: Annotated[str, Field(unique=True)] | None
    session_ends: BigInt | None
    payment_intent: str | None
    paid_amount: BigInt | None
    paid_at: float | None
    iccid: str | None
    esim: str | None
    esim_binding: str | None
    package_id: BigInt | None
    before: str | None
    refund: str | None
    refund_attempt: str | None
    cancelled_at: float | None
    ready_at: float | None
    owner: str | None
    lease: str | None
    due_ms: BigInt | None
    tries: int
    created: float
    updated: float
    ledger: str | None
    ledger_updated: float | None


class StorefrontOrderTable(TableDescription, row=OrderRow, without=LEDGER_FIELDS, table=True):
    """What a buyer ordered: an eSIM, or more data for one. `id` is its number, onr_ or tuc_, which opens nothing; a top-up's `top_up_of`
    is the number of its order.

    `status`: pending_payment, paid, provisioning, ready, failed or needs_review; what becomes of a ready eSIM afterwards is told by the
    ledger's row, whose key is the order's number. `esim` is sealed to the number, or to `esim_binding` where that is set. `bought` is the
    plan as it was sold. `payee` is the account at the payment processor,
    `session` the checkout there. `refund`: null, owed, sending, unknown, done or failed. `before` is what was noted of the line
    before a top-up was sent (operations/storefronts/sales/top_up_sender.py). `owner` is the process that sends it, `lease` who works on it,
    `due_ms` when somebody is to look at it next.
    """

    __table_args__ = (
        sa.Index("storefront_order_newest", "organisation", "created", "id"),
        sa.Index("storefront_order_buyer", "storefront", "email"),
        sa.Index("storefront_order_top_up", "top_up_of"),
        *(
            sa.Index(name, "organisation", "due_ms", sqlite_where=sa.text(rows))
            for name, rows in (
                ("storefront_order_due_paid", "due_ms IS NOT NULL AND status || '' != 'pending_payment'"),
                ("storefront_order_due_unpaid", "due_ms IS NOT NULL AND status || '' = 'pending_payment'"),
            )
        ),
        sa.Index("storefront_order_status", "status", "updated"),
        sa.Index(
            "storefront_order_binding",
            "esim_binding",
            sqlite_where=sa.text("esim_binding IS NOT NULL"),
        ),
    )


class OrderAccessTable(TableDescription, table=True):
    """An access token of an order, as its SHA-256 in hexadecimal. `storefront_order` is the order's number, `ended_at` when it ended."""

    digest: str = Field(primary_key=True)
    storefront_order: str
    created: float
    ended_at: float | None
    __table_args__ = (sa.Index("order_access_order", "storefront_order"),)


STOREFRONT_ORDER = StorefrontOrderTable.table


class NewOrder(NamedTuple):
    """What a buyer is about to pay for. `bought` is JSON text; `session` comes once the processor has made its page."""

    id: str
    top_up_of: str | None
    organisation: str
    storefront: str
    plan: str
    bought: str
    template_id: int
    account_id: int | None
    amount: int
    currency: str
    language: str
    payee: str
    created: float


ORDER_COLUMNS: Sequence[sa.ColumnElement[object]] = (
    *(STOREFRONT_ORDER.c[name] for name in OrderRow._fields if name not in LEDGER_FIELDS),
    ISSUANCE.c.state.label("ledger"),
    ISSUANCE.c.updated.label("ledger_updated"),
)

ORDERS_WITH_LEDGER = STOREFRONT_ORDER.outerjoin(
    ISSUANCE, (ISSUANCE.c.organisation == STOREFRONT_ORDER.c.organisation) & (ISSUANCE.c.key == STOREFRONT_ORDER.c.id)
)

SELECT_ORDERS = sa.select(*ORDER_COLUMNS).select_from(ORDERS_WITH_LEDGER)


@writes
def insert_order(*, order: NewOrder) -> sa.Executable:
    """Insert an order that waits to be paid."""
    return sa.insert(STOREFRONT_ORDER).values(order._asdict()).values(status="pending_payment", tries=0, updated=sa.bindparam("created"))


@changes_one
def name_session(*, order: str, session: str, ends: int, look_ms: int) -> sa.Executable:
    """The page on which it is paid, known before anybody is sent there. `look_ms`: when to ask about it, should nobody tell."""
    return (
        sa.update(STOREFRONT_ORDER)
        .where(STOREFRONT_ORDER.c.id == order, STOREFRONT_ORDER.c.status == "pending_payment", STOREFRONT_ORDER.c.session.is_(None))
        .values(session=session, session_ends=ends, due_ms=look_ms)
    )


@first_row(OrderRow)
def find_order(*, order: str) -> sa.Executable:
    """The order or the top-up with this number, or None."""
    return SELECT_ORDERS.where(STOREFRONT_ORDER.c.id == order)


@first_row(OrderRow)
def order_of_session(*, session: str, payee: str) -> sa.Executable:
    """The order whose checkout at the processor this is, in the account `payee`; None where there is none."""
    return SELECT_ORDERS.where(STOREFRONT_ORDER.c.session == session, STOREFRONT_ORDER.c.payee == payee)


@all_rows(OrderRow)
def top_ups_of(*, order: str) -> sa.Executable:
    """Every top-up of an order, paid or not, oldest first."""
    return SELECT_ORDERS.where(STOREFRONT_ORDER.c.top_up_of == order).order_by(STOREFRONT_ORDER.c.created, STOREFRONT_ORDER.c.id)


OrderStatus = Literal[OrderState, "rollback_pending", "rolled_back", "rollback_unknown"]

STATUS_BY_LEDGER: Mapping[str | None, OrderStatus] = {
    "rollback_pending": "rollback_pending",
    "rolled_back": "rolled_back",
    "rollback_unknown": "rollback_unknown",
    "released": "rolled_back",  # freed past us: it is the buyer's no more either
}

SHOWN_STATUS: sa.ColumnElement[str] = sa.case(
    *(((STOREFRONT_ORDER.c.status == "ready") & (ISSUANCE.c.state == state), status) for state, status in STATUS_BY_LEDGER.items()),
    ((STOREFRONT_ORDER.c.status == "provisioning") & ISSUANCE.c.state.in_(UNRESOLVED_ISSUANCE_STATES), "needs_review"),
    else_=STOREFRONT_ORDER.c.status,
)


def order_status_of(row: OrderRow) -> OrderStatus:
    """As buyers and operators see it. Of a crash the ledger knows first: what it cannot tell needs review."""
    if row.status == "ready":
        return STATUS_BY_LEDGER.get(row.ledger, "ready")
    if row.status == "provisioning" and row.ledger in UNRESOLVED_ISSUANCE_STATES:
        return "needs_review"
    return row.status


def order_cancelled_at(row: OrderRow) -> float | None:
    """When no more top-ups were taken: since it was cancelled, or since its eSIM went back."""
    if row.cancelled_at is None and order_status_of(row) == "rolled_back":
        return row.ledger_updated
    return row.cancelled_at


@changes_one
def cancel_order(*, order: str, now: float) -> sa.Executable:
    """Cancel a paid order; whether it is this very call that did. `now`: Unix seconds."""
    # One whose eSIM went back was cancelled by that, at that moment. `updated` stays: whoever works on the order goes by it.
    return (
        sa.update(STOREFRONT_ORDER)
        .where(
            STOREFRONT_ORDER.c.id == order,
            STOREFRONT_ORDER.c.top_up_of.is_(None),
            STOREFRONT_ORDER.c.cancelled_at.is_(None),
            STOREFRONT_ORDER.c.status != "pending_payment",
            ~sa.exists().where(
                ISSUANCE.c.organisation == STOREFRONT_ORDER.c.organisation,
                ISSUANCE.c.key == STOREFRONT_ORDER.c.id,
                ISSUANCE.c.state.in_(["rolled_back", "released"]),
            ),
        )
        .values(cancelled_at=now)
    )


class ErasedOrder(NamedTuple):
    """An order or a top-up that is nobody's in particular from now on."""

    id: str
    top_up_of: str | None


@all_rows(ErasedOrder)
def erase_address(*, storefront: str, organisation: str, email: str) -> sa.Executable:
    """Remove the buyer's address from orders; returns the orders and top-ups that had it."""
    return (
        sa.update(STOREFRONT_ORDER)
        .where(
            STOREFRONT_ORDER.c.storefront == storefront,
            STOREFRONT_ORDER.c.organisation == organisation,
            STOREFRONT_ORDER.c.email == email,
        )
        .values(email=None)
    )


class OrderDetail(NamedTuple):
    """An order, the slug of the shop that sold it, and its top-ups, paid or not, oldest first."""

    row: OrderRow
    shop: str
    top_ups: Sequence[OrderRow]


class ShopName(NamedTuple):
    id: str
    slug: str


class OrderPlace(NamedTuple):
    created: float
    id: str


FIRST_ORDER_PLACE = OrderPlace(2.0**62, "")


def filter_value(name: str) -> sa.ColumnElement[str]:
    """A filter's value; a cast, since a text that is only compared with another has no type of its own."""
    return sa.cast(sa.bindparam(name), sa.Text)


OWN_ORDER = (STOREFRONT_ORDER.c.organisation == sa.bindparam("organisation")) & STOREFRONT_ORDER.c.top_up_of.is_(None)

# As one comparison of a pair, which both databases look up in the index: a page far behind costs no more than the first.
ORDER_IS_BEHIND: sa.ColumnElement[bool] = sa.tuple_(STOREFRONT_ORDER.c.created, STOREFRONT_ORDER.c.id) < sa.tuple_(
    sa.bindparam("before", type_=sa.Double), sa.bindparam("after", type_=sa.Text)
)

LIST_ORDERS = Query(
    OrderRow,
    SELECT_ORDERS.where(
        OWN_ORDER,
        ORDER_IS_BEHIND,
        (filter_value("storefront") == "") | (STOREFRONT_ORDER.c.storefront == filter_value("storefront")),
        (filter_value("email") == "") | (STOREFRONT_ORDER.c.email == filter_value("email")),
        ((filter_value("status") == "") & (STOREFRONT_ORDER.c.status != "pending_payment")) | (filter_value("status") == SHOWN_STATUS),
    )
    .order_by(STOREFRONT_ORDER.c.created.desc(), STOREFRONT_ORDER.c.id.desc())
    .limit(sa.bindparam("most")),
)

LIST_ORDERS_OF_BUYER = Query(
    OrderRow,
    # Not by the organisation, whose orders are many: SQLite would take the index that begins with it.
    SELECT_ORDERS.where(
        unindexed(STOREFRONT_ORDER.c.organisation) == sa.bindparam("organisation"),
        STOREFRONT_ORDER.c.top_up_of.is_(None),
        ORDER_IS_BEHIND,
        STOREFRONT_ORDER.c.storefront == sa.bindparam("storefront"),
        STOREFRONT_ORDER.c.email == sa.bindparam("email"),
        STOREFRONT_ORDER.c.status != "pending_payment",
    )
    .order_by(STOREFRONT_ORDER.c.created.desc(), STOREFRONT_ORDER.c.id.desc())
    .limit(sa.bindparam("most")),
)

LIST_TOP_UPS_OF_ORDERS = Query(
    OrderRow,
    lambda dialect: SELECT_ORDERS.where(STOREFRONT_ORDER.c.top_up_of.in_(bound_list(dialect, "orders"))).order_by(
        STOREFRONT_ORDER.c.created, STOREFRONT_ORDER.c.id
    ),
)

LIST_SHOPS = Query(
    ShopName,
    lambda dialect: sa.select(STOREFRONT.c.id, STOREFRONT.c.slug).where(STOREFRONT.c.id.in_(bound_list(dialect, "shops"))),
)


def find_order_detail(connection: Connection, *, order: str) -> OrderDetail | None:
    """An order by its number; nothing for a top-up's, which is no order."""
    row = find_order(connection, order=order)
    if row is None or row.top_up_of is not None:
        return None
    shop = storefront_of(connection, storefront=row.storefront)
    return OrderDetail(row, "" if shop is None else shop.slug, top_ups_of(connection, order=order))


@first_row(ShopName)
def find_shop(*, slug: str, organisation: str) -> sa.Executable:
    """One of the organisation's shops, published or not."""
    return sa.select(STOREFRONT.c.id, STOREFRONT.c.slug).where(STOREFRONT.c.slug == slug, STOREFRONT.c.organisation == organisation)


@first_row(OrderPlace)
def order_place(*, organisation: str, order: str) -> sa.Executable:
    """The place of an order in its organisation's list, or None."""
    return sa.select(STOREFRONT_ORDER.c.created, STOREFRONT_ORDER.c.id).where(OWN_ORDER, STOREFRONT_ORDER.c.id == order)


def list_orders(
    connection: Connection,
    *,
    organisation: str,
    storefront: str | None = None,
    email: str | None = None,
    status: str | None = None,
    after: OrderPlace = FIRST_ORDER_PLACE,
    most: int,
) -> list[OrderDetail]:
    """Orders of an organisation, newest first; without a status those that were paid for."""
    given = {"storefront": storefront or "", "email": email or "", "status": status or ""}
    rows = connection.all(LIST_ORDERS, organisation=organisation, **given, before=after.created, after=after.id, most=most)
    return order_details(connection, rows)


def orders_of_buyer(
    connection: Connection, *, organisation: str, storefront: str, email: str, after: OrderPlace = FIRST_ORDER_PLACE, most: int
) -> list[OrderDetail]:
    """What one address paid for in one shop, newest first; found by the address, however many orders the shop has."""
    named = {"organisation": organisation, "storefront": storefront, "email": email}
    return order_details(connection, connection.all(LIST_ORDERS_OF_BUYER, **named, before=after.created, after=after.id, most=most))


class ShopOfBuyer(NamedTuple):
    """A shop where an address paid for something: how many orders, and the number of the newest."""

    slug: str
    orders: int
    newest: str


@all_rows(ShopOfBuyer)
def shops_of_buyer(*, organisation: str, email: str, most: int) -> sa.Executable:
    """The organisation's shops where the buyer with just this address, in lower case, paid for something. Nobody who was erased has one."""
    paid = (
        sa.select(STOREFRONT.c.slug, sa.func.count().label("orders"), sa.func.max(STOREFRONT_ORDER.c.id).label("newest"))
        .join_from(STOREFRONT, STOREFRONT_ORDER, STOREFRONT_ORDER.c.storefront == STOREFRONT.c.id)
        .where(
            STOREFRONT.c.organisation == organisation,
            unindexed(STOREFRONT_ORDER.c.organisation) == organisation,
            STOREFRONT_ORDER.c.email == email,
            STOREFRONT_ORDER.c.top_up_of.is_(None),
            STOREFRONT_ORDER.c.status != "pending_payment",
        )
    )
    return paid.group_by(STOREFRONT.c.slug).order_by(STOREFRONT.c.slug).limit(most)


def order_details(connection: Connection, rows: Sequence[OrderRow]) -> list[OrderDetail]:
    """The orders of `rows` with shop and top-ups, in two statements for all."""
    if not rows:
        return []
    top_ups: defaultdict[str | None, list[OrderRow]] = defaultdict(list)
    for top_up in connection.all(LIST_TOP_UPS_OF_ORDERS, orders=pack_rows([[row.id] for row in rows])):
        top_ups[top_up.top_up_of].append(top_up)
    shops = {shop.id: shop.slug for shop in connection.all(LIST_SHOPS, shops=pack_rows([[id] for id in {row.storefront for row in rows}]))}
    return [OrderDetail(row, shops.get(row.storefront, ""), top_ups[row.id]) for row in rows]


ORDER_ACCESS = OrderAccessTable.table


class OrderAccess(NamedTuple):
    """A digest's order, by its number; `ended_at` is null while the token opens it. Times are Unix seconds."""

    storefront_order: str
    ended_at: float | None


FIND_ORDER_ACCESS = Query(
    OrderAccess, sa.select(ORDER_ACCESS.c.storefront_order, ORDER_ACCESS.c.ended_at).where(ORDER_ACCESS.c.digest == sa.bindparam("hashed"))
)

LIST_TOKEN_DIGESTS = Query(str, lambda _: sa.select(ORDER_ACCESS.c.digest).where(ORDER_ACCESS.c.storefront_order == sa.bindparam("of")))

FORGET_ORDER_ACCESS = Command(lambda _: sa.delete(ORDER_ACCESS).where(ORDER_ACCESS.c.storefront_order == sa.bindparam("of")))


def token_digest(token: str) -> str:
    """SHA-256, in hexadecimal. Choice: a plain hash, since nobody finds 130 random bits by trying."""
    return hashlib.sha256(token.encode()).hexdigest()


@writes
def insert_access(*, order: str, token: Annotated[str, token_digest], now: float) -> sa.Executable:
    """From now on `token` opens the order with this number. `now`: Unix seconds."""
    return sa.insert(ORDER_ACCESS).values(digest=token, storefront_order=order, created=now, ended_at=sa.null())


def order_of_token(connection: Connection, *, token: str, ended: bool = False) -> str | None:
    """The number of the order that a token opens; with `ended` also of one that it opened before its access was renewed."""
    row = connection.first(FIND_ORDER_ACCESS, hashed=token_digest(token))
    return None if row is None or (row.ended_at is not None and not ended) else row.storefront_order


def token_digests(connection: Connection, *, order: str) -> frozenset[str]:
    """The digests of all tokens that an order ever had."""
    return frozenset(connection.all(LIST_TOKEN_DIGESTS, of=order))


@changes_rows
def end_access(*, order: str, now: float) -> sa.Executable:
    """End all tokens of the order; returns how many opened it. `now`: Unix seconds."""
    return sa.update(ORDER_ACCESS).where(ORDER_ACCESS.c.storefront_order == order, ORDER_ACCESS.c.ended_at.is_(None)).values(ended_at=now)


def forget_access(connection: Connection, *, orders: Sequence[str]) -> None:
    """Deletes the tokens of orders that are no more."""
    connection.run_many(FORGET_ORDER_ACCESS, [{"of": order} for order in orders])
