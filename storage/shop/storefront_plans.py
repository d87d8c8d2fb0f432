"""What shops sell. Who writes a plan holds its shop's row (storefronts.py)."""

from typing import NamedTuple

import sqlalchemy as sa

from storage.connection import Connection
from storage.shop.shop_tables import StorefrontPlanTable, StorefrontTable
from storage.statement import Command, Query, table

PLAN, STOREFRONT = table(StorefrontPlanTable), table(StorefrontTable)


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


class Offer(NamedTuple):
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


class Kept(NamedTuple):
    """The plan that has the slug, and since when it is there."""

    id: str
    created: int


class Count(NamedTuple):
    """How many."""

    held: int


COLUMNS = tuple(PLAN.c[name] for name in StorefrontPlan._fields)
OF, SLUG = PLAN.c.storefront == sa.bindparam("storefront"), PLAN.c.slug == sa.bindparam("slug")
ORDER = (PLAN.c.place, PLAN.c.id)
OF_SHOP = Query(StorefrontPlan, sa.select(*COLUMNS).where(OF).order_by(*ORDER))
ON_SALE = Query(StorefrontPlan, sa.select(*COLUMNS).where(OF, PLAN.c.on_sale == 1).order_by(*ORDER))
FIND = Query(StorefrontPlan, sa.select(*COLUMNS).where(OF, SLUG))
BY_ID = Query(StorefrontPlan, sa.select(*COLUMNS).where(OF, PLAN.c.id == sa.bindparam("plan")))
COUNT = Query(Count, sa.select(sa.func.count().label("held")).select_from(PLAN).where(OF))
REPLACED = tuple(name for name in StorefrontPlan._fields if name not in ("id", "storefront", "slug", "created"))
UPSERT = Query(
    Kept,
    lambda dialect: (
        (insert := dialect.insert(PLAN).values({name: sa.bindparam(name) for name in StorefrontPlan._fields}))
        .on_conflict_do_update(index_elements=["storefront", "slug"], set_={name: insert.excluded[name] for name in REPLACED})
        .returning(PLAN.c.id, PLAN.c.created)
    ),
)
CHANGEABLE = ("price_cents", "on_sale", "place", "price_id", "price_mode", "updated")
WRITE = Command(sa.update(PLAN).where(PLAN.c.id == sa.bindparam("named")).values({name: sa.bindparam(name) for name in CHANGEABLE}))
OFFERS = Query(
    Offer,
    sa.select(
        STOREFRONT.c.slug.label("storefront"),
        STOREFRONT.c.currency,
        *(PLAN.c[name] for name in Offer._fields if name not in ("storefront", "currency")),
    )
    .select_from(PLAN.join(STOREFRONT, STOREFRONT.c.id == PLAN.c.storefront))
    .where(STOREFRONT.c.status == "published", PLAN.c.on_sale == 1, PLAN.c.id > sa.bindparam("after"))
    .order_by(PLAN.c.id)
    .limit(sa.bindparam("most")),
)


def put_plan(connection: Connection, *, row: StorefrontPlan) -> StorefrontPlan:
    """Keep a new plan, or put it in the place of the one with this slug, whose id and age stay."""
    kept = connection.first(UPSERT, **row._asdict())
    if kept is None:
        raise RuntimeError("a row that was just written is not there")
    return row._replace(id=kept.id, created=kept.created)


def count_plans(connection: Connection, *, storefront: str) -> int:
    """How many plans a shop has, on sale or not."""
    counted = connection.first(COUNT, storefront=storefront)
    return 0 if counted is None else counted.held


def plans_of(connection: Connection, *, storefront: str) -> list[StorefrontPlan]:
    """Every plan of a shop, on sale or not, as they are displayed: by place, then by age."""
    return connection.all(OF_SHOP, storefront=storefront)


def plans_on_sale(connection: Connection, *, storefront: str) -> list[StorefrontPlan]:
    """What a shop sells, as it is displayed."""
    return connection.all(ON_SALE, storefront=storefront)


def find_plan(connection: Connection, *, storefront: str, slug: str) -> StorefrontPlan | None:
    """A plan of a shop, by its slug."""
    return connection.first(FIND, storefront=storefront, slug=slug)


def named_plan(connection: Connection, *, storefront: str, named: str) -> StorefrontPlan | None:
    """A plan of a shop, by its id or its slug; no slug looks like an id."""
    if named.startswith("sfp_"):
        return connection.first(BY_ID, storefront=storefront, plan=named)
    return find_plan(connection, storefront=storefront, slug=named)


def write_plan(connection: Connection, *, row: StorefrontPlan) -> None:
    """The row as it is from now on; whoever writes it holds its shop."""
    connection.run(WRITE, named=row.id, **{name: value for name, value in row._asdict().items() if name in CHANGEABLE})


def offers(connection: Connection, *, after: str | None, most: int) -> list[Offer]:
    """What all published shops sell, oldest first."""
    return connection.all(OFFERS, after=after or "", most=most)
