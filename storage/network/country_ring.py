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

from registry.ids import Ids
from storage.connection import Connection
from storage.schema import CountryEntryTable
from storage.statement import Command, Query, table

SEEN = table(CountryEntryTable)
MOST_ENTRIES = 50
MOST_REPEATS = 50
KEPT_SECONDS = 400 * 86_400
FORGOTTEN_AT_ONCE = 200


class CountryEntry(NamedTuple):
    """A line came into a country."""

    country: str
    mcc: str
    mnc: str | None
    occurred_at: float
    account_id: int | None = None
    """Whose line it was; None: nobody could say."""


class Neighbour(NamedTuple):
    """The sighting next to a moment."""

    country: str
    account_id: int | None


class Around(NamedTuple):
    """The sightings next to a moment, on either side."""

    before: Neighbour | None
    after: Neighbour | None


class Found(NamedTuple):
    """A sighting that is an entry."""

    id: str


VALUES = ("id", "iccid", *CountryEntry._fields, "created")
LINE = SEEN.c.iccid == sa.bindparam("iccid")
NETWORK = sa.func.coalesce(SEEN.c.mnc, "")
# Sightings of one moment have an order too, and it is not that of their arrival.
ORDER = (SEEN.c.occurred_at, SEEN.c.country, SEEN.c.mcc, NETWORK, SEEN.c.id)
BEFORE = sa.func.lag(SEEN.c.country).over(order_by=ORDER)
WHOSE_BEFORE = sa.func.lag(SEEN.c.account_id).over(order_by=ORDER)
REPEATED = sa.and_(SEEN.c.country == BEFORE, SEEN.c.account_id.is_not_distinct_from(WHOSE_BEFORE))
ENTERED = sa.case((REPEATED, 0), else_=1).label("entered")
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
# Choice: a sighting is forgotten after 400 days, whosever line it is of; some at a time, oldest first.
FORGET = Command(
    sa.delete(SEEN).where(
        SEEN.c.id.in_(
            sa.select(SEEN.c.id).where(SEEN.c.occurred_at < sa.bindparam("old")).order_by(SEEN.c.occurred_at).limit(FORGOTTEN_AT_ONCE)
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
AT: sa.BindParameter[float] = sa.bindparam("occurred_at")
SAME_COUNTRY = sa.case((SEEN.c.country == sa.bindparam("country"), 1), else_=0)
# Of several at one moment the one of the same country: a sighting that is told again finds itself.
PREVIOUS = Query(
    Neighbour,
    sa.select(SEEN.c.country, SEEN.c.account_id)
    .where(LINE, SEEN.c.occurred_at <= AT)
    .order_by(SEEN.c.occurred_at.desc(), SAME_COUNTRY.desc(), SEEN.c.country.desc(), SEEN.c.mcc.desc(), NETWORK.desc(), SEEN.c.id.desc())
    .limit(1),
)
NEXT = Query(Neighbour, sa.select(SEEN.c.country, SEEN.c.account_id).where(LINE, SEEN.c.occurred_at > AT).order_by(*ORDER).limit(1))


def around(connection: Connection, *, iccid: str, country: str, occurred_at: float) -> Around:
    """What is known of the line just before (or at) a moment, and just after it."""
    return Around(
        connection.first(PREVIOUS, iccid=iccid, country=country, occurred_at=occurred_at),
        connection.first(NEXT, iccid=iccid, occurred_at=occurred_at),
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
    """Put a sighting in its place; whether it is an entry there. The same sighting twice is one."""
    id = ids.new("cen_")
    seen = CountryEntry(country, mcc, mnc, occurred_at, account_id)
    if connection.run(INSERT, id=id, iccid=iccid, created=int(now), network=mnc or "", **seen._asdict()) == 0:
        return False
    connection.run(PRUNE, iccid=iccid)
    connection.run(FORGET, old=now - KEPT_SECONDS)
    return connection.first(IS_ENTRY, iccid=iccid, id=id) is not None


def country_history(connection: Connection, *, iccid: str, limit: int, accounts: Collection[int | None]) -> list[CountryEntry]:
    """The newest entries of a line while it was of these accounts, newest first; None among them: where nobody could say whose.

    The rest is as if it had never been: of two neighbours that are left, in one country, the older is the entry.
    """
    left = [entry for entry in connection.all(HISTORY, iccid=iccid, most=MOST_ENTRIES) if entry.account_id in accounts]
    entries = [entry for entry, older in zip_longest(left, left[1:]) if older is None or older.country != entry.country]
    return entries[:limit]
