"""What shops sell. Who writes a plan holds its shop's row (storefronts.py)."""

from typing import Annotated, NamedTuple

import sqlalchemy as sa
from sqlmodel import Field

from storage.engine.connection import Connection, all_rows, first_row, or_else
from storage.engine.statement import Command, Query
from storage.engine.table import TableDescription, table_of
from storage.storefronts import STOREFRONT


class StorefrontPlanTable(TableDescription, table=True):
    """What a shop sells, in its currency. `account_id` null: the organisation's connected account; `place` is its display order.

    `price_id` and `price_mode` name a price at the payment processor: both or neither. It is kept, and nothing is charged by it.
    """

    id: str = Field(primary_key=True, sa_type=sa.Text)
    storefront: str = Field(sa_type=sa.Text)
    slug: str = Field(sa_type=sa.Text)
    name: str = Field(sa_type=sa.Text)
    data_mb: int = Field(sa_type=sa.BigInteger)
    validity_days: int = Field(sa_type=sa.BigInteger)
    countries: str = Field(sa_type=sa.Text)
    price_cents: int = Field(sa_type=sa.BigInteger)
    on_sale: int
    place: int = Field(sa_type=sa.BigInteger)
    template_id: int = Field(sa_type=sa.BigInteger)
    account_id: int | None = Field(default=None, sa_type=sa.BigInteger)
    product: str | None = Field(default=None, sa_type=sa.Text)
    price_id: str | None = Field(default=None, sa_type=sa.Text)
    price_mode: str | None = Field(default=None, sa_type=sa.Text)
    created: int = Field(sa_type=sa.BigInteger)
    updated: int = Field(sa_type=sa.BigInteger)
    __table_args__ = (sa.Index("storefront_plan_slug", "storefront", "slug", unique=True),)


STOREFRONT_PLAN = table_of(StorefrontPlanTable)


class StorefrontPlan(NamedTuple):
    """A plan, whole; `countries` is JSON text. It is sold in its shop's currency."""

    id: str
    storefront: str
    slug: str
    name: str
    data_mb: int
    validity_days: int
    countries: str
    price_cents: int
    on_sale: int
    place: int
    template_id: int
    account_id: int | None
    product: str | None
    price_id: str | None
    price_mode: str | None
    created: int
    updated: int


class ShopOffer(NamedTuple):
    """A plan on sale in a published shop."""

    storefront: str
    currency: str
    id: str
    slug: str
    name: str
    data_mb: int
    validity_days: int
    countries: str
    price_cents: int
    place: int


class PlanId(NamedTuple):
    """The plan that has the slug, and since when it is there."""

    id: str
    created: int


PLAN_COLUMNS = tuple(STOREFRONT_PLAN.c[name] for name in StorefrontPlan._fields)

PLAN_OF_SHOP = STOREFRONT_PLAN.c.storefront == sa.bindparam("storefront")

PLAN_HAS_SLUG = STOREFRONT_PLAN.c.slug == sa.bindparam("slug")

PLAN_ORDER = (STOREFRONT_PLAN.c.place, STOREFRONT_PLAN.c.id)


FIND_PLAN_BY_ID = Query(StorefrontPlan, sa.select(*PLAN_COLUMNS).where(PLAN_OF_SHOP, STOREFRONT_PLAN.c.id == sa.bindparam("plan")))

COUNT_PLANS = Query(int, sa.select(sa.func.count().label("held")).select_from(STOREFRONT_PLAN).where(PLAN_OF_SHOP))

REPLACED_PLAN_FIELDS = tuple(name for name in StorefrontPlan._fields if name not in ("id", "storefront", "slug", "created"))

PUT_PLAN = Query(
    PlanId,
    lambda dialect: (
        (insert := dialect.insert(STOREFRONT_PLAN).values({name: sa.bindparam(name) for name in StorefrontPlan._fields}))
        .on_conflict_do_update(index_elements=["storefront", "slug"], set_={name: insert.excluded[name] for name in REPLACED_PLAN_FIELDS})
        .returning(STOREFRONT_PLAN.c.id, STOREFRONT_PLAN.c.created)
    ),
)

CHANGEABLE_PLAN = ("price_cents", "on_sale", "place", "price_id", "price_mode", "updated")

WRITE_PLAN = Command(
    sa.update(STOREFRONT_PLAN)
    .where(STOREFRONT_PLAN.c.id == sa.bindparam("named"))
    .values({name: sa.bindparam(name) for name in CHANGEABLE_PLAN})
)


def put_plan(connection: Connection, *, row: StorefrontPlan) -> StorefrontPlan:
    """Keep a new plan, or put it in the place of the one with this slug, whose id and age stay."""
    kept = connection.first(PUT_PLAN, **row._asdict())
    if kept is None:
        raise RuntimeError("a row that was just written is not there")
    return row._replace(id=kept.id, created=kept.created)


def count_plans(connection: Connection, *, storefront: str) -> int:
    """How many plans a shop has, on sale or not."""
    return connection.first(COUNT_PLANS, storefront=storefront) or 0


@all_rows(StorefrontPlan)
def plans_of(*, storefront: str) -> sa.Executable:
    """Every plan of a shop, on sale or not, as they are displayed: by place, then by age."""
    return sa.select(*PLAN_COLUMNS).where(PLAN_OF_SHOP).order_by(*PLAN_ORDER)


@all_rows(StorefrontPlan)
def plans_on_sale(*, storefront: str) -> sa.Executable:
    """What a shop sells, as it is displayed."""
    return sa.select(*PLAN_COLUMNS).where(PLAN_OF_SHOP, STOREFRONT_PLAN.c.on_sale == 1).order_by(*PLAN_ORDER)


@first_row(StorefrontPlan)
def find_plan(*, storefront: str, slug: str) -> sa.Executable:
    """A plan of a shop, by its slug."""
    return sa.select(*PLAN_COLUMNS).where(PLAN_OF_SHOP, PLAN_HAS_SLUG)


def named_plan(connection: Connection, *, storefront: str, named: str) -> StorefrontPlan | None:
    """A plan of a shop, by its id or its slug; no slug looks like an id."""
    if named.startswith("sfp_"):
        return connection.first(FIND_PLAN_BY_ID, storefront=storefront, plan=named)
    return find_plan(connection, storefront=storefront, slug=named)


def write_plan(connection: Connection, *, row: StorefrontPlan) -> None:
    """The row as it is from now on; whoever writes it holds its shop."""
    connection.run(WRITE_PLAN, named=row.id, **{name: value for name, value in row._asdict().items() if name in CHANGEABLE_PLAN})


@all_rows(ShopOffer)
def list_offers(*, after: Annotated[str | None, or_else("")], most: int) -> sa.Executable:
    """What all published shops sell, oldest first."""
    return (
        sa.select(
            STOREFRONT.c.slug.label("storefront"),
            STOREFRONT.c.currency,
            *(STOREFRONT_PLAN.c[name] for name in ShopOffer._fields if name not in ("storefront", "currency")),
        )
        .select_from(STOREFRONT_PLAN.join(STOREFRONT, STOREFRONT.c.id == STOREFRONT_PLAN.c.storefront))
        .where(STOREFRONT.c.status == "published", STOREFRONT_PLAN.c.on_sale == 1, STOREFRONT_PLAN.c.id > after)
        .order_by(STOREFRONT_PLAN.c.id)
        .limit(most)
    )
