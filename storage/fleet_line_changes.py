"""What calls of ours and pushes change of the lines of a fleet, and what is new of the lines by that.

The row of a line is changed in the commit that settles the call: whoever reads the line later finds what is there already.
"""

from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import NamedTuple

import sqlalchemy as sa

from storage.engine.drivers import Value
from storage.engine.sql import Command, Connection, Query, unindexed
from storage.fleet_line_news import (
    FLEET_BASELINE,
    AccountNews,
    CountryNews,
    CountryPlace,
    FleetBaseline,
    LineNews,
    StatusNews,
    change_line_country,
)
from storage.fleet_lines import BOUND_LINE, CURRENT_FLEETS, FLEET_LINE, FLEETS_DUE, LINE_IS_THERE, LIST_FLEETS_AT_ONCE, OWN_MARK, mark_lines
from storage.fleets import FLEET, IS_CURRENT


@lru_cache(maxsize=64)
def line_change(names: tuple[str, ...]) -> Command:
    """Puts the columns `names` into a line's row in every fleet of its organisation, and marks the line."""
    return Command(
        sa.update(FLEET_LINE)
        .where(
            FLEET_LINE.c.fleet.in_(CURRENT_FLEETS),
            FLEET_LINE.c.subscriber_id == sa.bindparam("subscriber_id", type_=sa.BigInteger),
            LINE_IS_THERE,
        )
        .values({name: sa.bindparam(f"new_{name}", type_=FLEET_LINE.c[name].type) for name in names} | OWN_MARK)
    )


class OwnLineFacts(NamedTuple):
    """What a call of ours may change of a line, and tell."""

    iccid: str
    status: str
    account_id: int


# A line of a fleet that was read once; before that nothing is new.
OWN_LINE_FACTS = Query(
    OwnLineFacts,
    sa.select(*(FLEET_LINE.c[name] for name in OwnLineFacts._fields))
    .where(
        FLEET_LINE.c.fleet.in_(CURRENT_FLEETS),
        FLEET_LINE.c.fleet.in_(sa.select(FLEET_BASELINE.c.fleet)),
        FLEET_LINE.c.subscriber_id == BOUND_LINE,
        LINE_IS_THERE,
    )
    .with_for_update(),
)


def own_line_news(connection: Connection, *, organisation: str, subscriber_id: int, values: Mapping[str, Value]) -> list[LineNews]:
    """What is new of a line once `values` stand in its row. Nobody else changes the row until the commit."""
    if not values.keys() & {"status", "account_id"}:
        return []
    news = list[LineNews]()
    for known in set(connection.all(OWN_LINE_FACTS, organisation=organisation, subscriber_id=subscriber_id)):
        status, account = values.get("status", known.status), values.get("account_id", known.account_id)
        if isinstance(status, str) and status != known.status:
            news.append(StatusNews(organisation, known.iccid, known.status, status))
        if isinstance(account, int) and account != known.account_id:
            news.append(AccountNews(organisation, known.iccid, known.account_id, account))
    return news


def note_line_change(
    connection: Connection, *, organisation: str, subscriber_id: int, values: Mapping[str, Value], now: float
) -> list[LineNews]:
    """Puts what a call of ours has changed into the line's row, and marks the line: the rest of it is read again. `now`: Unix seconds.

    Returns what is new of the line by that.
    """
    news = own_line_news(connection, organisation=organisation, subscriber_id=subscriber_id, values=values)
    names = tuple(sorted(values))
    bound = {f"new_{name}": values[name] for name in names}
    changed = connection.run(line_change(names), organisation=organisation, subscriber_id=subscriber_id, now=now, **bound)
    connection.run(FLEETS_DUE if changed else LIST_FLEETS_AT_ONCE, organisation=organisation, now=now)
    return news


def note_lines_moved(connection: Connection, *, organisation: str, numbers: Collection[int], account: int, now: float) -> list[LineNews]:
    """Puts the account that lines were moved to into their rows, and marks them; what is new of them. `now`: Unix seconds."""
    values = {"account_id": account}
    return [
        news
        for number in sorted(numbers)
        for news in note_line_change(connection, organisation=organisation, subscriber_id=number, values=values, now=now)
    ]


LINES_OF_NUMBER = Query(
    str,
    lambda _: sa.select(FLEET_LINE.c.iccid).where(
        FLEET_LINE.c.fleet.in_(sa.select(FLEET.c.id).where(IS_CURRENT)), FLEET_LINE.c.subscriber_id == BOUND_LINE, LINE_IS_THERE
    ),
)


def mark_numbered_line(connection: Connection, *, subscriber_id: int, now: float) -> None:
    """Marks a line by its number at the charging system, as `mark_lines` does by ICCID. `now`: Unix seconds."""
    if subscriber_id:
        mark_lines(connection, iccids=set(connection.all(LINES_OF_NUMBER, subscriber_id=subscriber_id)), now=now)


class SightedLine(NamedTuple):
    """A line that a push tells of: where its row says that it is, and how far its fleet is known."""

    fleet: int
    subscriber_id: int
    iccid: str
    country: str
    last_used: float
    sighted: float
    organisation: str
    listed: float
    listing_seconds: float
    began: float
    since: float

    @property
    def place(self) -> CountryPlace:
        """Where the row says that the line is."""
        return CountryPlace(self.country, max(self.last_used, self.sighted), 0)


SIGHTED_LINES = Query(
    SightedLine,
    sa.select(
        *(FLEET_LINE.c[name] for name in SightedLine._fields[:6]),
        *(FLEET.c[name] for name in ("organisation", "listed", "listing_seconds")),
        *(FLEET_BASELINE.c[name] for name in ("began", "since")),
    )
    .select_from(FLEET_LINE)
    .where(
        FLEET_LINE.c.iccid == sa.bindparam("iccid", type_=sa.Text),
        LINE_IS_THERE,
        FLEET.c.id == unindexed(FLEET_LINE.c.fleet),
        IS_CURRENT,
        FLEET_BASELINE.c.fleet == FLEET.c.id,
    ),
)


def push_line_country(connection: Connection, *, iccid: str, country: str, occurred_at: float, now: float) -> list[LineNews]:
    """What is new of a line by a push that saw it in `country` at `occurred_at`, of each organisation that has it. Unix seconds."""
    news, seen = list[LineNews](), CountryPlace(country, occurred_at, 1)
    for line in connection.all(SIGHTED_LINES, iccid=iccid):
        entered = change_line_country(connection, fleet=line.fleet, subscriber_id=line.subscriber_id, known=line.place, seen=seen)
        if entered and FleetBaseline(*line[6:]).tells(now):
            news.append(CountryNews(line.organisation, iccid, country))
    return news
