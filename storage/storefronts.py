"""Storefronts: the shops of organisations. What changes one holds its row first, and so do its plans (storefront_plans.py)."""

from typing import Annotated, NamedTuple

import sqlalchemy as sa
from sqlmodel import Field

from storage.engine.connection import Connection, all_rows, first_row, or_else
from storage.engine.statement import Command, Query
from storage.engine.table import TableDescription, table_of
from storage.organisations import ORGANISATION


class StorefrontTable(TableDescription, table=True):
    """A hosted shop of an organisation. `status`: draft or published. `logo` is a data: URI of at most 32 KiB."""

    id: str = Field(primary_key=True, sa_type=sa.Text)
    organisation: str = Field(sa_type=sa.Text)
    slug: str = Field(unique=True, sa_type=sa.Text)
    name: str = Field(sa_type=sa.Text)
    tagline: str | None = Field(default=None, sa_type=sa.Text)
    logo: str | None = Field(default=None, sa_type=sa.Text)
    accent: str | None = Field(default=None, sa_type=sa.Text)
    support_email: str | None = Field(default=None, sa_type=sa.Text)
    currency: str = Field(sa_type=sa.Text)
    status: str = Field(sa_type=sa.Text)
    created: int = Field(sa_type=sa.BigInteger)
    updated: int = Field(sa_type=sa.BigInteger)
    __table_args__ = (sa.Index("storefront_organisation", "organisation", "id"),)


class StorefrontAddressTable(TableDescription, table=True):
    """An address that a shop has or had: it stays its organisation's, so that its buyers' links never lead to another's shop."""

    slug: str = Field(primary_key=True, sa_type=sa.Text)
    organisation: str = Field(sa_type=sa.Text)
    storefront: str = Field(sa_type=sa.Text)
    created: int = Field(sa_type=sa.BigInteger)


STOREFRONT = table_of(StorefrontTable)

STOREFRONT_ADDRESS = table_of(StorefrontAddressTable)

# Sorts behind every id: z is the last character of their alphabet.
LAST_STOREFRONT_ID = "sf_" + "z" * 27


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


class ShopAddress(NamedTuple):
    """Whose address it is, and of which shop it was last."""

    organisation: str
    storefront: str


STOREFRONT_COLUMNS = tuple(STOREFRONT.c[name] for name in Storefront._fields)

STOREFRONT_ROWS = sa.select(*STOREFRONT_COLUMNS)

THIS_STOREFRONT = STOREFRONT.c.id == sa.bindparam("storefront")

STOREFRONT_OF_ORGANISATION = STOREFRONT.c.organisation == sa.bindparam("organisation")


# The organisation's row is the lock of its number of shops; on SQLite the write lock is.
LOCK_STOREFRONT_OWNER = Query(
    str, sa.select(ORGANISATION.c.id).where(ORGANISATION.c.id == sa.bindparam("organisation")).with_for_update(key_share=True)
)

COUNT_STOREFRONTS = Query(int, sa.select(sa.func.count().label("held")).select_from(STOREFRONT).where(STOREFRONT_OF_ORGANISATION))

FIND_SLUG_HOLDER = Query(str, sa.select(STOREFRONT.c.id).where(STOREFRONT.c.slug == sa.bindparam("slug")))

INSERT_STOREFRONT = Query(
    str,
    lambda dialect: (
        dialect.insert(STOREFRONT)
        .values({name: sa.bindparam(name) for name in Storefront._fields})
        .on_conflict_do_nothing(index_elements=["slug"])
        .returning(STOREFRONT.c.id)
    ),
)

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
        .returning(STOREFRONT_ADDRESS.c.organisation, STOREFRONT_ADDRESS.c.storefront)
    ),
)

CHANGEABLE_STOREFRONT = ("slug", "name", "tagline", "logo", "accent", "support_email", "currency", "status", "updated")

WRITE_STOREFRONT = Command(
    sa.update(STOREFRONT)
    .where(STOREFRONT.c.id == sa.bindparam("named"))
    .values({name: sa.bindparam(name) for name in CHANGEABLE_STOREFRONT})
)


def insert_storefront(connection: Connection, *, row: Storefront) -> bool:
    """Stores a new shop. False: its slug is another shop's, or was another organisation's."""
    if not take_address(connection, row=row, now=row.created):
        return False
    return connection.first(INSERT_STOREFRONT, **row._asdict()) is not None


def take_address(connection: Connection, *, row: Storefront, now: float) -> bool:
    """The shop's slug is its organisation's from now on, for ever. False: it is another's, also of one whose shops are elsewhere now."""
    named = {"slug": row.slug, "organisation": row.organisation, "storefront": row.id}
    return connection.first(TAKE_ADDRESS, **named, created=int(now)) is not None


def hold_storefront_count(connection: Connection, *, organisation: str) -> int:
    """How many shops an organisation has, for a transaction that goes on to make one: nobody else does so meanwhile."""
    connection.first(LOCK_STOREFRONT_OWNER, organisation=organisation)
    return connection.first(COUNT_STOREFRONTS, organisation=organisation) or 0


@first_row(Storefront)
def find_storefront(*, storefront: str, organisation: str) -> sa.Executable:
    """A shop of an organisation."""
    return STOREFRONT_ROWS.where(THIS_STOREFRONT, STOREFRONT_OF_ORGANISATION)


@first_row(Storefront)
def hold_storefront(*, storefront: str, organisation: str) -> sa.Executable:
    """The same, for a transaction that goes on to change it or its plans: nobody else does so meanwhile."""
    # Two changes of a shop, or of a shop and a plan, come one after the other; on SQLite the write lock sees to it.
    return STOREFRONT_ROWS.where(THIS_STOREFRONT, STOREFRONT_OF_ORGANISATION).with_for_update(key_share=True)


@first_row(Storefront)
def storefront_of(*, storefront: str) -> sa.Executable:
    """A shop by its id alone, for what names it by itself: an order, a plan."""
    return STOREFRONT_ROWS.where(THIS_STOREFRONT)


@first_row(Storefront)
def find_published(*, slug: str) -> sa.Executable:
    """The shop that everybody sees under this slug; drafts are nobody's."""
    return STOREFRONT_ROWS.where(STOREFRONT.c.slug == slug, STOREFRONT.c.status == "published")


def find_published_at(connection: Connection, *, slug: str) -> Storefront | None:
    """The published shop that has this slug, else the one that had it last."""
    return find_published(connection, slug=slug) or connection.first(FIND_AT_ADDRESS, slug=slug)


@all_rows(Storefront)
def list_storefronts(*, organisation: str, after: Annotated[str | None, or_else(LAST_STOREFRONT_ID)], most: int) -> sa.Executable:
    """Newest first."""
    return STOREFRONT_ROWS.where(STOREFRONT_OF_ORGANISATION, STOREFRONT.c.id < after).order_by(STOREFRONT.c.id.desc()).limit(most)


def slug_is_taken(connection: Connection, *, slug: str, storefront: str) -> bool:
    """Whether another shop, of whomever, has the slug."""
    holder = connection.first(FIND_SLUG_HOLDER, slug=slug)
    return holder is not None and holder != storefront


def write_storefront(connection: Connection, *, row: Storefront) -> None:
    """The row as it is from now on; whoever writes it holds it."""
    connection.run(
        WRITE_STOREFRONT, named=row.id, **{name: value for name, value in row._asdict().items() if name in CHANGEABLE_STOREFRONT}
    )
