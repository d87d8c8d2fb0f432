"""Orders of shops, and the top-ups of their eSIMs: what is written once, and how a row is found. Their queue is in order_queue.py."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import sqlalchemy as sa

from storage.connection import Connection
from storage.issuing.issuance import ISSUANCE
from storage.shop.shop_tables import StorefrontOrderTable
from storage.statement import Command, Query, table

ORDER = table(StorefrontOrderTable)
Kept = Literal["pending_payment", "paid", "provisioning", "ready", "failed", "needs_review"]


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


class OrderRow(NamedTuple):
    """A row as it is kept, and beside it what the ledger says of its eSIM (`ledger` is the state of issuance.py)."""

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
    email: str | None
    language: str
    status: Kept
    code: str | None
    payee: str
    session: str | None
    session_ends: int | None
    payment_intent: str | None
    paid_amount: int | None
    paid_at: float | None
    iccid: str | None
    esim: str | None
    esim_binding: str | None
    package_id: int | None
    before: str | None
    refund: str | None
    refund_attempt: str | None
    cancelled_at: float | None
    ready_at: float | None
    owner: str | None
    lease: str | None
    due_ms: int | None
    tries: int
    created: float
    updated: float
    ledger: str | None
    ledger_updated: float | None


OF_LEDGER = ("ledger", "ledger_updated")
COLUMNS: Sequence[sa.ColumnElement[object]] = (
    *(ORDER.c[name] for name in OrderRow._fields if name not in OF_LEDGER),
    ISSUANCE.c.state.label("ledger"),
    ISSUANCE.c.updated.label("ledger_updated"),
)
JOINED = ORDER.outerjoin(ISSUANCE, (ISSUANCE.c.organisation == ORDER.c.organisation) & (ISSUANCE.c.key == ORDER.c.id))
ORDERS = sa.select(*COLUMNS).select_from(JOINED)
INSERT = Command(
    sa.insert(ORDER)
    .values({name: sa.bindparam(name) for name in NewOrder._fields})
    .values(status="pending_payment", tries=0, updated=sa.bindparam("created"))
)
FIND = Query(OrderRow, ORDERS.where(ORDER.c.id == sa.bindparam("named")))
BY_SESSION = Query(OrderRow, ORDERS.where(ORDER.c.session == sa.bindparam("named"), ORDER.c.payee == sa.bindparam("account")))
TOP_UPS = Query(OrderRow, ORDERS.where(ORDER.c.top_up_of == sa.bindparam("named")).order_by(ORDER.c.created, ORDER.c.id))
NAME_SESSION = Command(
    sa.update(ORDER)
    .where(ORDER.c.id == sa.bindparam("named"), ORDER.c.status == "pending_payment", ORDER.c.session.is_(None))
    .values(session=sa.bindparam("made"), session_ends=sa.bindparam("ends"), due_ms=sa.bindparam("look_ms"))
)


def insert_order(connection: Connection, *, order: NewOrder) -> None:
    """It waits to be paid."""
    connection.run(INSERT, **order._asdict())


def name_session(connection: Connection, *, order: str, session: str, ends: int, look_ms: int) -> bool:
    """The page on which it is paid, known before anybody is sent there. `look_ms`: when to ask about it, should nobody tell."""
    return connection.run(NAME_SESSION, named=order, made=session, ends=ends, look_ms=look_ms) == 1


def find_order(connection: Connection, *, order: str) -> OrderRow | None:
    """An order or a top-up by its number."""
    return connection.first(FIND, named=order)


def order_of_session(connection: Connection, *, session: str, payee: str) -> OrderRow | None:
    """What a checkout of this account at the processor is for."""
    return connection.first(BY_SESSION, named=session, account=payee)


def top_ups_of(connection: Connection, *, order: str) -> list[OrderRow]:
    """Every top-up of an order, paid or not, oldest first."""
    return connection.all(TOP_UPS, named=order)
