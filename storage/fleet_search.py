"""Looking for lines of a fleet: filters, a sort, pages and counts, each statement made of just the filters that are asked for.

What a credential is restricted to stands in every statement beside the filters, so that no count, sort or cursor tells of another line.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

import sqlalchemy as sa
from sqlalchemy.sql.selectable import GenerativeSelect

from storage.engine.drivers import Value
from storage.engine.sql import Connection, Dialect, Query, bound_list, pack_rows, runs_in_thread, unindexed
from storage.fleet_lines import BOUND_FLEET, FLEET_IS_CURRENT, FLEET_LINE, FLEET_LINE_DETAIL, LINE_IS_THERE, OF_FLEET, THERE_IN_TABLE_ORDER
from storage.fleet_problems import ProblemOfLine, lines_with_problem, problems_of_lines
from storage.fleets import BACKFILL, CHANGED, FINISH_DAY, MARKED, NEVER_READ
from storage.line_tags import lines_with_any_tag, lines_with_tag

FleetSort = Literal["subscriber_id", "iccid", "last_used", "data_left", "package_ends", "status_since"]
TrafficKind = Literal["data", "calls_out", "calls_in", "sms_out", "sms_in"]


class FleetBounds(NamedTuple):
    """The lines that a credential may see, by what each must have; None: whatever it is."""

    iccids: Sequence[str] | None = None
    accounts: Sequence[int] | None = None
    tags: Sequence[str] | None = None
    """Lines that have one of these, of the organisation's own."""


class FleetFilter(NamedTuple):
    """Which lines; None: whatever it is. Times are Unix seconds, bytes of data; texts are looked for as they are.

    `begins` and `ends`: digits that an identifier begins or ends with; `part`: folded text of a name or an address. Where several of the
    three are given, one of them is enough.
    """

    begins: str | None = None
    ends: str | None = None
    part: str | None = None
    account: int | None = None
    status: str | None = None
    country: str | None = None
    mcc: int | None = None
    mnc: int | None = None
    steering_list: int | None = None
    package_state: str | None = None
    package_ends_before: float | None = None
    left_below: int | None = None
    used_after: float | None = None
    used_before: float | None = None
    barred: TrafficKind | None = None
    speed_limited: bool | None = None
    problem: str | None = None
    tag: str | None = None
    numbers: Sequence[int] | None = None
    """Subscriber ids that were found elsewhere."""


class FoundLine(NamedTuple):
    """A line as a page shows it; the fields are those of the tables."""

    subscriber_id: int
    iccid: str
    account_id: int
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
    steering_list: int
    balance: int
    pays: str
    rank: int
    due: float
    written: float
    version: int
    read: float
    usage_first: int
    usage_last: int
    usage_read: float
    package_state: str
    package_ends: float
    data_left: int
    data_limit: int
    facts: str
    name: str | None
    company: str | None
    email: str | None
    phone: str | None


class FleetPlace(NamedTuple):
    """Where a page begins: behind the line with this value of the sort and this number."""

    value: Value
    subscriber_id: int


USABLE_UNTIL_END = ("running", "exhausted", "assigned", "scheduled", "blocked")

DETAIL_FIELDS = ("facts", "name", "company", "email", "phone")

BOUND_NOW = sa.bindparam("now", type_=sa.Double)

MOST_LINES = 1_000_000_000
"""More than any fleet has."""

# A package that has ended since it was read: only time has passed, so nobody has written it yet.
STATE_NOW = sa.case(
    (
        sa.and_(FLEET_LINE.c.package_ends > 0, FLEET_LINE.c.package_ends <= BOUND_NOW, FLEET_LINE.c.package_state.in_(USABLE_UNTIL_END)),
        "expired",
    ),
    else_=FLEET_LINE.c.package_state,
)


def contains(dialect: Dialect, column: sa.ColumnElement[str], name: str) -> sa.ColumnElement[bool]:
    """Whether the text that is bound as `name` stands in the column, letter by letter: LIKE takes a little longer, and would
    take signs of its own for more than they are."""
    found = sa.func.instr if dialect.name == "sqlite" else sa.func.strpos
    return found(column, sa.bindparam(name, type_=sa.Text)) > 0


def within_bounds(dialect: Dialect) -> dict[str, sa.ColumnElement[bool]]:
    """What a line must be like to be within what a credential may see, by the member of FleetBounds."""
    line = FLEET_LINE.c
    return {
        "iccids": line.iccid.in_(bound_list(dialect, "iccids")),
        "accounts": line.account_id.in_(bound_list(dialect, "accounts", sa.BigInteger)),
        "tags": line.subscriber_id.in_(lines_with_any_tag(dialect, "tags")),
    }


def bound_values(bounds: FleetBounds) -> dict[str, Value]:
    """What to bind for the members of `bounds` that are given."""
    given = {name: entries for name, entries in bounds._asdict().items() if entries is not None}
    return {name: pack_rows([[entry] for entry in entries]) for name, entries in given.items()}


def is_filtered(dialect: Dialect, names: frozenset[str]) -> list[sa.ColumnElement[bool]]:
    """The conditions of the filters `names`."""
    line = FLEET_LINE.c
    simple = {
        "account": line.account_id == sa.bindparam("account", type_=sa.BigInteger),
        "status": line.status == sa.bindparam("status", type_=sa.Text),
        "country": line.country == sa.bindparam("country", type_=sa.Text),
        "mcc": line.mcc == sa.bindparam("mcc", type_=sa.Integer),
        "mnc": line.mnc == sa.bindparam("mnc", type_=sa.Integer),
        "steering_list": line.steering_list == sa.bindparam("steering_list", type_=sa.BigInteger),
        "package_state": sa.bindparam("package_state", type_=sa.Text) == STATE_NOW,
        "package_ends_before": sa.and_(
            line.package_ends > BOUND_NOW, line.package_ends < sa.bindparam("package_ends_before", type_=sa.Double)
        ),
        "left_below": sa.or_(
            sa.and_(line.data_left >= 0, line.data_left < sa.bindparam("left_below", type_=sa.BigInteger)),
            sa.and_(STATE_NOW == "exhausted", sa.bindparam("left_below", type_=sa.BigInteger) > 0),
        ),
        "used_after": line.last_used >= sa.bindparam("used_after", type_=sa.Double),
        "used_before": sa.and_(line.last_used > 0, line.last_used < sa.bindparam("used_before", type_=sa.Double)),
        "barred_data": line.data_allowed == 0,
        "barred_calls_out": line.calls_out_allowed == 0,
        "barred_calls_in": line.calls_in_allowed == 0,
        "barred_sms_out": line.sms_out_allowed == 0,
        "barred_sms_in": line.sms_in_allowed == 0,
        "limited": line.speed_limit > 0,
        "unlimited": line.speed_limit == 0,
        "problem": line.subscriber_id.in_(lines_with_problem(BOUND_FLEET, sa.bindparam("problem", type_=sa.Text))),
        "tag": line.subscriber_id.in_(lines_with_tag(sa.bindparam("tag", type_=sa.Text))),
        "numbers": line.subscriber_id.in_(bound_list(dialect, "numbers", sa.BigInteger)),
        **within_bounds(dialect),
    }
    named = [contains(dialect, line.numbers, name) for name in ("begins", "ends") if name in names]
    if "within" in names:  # most lines hold the digits nowhere, and are compared once
        named = [sa.and_(contains(dialect, line.numbers, "within"), sa.or_(*named))]
    if "part" in names:
        named.append(contains(dialect, line.search, "part"))
    found: list[sa.ColumnElement[bool]] = [condition for name, condition in simple.items() if name in names]
    return [*found, sa.or_(*named)] if named else found


def in_table_order(asked: GenerativeSelect) -> sa.Subquery:
    """The lines that `asked` finds, in the order of the table: SQLite then reads its rows as they lie, and not one by one by an index of
    something that most lines have, or in an order in which few are asked for."""
    return asked.order_by(FLEET_LINE.c.subscriber_id).limit(MOST_LINES).subquery("rows")


@lru_cache(maxsize=512)
def fleet_page(names: frozenset[str], sort: FleetSort, *, descending: bool, further: bool) -> Query[FoundLine]:
    """A page of lines with these filters in this order; `further`: behind a place."""

    def build(dialect: Dialect) -> sa.Executable:
        line = FLEET_LINE.c
        own: dict[str, sa.ColumnElement[object]] = {"package_state": STATE_NOW.label("package_state")}
        own |= {name: FLEET_LINE_DETAIL.c[name] for name in DETAIL_FIELDS}
        columns = [own[name] if name in own else line[name] for name in FoundLine._fields]
        here = FLEET_LINE_DETAIL.c
        both = sa.and_(here.fleet == line.fleet, here.subscriber_id == line.subscriber_id)
        by, number = line[sort], line.subscriber_id
        value, last = sa.bindparam("place", type_=by.type), sa.bindparam("last", type_=sa.BigInteger)
        behind = [sa.or_(by < value if descending else by > value, sa.and_(by == value, number > last))] if further else []
        order = [by.desc() if descending else by, number]
        asked = sa.select(number.label("found"), by.label("by")).where(OF_FLEET, LINE_IS_THERE, *is_filtered(dialect, names), *behind)
        if names and sort != "subscriber_id" and dialect.name == "sqlite":
            rows = in_table_order(asked)
            asked = sa.select(rows.c.found).order_by(rows.c.by.desc() if descending else rows.c.by, rows.c.found)
        else:
            asked = asked.order_by(*order)
        page = asked.limit(sa.bindparam("most", type_=sa.Integer)).subquery("page")
        # The page is found in the narrow table first: only its own lines are looked up in the wide one.
        return (
            sa.select(*columns)
            .select_from(page.join(FLEET_LINE, sa.and_(OF_FLEET, number == page.c.found)).join(FLEET_LINE_DETAIL, both))
            .order_by(*order)
        )

    return Query(FoundLine, build)


@lru_cache(maxsize=512)
def fleet_count(names: frozenset[str]) -> Query[int]:
    """How many lines there are with these filters."""

    def build(dialect: Dialect) -> sa.Executable:
        number = FLEET_LINE.c.subscriber_id
        asked = sa.select(number).where(OF_FLEET, LINE_IS_THERE, *is_filtered(dialect, names))
        if names and dialect.name == "sqlite":
            return sa.select(sa.func.count().label("lines")).select_from(in_table_order(asked))
        return sa.select(sa.func.count().label("lines")).select_from(asked.subquery("asked"))

    return Query(int, build)


def filter_values(wanted: FleetFilter, bounds: FleetBounds, now: float) -> tuple[frozenset[str], dict[str, Value]]:
    """The names of the filters that are asked for, and the values to bind for them."""
    names, values = set[str](), dict[str, Value]()
    for name in ("account", "status", "country", "mcc", "mnc", "steering_list", "package_ends_before", "left_below", "package_state"):
        value: Value = getattr(wanted, name)
        if value is not None:
            values[name] = value
    values |= {name: value for name in ("used_after", "used_before", "problem", "tag") if (value := getattr(wanted, name)) is not None}
    if wanted.begins is not None:
        values["begins"] = f"|{wanted.begins}"
    if wanted.ends is not None:
        values["ends"] = f"{wanted.ends}|"
    if wanted.begins is not None and wanted.begins == wanted.ends:
        values["within"] = wanted.begins
    if wanted.part is not None:
        values["part"] = wanted.part
    if wanted.numbers is not None:
        values["numbers"] = pack_rows([[number] for number in wanted.numbers])
    values |= bound_values(bounds)
    names |= values.keys()
    if wanted.barred is not None:
        names.add(f"barred_{wanted.barred}")
    if wanted.speed_limited is not None:
        names.add("limited" if wanted.speed_limited else "unlimited")
    if not names.isdisjoint({"package_state", "package_ends_before", "left_below"}):
        values["now"] = now
    return frozenset(names), values


class FleetPageAsked(NamedTuple):
    """Which page: at most `most` lines behind the place `after`."""

    wanted: FleetFilter
    sort: FleetSort
    descending: bool
    after: FleetPlace | None
    most: int


def find_lines(connection: Connection, *, fleet: int, bounds: FleetBounds, asked: FleetPageAsked, now: float) -> list[FoundLine]:
    """The lines of a page. `now`: Unix seconds."""
    names, values = filter_values(asked.wanted, bounds, now)
    page = fleet_page(names, asked.sort, descending=asked.descending, further=asked.after is not None)
    place: dict[str, Value] = {} if asked.after is None else {"place": asked.after.value, "last": asked.after.subscriber_id}
    return connection.all(page, **{**values, "now": now}, **place, fleet=fleet, most=asked.most)


class LineNumber(NamedTuple):
    """A line by its two names, and its status."""

    subscriber_id: int
    iccid: str
    status: str


@lru_cache(maxsize=64)
def line_numbers(names: frozenset[str]) -> Query[LineNumber]:
    """The lines with these filters, lowest subscriber id first."""

    def build(dialect: Dialect) -> sa.Executable:
        line = FLEET_LINE.c
        asked = sa.select(line.subscriber_id, line.iccid, line.status).where(OF_FLEET, LINE_IS_THERE, *is_filtered(dialect, names))
        return asked.order_by(line.subscriber_id).limit(sa.bindparam("most", type_=sa.Integer))

    return Query(LineNumber, build)


@lru_cache(maxsize=16)
def named_line_numbers(names: frozenset[str]) -> Query[LineNumber]:
    """Those of the ICCIDs bound as `named` that are lines with these filters, found by their ICCIDs."""

    def build(dialect: Dialect) -> sa.Executable:
        line, of_fleet = FLEET_LINE.c, unindexed(FLEET_LINE.c.fleet) == BOUND_FLEET
        named = line.iccid.in_(bound_list(dialect, "named"))
        return sa.select(line.subscriber_id, line.iccid, line.status).where(of_fleet, named, LINE_IS_THERE, *is_filtered(dialect, names))

    return Query(LineNumber, build)


@runs_in_thread
def find_line_numbers(
    connection: Connection, *, fleet: int, bounds: FleetBounds, wanted: FleetFilter, most: int, now: float
) -> list[LineNumber]:
    """At most `most` lines with these filters, lowest subscriber id first. None of a fleet that has ended. `now`: Unix seconds."""
    if connection.first(FLEET_IS_CURRENT, fleet=fleet) is None:
        return []
    names, values = filter_values(wanted, bounds, now)
    return connection.all(line_numbers(names), **values, fleet=fleet, most=most)


@runs_in_thread
def find_named_lines(connection: Connection, *, fleet: int, bounds: FleetBounds, iccids: Sequence[str]) -> list[LineNumber]:
    """Those of the ICCIDs that are lines within the bounds, in no order. None of a fleet that has ended."""
    if connection.first(FLEET_IS_CURRENT, fleet=fleet) is None:
        return []
    names, values = filter_values(FleetFilter(), bounds, 0.0)
    return connection.all(named_line_numbers(names), **values, fleet=fleet, named=pack_rows([[iccid] for iccid in iccids]))


class FleetProgress(NamedTuple):
    """How many lines within the bounds have never been read, and how many there are; `lines` is 0 where all have been.

    `due`: how many of the unread ones could be read now. `changed`: lines that a call of ours may have changed since they were read.
    """

    lines: int
    unread: int
    due: int = 0
    changed: int = 0


class UnreadLines(NamedTuple):
    """Lines that have never been read, and how many of them could be read now."""

    lines: int
    due: int


@lru_cache(maxsize=8)
def count_unread(names: frozenset[str]) -> Query[UnreadLines]:
    """How many lines with these filters wait to be read for the first time."""
    ready = sa.func.coalesce(sa.func.sum(sa.case((FLEET_LINE.c.due <= BOUND_NOW, 1), else_=0)), 0)
    return Query(
        UnreadLines,
        lambda dialect: (
            sa.select(sa.func.count().label("lines"), ready.label("due"))
            .select_from(FLEET_LINE)
            .where(OF_FLEET, FLEET_LINE.c.rank == NEVER_READ, FLEET_LINE.c.due > 0, LINE_IS_THERE, *is_filtered(dialect, names))
        ),
    )


# What we wrote ourselves is marked as due before it was written (OWN_MARK_SECONDS); a mark of a push or a listing never is.
IS_MARKED = sa.and_(FLEET_LINE.c.rank == MARKED, FLEET_LINE.c.due > 0)
IS_CHANGED_BY_US = sa.and_(IS_MARKED, FLEET_LINE.c.written > FLEET_LINE.c.due)

# A marked line whose reading has failed waits; nobody knows then who marked it.
IS_UNSETTLED = sa.and_(IS_MARKED, sa.or_(FLEET_LINE.c.written > FLEET_LINE.c.due, FLEET_LINE.c.due > BOUND_NOW))


@lru_cache(maxsize=8)
def find_changed(names: frozenset[str]) -> Query[int]:
    """The subscriber ids of lines with these filters that a call of ours has changed, and that were not read since."""
    return Query(
        int,
        lambda dialect: (
            sa.select(FLEET_LINE.c.subscriber_id)
            .where(OF_FLEET, LINE_IS_THERE, IS_CHANGED_BY_US, *is_filtered(dialect, names))
            .order_by(FLEET_LINE.c.due)
            .limit(sa.bindparam("most", type_=sa.Integer))
        ),
    )


@lru_cache(maxsize=8)
def count_unsettled(names: frozenset[str]) -> Query[int]:
    """How many lines with these filters a call of ours has perhaps changed since they were read."""
    return Query(
        int,
        lambda dialect: (
            sa.select(sa.func.count().label("lines"))
            .select_from(FLEET_LINE)
            .where(OF_FLEET, LINE_IS_THERE, IS_UNSETTLED, *is_filtered(dialect, names))
        ),
    )


def changed_lines(connection: Connection, *, fleet: int, bounds: FleetBounds, most: int) -> list[int]:
    """The subscriber ids of at most `most` lines that a call of ours has changed and that were not read since, first changed first."""
    names, values = filter_values(FleetFilter(), bounds, 0.0)
    return connection.all(find_changed(names), **values, fleet=fleet, most=most)


@runs_in_thread
def fleet_progress(connection: Connection, *, fleet: int, bounds: FleetBounds, now: float) -> FleetProgress:
    """How far the lines within `bounds` have been read at `now`, Unix seconds."""
    names, values = filter_values(FleetFilter(), bounds, now)
    changed = connection.first(count_unsettled(names), **{**values, "now": now}, fleet=fleet) or 0
    unread = connection.first(count_unread(names), **{**values, "now": now}, fleet=fleet) or UnreadLines(0, 0)
    if not unread.lines:
        return FleetProgress(0, 0, 0, changed)
    return FleetProgress(connection.first(fleet_count(names), **values, fleet=fleet) or 0, *unread, changed)


class FleetLook(NamedTuple):
    """A page of lines, the open causes of each, and how far the fleet has been read."""

    rows: list[FoundLine]
    causes: list[ProblemOfLine]
    progress: FleetProgress


@runs_in_thread
def look_for_lines(connection: Connection, *, fleet: int, bounds: FleetBounds, asked: FleetPageAsked, now: float) -> FleetLook:
    """The lines of a page, with what is shown beside them. `now`: Unix seconds. Nothing of a fleet that has ended meanwhile."""
    if connection.first(FLEET_IS_CURRENT, fleet=fleet) is None:
        return FleetLook([], [], FleetProgress(0, 0))
    rows = find_lines(connection, fleet=fleet, bounds=bounds, asked=asked, now=now)
    causes = problems_of_lines(connection, fleet=fleet, numbers=[row.subscriber_id for row in rows])
    return FleetLook(rows, causes, fleet_progress(connection, fleet=fleet, bounds=bounds, now=now))


class FleetCount(NamedTuple):
    """How many lines there are, and how far the fleet has been read."""

    lines: int
    progress: FleetProgress


@runs_in_thread
def count_lines(connection: Connection, *, fleet: int, wanted: FleetFilter, bounds: FleetBounds, now: float) -> FleetCount:
    """How many lines there are with these filters. `now`: Unix seconds. None of a fleet that has ended meanwhile."""
    if connection.first(FLEET_IS_CURRENT, fleet=fleet) is None:
        return FleetCount(0, FleetProgress(0, 0))
    names, values = filter_values(wanted, bounds, now)
    found = connection.first(fleet_count(names), **values, fleet=fleet) or 0
    return FleetCount(found, fleet_progress(connection, fleet=fleet, bounds=bounds, now=now))


class WaitingLines(NamedTuple):
    """Lines within the bounds that have never been read, and those that wait for something to be read now, by what it is."""

    lines: int
    unread: int
    changed: int
    days: int


@lru_cache(maxsize=8)
def count_waiting(names: frozenset[str]) -> Query[WaitingLines]:
    """Each rank is counted by itself: the index of what is due has few of the lines, and SQLite takes it for one rank at a time."""

    def build(dialect: Dialect) -> sa.Executable:
        filtered = is_filtered(dialect, names)

        def counted(*conditions: sa.ColumnElement[bool]) -> sa.ColumnElement[int]:
            return sa.select(sa.func.count()).select_from(FLEET_LINE).where(OF_FLEET, *conditions, *filtered).scalar_subquery()

        def waiting(rank: int, *until: sa.ColumnElement[bool]) -> sa.ColumnElement[int]:
            return counted(THERE_IN_TABLE_ORDER, FLEET_LINE.c.rank == rank, FLEET_LINE.c.due > 0, *until)

        due, named = FLEET_LINE.c.due <= BOUND_NOW, {"lines": counted(LINE_IS_THERE), "unread": waiting(NEVER_READ)}
        named |= {"changed": waiting(MARKED, due) + waiting(CHANGED, due), "days": waiting(FINISH_DAY, due) + waiting(BACKFILL, due)}
        return sa.select(*(count.label(name) for name, count in named.items()))

    return Query(WaitingLines, build)


@runs_in_thread
def waiting_lines(connection: Connection, *, fleet: int, bounds: FleetBounds, now: float) -> WaitingLines:
    """What waits to be read at `now`, Unix seconds."""
    if connection.first(FLEET_IS_CURRENT, fleet=fleet) is None:
        return WaitingLines(0, 0, 0, 0)
    names, values = filter_values(FleetFilter(), bounds, now)
    found = connection.first(count_waiting(names), **{**values, "now": now}, fleet=fleet)
    return found or WaitingLines(0, 0, 0, 0)


class FleetKnowledge(NamedTuple):
    """How far a fleet, or what of it a caller asks of, is known: how many lines there are, whether any has been read, of how many some days
    are missing, and how many were not judged since they were read."""

    lines: int
    some_read: bool
    days_missing: int
    unjudged: int
    progress: FleetProgress


NOTHING_KNOWN = FleetKnowledge(0, False, 0, 0, FleetProgress(0, 0))

LACKS_DAYS = sa.and_(
    FLEET_LINE.c.rank == BACKFILL, FLEET_LINE.c.due > 0, FLEET_LINE.c.usage_first > sa.bindparam("first", type_=sa.Integer)
)

IS_UNJUDGED = sa.and_(FLEET_LINE.c.judge_due > 0, FLEET_LINE.c.judge_due <= BOUND_NOW, FLEET_LINE.c.judged == 0, ~LACKS_DAYS)


@lru_cache(maxsize=8)
def first_read(names: frozenset[str]) -> Query[int]:
    """A line with these filters that has been read."""
    number, read = FLEET_LINE.c.subscriber_id, FLEET_LINE.c.read > 0
    return Query(int, lambda dialect: sa.select(number).where(OF_FLEET, LINE_IS_THERE, read, *is_filtered(dialect, names)).limit(1))


UNJUDGED_LINE = Query(
    int,
    sa.select(FLEET_LINE.c.subscriber_id)
    .where(OF_FLEET, FLEET_LINE.c.judge_due > 0, FLEET_LINE.c.judge_due <= BOUND_NOW, FLEET_LINE.c.judged == 0)
    .limit(1),
)


@lru_cache(maxsize=16)
def count_lacking(names: frozenset[str], *, for_days: bool) -> Query[int]:
    """How many lines with these filters wait for days of use, or to be judged. A line that has left waits for neither."""
    waits = LACKS_DAYS if for_days else IS_UNJUDGED
    return Query(
        int,
        lambda dialect: (
            sa.select(sa.func.count().label("lines")).select_from(FLEET_LINE).where(OF_FLEET, waits, *is_filtered(dialect, names))
        ),
    )


def knowledge_within(connection: Connection, *, fleet: int, bounds: FleetBounds, first: int, now: float) -> FleetKnowledge:
    """How far the lines within `bounds` are known at `now`, Unix seconds; `first`: the oldest day that is needed, an ordinal."""
    names, values = filter_values(FleetFilter(), bounds, now)
    moments = {**values, "first": first}
    return FleetKnowledge(
        connection.first(fleet_count(names), **values, fleet=fleet) or 0,
        connection.first(first_read(names), **values, fleet=fleet) is not None,
        connection.first(count_lacking(names, for_days=True), **moments, fleet=fleet) or 0,
        connection.first(count_lacking(names, for_days=False), **{**moments, "now": now}, fleet=fleet) or 0,
        fleet_progress(connection, fleet=fleet, bounds=bounds, now=now),
    )


@runs_in_thread
def fleet_knowledge(connection: Connection, *, fleet: int, account: int | None, first: int, now: float) -> FleetKnowledge:
    """How far the lines of `account` (None: all) are known; as `knowledge_within`. Nothing of a fleet that has ended."""
    if connection.first(FLEET_IS_CURRENT, fleet=fleet) is None:
        return NOTHING_KNOWN
    bounds = FleetBounds(accounts=None if account is None else [account])
    return knowledge_within(connection, fleet=fleet, bounds=bounds, first=first, now=now)


def has_unjudged_line(connection: Connection, *, fleet: int, now: float) -> bool:
    """Whether a line has been read, and was never looked into since, at `now`, Unix seconds."""
    return connection.first(UNJUDGED_LINE, fleet=fleet, now=now) is not None
