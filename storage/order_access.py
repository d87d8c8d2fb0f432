"""Access tokens of orders, as digests: whoever has a token that was not ended has the order. No token itself is stored.

An order has several at once: one in the cookie of the browser that began it, and one for each mail with a link.
"""

import hashlib
from collections.abc import Sequence
from typing import NamedTuple

import sqlalchemy as sa
from sqlmodel import Field

from storage.engine.connection import Connection, changes_rows
from storage.engine.statement import Command, Query
from storage.engine.table import TableDescription, table_of


class OrderAccessTable(TableDescription, table=True):
    """An access token of an order, as its SHA-256 in hexadecimal. `storefront_order` is the order's number, `ended_at` when it ended."""

    digest: str = Field(primary_key=True, sa_type=sa.Text)
    storefront_order: str = Field(sa_type=sa.Text)
    created: float = Field(sa_type=sa.Double)
    ended_at: float | None = Field(default=None, sa_type=sa.Double)
    __table_args__ = (sa.Index("order_access_order", "storefront_order"),)


ORDER_ACCESS = table_of(OrderAccessTable)


class OrderAccess(NamedTuple):
    """A digest's order, by its number; `ended_at` is null while the token opens it. Times are Unix seconds."""

    storefront_order: str
    ended_at: float | None


INSERT_ORDER_ACCESS = Command(
    sa.insert(ORDER_ACCESS).values(
        digest=sa.bindparam("hashed"), storefront_order=sa.bindparam("of"), created=sa.bindparam("now"), ended_at=sa.null()
    )
)

FIND_ORDER_ACCESS = Query(
    OrderAccess, sa.select(ORDER_ACCESS.c.storefront_order, ORDER_ACCESS.c.ended_at).where(ORDER_ACCESS.c.digest == sa.bindparam("hashed"))
)

LIST_TOKEN_DIGESTS = Query(str, sa.select(ORDER_ACCESS.c.digest).where(ORDER_ACCESS.c.storefront_order == sa.bindparam("of")))


FORGET_ORDER_ACCESS = Command(sa.delete(ORDER_ACCESS).where(ORDER_ACCESS.c.storefront_order == sa.bindparam("of")))


def token_digest(token: str) -> str:
    """SHA-256, in hexadecimal. Choice: a plain hash, since nobody finds 130 random bits by trying."""
    return hashlib.sha256(token.encode()).hexdigest()


def insert_access(connection: Connection, *, order: str, token: str, now: float) -> None:
    """From now on `token` opens the order with this number."""
    connection.run(INSERT_ORDER_ACCESS, hashed=token_digest(token), of=order, now=now)


def order_of_token(connection: Connection, *, token: str, ended: bool = False) -> str | None:
    """The number of the order that a token opens; with `ended` also of one that it opened before its access was renewed."""
    row = connection.first(FIND_ORDER_ACCESS, hashed=token_digest(token))
    return None if row is None or (row.ended_at is not None and not ended) else row.storefront_order


def token_digests(connection: Connection, *, order: str) -> frozenset[str]:
    """The digests of all tokens that an order ever had."""
    return frozenset(connection.all(LIST_TOKEN_DIGESTS, of=order))


@changes_rows
def end_access(*, order: str, now: float) -> sa.Executable:
    """No token of the order opens it any more; how many did."""
    return sa.update(ORDER_ACCESS).where(ORDER_ACCESS.c.storefront_order == order, ORDER_ACCESS.c.ended_at.is_(None)).values(ended_at=now)


def forget_access(connection: Connection, *, orders: Sequence[str]) -> None:
    """Deletes the tokens of orders that are no more."""
    connection.run_many(FORGET_ORDER_ACCESS, [{"of": order} for order in orders])
