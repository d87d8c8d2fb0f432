"""Access tokens of orders, as digests: whoever has a token that was not ended has the order. No token itself is stored.

An order has several at once: one in the cookie of the browser that began it, and one for each mail with a link.
"""

import hashlib
from collections.abc import Sequence
from typing import NamedTuple

import sqlalchemy as sa

from storage.connection import Connection
from storage.shop.shop_tables import OrderAccessTable
from storage.statement import Command, Query, table

ACCESS = table(OrderAccessTable)


class AccessRow(NamedTuple):
    """A digest's order, by its number; `ended_at` is null while the token opens it. Times are Unix seconds."""

    storefront_order: str
    ended_at: float | None


class Digest(NamedTuple):
    """The digest of a token."""

    digest: str


INSERT = Command(
    sa.insert(ACCESS).values(
        digest=sa.bindparam("hashed"), storefront_order=sa.bindparam("of"), created=sa.bindparam("now"), ended_at=sa.null()
    )
)
FIND = Query(AccessRow, sa.select(ACCESS.c.storefront_order, ACCESS.c.ended_at).where(ACCESS.c.digest == sa.bindparam("hashed")))
OF_ORDER = Query(Digest, sa.select(ACCESS.c.digest).where(ACCESS.c.storefront_order == sa.bindparam("of")))
END = Command(
    sa.update(ACCESS)
    .where(ACCESS.c.storefront_order == sa.bindparam("of"), ACCESS.c.ended_at.is_(None))
    .values(ended_at=sa.bindparam("now"))
)
FORGET = Command(sa.delete(ACCESS).where(ACCESS.c.storefront_order == sa.bindparam("of")))


def token_digest(token: str) -> str:
    """SHA-256, in hexadecimal. Choice: a plain hash, since nobody finds 130 random bits by trying."""
    return hashlib.sha256(token.encode()).hexdigest()


def insert_access(connection: Connection, *, order: str, token: str, now: float) -> None:
    """From now on `token` opens the order with this number."""
    connection.run(INSERT, hashed=token_digest(token), of=order, now=now)


def order_of_token(connection: Connection, *, token: str, ended: bool = False) -> str | None:
    """The number of the order that a token opens; with `ended` also of one that it opened before its access was renewed."""
    row = connection.first(FIND, hashed=token_digest(token))
    return None if row is None or (row.ended_at is not None and not ended) else row.storefront_order


def token_digests(connection: Connection, *, order: str) -> frozenset[str]:
    """The digests of all tokens that an order ever had."""
    return frozenset(row.digest for row in connection.all(OF_ORDER, of=order))


def end_access(connection: Connection, *, order: str, now: float) -> int:
    """No token of the order opens it any more; how many did."""
    return connection.run(END, of=order, now=now)


def forget_access(connection: Connection, *, orders: Sequence[str]) -> None:
    """Deletes the tokens of orders that are no more."""
    connection.run_many(FORGET, [{"of": order} for order in orders])
