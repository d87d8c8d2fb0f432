"""Sealing the eSIMs of orders again that are bound to an id of before: migration 0009 has no keyring, the first start after it has.

Until then a row keeps that id in `esim_binding`, since nothing else opens its eSIM; afterwards the id is nowhere but in its buyer's mail.
"""

from typing import NamedTuple

import sqlalchemy as sa

from registry.errors import KeyUnknown
from storage.connection import Connection
from storage.secrets.sealed_fields import esim_field
from storage.secrets.sealing import Keyring
from storage.shop.orders import ORDER
from storage.statement import Command, Query
from storage.store import Store

BATCH = 200


class BoundEsim(NamedTuple):
    """A sealed eSIM, and the id that it is bound to."""

    id: str
    organisation: str
    esim: str
    esim_binding: str


NEXT = Query(
    BoundEsim,
    sa.select(ORDER.c.id, ORDER.c.organisation, ORDER.c.esim, ORDER.c.esim_binding)
    .where(ORDER.c.esim_binding.is_not(None), ORDER.c.esim_binding > sa.bindparam("after", type_=sa.Text))
    .order_by(ORDER.c.esim_binding)
    .limit(BATCH),
)
WRITE = Command(
    sa.update(ORDER)
    .where(ORDER.c.id == sa.bindparam("named"), ORDER.c.esim == sa.bindparam("former"), ORDER.c.esim_binding.is_not(None))
    .values(esim=sa.bindparam("again"), esim_binding=None)
)


async def rebind_esims(store: Store, keyring: Keyring) -> int:
    """Bind every eSIM to its order's number; how many were left, because no key of the keyring opens them. Several at once are safe."""
    left, after = 0, ""
    while rows := await store.read(bound_esims, after=after):
        again = [(row, sealed) for row in rows if (sealed := rebound(row, keyring)) is not None]
        left, after = left + len(rows) - len(again), rows[-1].esim_binding
        if again:
            await store.write(write_rebound, rows=again)
    return left


def rebound(row: BoundEsim, keyring: Keyring) -> str | None:
    """The same eSIM, bound to the number; None when it does not open."""
    from cryptography.exceptions import InvalidTag  # slow to import

    try:
        text = keyring.open(row.esim, org_id=row.organisation, field=esim_field(row.esim_binding))
    except (KeyUnknown, ValueError, InvalidTag):
        return None
    return keyring.seal(text, org_id=row.organisation, field=esim_field(row.id))


def bound_esims(connection: Connection, *, after: str) -> list[BoundEsim]:
    """The next ones."""
    return connection.all(NEXT, after=after)


def write_rebound(connection: Connection, *, rows: list[tuple[BoundEsim, str]]) -> int:
    """Replaces those that are still as they were read; how many were."""
    return connection.run_many(WRITE, [{"named": row.id, "former": row.esim, "again": sealed} for row, sealed in rows])
