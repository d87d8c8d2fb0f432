"""The countries a line was seen in, in the order of time, whatever order the sightings arrive in.

A row is a sighting. One whose predecessor in time was in another country is an entry; the others are repeats, which matter only to
sightings that arrive late: FR at noon is an entry, FR at two is none, and it becomes one when DE at one arrives. So what is an entry is
told by the rows and never stored, and writers at the same time need no lock.
"""

from typing import NamedTuple

import sqlalchemy as sa

from registry.ids import Ids
from storage.connection import Connection
from storage.schema import CountryEntryTable
from storage.statement import Command, Query, table

SEEN = table(CountryEntryTable)
MOST_ENTRIES = 50
MOST_REPEATS = 50


class CountryEntry(NamedTuple):
    """A line came into a country."""

    country: str
    mcc: str
    mnc: str | None
    occurred_at: float


class Found(NamedTuple):
    """A sighting that is an entry."""

    id: str


VALUES = ("id", "iccid", *CountryEntry._fields, "created")
LINE = SEEN.c.iccid == sa.bindparam("iccid")
NETWORK = sa.func.coalesce(SEEN.c.mnc, "")
# Sightings of one moment have an order too, and it is not that of their arrival.
ORDER = (SEEN.c.occurred_at, SEEN.c.country, SEEN.c.mcc, NETWORK, SEEN.c.id)
BEFORE = sa.func.lag(SEEN.c.country).over(order_by=ORDER)
ENTERED = sa.case((SEEN.c.country == BEFORE, 0), else_=1).label("entered")
SIGHTINGS = sa.select(SEEN, ENTERED).where(LINE).subquery("sighting")
NEWEST_FIRST = (
    SIGHTINGS.c.occurred_at.desc(),
    SIGHTINGS.c.country.desc(),
    SIGHTINGS.c.mcc.desc(),
    sa.func.coalesce(SIGHTINGS.c.mnc, "").desc(),
    SIGHTINGS.c.id.desc(),
)
SAME = sa.exists().where(
    LINE,
    SEEN.c.occurred_at == sa.bindparam("occurred_at"),
    SEEN.c.country == sa.bindparam("country"),
    SEEN.c.mcc == sa.bindparam("mcc"),
    sa.bindparam("network") == NETWORK,
)
INSERT = Command(
    sa.insert(SEEN).from_select(
        VALUES, sa.select(*(sa.cast(sa.bindparam(name), SEEN.c[name].type) for name in VALUES)).where(~SAME), include_defaults=False
    )
)
# How many entries and how many repeats are at least as new as a sighting, itself counted.
NEWER = sa.func.sum(SIGHTINGS.c.entered).over(order_by=NEWEST_FIRST)
NEWER_REPEATS = sa.func.sum(1 - SIGHTINGS.c.entered).over(order_by=NEWEST_FIRST)
COUNTED = sa.select(SIGHTINGS.c.id, SIGHTINGS.c.entered, NEWER.label("entries"), NEWER_REPEATS.label("repeats")).subquery("counted")
# One entry more than is shown is kept, so that a late sighting before the oldest shown one cannot take its place. Leaving repeats out
# changes no entry, and rows of other writers can only push a sighting further back: what is deleted here is deleted for good reason.
PRUNE = Command(
    sa.delete(SEEN).where(
        SEEN.c.id.in_(
            sa.select(COUNTED.c.id).where(
                sa.or_(
                    COUNTED.c.entries > MOST_ENTRIES + 1,
                    sa.and_(COUNTED.c.entries == MOST_ENTRIES + 1, COUNTED.c.entered == 0),
                    sa.and_(COUNTED.c.entered == 0, COUNTED.c.repeats > MOST_REPEATS),
                )
            )
        )
    )
)
IS_ENTRY = Query(
    Found,
    sa.select(COUNTED.c.id).where(COUNTED.c.id == sa.bindparam("id"), COUNTED.c.entered == 1, COUNTED.c.entries <= MOST_ENTRIES),
)
HISTORY = Query(
    CountryEntry,
    sa.select(*(SIGHTINGS.c[name] for name in CountryEntry._fields))
    .where(SIGHTINGS.c.entered == 1)
    .order_by(*NEWEST_FIRST)
    .limit(sa.bindparam("most")),
)


def enter_country(
    connection: Connection, *, iccid: str, country: str, mcc: str, mnc: str | None, occurred_at: float, now: float, ids: Ids
) -> bool:
    """Put a sighting in its place; whether it is an entry there. The same sighting twice is one."""
    id = ids.new("cen_")
    seen = CountryEntry(country, mcc, mnc, occurred_at)
    if connection.run(INSERT, id=id, iccid=iccid, created=int(now), network=mnc or "", **seen._asdict()) == 0:
        return False
    connection.run(PRUNE, iccid=iccid)
    return connection.first(IS_ENTRY, iccid=iccid, id=id) is not None


def country_history(connection: Connection, *, iccid: str, limit: int) -> list[CountryEntry]:
    """The newest entries of a line, newest first."""
    return connection.all(HISTORY, iccid=iccid, most=min(limit, MOST_ENTRIES))
