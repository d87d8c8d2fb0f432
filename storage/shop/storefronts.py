"""Storefronts: the shops of organisations. What changes one holds its row first, and so do its plans (storefront_plans.py)."""

from typing import NamedTuple

import sqlalchemy as sa

from storage.connection import Connection
from storage.schema import OrganisationTable
from storage.shop.shop_tables import StorefrontAddressTable, StorefrontTable
from storage.statement import Command, Query, table

STOREFRONT, ORGANISATION, ADDRESS = table(StorefrontTable), table(OrganisationTable), table(StorefrontAddressTable)
# Sorts behind every id: z is the last character of their alphabet.
AFTER_ALL = "sf_" + "z" * 27


class Storefront(NamedTuple):
    """A shop, whole. `status`: draft or published."""

    id: str
    organisation: str
    slug: str
    name: str
    tagline: str | None
    logo: str | None
    accent: str | None
    support_email: str | None
    currency: str
    status: str
    created: int
    updated: int


class Id(NamedTuple):
    """A row that is there."""

    id: str


class Count(NamedTuple):
    """How many."""

    held: int


class Address(NamedTuple):
    """Whose address it is, and of which shop it was last."""

    organisation: str
    storefront: str


COLUMNS = tuple(STOREFRONT.c[name] for name in Storefront._fields)
ROWS = sa.select(*COLUMNS)
THIS, OF = STOREFRONT.c.id == sa.bindparam("storefront"), STOREFRONT.c.organisation == sa.bindparam("organisation")
FIND = Query(Storefront, ROWS.where(THIS, OF))
# Two changes of a shop, or of a shop and a plan, come one after the other; on SQLite the write lock sees to it.
HOLD = Query(Storefront, ROWS.where(THIS, OF).with_for_update(key_share=True))
BY_ID = Query(Storefront, ROWS.where(THIS))
PUBLISHED = Query(Storefront, ROWS.where(STOREFRONT.c.slug == sa.bindparam("slug"), STOREFRONT.c.status == "published"))
LIST = Query(
    Storefront,
    ROWS.where(OF, STOREFRONT.c.id < sa.bindparam("after")).order_by(STOREFRONT.c.id.desc()).limit(sa.bindparam("most")),
)
# The organisation's row is the lock of its number of shops; on SQLite the write lock is.
OWNER = Query(Id, sa.select(ORGANISATION.c.id).where(ORGANISATION.c.id == sa.bindparam("organisation")).with_for_update(key_share=True))
COUNT = Query(Count, sa.select(sa.func.count().label("held")).select_from(STOREFRONT).where(OF))
HOLDER = Query(Id, sa.select(STOREFRONT.c.id).where(STOREFRONT.c.slug == sa.bindparam("slug")))
INSERT = Query(
    Id,
    lambda dialect: (
        dialect.insert(STOREFRONT)
        .values({name: sa.bindparam(name) for name in Storefront._fields})
        .on_conflict_do_nothing(index_elements=["slug"])
        .returning(STOREFRONT.c.id)
    ),
)
AT_ADDRESS = Query(
    Storefront,
    sa.select(*COLUMNS)
    .select_from(
        ADDRESS.join(STOREFRONT, (STOREFRONT.c.id == ADDRESS.c.storefront) & (STOREFRONT.c.organisation == ADDRESS.c.organisation))
    )
    .where(ADDRESS.c.slug == sa.bindparam("slug"), STOREFRONT.c.status == "published"),
)
TAKE_ADDRESS = Query(
    Address,
    lambda dialect: (
        dialect.insert(ADDRESS)
        .values({name: sa.bindparam(name) for name in ("slug", "organisation", "storefront", "created")})
        .on_conflict_do_update(
            index_elements=["slug"],
            set_={"storefront": sa.bindparam("storefront")},
            where=ADDRESS.c.organisation == sa.bindparam("organisation"),
        )
        .returning(ADDRESS.c.organisation, ADDRESS.c.storefront)
    ),
)
CHANGEABLE = ("slug", "name", "tagline", "logo", "accent", "support_email", "currency", "status", "updated")
WRITE = Command(
    sa.update(STOREFRONT).where(STOREFRONT.c.id == sa.bindparam("named")).values({name: sa.bindparam(name) for name in CHANGEABLE})
)


def insert_storefront(connection: Connection, *, row: Storefront) -> bool:
    """Stores a new shop. False: its slug is another shop's, or was another organisation's."""
    if not take_address(connection, row=row, now=row.created):
        return False
    return connection.first(INSERT, **row._asdict()) is not None


def take_address(connection: Connection, *, row: Storefront, now: float) -> bool:
    """The shop's slug is its organisation's from now on, for ever. False: it is another's, also of one whose shops are elsewhere now."""
    named = {"slug": row.slug, "organisation": row.organisation, "storefront": row.id}
    return connection.first(TAKE_ADDRESS, **named, created=int(now)) is not None


def hold_number(connection: Connection, *, organisation: str) -> int:
    """How many shops an organisation has, for a transaction that goes on to make one: nobody else does so meanwhile."""
    connection.first(OWNER, organisation=organisation)
    counted = connection.first(COUNT, organisation=organisation)
    return 0 if counted is None else counted.held


def find_storefront(connection: Connection, *, storefront: str, organisation: str) -> Storefront | None:
    """A shop of an organisation."""
    return connection.first(FIND, storefront=storefront, organisation=organisation)


def hold_storefront(connection: Connection, *, storefront: str, organisation: str) -> Storefront | None:
    """The same, for a transaction that goes on to change it or its plans: nobody else does so meanwhile."""
    return connection.first(HOLD, storefront=storefront, organisation=organisation)


def storefront_of(connection: Connection, *, storefront: str) -> Storefront | None:
    """A shop by its id alone, for what names it by itself: an order, a plan."""
    return connection.first(BY_ID, storefront=storefront)


def published(connection: Connection, *, slug: str) -> Storefront | None:
    """The shop that everybody sees under this slug; drafts are nobody's."""
    return connection.first(PUBLISHED, slug=slug)


def published_at(connection: Connection, *, slug: str) -> Storefront | None:
    """The published shop that has this slug, else the one that had it last."""
    return published(connection, slug=slug) or connection.first(AT_ADDRESS, slug=slug)


def list_storefronts(connection: Connection, *, organisation: str, after: str | None, most: int) -> list[Storefront]:
    """Newest first."""
    return connection.all(LIST, organisation=organisation, after=after or AFTER_ALL, most=most)


def slug_is_taken(connection: Connection, *, slug: str, storefront: str) -> bool:
    """Whether another shop, of whomever, has the slug."""
    holder = connection.first(HOLDER, slug=slug)
    return holder is not None and holder.id != storefront


def write_storefront(connection: Connection, *, row: Storefront) -> None:
    """The row as it is from now on; whoever writes it holds it."""
    connection.run(WRITE, named=row.id, **{name: value for name, value in row._asdict().items() if name in CHANGEABLE})
