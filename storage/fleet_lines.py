"""The lines of a fleet as they were last listed, and what calls of ours and pushes change in their rows.

What a filter or a sort needs is a column of the narrow table, which is scanned in one piece; the rest is one JSON text in another. Every
write of a line says which version of the row it was made for: a row that another writer has changed meanwhile stays as that one left it.
A number that is not known is 0, or -1 where 0 says something; a time that is not known is 0.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

import sqlalchemy as sa

from storage.engine.drivers import Value
from storage.engine.sql import (
    CLUSTERED,
    BigInt,
    Command,
    Connection,
    Dialect,
    Query,
    TableDescription,
    bound_list,
    pack_rows,
    runs_in_thread,
    unindexed,
    upsert,
    value_or,
)
from storage.fleet_figures import FLEET_FIGURE
from storage.fleet_line_money import FLEET_LINE_MONEY
from storage.fleet_line_news import (
    AccountNews,
    CountryNews,
    CountryPlace,
    FleetBaseline,
    LineNews,
    StatusNews,
    baseline_of_fleet,
    change_line_country,
    countries_of_lines,
    forget_line_news,
)
from storage.fleet_packages import FLEET_PACKAGE
from storage.fleet_problems import FLEET_PROBLEM
from storage.fleet_usage import FLEET_MONTH, FLEET_USAGE, forget_use
from storage.fleets import FLEET, IS_CURRENT, MARKED
from storage.line_tags import end_tags


class ListedLine(NamedTuple):
    """What a listing of the charging system tells of a line. Times are Unix seconds.

    `numbers`: every ICCID, IMSI and phone number that it has or had, each between bars, the ICCID in use first. `pays`: `line` or
    `account`, whose balance pays for use outside packages; `balance` in micro-euro. Flags: 1, 0, or -1 where the wire said nothing.
    `speed_limit` kbit/s, 0: none. `search`: the folded texts that a name is looked for in; '' where names are not kept. `digest`: of the
    whole row as the wire had it.
    """

    iccid: str
    numbers: str
    account_id: BigInt
    status: str
    status_since: float
    sim_status: str
    esim: int
    issued: float
    activated: float
    last_used: float
    mcc: int
    mnc: int
    country: str
    data_allowed: int
    calls_out_allowed: int
    calls_in_allowed: int
    sms_out_allowed: int
    sms_in_allowed: int
    speed_limit: int
    steering_list: BigInt
    balance: BigInt
    pays: str
    search: str
    digest: BigInt


class LineReadState(NamedTuple):
    """How far a line has been read. Times are Unix seconds, days ordinals.

    `rank` and `due`: what it waits for, and from when on; 0.0: it waits for nothing. `read`: when its packages were read. `usage_first`,
    `usage_last`: the days whose use is known, `usage_read`: when that was read. `package_state`: of the package that serves it best, ''
    before it was read; `package_ends`: when the last usable one ends; `data_left`, `data_limit`: bytes in usable packages, -1: none is
    usable. `judged`, `judge_due`: when verdicts were made, and when time alone may change them. `missed`: 1 where the last finished
    listing did not show the line. `sighted`: when a network saw it last, as far as it was asked for; `asked`: when that was; `radio`: JSON
    of the sessions that were refused then, '' where that was not asked for.
    """

    rank: int
    due: float
    read: float
    usage_first: int
    usage_last: int
    usage_read: float
    package_state: str
    package_ends: float
    data_left: BigInt
    data_limit: BigInt
    judged: float
    judge_due: float
    missed: int
    sighted: float
    asked: float
    radio: str


class FleetLineHead(NamedTuple):
    """`version` moves with every write, `written` is when the line's facts last changed, `gone` when it left: 0 while it is there."""

    fleet: BigInt
    subscriber_id: BigInt
    version: int
    written: float
    gone: float


class FleetLineTable(TableDescription, row=(FleetLineHead, ListedLine, LineReadState), table=True):
    """A line of a fleet: what a filter, a sort or the reading needs."""

    __table_args__ = (
        sa.PrimaryKeyConstraint("fleet", "subscriber_id"),
        sa.Index("fleet_line_work", "fleet", "rank", "due"),
        sa.Index("fleet_line_judge", "fleet", "judge_due"),
        sa.Index("fleet_line_iccid", "iccid"),
        sa.Index("fleet_line_used", "fleet", "gone", "last_used"),
        CLUSTERED,
    )


class LineDetail(NamedTuple):
    """What is shown of a line and never searched: `facts` is JSON of the wire's row, without names and codes."""

    facts: str
    name: str | None
    company: str | None
    email: str | None
    phone: str | None


class FleetLineDetailTable(TableDescription, row=LineDetail, table=True):
    """The rest of a line. Names and addresses stand in columns of their own, and only where the organisation has them kept."""

    fleet: BigInt
    subscriber_id: BigInt
    __table_args__ = (sa.PrimaryKeyConstraint("fleet", "subscriber_id"), CLUSTERED)


FLEET_LINE = FleetLineTable.table

FLEET_LINE_DETAIL = FleetLineDetailTable.table

BOUND_FLEET = sa.bindparam("fleet", type_=sa.BigInteger)

OF_FLEET = FLEET_LINE.c.fleet == BOUND_FLEET

LINE_IS_THERE = FLEET_LINE.c.gone == 0

THERE_IN_TABLE_ORDER = unindexed(FLEET_LINE.c.gone) == 0
"""The same where most lines of a fleet are looked at together with rows of other tables: SQLite reads them as they lie."""

BOUND_LINE = sa.bindparam("subscriber_id", type_=sa.BigInteger)

OF_FLEET_LINE = sa.and_(OF_FLEET, FLEET_LINE.c.subscriber_id == BOUND_LINE)

UNREAD_LINE = LineReadState(1, 0.0, 0.0, 0, 0, 0.0, "", 0.0, -1, -1, 0.0, 0.0, 0, 0.0, 0.0, "")
"""How far a line has been read that was just listed for the first time."""


class KnownLine(NamedTuple):
    """A line as it stood when a listing began: a write of that listing is made for this version of it."""

    subscriber_id: int
    digest: int
    version: int
    missed: int


KNOWN_LINES = Query(KnownLine, lambda _: sa.select(*(FLEET_LINE.c[name] for name in KnownLine._fields)).where(OF_FLEET, LINE_IS_THERE))


@runs_in_thread
def known_lines(connection: Connection, *, fleet: int) -> dict[int, KnownLine]:
    """Every line of the fleet that is there, by its number."""
    return {row.subscriber_id: row for row in connection.all(KNOWN_LINES, fleet=fleet)}


class LineWrite(NamedTuple):
    """A line to write: `seen` is the version that it was made for, 0 where there was no row. It is then due as `rank` and `due` say."""

    subscriber_id: int
    seen: int
    listed: ListedLine
    detail: LineDetail
    rank: int
    due: float


def bound_columns(names: Iterable[str]) -> dict[str, sa.ColumnElement[object]]:
    """The columns `names` of a line's row, each with the value that is bound under its name."""
    return {name: sa.bindparam(name, type_=FLEET_LINE.c[name].type) for name in names}


def put_line(dialect: Dialect) -> sa.Executable:
    """Writes a line where its row still has the version that was seen, or is not there. What it waits for already stays, if sooner."""
    given = bound_columns((*FleetLineHead._fields, *ListedLine._fields, *LineReadState._fields))
    waits = sa.and_(
        FLEET_LINE.c.due > 0,
        sa.or_(FLEET_LINE.c.rank < given["rank"], sa.and_(FLEET_LINE.c.rank == given["rank"], FLEET_LINE.c.due <= given["due"])),
    )
    fresh: dict[str, object] = {"version": FLEET_LINE.c.version + 1, "written": given["written"], "missed": 0}
    fresh["judge_due"] = sa.case((FLEET_LINE.c.read > 0, given["written"]), else_=FLEET_LINE.c.judge_due)
    due = {name: sa.case((waits, FLEET_LINE.c[name]), else_=given[name]) for name in ("rank", "due")}
    return (
        dialect.insert(FLEET_LINE)
        .values(given)
        .on_conflict_do_update(
            index_elements=["fleet", "subscriber_id"],
            set_={**{name: given[name] for name in ListedLine._fields}, **fresh, **due},
            where=sa.and_(FLEET_LINE.c.version == sa.bindparam("seen", type_=sa.Integer), LINE_IS_THERE),
        )
    )


PUT_LINE = Command(put_line)

PUT_LINE_DETAIL = Command(upsert(FLEET_LINE_DETAIL, ("fleet", "subscriber_id", *LineDetail._fields), key=["fleet", "subscriber_id"]))


def put_detail_of_written(dialect: Dialect) -> sa.Executable:
    """Writes the detail of a line whose row was written in the same transaction, at `now`: it has what was to be put there."""
    given = {name: sa.bindparam(name, type_=FLEET_LINE_DETAIL.c[name].type) for name in ("fleet", "subscriber_id", *LineDetail._fields)}
    written = sa.exists().where(
        OF_FLEET_LINE,
        FLEET_LINE.c.version == sa.bindparam("seen", type_=sa.Integer) + 1,
        FLEET_LINE.c.digest == sa.bindparam("digest", type_=sa.BigInteger),
        FLEET_LINE.c.written == sa.bindparam("now", type_=sa.Double),
    )
    return (
        dialect.insert(FLEET_LINE_DETAIL)
        .from_select(list(given), sa.select(*given.values()).where(written))
        .on_conflict_do_update(index_elements=["fleet", "subscriber_id"], set_={name: given[name] for name in LineDetail._fields})
    )


PUT_WRITTEN_DETAIL = Command(put_detail_of_written)

FLEET_IS_CURRENT = Query(int, lambda _: sa.select(FLEET.c.id).where(FLEET.c.id == BOUND_FLEET, IS_CURRENT))

# Held until the commit: whoever ends the fleet, or erases names of it, waits until what is written now is there.
HOLD_CURRENT_FLEET = Query(int, lambda _: sa.select(FLEET.c.id).where(FLEET.c.id == BOUND_FLEET, IS_CURRENT).with_for_update(read=True))

# A line that has left and comes back begins anew: what it was before was perhaps another owner's.
FORGET_GONE_LINE = Command(lambda _: sa.delete(FLEET_LINE).where(OF_FLEET_LINE, FLEET_LINE.c.gone > 0))

FORGET_LINE_ROWS = tuple(
    Command(
        sa.delete(table).where(table.c.fleet == BOUND_FLEET, table.c.subscriber_id == sa.bindparam("subscriber_id", type_=sa.BigInteger))
    )
    for table in (FLEET_LINE_DETAIL, FLEET_PACKAGE, FLEET_USAGE, FLEET_LINE_MONEY, FLEET_MONTH, FLEET_PROBLEM, FLEET_FIGURE)
)

GONE_LINES = Query(
    int,
    lambda dialect: sa.select(FLEET_LINE.c.subscriber_id).where(
        OF_FLEET, FLEET_LINE.c.gone > 0, FLEET_LINE.c.subscriber_id.in_(bound_list(dialect, "numbers", sa.BigInteger))
    ),
)


OWNER_OF_FLEET = Query(str, lambda _: sa.select(FLEET.c.organisation).where(FLEET.c.id == BOUND_FLEET))

ISSUED_LINES = Query(
    str,
    lambda dialect: sa.select(FLEET_LINE.c.iccid).where(
        OF_FLEET, FLEET_LINE.c.sim_status != "FREE", FLEET_LINE.c.subscriber_id.in_(bound_list(dialect, "numbers", sa.BigInteger))
    ),
)

ICCIDS_OF_LINES = Query(
    str,
    lambda dialect: sa.select(FLEET_LINE.c.iccid).where(
        OF_FLEET, FLEET_LINE.c.subscriber_id.in_(bound_list(dialect, "numbers", sa.BigInteger))
    ),
)


def issued_among(connection: Connection, *, fleet: int, lines: Iterable[LineWrite]) -> set[str]:
    """The ICCIDs of those that are told to be in stock, and whose rows say that they are not."""
    numbers = [[line.subscriber_id] for line in lines if line.listed.sim_status == "FREE"]
    return set(connection.all(ISSUED_LINES, fleet=fleet, numbers=pack_rows(numbers))) if numbers else set()


def end_tags_of_told(connection: Connection, *, fleet: int, lines: Sequence[LineWrite], issued: set[str]) -> None:
    """Ends the tags of lines that have ended, or are in stock again: `issued` are those that were not, before the rows were written."""
    returned = issued - issued_among(connection, fleet=fleet, lines=lines) if issued else set[str]()
    end_tags_in_fleet(connection, fleet, returned.union(line.listed.iccid for line in lines if line.listed.status == "END_OF_LIFE"))


def end_tags_in_fleet(connection: Connection, fleet: int, iccids: Collection[str]) -> None:
    if iccids:
        end_tags(connection, organisation=connection.first(OWNER_OF_FLEET, fleet=fleet) or "", iccids=iccids)


class LineFacts(NamedTuple):
    """What is known of a line before it is written: its row in the version `version`."""

    subscriber_id: int
    version: int
    iccid: str
    account_id: int
    status: str
    country: str
    last_used: float
    sighted: float
    read: float

    @property
    def place(self) -> CountryPlace:
        """Where the row says that the line is."""
        return CountryPlace(self.country, max(self.last_used, self.sighted), 0)


# Locked until the commit: whoever else changes one of the rows comes before or after, and each change is seen by one of both.
FACTS_OF_LINES = Query(
    LineFacts,
    lambda dialect: (
        sa.select(*(FLEET_LINE.c[name] for name in LineFacts._fields))
        .where(OF_FLEET, LINE_IS_THERE, FLEET_LINE.c.subscriber_id.in_(bound_list(dialect, "numbers", sa.BigInteger)))
        .order_by(FLEET_LINE.c.subscriber_id)
        .with_for_update()
    ),
)


def facts_of_lines(connection: Connection, *, fleet: int, numbers: Iterable[int]) -> dict[int, LineFacts]:
    """What is known of lines, by subscriber id. Nobody else changes them until the commit."""
    packed = pack_rows([[number] for number in numbers])
    return {row.subscriber_id: row for row in connection.all(FACTS_OF_LINES, fleet=fleet, numbers=packed)} if packed != "[]" else {}


class LineSight(NamedTuple):
    """A line before and after it was written. `sighted`: when a network saw it last, as far as that was asked for, Unix seconds."""

    before: LineFacts
    after: ListedLine
    sighted: float = 0.0

    def place(self, now: float) -> CountryPlace:
        """Where the line is by what was written. A change that bears no time of its own is as new as the look at it, at `now`."""
        at = max(self.after.last_used, self.sighted)
        moved = self.after.country != self.before.country
        return CountryPlace(self.after.country, now if moved and at <= self.before.place.at else at, 0)


def news_of_lines(connection: Connection, *, fleet: int, baseline: FleetBaseline, lines: Sequence[LineSight], now: float) -> list[LineNews]:
    """What is new of lines that were written in this transaction at `now`, Unix seconds; nothing while a baseline is taken."""
    news = list[LineNews]()
    owner, tells = baseline.organisation, baseline.tells(now)
    places = countries_of_lines(connection, fleet=fleet, numbers=[line.before.subscriber_id for line in lines]) if lines else {}
    for line in lines:
        before, after, iccid = line.before, line.after, line.after.iccid
        if tells and before.status != after.status:
            news.append(StatusNews(owner, iccid, before.status, after.status))
        if tells and before.account_id != after.account_id:
            news.append(AccountNews(owner, iccid, before.account_id, after.account_id))
        seen, known = line.place(now), places.get(before.subscriber_id, before.place)
        if not after.country or (after.country == before.country and (after.country == known.country or seen.at <= known.at)):
            continue
        entered = change_line_country(connection, fleet=fleet, subscriber_id=before.subscriber_id, known=before.place, seen=seen)
        if entered and tells:
            news.append(CountryNews(owner, iccid, after.country))
    return news


class LinesWritten(NamedTuple):
    """How many lines were written, and what is new of them."""

    written: int
    news: list[LineNews]


@runs_in_thread
def write_lines(connection: Connection, *, fleet: int, lines: Sequence[LineWrite], now: float) -> LinesWritten:
    """Writes listed lines, each unless its row has changed since it was seen. Nothing where the fleet has ended."""
    if connection.first(HOLD_CURRENT_FLEET, fleet=fleet) is None:
        return LinesWritten(0, [])
    lines = sorted(lines, key=lambda line: line.subscriber_id)
    unseen = pack_rows([[line.subscriber_id] for line in lines if not line.seen])
    for number in connection.all(GONE_LINES, fleet=fleet, numbers=unseen):
        for command in (FORGET_GONE_LINE, *FORGET_LINE_ROWS):
            connection.run(command, fleet=fleet, subscriber_id=number)
        forget_line_news(connection, fleet=fleet, subscriber_id=number)
    issued = issued_among(connection, fleet=fleet, lines=lines)
    baseline = baseline_of_fleet(connection, fleet=fleet)
    numbers = [line.subscriber_id for line in lines if line.seen]
    before = {} if baseline is None else facts_of_lines(connection, fleet=fleet, numbers=numbers)
    written = connection.run_many(PUT_LINE, [line_values(fleet, line, now) for line in lines])
    end_tags_of_told(connection, fleet=fleet, lines=lines, issued=issued)
    connection.run_many(PUT_WRITTEN_DETAIL, [detail_values(fleet, line, now) for line in lines])
    if baseline is None:
        return LinesWritten(written, [])
    known = [(before[line.subscriber_id], line) for line in lines if line.subscriber_id in before]
    changed = [LineSight(facts, line.listed) for facts, line in known if facts.version == line.seen]
    return LinesWritten(written, news_of_lines(connection, fleet=fleet, baseline=baseline, lines=changed, now=now))


def detail_values(fleet: int, line: LineWrite, now: float) -> dict[str, Value]:
    named: dict[str, Value] = {"fleet": fleet, "subscriber_id": line.subscriber_id}
    return {**named, **line.detail._asdict(), "seen": line.seen, "digest": line.listed.digest, "now": now}


def line_values(fleet: int, line: LineWrite, now: float) -> dict[str, Value]:
    head = FleetLineHead(fleet, line.subscriber_id, 1, now, 0.0)
    state = UNREAD_LINE._replace(rank=line.rank, due=line.due)
    return {**head._asdict(), **line.listed._asdict(), **state._asdict(), "seen": line.seen}


MARK_MISSED = Command(
    sa.update(FLEET_LINE)
    .where(OF_FLEET_LINE, LINE_IS_THERE, FLEET_LINE.c.version == sa.bindparam("seen", type_=sa.Integer))
    .values(missed=1)
)

HIDE_LINE = Command(
    sa.update(FLEET_LINE)
    .where(OF_FLEET_LINE, LINE_IS_THERE, FLEET_LINE.c.version == sa.bindparam("seen", type_=sa.Integer))
    .values(gone=sa.bindparam("now", type_=sa.Double), version=FLEET_LINE.c.version + 1, due=0.0, judge_due=0.0)
)


@runs_in_thread
def miss_lines(connection: Connection, *, fleet: int, lines: Sequence[KnownLine]) -> None:
    """Marks lines that a finished listing did not show; nobody has looked yet whether they have left."""
    connection.run_many(MARK_MISSED, [{"fleet": fleet, "subscriber_id": line.subscriber_id, "seen": line.version} for line in lines])


@runs_in_thread
def hide_lines(connection: Connection, *, fleet: int, lines: Sequence[KnownLine], now: float) -> None:
    """Hides lines that have left the organisation's accounts at `now`, Unix seconds, unless they were written to since."""
    hidden = [
        line.subscriber_id
        for line in sorted(lines, key=lambda line: line.subscriber_id)
        if connection.run(HIDE_LINE, fleet=fleet, subscriber_id=line.subscriber_id, seen=line.version, now=now)
    ]
    forget_use(connection, fleet=fleet, numbers=hidden)
    end_tags_in_fleet(connection, fleet, connection.all(ICCIDS_OF_LINES, fleet=fleet, numbers=pack_rows([[number] for number in hidden])))


CURRENT_FLEETS = sa.select(FLEET.c.id).where(FLEET.c.organisation == sa.bindparam("organisation", type_=sa.Text), IS_CURRENT)

FLEETS_DUE = Command(
    sa.update(FLEET)
    .where(
        FLEET.c.organisation == sa.bindparam("organisation", type_=sa.Text), IS_CURRENT, FLEET.c.due > sa.bindparam("now", type_=sa.Double)
    )
    .values(due=sa.bindparam("now", type_=sa.Double))
)


# A line that no list has shown yet: whoever asks next waits until the fleet has been listed again (`is_listing_asked_for`). Where lists
# do not show every line, another one would not show it either.
LIST_FLEETS_AT_ONCE = Command(
    sa.update(FLEET)
    .where(FLEET.c.organisation == sa.bindparam("organisation", type_=sa.Text), IS_CURRENT, FLEET.c.cut == 0)
    .values(
        list_due=sa.case((FLEET.c.listed > 0, FLEET.c.listed), else_=sa.bindparam("now", type_=sa.Double)),
        due=sa.bindparam("now", type_=sa.Double),
    )
)

OWN_MARK_SECONDS = 1.0
"""A line that a call of ours has changed is due so long before it was written: it goes first, and is told from other marks."""

OWN_MARK = {
    "version": FLEET_LINE.c.version + 1,
    "rank": MARKED,
    "due": sa.bindparam("now", type_=sa.Double) - OWN_MARK_SECONDS,
    "written": sa.bindparam("now", type_=sa.Double),
}


def marking(values: Mapping[str, object]) -> Command:
    """Marks lines by their ICCIDs, and sets `values`."""
    return Command(
        lambda dialect: (
            sa.update(FLEET_LINE)
            .where(
                unindexed(FLEET_LINE.c.fleet).in_(sa.select(FLEET.c.id).where(IS_CURRENT)),
                FLEET_LINE.c.iccid.in_(bound_list(dialect, "iccids")),
                LINE_IS_THERE,
            )
            .values(values)
        )
    )


WAS_MARKED = sa.and_(FLEET_LINE.c.rank == MARKED, FLEET_LINE.c.due > 0, FLEET_LINE.c.due < sa.bindparam("now", type_=sa.Double))

MARK_ICCIDS = marking(
    {
        "version": FLEET_LINE.c.version + 1,
        "rank": MARKED,
        "due": sa.case((WAS_MARKED, FLEET_LINE.c.due), else_=sa.bindparam("now", type_=sa.Double)),
    }
)

MARK_WRITTEN_ICCIDS = marking(OWN_MARK)

FLEETS_OF_ICCIDS_DUE = Command(
    lambda dialect: (
        sa.update(FLEET)
        .where(
            IS_CURRENT,
            FLEET.c.due > sa.bindparam("now", type_=sa.Double),
            FLEET.c.id.in_(sa.select(FLEET_LINE.c.fleet).where(FLEET_LINE.c.iccid.in_(bound_list(dialect, "iccids")), LINE_IS_THERE)),
        )
        .values(due=sa.bindparam("now", type_=sa.Double))
    )
)


def mark_lines(connection: Connection, *, iccids: Collection[str], now: float, by: str = "") -> None:
    """Marks the lines with these ICCIDs in every fleet: something has happened to them, and they are read again. `now`: Unix seconds.

    `by`: the organisation whose call did it; its next question about its fleet reads them before it is answered.
    """
    if not iccids:
        return
    packed = pack_rows([[iccid] for iccid in sorted(iccids)])
    if connection.run(MARK_WRITTEN_ICCIDS if by else MARK_ICCIDS, iccids=packed, now=now):
        connection.run(FLEETS_OF_ICCIDS_DUE, iccids=packed, now=now)
    elif by:
        connection.run(LIST_FLEETS_AT_ONCE, organisation=by, now=now)


@value_or(0)
def lines_of_fleet(*, fleet: int) -> sa.Executable:
    """How many lines of the fleet are there."""
    return sa.select(sa.func.count().label("lines")).where(FLEET_LINE.c.fleet == fleet, LINE_IS_THERE)


FORGET_NAMES = Command(
    sa.update(FLEET_LINE_DETAIL)
    .where(
        FLEET_LINE_DETAIL.c.fleet == BOUND_FLEET,
        sa.or_(*(FLEET_LINE_DETAIL.c[name].is_not(None) for name in ("name", "company", "email", "phone"))),
    )
    .values(name=None, company=None, email=None, phone=None)
)

FORGET_SEARCH_TEXTS = Command(lambda _: sa.update(FLEET_LINE).where(OF_FLEET).values(search="", digest=0, version=FLEET_LINE.c.version + 1))


@runs_in_thread
def rewrite_names(connection: Connection, *, fleet: int) -> None:
    """Erases the names and addresses of the fleet's lines. The next listing writes every line again, with names where they are kept."""
    connection.run(FORGET_SEARCH_TEXTS, fleet=fleet)
    connection.run(FORGET_NAMES, fleet=fleet)
