"""Products: plans that an organisation defined."""

from collections.abc import Sequence
from typing import Annotated, NamedTuple

import sqlalchemy as sa

from storage.engine.sql import BigInt, Key, TableDescription, all_rows, first_row, or_last, writes


class ProductRow(NamedTuple):
    """A product; `countries` is JSON text."""

    id: Key
    organisation: str
    name: str
    data_mb: BigInt
    validity_days: BigInt
    countries: str
    price_cents: BigInt
    currency: str
    package_template_id: BigInt
    account_id: BigInt | None
    created: BigInt


class ProductTable(TableDescription, row=ProductRow, table=True):
    """A plan an organisation defined."""

    __table_args__ = (sa.Index("product_organisation", "organisation", "id"),)


PRODUCT = ProductTable.table

PRODUCT_COLUMNS: Sequence[sa.ColumnElement[object]] = tuple(PRODUCT.c[name] for name in ProductRow._fields)

OWN_PRODUCT = PRODUCT.c.organisation == sa.bindparam("organisation")


@writes
def insert_product(*, row: ProductRow) -> sa.Executable:
    return sa.insert(PRODUCT).values(row._asdict())


@first_row(ProductRow)
def find_product(*, product: str, organisation: str) -> sa.Executable:
    return sa.select(*PRODUCT_COLUMNS).where(PRODUCT.c.id == product, OWN_PRODUCT)


@all_rows(ProductRow)
def list_products(*, organisation: str, after: Annotated[str | None, or_last("cnp_")], most: int) -> sa.Executable:
    """At most `most` products behind the id `after`, newest first."""
    return sa.select(*PRODUCT_COLUMNS).where(OWN_PRODUCT, PRODUCT.c.id < after).order_by(PRODUCT.c.id.desc()).limit(most)
