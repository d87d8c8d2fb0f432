"""Which due deliveries are taken next: those of the organisations with the fewest under way, of these the oldest, within the limits
of each endpoint and each organisation, whoever holds what is under way.

Claims take turns (on SQLite the write lock makes them, on PostgreSQL an advisory lock), so that together they exceed no limit; all wait
for the one whose turn it is, so what a claim reads is bounded whatever waits. It looks at the oldest rows first. Where that view ends
before everybody has had a turn, it looks behind it: at the head of each endpoint's own queue, found by going from endpoint to endpoint in
an index. Of more endpoints than one claim looks at, the next claim goes on where this one ended.

Where deliveries are partitioned, a claim looks only from the oldest partition in which something waits to that of now: nearly always one.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from typing import NamedTuple

import sqlalchemy as sa

from registry.ids import first_id
from storage.deliveries import DELIVERY
from storage.deliveries import DELIVERY_HISTORY as DELIVERIES
from storage.engine.partitions import Partition, default_partition_name, partitions_of
from storage.engine.sql import Command, Connection, Dialect, Query, text_query

IN_FLIGHT = 2
# Without it one organisation's slow receivers, at two for each of its endpoints, hold the places of all others.
IN_FLIGHT_OF_ORGANISATION = 8
# How many of the oldest are looked at: enough for most claims, then as many as cost less than looking behind them.
NARROW_VIEW = 64
WIDE_VIEW = 512
# At how many endpoints' heads a claim looks at most: those of some thirty organisations with as many as they may have.
ENDPOINTS_AT_ONCE = 512
# The first claim of each of these looks behind its view for others' turns; where receivers are quick, all would pay for what one finds.
LOOK_MS = 50
CLOCK_AHEAD_SECONDS = 86_400
CLAIM_TURN_LOCK = 0x6F7574626F78  # "outbox": the name of the advisory lock


class LeasedCount(NamedTuple):
    """How many deliveries of an endpoint are under way, and until when the newest lease of them is."""

    endpoint_id: str
    organisation: str
    places: int
    until_ms: int


class DueDeliveryRow(NamedTuple):
    """A delivery that is due, and since when."""

    id: str
    endpoint_id: str
    organisation: str
    due_ms: int


class QueueHead(NamedTuple):
    """An endpoint with something pending, and a delivery at the head of its queue if one is due. Without an endpoint: there are no more."""

    queue: str | None
    id: str | None
    organisation: str | None
    due_ms: int | None


class IdSpan(NamedTuple):
    """The ids between which deliveries wait; without a `lowest` one: everywhere."""

    lowest: str
    highest: str

    @property
    def ends(self) -> dict[str, str]:
        """As values to bind."""
        return {"floor": self.lowest, "ceiling": self.highest} if self.lowest else {}


EVERYWHERE = IdSpan("", "")


class PartitionBounds(NamedTuple):
    """A partition in which something waits; without bounds: that of rows that nobody has made room for."""

    lower: str
    upper: str


class QueueQueries(NamedTuple):
    """What a claim asks: what is under way, what is due, what dead workers had, and the heads of queues."""

    held: Query[LeasedCount]
    oldest: Query[DueDeliveryRow]
    lapsed: Query[DueDeliveryRow]
    heads: Query[QueueHead]


class ChosenDeliveries(NamedTuple):
    """The deliveries to take, and the endpoint behind which the next claim looks; nothing: it begins with the first."""

    ids: list[str]
    walked: str


def is_waiting(delivery: sa.FromClause) -> sa.ColumnElement[bool]:
    """Pending: the 0 stands in the text, so that the planner knows how few rows that is."""
    return delivery.c.state == sa.literal_column("0")


def is_untaken(delivery: sa.FromClause) -> sa.ColumnElement[bool]:
    """Pending, and no worker has it or had it when it died."""
    return is_pending(delivery) & delivery.c.lease.is_(None)


def is_pending(delivery: sa.FromClause) -> sa.ColumnElement[bool]:
    """Pending, of rows that another index finds than those of all that is pending."""
    return delivery.c.state + sa.literal_column("0", sa.Integer) == sa.literal_column("0", sa.Integer)


def in_span(delivery: sa.FromClause, *, floor: bool) -> list[sa.ColumnElement[bool]]:
    """The condition that a delivery is in a partition in which something waits, where it is asked for."""
    if not floor:
        return []
    return [delivery.c.id >= sa.bindparam("floor", type_=sa.Text), delivery.c.id < sa.bindparam("ceiling", type_=sa.Text)]


def claim_turn_query(dialect: Dialect) -> sa.Executable:
    """Held to the end of the transaction; on SQLite there is nothing to do."""
    if dialect.name == "sqlite":
        return sa.select(sa.literal_column("1", sa.Integer).label("taken"))
    held = sa.select(sa.func.pg_advisory_xact_lock(sa.literal_column(str(CLAIM_TURN_LOCK)))).cte("held").prefix_with("MATERIALIZED")
    return sa.select(sa.func.count().label("taken")).select_from(held)


CLAIM_NOW = sa.bindparam("now_ms", type_=sa.BigInteger)
TAKE_CLAIM_TURN = Query(int, claim_turn_query)


def leased_query(*, floor: bool) -> sa.Executable:
    """A leased row is due within the length of the longest lease. The addition keeps SQLite from the indexes of all that is pending: what
    waits for a later attempt may be a million rows.
    """
    places, until_ms = sa.func.count().label("places"), sa.func.max(DELIVERY.c.due_ms).label("until_ms")
    leased = (DELIVERY.c.due_ms > CLAIM_NOW, DELIVERY.c.due_ms <= sa.bindparam("horizon"), DELIVERY.c.lease.is_not(None))
    return (
        sa.select(DELIVERY.c.endpoint_id, DELIVERY.c.organisation, places, until_ms)
        .where(is_pending(DELIVERY), *leased, *in_span(DELIVERY, floor=floor))
        .group_by(DELIVERY.c.endpoint_id, DELIVERY.c.organisation)
    )


def oldest_query(which: sa.ColumnElement[bool], *, floor: bool) -> sa.Executable:
    """Those of them that are due, the oldest first."""
    return (
        sa.select(*(DELIVERY.c[name] for name in DueDeliveryRow._fields))
        .where(which, DELIVERY.c.due_ms <= CLAIM_NOW, *in_span(DELIVERY, floor=floor))
        .order_by(DELIVERY.c.due_ms)
        .limit(sa.bindparam("view"))
    )


def heads_query(dialect: Dialect, *, floor: bool = False) -> sa.Executable:
    """The two oldest of every endpoint that has something due, of so many endpoints behind one."""
    queue, head = queues_query(floor=floor), DELIVERY.alias("head")
    own = (
        sa.select(*(head.c[name] for name in ("id", "organisation", "due_ms")))
        .where(is_untaken(head), head.c.endpoint_id == queue.c.endpoint_id, queue.c.endpoint_id.is_not(None), head.c.due_ms <= CLAIM_NOW)
        .where(*in_span(head, floor=floor))
        .order_by(head.c.due_ms)
        .limit(sa.literal_column(str(IN_FLIGHT)))
        .correlate(queue)
    )
    if dialect.name == "sqlite":  # it has no LATERAL; PostgreSQL would make a scan of the other form
        found = DELIVERY.alias("found")
        rows = own.with_only_columns(sa.literal_column("head.rowid")).scalar_subquery()
        joined = sa.join(queue, found, sa.literal_column("found.rowid").in_(rows), isouter=True)
    else:
        found = own.lateral("found")
        joined = sa.join(queue, found, sa.true(), isouter=True)
    return sa.select(queue.c.endpoint_id.label("queue"), found.c.id, found.c.organisation, found.c.due_ms).select_from(joined)


def queues_query(*, floor: bool) -> sa.CTE:
    """Endpoints with something that waits: from one to the next by the index, not by the rows between. The last row has none."""
    first, following = DELIVERY.alias("first"), DELIVERY.alias("following")
    begin = sa.select(sa.func.min(first.c.endpoint_id)).where(
        is_untaken(first), first.c.endpoint_id > sa.bindparam("after"), *in_span(first, floor=floor)
    )
    queue = sa.select(begin.scalar_subquery().label("endpoint_id"), sa.literal_column("1", sa.Integer).label("place")).cte(
        "queue", recursive=True
    )
    after = sa.select(sa.func.min(following.c.endpoint_id)).where(
        is_untaken(following), following.c.endpoint_id > queue.c.endpoint_id, *in_span(following, floor=floor)
    )
    return queue.union_all(
        sa.select(after.correlate(queue).scalar_subquery(), queue.c.place + 1).where(
            queue.c.endpoint_id.is_not(None), queue.c.place < sa.bindparam("endpoints")
        )
    )


DELIVERY_WAITS = is_waiting(DELIVERY)
DELIVERY_WAS_LEASED = is_pending(DELIVERY) & DELIVERY.c.lease.is_not(None)
# What workers had when they died is looked for as well: the queues of endpoints begin behind it.
WHOLE_QUERIES = QueueQueries(
    Query(LeasedCount, lambda _: leased_query(floor=False)),
    Query(DueDeliveryRow, lambda _: oldest_query(DELIVERY_WAITS, floor=False)),
    Query(DueDeliveryRow, lambda _: oldest_query(DELIVERY_WAS_LEASED, floor=False)),
    Query(QueueHead, heads_query),
)
DIVIDED_QUERIES = QueueQueries(
    Query(LeasedCount, lambda _: leased_query(floor=True)),
    Query(DueDeliveryRow, lambda _: oldest_query(DELIVERY_WAITS, floor=True)),
    Query(DueDeliveryRow, lambda _: oldest_query(DELIVERY_WAS_LEASED, floor=True)),
    Query(QueueHead, partial(heads_query, floor=True)),
)

LOCK_WHOLE = Command(lambda _: sa.text("lock table only delivery in access share mode"))


@lru_cache(maxsize=8)
def busy_partitions(partitions: tuple[Partition, ...]) -> Query[PartitionBounds]:
    """A look at each partition. In the order of an index, so that none is read through that has nothing."""
    named = [(each.name, str(each.lower or "dlv_"), str(each.upper)) for each in partitions]
    looks = [
        f"select '{lower}' as lower, '{upper}' as upper where exists (select 1 from {name} where state = 0 order by due_ms limit 1)"
        for name, lower, upper in (*named, (default_partition_name(DELIVERIES), "", ""))
    ]
    return text_query(PartitionBounds, " union all ".join(looks))


class DeliveryPlace(NamedTuple):
    """A delivery that may be taken, and how many its organisation has under way before it."""

    before: int
    id: str


def fair_places(held: Sequence[LeasedCount], rows: Sequence[DueDeliveryRow], most: int) -> list[DeliveryPlace]:
    """Which of these, that come oldest first, are taken: in the order in which organisations take turns, the oldest first in each turn.

    Choice: strictly by age, organisations whose receivers hang would hold every place of a process while their backlogs last.
    """
    endpoints, organisations = Counter[str](), Counter[str]()
    for row in held:
        endpoints[row.endpoint_id] += row.places
        organisations[row.organisation] += row.places
    found: list[DeliveryPlace] = []
    firsts = 0
    for row in rows:
        before = organisations[row.organisation]
        if before < IN_FLIGHT_OF_ORGANISATION and endpoints[row.endpoint_id] < IN_FLIGHT:
            found.append(DeliveryPlace(before, row.id))
            organisations[row.organisation] += 1
            endpoints[row.endpoint_id] += 1
            firsts += before == 0
            if firsts == most:  # nobody comes before those whose first it is
                break
    return sorted(found, key=lambda place: place.before)[:most]


def is_first_claim(held: Sequence[LeasedCount], now_ms: int, horizon: int) -> bool:
    """Whether no claim was made since the last multiple of LOOK_MS, as far as leases tell: when in doubt, it is the first."""
    last = max((row.until_ms for row in held), default=0) - (horizon - now_ms)
    return last // LOOK_MS != now_ms // LOOK_MS


def find_span(connection: Connection, *, now_ms: int) -> IdSpan:
    """Between which ids deliveries wait.

    Choice: asked anew in each turn, at 1.5 ms for two years of months, since one of an old month may just have been asked for again.
    """
    if connection.dialect_name != "postgresql":
        return EVERYWHERE
    connection.run(LOCK_WHOLE)  # so that none of its partitions goes between the two statements
    partitions = partitions_of(connection, history=DELIVERIES)
    busy = connection.all(busy_partitions(tuple(partitions))) if partitions else []
    lowest = min((each.lower for each in busy), default="")
    # What comes meanwhile is of now, and clocks agree to a day.
    highest = max(first_id("dlv_", now_ms / 1000 + CLOCK_AHEAD_SECONDS), *(each.upper for each in busy), "")
    return IdSpan(lowest, highest)


def choose_deliveries(connection: Connection, *, now_ms: int, horizon: int, most: int, after: str = "") -> ChosenDeliveries:
    """At most so many to take. `after` is where an earlier choice ended among the endpoints. `now_ms`: Unix milliseconds."""
    connection.first(TAKE_CLAIM_TURN)
    span = find_span(connection, now_ms=now_ms)
    queue, ends = DIVIDED_QUERIES if span.lowest else WHOLE_QUERIES, span.ends
    held = connection.all(queue.held, now_ms=now_ms, horizon=horizon, **ends)
    looks = is_first_claim(held, now_ms, horizon)
    for view in (NARROW_VIEW,) if looks else (NARROW_VIEW, WIDE_VIEW):
        rows = connection.all(queue.oldest, now_ms=now_ms, view=view, **ends)
        found = fair_places(held, rows, most)
        # Behind the view is what is younger: only one with more under way than that gives way to it.
        if len(rows) < view or (len(found) == most and (found[-1].before == 0 or not looks)):
            return ChosenDeliveries([place.id for place in found], after)
    rows, walked = look_behind(connection, queue, now_ms, after, ends)
    # Of no endpoint more can be taken than stands at its head.
    return ChosenDeliveries([place.id for place in fair_places(held, rows, most)], walked)


def look_behind(
    connection: Connection, queue: QueueQueries, now_ms: int, after: str, ends: Mapping[str, str]
) -> tuple[list[DueDeliveryRow], str]:
    """The heads of the next endpoints' queues, the oldest first, and the last of these endpoints; nothing when they were all that follow.

    What is not all of them has the oldest rows of everybody beside it: no place stays empty while something is due.
    """
    found = connection.all(queue.heads, now_ms=now_ms, after=after, endpoints=ENDPOINTS_AT_ONCE, **ends)
    rows = {row.id: row for row in connection.all(queue.lapsed, now_ms=now_ms, view=NARROW_VIEW, **ends)}
    rows |= {
        head.id: DueDeliveryRow(head.id, head.queue, head.organisation, head.due_ms)
        for head in found
        if head.queue is not None and head.id is not None and head.organisation is not None and head.due_ms is not None
    }
    walked = "" if any(head.queue is None for head in found) else max(head.queue or "" for head in found)
    if after or walked:
        rows |= {row.id: row for row in connection.all(queue.oldest, now_ms=now_ms, view=WIDE_VIEW, **ends)}
    return sorted(rows.values(), key=lambda row: row.due_ms), walked
