"""What is new of a fleet's lines, and what must be kept so that each change is new once, whoever sees it first.

A change of a column of a line's row is found in the transaction that changes the row. The rest is kept here: the country where a line is
by all that tells of it, the thresholds that its packages have crossed, and of which line a first judgement was made. News begin when a
fleet has been read once; after a gap it is read once more before anything is new again.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import sqlalchemy as sa
from sqlmodel import Field

from storage.engine.sql import (
    CLUSTERED,
    BigInt,
    Command,
    Connection,
    Query,
    TableDescription,
    bound_list,
    first_row,
    insert_once,
    pack_rows,
    upsert,
    writes,
)
from storage.fleets import FLEET, IS_CURRENT, WRONG_CLOCK_SECONDS

GAP_SECONDS = 6 * 3600.0
"""Choice: a fleet that was not listed for six hours, or for sixty times as long as a listing takes, is compared with nothing."""
GAP_LISTINGS = 60
USE_THRESHOLDS = (50, 80, 100)


class StatusNews(NamedTuple):
    """Another status of a line."""

    organisation: str
    iccid: str
    before: str
    after: str


class AccountNews(NamedTuple):
    """A line that was moved from one account of the organisation to another."""

    organisation: str
    iccid: str
    before: int
    after: int


class CountryNews(NamedTuple):
    """A country, ISO 3166-1 alpha-2, that a line came into."""

    organisation: str
    iccid: str
    country: str


class ProblemNews(NamedTuple):
    """A cause that holds for a line since `since`, Unix seconds, or does so no more (`closed`)."""

    organisation: str
    iccid: str
    cause: str
    since: float
    closed: bool


class EndingNews(NamedTuple):
    """A package of a line that ends soon. `ends`: Unix seconds."""

    organisation: str
    iccid: str
    package_id: int
    template_id: int
    ends: float


class UseNews(NamedTuple):
    """A package of a line of which 50, 80 or 100 `percent` are used. `used`, `limit`: bytes."""

    organisation: str
    iccid: str
    package_id: int
    template_id: int
    percent: int
    used: int
    limit: int


LineNews = StatusNews | AccountNews | CountryNews | ProblemNews | EndingNews | UseNews


class FleetBaselineTable(TableDescription, table=True):
    """A fleet that has been read once. `began`: when it was begun to be read anew after a gap, 0: never; `since`: news are told from then
    on, 0: it is being read anew. Unix seconds."""

    fleet: int = Field(primary_key=True, sa_type=sa.BigInteger, sa_column_kwargs={"autoincrement": False})
    began: float
    since: float


class FleetLineBaselineTable(TableDescription, table=True):
    """A line that was judged. `read`: when its packages had been read then; `complete`: 1 where all its weeks were known; `ending`: the
    package that was ending."""

    fleet: BigInt
    subscriber_id: BigInt
    read: float
    complete: int
    ending: str
    __table_args__ = (sa.PrimaryKeyConstraint("fleet", "subscriber_id"), CLUSTERED)


class CountryPlace(NamedTuple):
    """The country where a line is, and since when that is known, Unix seconds. `pushed`: 1 where a push told it, 0: the line's own row."""

    country: str
    at: float
    pushed: int


class FleetCountryTable(TableDescription, row=CountryPlace, table=True):
    """The country where a line is by all that tells of it; a line without a row is where its own row says."""

    fleet: BigInt
    subscriber_id: BigInt
    __table_args__ = (sa.PrimaryKeyConstraint("fleet", "subscriber_id"), CLUSTERED)


class FleetCrossingTable(TableDescription, table=True):
    """A threshold that the use of a package has crossed."""

    fleet: BigInt
    subscriber_id: BigInt
    package: BigInt
    percent: int
    __table_args__ = (sa.PrimaryKeyConstraint("fleet", "subscriber_id", "package", "percent"), CLUSTERED)


FLEET_BASELINE = FleetBaselineTable.table

FLEET_LINE_BASELINE = FleetLineBaselineTable.table

FLEET_COUNTRY = FleetCountryTable.table

FLEET_CROSSING = FleetCrossingTable.table

TABLES_OF_NEWS = (FLEET_LINE_BASELINE, FLEET_COUNTRY, FLEET_CROSSING)

BASELINE_FLEET = sa.bindparam("fleet", type_=sa.BigInteger)

BASELINE_LINE = sa.bindparam("subscriber_id", type_=sa.BigInteger)


class FleetBaseline(NamedTuple):
    """How far a fleet is known: see FleetBaselineTable and FleetState."""

    organisation: str
    listed: float
    listing_seconds: float
    began: float
    since: float

    def tells(self, now: float) -> bool:
        """Whether a change that is read at `now`, Unix seconds, is new; else it is a part of the baseline."""
        return self.since > 0 and not is_gap(self.listed, self.listing_seconds, now)


def is_gap(listed: float, listing_seconds: float, now: float) -> bool:
    """Whether the last listing, which began at `listed` and took `listing_seconds`, is too old to compare with at `now`, Unix seconds."""
    age = now - listed
    return age > max(GAP_SECONDS, GAP_LISTINGS * listing_seconds) or age < -WRONG_CLOCK_SECONDS


@first_row(FleetBaseline)
def baseline_of_fleet(*, fleet: int) -> sa.Executable:
    """How far the fleet is known; None while it has not been read once."""
    return (
        sa.select(FLEET.c.organisation, FLEET.c.listed, FLEET.c.listing_seconds, FLEET_BASELINE.c.began, FLEET_BASELINE.c.since)
        .select_from(FLEET.join(FLEET_BASELINE, FLEET_BASELINE.c.fleet == FLEET.c.id))
        .where(FLEET.c.id == BASELINE_FLEET, IS_CURRENT)
    )


SET_BASELINE = Command(
    sa.update(FLEET_BASELINE)
    .where(FLEET_BASELINE.c.fleet == BASELINE_FLEET, FLEET_BASELINE.c.since == 0)
    .values(since=sa.bindparam("since", type_=sa.Double))
)

BEGIN_BASELINE = Command(insert_once(FLEET_BASELINE, ("fleet", "since"), key=["fleet"], began=0.0))


@writes
def restart_baseline(*, fleet: int, now: float) -> sa.Executable:
    """Nothing that is read of the fleet is new until it has been read once more. `now`: Unix seconds."""
    return (
        sa.update(FLEET_BASELINE).where(FLEET_BASELINE.c.fleet == BASELINE_FLEET, FLEET_BASELINE.c.since > 0).values(began=now, since=0.0)
    )


def finish_baseline(connection: Connection, *, fleet: int, now: float) -> bool:
    """The fleet has been read once: news are told from `now` on, Unix seconds. False where they were already."""
    named = {"fleet": fleet, "since": now}
    return connection.run(BEGIN_BASELINE, **named) > 0 or connection.run(SET_BASELINE, **named) > 0


KEEP_COUNTRY = Command(insert_once(FLEET_COUNTRY, ("fleet", "subscriber_id", *CountryPlace._fields), key=["fleet", "subscriber_id"]))

OF_COUNTRY_LINE = sa.and_(FLEET_COUNTRY.c.fleet == BASELINE_FLEET, FLEET_COUNTRY.c.subscriber_id == BASELINE_LINE)

SEEN_COUNTRY = {name: sa.bindparam(name, type_=FLEET_COUNTRY.c[name].type) for name in CountryPlace._fields}

IS_LATER_PLACE = FLEET_COUNTRY.c.at < SEEN_COUNTRY["at"]

# Rows of a line come in the order in which they were true; a push may be late, and a row may lag behind a push.
CHANGE_COUNTRY = Command(
    sa.update(FLEET_COUNTRY)
    .where(
        OF_COUNTRY_LINE,
        FLEET_COUNTRY.c.country != SEEN_COUNTRY["country"],
        sa.or_(IS_LATER_PLACE, sa.and_(FLEET_COUNTRY.c.pushed == 0, SEEN_COUNTRY["pushed"] == 0)),
    )
    .values(SEEN_COUNTRY)
)

STAY_IN_COUNTRY = Command(
    sa.update(FLEET_COUNTRY).where(OF_COUNTRY_LINE, FLEET_COUNTRY.c.country == SEEN_COUNTRY["country"], IS_LATER_PLACE).values(SEEN_COUNTRY)
)


def change_line_country(connection: Connection, *, fleet: int, subscriber_id: int, known: CountryPlace, seen: CountryPlace) -> bool:
    """Whether the line came into the country that it was `seen` in. `known`: where its own row says it was, if nothing else has told."""
    named = {"fleet": fleet, "subscriber_id": subscriber_id}
    connection.run(KEEP_COUNTRY, **named, **known._asdict())
    if connection.run(CHANGE_COUNTRY, **named, **seen._asdict()):
        return True
    connection.run(STAY_IN_COUNTRY, **named, **seen._asdict())
    return False


class CountryOfLine(NamedTuple):
    """Where a line is."""

    subscriber_id: int
    country: str
    at: float
    pushed: int


COUNTRIES_OF_LINES = Query(
    CountryOfLine,
    lambda dialect: sa.select(*(FLEET_COUNTRY.c[name] for name in CountryOfLine._fields)).where(
        FLEET_COUNTRY.c.fleet == BASELINE_FLEET, FLEET_COUNTRY.c.subscriber_id.in_(bound_list(dialect, "numbers", sa.BigInteger))
    ),
)


def countries_of_lines(connection: Connection, *, fleet: int, numbers: Iterable[int]) -> dict[int, CountryPlace]:
    """Where lines are of which more than their own row has told, by subscriber id."""
    found = connection.all(COUNTRIES_OF_LINES, fleet=fleet, numbers=pack_rows([[number] for number in numbers]))
    return {row.subscriber_id: CountryPlace(*row[1:]) for row in found}


NOTE_CROSSING = Command(
    insert_once(FLEET_CROSSING, ("fleet", "subscriber_id", "package", "percent"), key=["fleet", "subscriber_id", "package", "percent"])
)


def note_crossing(connection: Connection, *, fleet: int, subscriber_id: int, package: int, percent: int) -> bool:
    """Whether the package has not crossed this threshold before."""
    return connection.run(NOTE_CROSSING, fleet=fleet, subscriber_id=subscriber_id, package=package, percent=percent) > 0


class LineBaseline(NamedTuple):
    """What is kept of a line's last judgement: see FleetLineBaselineTable."""

    subscriber_id: int
    read: float
    complete: int
    ending: str


BASELINES_OF_LINES = Query(
    LineBaseline,
    lambda dialect: sa.select(*(FLEET_LINE_BASELINE.c[name] for name in LineBaseline._fields)).where(
        FLEET_LINE_BASELINE.c.fleet == BASELINE_FLEET,
        FLEET_LINE_BASELINE.c.subscriber_id.in_(bound_list(dialect, "numbers", sa.BigInteger)),
    ),
)

PUT_LINE_BASELINE = Command(upsert(FLEET_LINE_BASELINE, ("fleet", *LineBaseline._fields), key=["fleet", "subscriber_id"]))


def baselines_of_lines(connection: Connection, *, fleet: int, numbers: Iterable[int]) -> dict[int, LineBaseline]:
    """What is kept of the last judgements of lines, by subscriber id."""
    found = connection.all(BASELINES_OF_LINES, fleet=fleet, numbers=pack_rows([[number] for number in numbers]))
    return {row.subscriber_id: row for row in found}


def put_line_baselines(connection: Connection, *, fleet: int, lines: Sequence[LineBaseline]) -> None:
    """Keeps what the next judgements of lines are to be compared with."""
    connection.run_many(PUT_LINE_BASELINE, [{"fleet": fleet, **line._asdict()} for line in lines])


FORGET_LINE_NEWS = tuple(
    Command(sa.delete(table).where(table.c.fleet == BASELINE_FLEET, table.c.subscriber_id == BASELINE_LINE)) for table in TABLES_OF_NEWS
)


def forget_line_news(connection: Connection, *, fleet: int, subscriber_id: int) -> None:
    """Forgets what was kept of a line that has left."""
    for command in FORGET_LINE_NEWS:
        connection.run(command, fleet=fleet, subscriber_id=subscriber_id)


def removing_news(table: sa.Table) -> Command:
    key = tuple(table.primary_key.columns)
    some = sa.select(*key).where(table.c.fleet == BASELINE_FLEET).limit(sa.bindparam("most", type_=sa.Integer))
    return Command(sa.delete(table).where(sa.tuple_(*key).in_(some)))


NEWS_OF_FLEET = tuple(removing_news(table) for table in (*TABLES_OF_NEWS, FLEET_BASELINE))


def sweep_fleet_news(connection: Connection, *, fleet: int, most: int) -> int:
    """Removes at most `most` rows that were kept of a fleet that has ended; how many they were."""
    gone = 0
    for command in NEWS_OF_FLEET:
        if gone < most:
            gone += connection.run(command, fleet=fleet, most=most - gone)
    return gone
