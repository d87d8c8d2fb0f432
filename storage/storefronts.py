"""Storefronts: the shops of organisations. What changes one holds its row first, and so do its plans (storefront_plans.py)."""

from typing import Annotated, NamedTuple

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
    first_row,
    insert_once,
    or_last,
    value_or,
    writes,
)
from storage.organisations import lock_organisation


class Storefront(NamedTuple):
    """A shop, whole. `status`: draft or published."""

    id: Key
    organisation: str
    slug: Annotated[str, Field(unique=True)]
    name: str
    tagline: str | None
    logo: str | None
    accent: str | None
    support_email: str | None
    currency: str
    status: str
    created: BigInt
    updated: BigInt


class StorefrontTable(TableDescription, row=Storefront, table=True):
    """A hosted shop of an organisation. `status`: draft or published. `logo` is a data: URI of at most 32 KiB."""

    __table_args__ = (sa.Index("storefront_organisation", "organisation", "id"),)


class StorefrontAddressTable(TableDescription, table=True):
    """An address that a shop has or had: it stays its organisation's, so that its buyers' links never lead to another's shop."""

    slug: str = Field(primary_key=True)
    organisation: str
    storefront: str
    created: BigInt


class StorefrontPlan(NamedTuple):
    """A plan, whole; `countries` is JSON text. It is sold in its shop's currency."""

    id: Key
    storefront: str
    slug: str
    name: str
    data_mb: BigInt
    validity_days: BigInt
    countries: str
    price_cents: BigInt
    on_sale: int
    place: BigInt
    template_id: BigInt
    account_id: BigInt | None
    product: str | None
    price_id: str | None
    price_mode: str | None
    created: BigInt
    updated: BigInt


class StorefrontPlanTable(TableDescription, row=StorefrontPlan, table=True):
    """What a shop sells, in its currency. `account_id` null: the organisation's connected account; `place` is its display order.

    `price_id` and `price_mode` name a price at the payment processor: both or neither. It is kept, and nothing is charged by it.
    """

    __table_args__ = (sa.Index("storefront_plan_slug", "storefront", "slug", unique=True),)


STOREFRONT = StorefrontTable.table

STOREFRONT_ADDRESS = StorefrontAddressTable.table


class ShopAddress(NamedTuple):
    """Whose address it is, and of which shop it was last."""

    organisation: str
    storefront: str


STOREFRONT_COLUMNS = tuple(STOREFRONT.c[name] for name in Storefront._fields)

STOREFRONT_ROWS = sa.select(*STOREFRONT_COLUMNS)

THIS_STOREFRONT = STOREFRONT.c.id == sa.bindparam("storefront")

STOREFRONT_OF_ORGANISATION = STOREFRONT.c.organisation == sa.bindparam("organisation")

COUNT_STOREFRONTS = Query(int, lambda _: sa.select(sa.func.count().label("held")).select_from(STOREFRONT).where(STOREFRONT_OF_ORGANISATION))

FIND_SLUG_HOLDER = Query(str, lambda _: sa.select(STOREFRONT.c.id).where(STOREFRONT.c.slug == sa.bindparam("slug")))

INSERT_STOREFRONT = Command(insert_once(STOREFRONT, Storefront._fields, key=["slug"]))

FIND_AT_ADDRESS = Query(
    Storefront,
    sa.select(*STOREFRONT_COLUMNS)
    .select_from(
        STOREFRONT_ADDRESS.join(
            STOREFRONT,
            (STOREFRONT.c.id == STOREFRONT_ADDRESS.c.storefront) & (STOREFRONT.c.organisation == STOREFRONT_ADDRESS.c.organisation),
        )
    )
    .where(STOREFRONT_ADDRESS.c.slug == sa.bindparam("slug"), STOREFRONT.c.status == "published"),
)

TAKE_ADDRESS = Query(
    ShopAddress,
    lambda dialect: (
        dialect.insert(STOREFRONT_ADDRESS)
        .values({name: sa.bindparam(name) for name in ("slug", "organisation", "storefront", "created")})
        .on_conflict_do_update(
            index_elements=["slug"],
            set_={"storefront": sa.bindparam("storefront")},
            where=STOREFRONT_ADDRESS.c.organisation == sa.bindparam("organisation"),
        )
    ),
)

CHANGEABLE_STOREFRONT = ("slug", "name", "tagline", "logo", "accent", "support_email", "currency", "status", "updated")


def insert_storefront(connection: Connection, *, row: Storefront) -> bool:
    """Stores a new shop. False: its slug is another shop's, or was another organisation's."""
    if not take_address(connection, row=row, now=row.created):
        return False
    return connection.run(INSERT_STOREFRONT, **row._asdict()) == 1


def take_address(connection: Connection, *, row: Storefront, now: float) -> bool:
    """The shop's slug is its organisation's from now on, for ever. False: it is another's, also of one whose shops are elsewhere now."""
    named = {"slug": row.slug, "organisation": row.organisation, "storefront": row.id}
    return connection.first(TAKE_ADDRESS, **named, created=int(now)) is not None


def hold_storefront_count(connection: Connection, *, organisation: str) -> int:
    """How many shops an organisation has, for a transaction that goes on to make one: nobody else does so meanwhile."""
    lock_organisation(connection, organisation=organisation)
    return connection.first(COUNT_STOREFRONTS, organisation=organisation) or 0


@first_row(Storefront)
def find_storefront(*, storefront: str, organisation: str) -> sa.Executable:
    return STOREFRONT_ROWS.where(THIS_STOREFRONT, STOREFRONT_OF_ORGANISATION)


@first_row(Storefront)
def hold_storefront(*, storefront: str, organisation: str) -> sa.Executable:
    """The same, for a transaction that goes on to change it or its plans: nobody else does so meanwhile."""
    # Two changes of a shop, or of a shop and a plan, come one after the other; on SQLite the write lock sees to it.
    return STOREFRONT_ROWS.where(THIS_STOREFRONT, STOREFRONT_OF_ORGANISATION).with_for_update(key_share=True)


@first_row(Storefront)
def storefront_of(*, storefront: str) -> sa.Executable:
    """The shop with this id, of any organisation, or None; for an order or a plan, which names it."""
    return STOREFRONT_ROWS.where(THIS_STOREFRONT)


@first_row(Storefront)
def find_published(*, slug: str) -> sa.Executable:
    return STOREFRONT_ROWS.where(STOREFRONT.c.slug == slug, STOREFRONT.c.status == "published")


def find_published_at(connection: Connection, *, slug: str) -> Storefront | None:
    """The published shop that has this slug, else the one that had it last."""
    return find_published(connection, slug=slug) or connection.first(FIND_AT_ADDRESS, slug=slug)


@all_rows(Storefront)
def list_storefronts(*, organisation: str, after: Annotated[str | None, or_last("sf_")], most: int) -> sa.Executable:
    """At most `most` shops behind the id `after`, newest first."""
    return STOREFRONT_ROWS.where(STOREFRONT_OF_ORGANISATION, STOREFRONT.c.id < after).order_by(STOREFRONT.c.id.desc()).limit(most)


def slug_is_taken(connection: Connection, *, slug: str, storefront: str) -> bool:
    """Whether another shop, of whomever, has the slug."""
    holder = connection.first(FIND_SLUG_HOLDER, slug=slug)
    return holder is not None and holder != storefront


@writes
def write_storefront(*, row: Storefront) -> sa.Executable:
    """The row as it is from now on; whoever writes it holds it."""
    changed = {name: value for name, value in row._asdict().items() if name in CHANGEABLE_STOREFRONT}
    return sa.update(STOREFRONT).where(STOREFRONT.c.id == row.id).values(changed)


STOREFRONT_PLAN = StorefrontPlanTable.table


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

REPLACED_PLAN_FIELDS = tuple(name for name in StorefrontPlan._fields if name not in ("id", "storefront", "slug", "created"))

PUT_PLAN = Query(
    PlanId,
    lambda dialect: (
        insert := dialect.insert(STOREFRONT_PLAN).values({name: sa.bindparam(name) for name in StorefrontPlan._fields})
    ).on_conflict_do_update(index_elements=["storefront", "slug"], set_={name: insert.excluded[name] for name in REPLACED_PLAN_FIELDS}),
)

CHANGEABLE_PLAN = ("price_cents", "on_sale", "place", "price_id", "price_mode", "updated")


def put_plan(connection: Connection, *, row: StorefrontPlan) -> StorefrontPlan:
    """Keep a new plan, or put it in the place of the one with this slug, whose id and age stay."""
    kept = connection.first(PUT_PLAN, **row._asdict())
    if kept is None:
        raise RuntimeError("a row that was just written is not there")
    return row._replace(id=kept.id, created=kept.created)


@value_or(0)
def count_plans(*, storefront: str) -> sa.Executable:
    """How many plans a shop has, on sale or not."""
    return sa.select(sa.func.count().label("held")).select_from(STOREFRONT_PLAN).where(PLAN_OF_SHOP)


@all_rows(StorefrontPlan)
def plans_of(*, storefront: str) -> sa.Executable:
    """Every plan of a shop, on sale or not, as they are displayed: by place, then by age."""
    return sa.select(*PLAN_COLUMNS).where(PLAN_OF_SHOP).order_by(*PLAN_ORDER)


@all_rows(StorefrontPlan)
def plans_on_sale(*, storefront: str) -> sa.Executable:
    """The plans that a shop sells, as they are displayed."""
    return sa.select(*PLAN_COLUMNS).where(PLAN_OF_SHOP, STOREFRONT_PLAN.c.on_sale == 1).order_by(*PLAN_ORDER)


@first_row(StorefrontPlan)
def find_plan(*, storefront: str, slug: str) -> sa.Executable:
    return sa.select(*PLAN_COLUMNS).where(PLAN_OF_SHOP, PLAN_HAS_SLUG)


def named_plan(connection: Connection, *, storefront: str, named: str) -> StorefrontPlan | None:
    """A plan of a shop, by its id or its slug; no slug looks like an id."""
    if named.startswith("sfp_"):
        return connection.first(FIND_PLAN_BY_ID, storefront=storefront, plan=named)
    return find_plan(connection, storefront=storefront, slug=named)


@writes
def write_plan(*, row: StorefrontPlan) -> sa.Executable:
    """The row as it is from now on; whoever writes it holds its shop."""
    changed = {name: value for name, value in row._asdict().items() if name in CHANGEABLE_PLAN}
    return sa.update(STOREFRONT_PLAN).where(STOREFRONT_PLAN.c.id == row.id).values(changed)


@all_rows(ShopOffer)
def list_offers(*, after: str, most: int) -> sa.Executable:
    """What all published shops sell, oldest first, at most `most` rows behind the id `after`; an empty one stands before all."""
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
