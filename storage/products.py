"""Products: plans that an organisation defined."""

from collections.abc import Sequence
from typing import Annotated, NamedTuple

import sqlalchemy as sa
from sqlmodel import Field

from storage.engine.connection import all_rows, first_row, or_last, writes
from storage.engine.table import TableDescription, table_of


class ProductTable(TableDescription, table=True):
    """A plan an organisation defined."""

    id: str = Field(primary_key=True, sa_type=sa.Text)
    organisation: str = Field(sa_type=sa.Text)
    name: str = Field(sa_type=sa.Text)
    data_mb: int = Field(sa_type=sa.BigInteger)
    validity_days: int = Field(sa_type=sa.BigInteger)
    countries: str = Field(sa_type=sa.Text)
    price_cents: int = Field(sa_type=sa.BigInteger)
    currency: str = Field(sa_type=sa.Text)
    package_template_id: int = Field(sa_type=sa.BigInteger)
    account_id: int | None = Field(default=None, sa_type=sa.BigInteger)
    created: int = Field(sa_type=sa.BigInteger)
    __table_args__ = (sa.Index("product_organisation", "organisation", "id"),)


PRODUCT = table_of(ProductTable)


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


PRODUCT_COLUMNS: Sequence[sa.ColumnElement[object]] = tuple(PRODUCT.c[name] for name in ProductRow._fields)

OWN_PRODUCT = PRODUCT.c.organisation == sa.bindparam("organisation")


@writes
def insert_product(*, row: ProductRow) -> sa.Executable:
    """Keep a new product."""
    return sa.insert(PRODUCT).values(row._asdict())


@first_row(ProductRow)
def find_product(*, product: str, organisation: str) -> sa.Executable:
    """One product of an organisation."""
    return sa.select(*PRODUCT_COLUMNS).where(PRODUCT.c.id == product, OWN_PRODUCT)


@all_rows(ProductRow)
def list_products(*, organisation: str, after: Annotated[str | None, or_last("cnp_")], most: int) -> sa.Executable:
    """Newest first."""
    return sa.select(*PRODUCT_COLUMNS).where(OWN_PRODUCT, PRODUCT.c.id < after).order_by(PRODUCT.c.id.desc()).limit(most)
