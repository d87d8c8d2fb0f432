"""Which due deliveries are taken next: the oldest, within the limits of each endpoint and each organisation, whoever holds what
is under way.

Claims take turns (on SQLite the write lock makes them, on PostgreSQL an advisory lock), so that together they exceed no limit.
A claim looks at the oldest rows first. When the backlog of those at their limit fills that view, it looks behind it: at the head
of each endpoint's own queue, found by skipping from endpoint to endpoint in an index, however long the queues are.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import sqlalchemy as sa

from storage.connection import Connection
from storage.schema import DeliveryTable
from storage.statement import Dialect, Query, table

DELIVERY = table(DeliveryTable)
IN_FLIGHT = 2
# Without it one organisation's slow receivers, at two for each of its endpoints, hold the places of all others.
IN_FLIGHT_OF_ORGANISATION = 8
# How many of the oldest are looked at: enough for most claims, then as many as cost less than looking behind them.
VIEWS = (64, 512)
TURN = 0x6F7574626F78  # "outbox": the name of the advisory lock


class Turn(NamedTuple):
    """It is this claim's turn."""

    taken: int


class Held(NamedTuple):
    """How many deliveries of an endpoint are under way."""

    endpoint_id: str
    organisation: str
    places: int


class Candidate(NamedTuple):
    """A delivery that is due."""

    id: str
    endpoint_id: str
    organisation: str


def waiting(delivery: sa.FromClause) -> sa.ColumnElement[bool]:
    """Pending: the 0 stands in the text, so that the planner knows how few rows that is."""
    return delivery.c.state == sa.literal_column("0")


def lock(dialect: Dialect) -> sa.Executable:
    """Held to the end of the transaction; on SQLite there is nothing to do."""
    if dialect.name == "sqlite":
        return sa.select(sa.literal_column("1", sa.Integer).label("taken"))
    held = sa.select(sa.func.pg_advisory_xact_lock(sa.literal_column(str(TURN)))).cte("held").prefix_with("MATERIALIZED")
    return sa.select(sa.func.count().label("taken")).select_from(held)


NOW = sa.bindparam("now_ms", type_=sa.BigInteger)
TAKE_TURN = Query(Turn, lock)
# A leased row is due within the length of the longest lease.
HELD = Query(
    Held,
    sa.select(DELIVERY.c.endpoint_id, DELIVERY.c.organisation, sa.func.count().label("places"))
    .where(waiting(DELIVERY), DELIVERY.c.due_ms > NOW, DELIVERY.c.due_ms <= sa.bindparam("horizon"), DELIVERY.c.lease.is_not(None))
    .group_by(DELIVERY.c.endpoint_id, DELIVERY.c.organisation),
)
OLDEST = Query(
    Candidate,
    sa.select(*(DELIVERY.c[name] for name in Candidate._fields))
    .where(waiting(DELIVERY), DELIVERY.c.due_ms <= NOW)
    .order_by(DELIVERY.c.due_ms)
    .limit(sa.bindparam("view")),
)


def heads(dialect: Dialect) -> sa.Executable:
    """The two oldest of every endpoint that has something due, oldest first."""
    queue, head = queues(), DELIVERY.alias("head")
    own = (
        sa.select(head.c.id, head.c.endpoint_id, head.c.organisation, head.c.due_ms)
        .where(waiting(head), head.c.endpoint_id == queue.c.endpoint_id, head.c.due_ms <= NOW)
        .order_by(head.c.due_ms)
        .limit(sa.literal_column(str(IN_FLIGHT)))
    )
    if dialect.name == "sqlite":  # it has no LATERAL; PostgreSQL would make a scan of the other form
        ids = own.with_only_columns(head.c.id).correlate(queue).scalar_subquery()
        found = DELIVERY.alias("found")
        joined = sa.join(queue, found, found.c.id.in_(ids))
    else:
        found = own.correlate(queue).lateral("found")
        joined = sa.join(queue, found, sa.true())
    return sa.select(*(found.c[name] for name in Candidate._fields)).select_from(joined).order_by(found.c.due_ms)


def queues() -> sa.CTE:
    """Every endpoint with something pending: from one to the next by the index, not by the rows between."""
    first, following = DELIVERY.alias("first"), DELIVERY.alias("following")
    queue = sa.select(sa.func.min(first.c.endpoint_id).label("endpoint_id")).where(waiting(first)).cte("queue", recursive=True)
    after = sa.select(sa.func.min(following.c.endpoint_id)).where(waiting(following), following.c.endpoint_id > queue.c.endpoint_id)
    return queue.union_all(sa.select(after.correlate(queue).scalar_subquery()).where(queue.c.endpoint_id.is_not(None)))


HEADS = Query(Candidate, heads)


class Shares:
    """The places that are left for this claim."""

    def __init__(self, held: Iterable[Held], most: int) -> None:
        self._endpoints, self._organisations, self._most = Counter[str](), Counter[str](), most
        self.chosen: dict[str, None] = {}
        for row in held:
            self._endpoints[row.endpoint_id] += row.places
            self._organisations[row.organisation] += row.places

    @property
    def full(self) -> bool:
        """Whether the claim has as many as it asked for."""
        return len(self.chosen) >= self._most

    def choose(self, rows: Sequence[Candidate]) -> None:
        """Take what has room, in this order."""
        for row in rows:
            if self.full:
                return
            if self._room(row) and row.id not in self.chosen:
                self.chosen[row.id] = None
                self._endpoints[row.endpoint_id] += 1
                self._organisations[row.organisation] += 1

    def _room(self, row: Candidate) -> bool:
        return self._endpoints[row.endpoint_id] < IN_FLIGHT and self._organisations[row.organisation] < IN_FLIGHT_OF_ORGANISATION


def choose(connection: Connection, *, now_ms: int, horizon: int, most: int) -> list[str]:
    """The ids to take."""
    connection.first(TAKE_TURN)
    shares = Shares(connection.all(HELD, now_ms=now_ms, horizon=horizon), most)
    for view in VIEWS:
        rows = connection.all(OLDEST, now_ms=now_ms, view=view)
        shares.choose(rows)
        if shares.full or len(rows) < view:
            return list(shares.chosen)
    shares.choose(connection.all(HEADS, now_ms=now_ms))
    return list(shares.chosen)
