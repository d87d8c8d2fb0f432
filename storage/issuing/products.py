"""Products: plans that an organisation defined."""

from collections.abc import Sequence
from typing import NamedTuple

import sqlalchemy as sa

from storage.connection import Connection
from storage.schema import ProductTable
from storage.statement import Command, Query, table

PRODUCT = table(ProductTable)
# Sorts behind every id: z is the last character of their alphabet.
AFTER_ALL = "cnp_" + "z" * 27


class ProductRow(NamedTuple):
    """A product; `countries` is JSON text."""

    id: str
    organisation: str
    name: str
    data_mb: int
    validity_days: int
    countries: str
    price_cents: int
    currency: str
    package_template_id: int
    account_id: int | None
    created: int


COLUMNS: Sequence[sa.ColumnElement[object]] = tuple(PRODUCT.c[name] for name in ProductRow._fields)
OWN = PRODUCT.c.organisation == sa.bindparam("organisation")
INSERT = Command(sa.insert(PRODUCT).values({name: sa.bindparam(name) for name in ProductRow._fields}))
READ = Query(ProductRow, sa.select(*COLUMNS).where(PRODUCT.c.id == sa.bindparam("product"), OWN))
LIST = Query(
    ProductRow,
    sa.select(*COLUMNS).where(OWN, PRODUCT.c.id < sa.bindparam("after")).order_by(PRODUCT.c.id.desc()).limit(sa.bindparam("most")),
)


def insert_product(connection: Connection, *, row: ProductRow) -> None:
    """Keep a new product."""
    connection.run(INSERT, **row._asdict())


def find_product(connection: Connection, *, product: str, organisation: str) -> ProductRow | None:
    """One product of an organisation."""
    return connection.first(READ, product=product, organisation=organisation)


def list_products(connection: Connection, *, organisation: str, after: str | None, most: int) -> list[ProductRow]:
    """Newest first."""
    return connection.all(LIST, organisation=organisation, after=after or AFTER_ALL, most=most)
