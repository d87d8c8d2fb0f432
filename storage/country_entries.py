"""The countries a line was seen in, in the order of time, whatever order the sightings arrive in.

A row is a sighting. One whose predecessor in time was in another country, or of another account, is an entry; the others are repeats,
which matter only to sightings that arrive late: FR at noon is an entry, FR at two is none, and it becomes one when DE at one arrives. So
what is an entry is told by the rows and never stored, and writers at the same time need no lock.

Each row holds the account that the line belonged to, since a line changes hands and its history must not: who reads names the accounts.
"""

from collections.abc import Collection
from itertools import zip_longest
from typing import NamedTuple

import sqlalchemy as sa
from sqlmodel import Field

from registry.ids import Ids
from storage.engine.sql import BigInt, Command, Connection, Query, TableDescription


class CountryEntry(NamedTuple):
    """A line came into a country."""

    country: str
    mcc: str
    mnc: str | None
    occurred_at: float
    account_id: BigInt | None = None
    """Whose line it was; None: nobody could say."""


class CountryEntryTable(TableDescription, row=CountryEntry, table=True):
    """A line came into a country: the ring behind country-history, the newest 50 of a line. `account_id` is whose it was then."""

    id: str = Field(primary_key=True)
    iccid: str
    created: BigInt
    __table_args__ = (sa.Index("country_entry_line", "iccid", "occurred_at"), sa.Index("country_entry_age", "occurred_at"))


COUNTRY_ENTRY = CountryEntryTable.table

MOST_ENTRIES = 50

MOST_REPEATS = 50

SIGHTING_KEPT_SECONDS = 400 * 86_400

FORGOTTEN_AT_ONCE = 200


class NeighbourSighting(NamedTuple):
    country: str
    account_id: int | None


class SightingNeighbours(NamedTuple):
    """The sightings next to a moment, on either side."""

    before: NeighbourSighting | None
    after: NeighbourSighting | None


ENTRY_VALUES = ("id", "iccid", *CountryEntry._fields, "created")

SIGHTING_OF_LINE = COUNTRY_ENTRY.c.iccid == sa.bindparam("iccid")

SIGHTING_NETWORK = sa.func.coalesce(COUNTRY_ENTRY.c.mnc, "")

# Sightings of one moment have an order too, and it is not that of their arrival.
SIGHTING_ORDER = (COUNTRY_ENTRY.c.occurred_at, COUNTRY_ENTRY.c.country, COUNTRY_ENTRY.c.mcc, SIGHTING_NETWORK, COUNTRY_ENTRY.c.id)

COUNTRY_BEFORE = sa.func.lag(COUNTRY_ENTRY.c.country).over(order_by=SIGHTING_ORDER)

ACCOUNT_BEFORE = sa.func.lag(COUNTRY_ENTRY.c.account_id).over(order_by=SIGHTING_ORDER)

IS_REPEATED = sa.and_(COUNTRY_ENTRY.c.country == COUNTRY_BEFORE, COUNTRY_ENTRY.c.account_id.is_not_distinct_from(ACCOUNT_BEFORE))

IS_ENTERED = sa.case((IS_REPEATED, 0), else_=1).label("entered")

SIGHTINGS = sa.select(COUNTRY_ENTRY, IS_ENTERED).where(SIGHTING_OF_LINE).subquery("sighting")

NEWEST_FIRST = (
    SIGHTINGS.c.occurred_at.desc(),
    SIGHTINGS.c.country.desc(),
    SIGHTINGS.c.mcc.desc(),
    sa.func.coalesce(SIGHTINGS.c.mnc, "").desc(),
    SIGHTINGS.c.id.desc(),
)

SAME_SIGHTING = sa.exists().where(
    SIGHTING_OF_LINE,
    COUNTRY_ENTRY.c.occurred_at == sa.bindparam("occurred_at"),
    COUNTRY_ENTRY.c.country == sa.bindparam("country"),
    COUNTRY_ENTRY.c.mcc == sa.bindparam("mcc"),
    sa.bindparam("network") == SIGHTING_NETWORK,
)

INSERT_SIGHTING = Command(
    lambda _: sa.insert(COUNTRY_ENTRY).from_select(
        ENTRY_VALUES,
        sa.select(*(sa.cast(sa.bindparam(name), COUNTRY_ENTRY.c[name].type) for name in ENTRY_VALUES)).where(~SAME_SIGHTING),
        include_defaults=False,
    )
)

# How many entries and how many repeats are at least as new as a sighting, itself counted.
NEWER_ENTRIES = sa.func.sum(SIGHTINGS.c.entered).over(order_by=NEWEST_FIRST)

NEWER_REPEATS = sa.func.sum(1 - SIGHTINGS.c.entered).over(order_by=NEWEST_FIRST)

COUNTED_SIGHTINGS = sa.select(SIGHTINGS.c.id, SIGHTINGS.c.entered, NEWER_ENTRIES.label("entries"), NEWER_REPEATS.label("repeats")).subquery(
    "counted"
)

# One entry more than is shown is kept, so that a late sighting before the oldest shown one cannot take its place. Leaving repeats out
# changes no entry, and rows of other writers can only push a sighting further back: what is deleted here is deleted for good reason.
PRUNE_SIGHTINGS = Command(
    lambda _: sa.delete(COUNTRY_ENTRY).where(
        COUNTRY_ENTRY.c.id.in_(
            sa.select(COUNTED_SIGHTINGS.c.id).where(
                sa.or_(
                    COUNTED_SIGHTINGS.c.entries > MOST_ENTRIES + 1,
                    sa.and_(COUNTED_SIGHTINGS.c.entries == MOST_ENTRIES + 1, COUNTED_SIGHTINGS.c.entered == 0),
                    sa.and_(COUNTED_SIGHTINGS.c.entered == 0, COUNTED_SIGHTINGS.c.repeats > MOST_REPEATS),
                )
            )
        )
    )
)

# Choice: a sighting is forgotten after 400 days, whosever line it is of; some at a time, oldest first.
FORGET_SIGHTINGS = Command(
    lambda _: sa.delete(COUNTRY_ENTRY).where(
        COUNTRY_ENTRY.c.id.in_(
            sa.select(COUNTRY_ENTRY.c.id)
            .where(COUNTRY_ENTRY.c.occurred_at < sa.bindparam("old"))
            .order_by(COUNTRY_ENTRY.c.occurred_at)
            .limit(FORGOTTEN_AT_ONCE)
        )
    )
)

IS_ENTRY = Query(
    str,
    lambda _: sa.select(COUNTED_SIGHTINGS.c.id).where(
        COUNTED_SIGHTINGS.c.id == sa.bindparam("id"), COUNTED_SIGHTINGS.c.entered == 1, COUNTED_SIGHTINGS.c.entries <= MOST_ENTRIES
    ),
)

LIST_ENTRIES = Query(
    CountryEntry,
    sa.select(*(SIGHTINGS.c[name] for name in CountryEntry._fields))
    .where(SIGHTINGS.c.entered == 1)
    .order_by(*NEWEST_FIRST)
    .limit(sa.bindparam("most")),
)

SIGHTED_AT: sa.BindParameter[float] = sa.bindparam("occurred_at")

SAME_COUNTRY = sa.case((COUNTRY_ENTRY.c.country == sa.bindparam("country"), 1), else_=0)

# Of several at one moment the one of the same country: a sighting that is told again finds itself.
FIND_SIGHTING_BEFORE = Query(
    NeighbourSighting,
    sa.select(COUNTRY_ENTRY.c.country, COUNTRY_ENTRY.c.account_id)
    .where(SIGHTING_OF_LINE, COUNTRY_ENTRY.c.occurred_at <= SIGHTED_AT)
    .order_by(COUNTRY_ENTRY.c.occurred_at.desc(), SAME_COUNTRY.desc(), *(column.desc() for column in SIGHTING_ORDER[1:]))
    .limit(1),
)

FIND_SIGHTING_AFTER = Query(
    NeighbourSighting,
    sa.select(COUNTRY_ENTRY.c.country, COUNTRY_ENTRY.c.account_id)
    .where(SIGHTING_OF_LINE, COUNTRY_ENTRY.c.occurred_at > SIGHTED_AT)
    .order_by(*SIGHTING_ORDER)
    .limit(1),
)


def find_neighbours(connection: Connection, *, iccid: str, country: str, occurred_at: float) -> SightingNeighbours:
    """What is known of the line just before (or at) a moment, and just after it. `occurred_at`: Unix seconds."""
    return SightingNeighbours(
        connection.first(FIND_SIGHTING_BEFORE, iccid=iccid, country=country, occurred_at=occurred_at),
        connection.first(FIND_SIGHTING_AFTER, iccid=iccid, occurred_at=occurred_at),
    )


def enter_country(
    connection: Connection,
    *,
    iccid: str,
    country: str,
    mcc: str,
    mnc: str | None,
    occurred_at: float,
    account_id: int | None,
    now: float,
    ids: Ids,
) -> bool:
    """Put a sighting in its place; whether it is an entry there. The same sighting twice is one. `occurred_at`, `now`: Unix seconds."""
    id = ids.new("cen_")
    seen = CountryEntry(country, mcc, mnc, occurred_at, account_id)
    if connection.run(INSERT_SIGHTING, id=id, iccid=iccid, created=int(now), network=mnc or "", **seen._asdict()) == 0:
        return False
    connection.run(PRUNE_SIGHTINGS, iccid=iccid)
    connection.run(FORGET_SIGHTINGS, old=now - SIGHTING_KEPT_SECONDS)
    return connection.first(IS_ENTRY, iccid=iccid, id=id) is not None


def country_history(connection: Connection, *, iccid: str, limit: int, accounts: Collection[int | None]) -> list[CountryEntry]:
    """The newest entries of a line while it was of these accounts, newest first; None among them: where nobody could say whose.

    The rest is as if it had never been: of two neighbours that are left, in one country, the older is the entry.
    """
    left = [entry for entry in connection.all(LIST_ENTRIES, iccid=iccid, most=MOST_ENTRIES) if entry.account_id in accounts]
    entries = [entry for entry, older in zip_longest(left, left[1:]) if older is None or older.country != entry.country]
    return entries[:limit]


def sightings_of_line(connection: Connection, *, iccid: str) -> list[CountryEntry]:
    """Every entry of a line, newest first, whosever it was: whoever shows one looks at its account."""
    return connection.all(LIST_ENTRIES, iccid=iccid, most=MOST_ENTRIES)
