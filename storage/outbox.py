"""The worker's side of deliveries: claim -> lease -> fenced ack, in batches, one path for both databases (storage.md 7).

`due_ms` is also the visibility timeout: a claimed row is due again when its lease ends, so another worker retakes what a dead one
held. `attempt` is the place in the schedule, `attempts` counts all ever made. Choice: both move with the ack and not with the claim,
so every counted attempt has its row and an interrupted one is made again.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import sqlalchemy as sa

from storage.connection import Connection
from storage.deliveries import DELIVERED, FAILED, PENDING
from storage.endpoints import note_failure, note_success
from storage.schema import DeliveryAttemptTable, DeliveryTable, EventTable, WebhookEndpointTable
from storage.statement import Command, Query, table

DELIVERY, ATTEMPT, EVENT, ENDPOINT = table(DeliveryTable), table(DeliveryAttemptTable), table(EventTable), table(WebhookEndpointTable)
# Four times the longest POST: an ack that waits for a busy database still comes in time.
LEASE_MS = 60_000
IN_FLIGHT = 2
# Without it one organisation's slow receivers, at two for each of its endpoints, hold the places of all others.
IN_FLIGHT_OF_ORGANISATION = 8
WINDOW = 500
Verdict = Literal["ok", "failed", "gone", "ours"]


class Leased(NamedTuple):
    """A claimed delivery with all that its POST needs; without a URL when the endpoint is gone."""

    id: str
    endpoint_id: str
    organisation: str
    attempt: int
    event_id: str
    type: str
    livemode: int
    data: str
    created: int
    url: str | None
    status: str | None
    secret: str | None
    previous_secret: str | None
    previous_until: int | None


class Batch(NamedTuple):
    """What one claim took: how many rows, and those of them that are to be sent."""

    taken: int
    leased: list[Leased]


class Outcome(NamedTuple):
    """How one attempt went and what follows: `next_ms` when it is to be tried again. `ours` is a fault the endpoint has no part in."""

    delivery: str
    endpoint: str
    lease: str
    at_ms: int
    outcome: str
    milliseconds: float
    verdict: Verdict
    next_ms: int | None


class Number(NamedTuple):
    """The number of an acknowledged attempt."""

    attempts: int


class Due(NamedTuple):
    """When the next delivery is due."""

    due_ms: int | None


def waiting(delivery: sa.FromClause) -> sa.ColumnElement[bool]:
    """Pending: the 0 stands in the text, so that the planner knows how few rows that is."""
    return delivery.c.state == sa.literal_column("0")


def under_way(whose: str) -> sa.Subquery:
    """How many deliveries of each endpoint, or of each organisation, are leased; a leased row is due within the length of a lease.

    Not a CTE: Python's sqlite3 counts no rows for an UPDATE that begins with WITH.
    """
    held, now, end = DELIVERY.alias("held"), sa.bindparam("now_ms", type_=sa.BigInteger), sa.bindparam("lease_end", type_=sa.BigInteger)
    return (
        sa.select(held.c[whose], sa.func.count().label("places"))
        .where(waiting(held), held.c.due_ms > now, held.c.due_ms <= end, held.c.lease.is_not(None))
        .group_by(held.c[whose])
        .subquery()
    )


def full(whose: str, most: int) -> sa.Select[tuple[str]]:
    """The endpoints, or the organisations, that have as many under way as they may have."""
    busy = under_way(whose)
    return sa.select(busy.c[whose]).where(busy.c.places >= most)


def with_room(rows: sa.Subquery, whose: str, most: int) -> sa.Subquery:
    """The first of each endpoint's, or organisation's, rows: as many as it has room for beside what is under way."""
    place = sa.func.row_number().over(partition_by=rows.c[whose], order_by=(rows.c.due_ms, rows.c.id))
    ranked, flying = sa.select(*rows.c, place.label("place")).subquery(), under_way(whose)
    return (
        sa.select(*(ranked.c[column.name] for column in rows.c))
        .join_from(ranked, flying, flying.c[whose] == ranked.c[whose], isouter=True)
        .where(ranked.c.place + sa.func.coalesce(flying.c.places, 0) <= most)
        .subquery()
    )


def claimable() -> sa.ScalarSelect[str]:
    """The ids to take: due, oldest first, within the limits of each endpoint and each organisation, whoever holds what is under way.

    Those at their limit are left out before the window is cut, so that their backlog hides nobody else's. The order is total: claims
    at the same moment choose the same rows, so that together they do not exceed a limit.
    """
    now, due = sa.bindparam("now_ms", type_=sa.BigInteger), DELIVERY.alias("due")
    window = (
        sa.select(due.c.id, due.c.endpoint_id, due.c.organisation, due.c.due_ms)
        .where(
            waiting(due),
            due.c.due_ms <= now,
            due.c.endpoint_id.not_in(full("endpoint_id", IN_FLIGHT)),
            due.c.organisation.not_in(full("organisation", IN_FLIGHT_OF_ORGANISATION)),
        )
        .order_by(due.c.due_ms, due.c.id)
        .limit(WINDOW)
        .subquery("near")
    )
    fair = with_room(with_room(window, "endpoint_id", IN_FLIGHT), "organisation", IN_FLIGHT_OF_ORGANISATION)
    # PostgreSQL checks state and due time again on rows that another worker changed meanwhile, and skips those it holds;
    # on SQLite FOR UPDATE renders nothing, and the write lock excludes.
    pick = sa.select(DELIVERY.c.id).where(waiting(DELIVERY), DELIVERY.c.due_ms <= now, DELIVERY.c.id.in_(sa.select(fair.c.id)))
    return pick.order_by(DELIVERY.c.due_ms).limit(sa.bindparam("most")).with_for_update(skip_locked=True).scalar_subquery()


CLAIM = Command(
    sa.update(DELIVERY).where(DELIVERY.c.id.in_(claimable())).values(lease=sa.bindparam("token"), due_ms=sa.bindparam("lease_end"))
)
READ = Query(
    Leased,
    sa.select(
        DELIVERY.c.id,
        DELIVERY.c.endpoint_id,
        DELIVERY.c.organisation,
        DELIVERY.c.attempt,
        DELIVERY.c.event_id,
        EVENT.c.type,
        EVENT.c.livemode,
        EVENT.c.data,
        EVENT.c.created,
        ENDPOINT.c.url,
        ENDPOINT.c.status,
        ENDPOINT.c.secret,
        ENDPOINT.c.previous_secret,
        ENDPOINT.c.previous_until,
    )
    .join_from(DELIVERY, EVENT, EVENT.c.id == DELIVERY.c.event_id)
    .join(ENDPOINT, ENDPOINT.c.id == DELIVERY.c.endpoint_id, isouter=True)
    .where(waiting(DELIVERY), DELIVERY.c.due_ms == sa.bindparam("lease_end"), DELIVERY.c.lease == sa.bindparam("token")),
)
HELD = (DELIVERY.c.id == sa.bindparam("delivery")) & (DELIVERY.c.lease == sa.bindparam("held")) & waiting(DELIVERY)
ACK = Query(
    Number,
    sa.update(DELIVERY)
    .where(HELD)
    .values(
        state=sa.bindparam("new_state"),
        attempt=DELIVERY.c.attempt + 1,
        attempts=DELIVERY.c.attempts + 1,
        due_ms=sa.bindparam("next_due"),
        lease=None,
    )
    .returning(DELIVERY.c.attempts),
)
GIVE_BACK = Command(sa.update(DELIVERY).where(HELD).values(lease=None, due_ms=sa.bindparam("now_ms")))
FAIL = Command(sa.update(DELIVERY).where(HELD).values(state=FAILED, lease=None))
DROP = Command(sa.delete(DELIVERY).where(HELD))
RECORD = Command(
    sa.insert(ATTEMPT).values(
        {name: sa.bindparam(name) for name in ("delivery_id", "number", "at_ms", "outcome", "milliseconds", "next_ms")}
    )
)
NEXT = Query(Due, sa.select(sa.func.min(DELIVERY.c.due_ms).label("due_ms")).where(waiting(DELIVERY)))


def next_due(connection: Connection) -> int | None:
    """When the next pending delivery is due; a read, so that an idle worker never takes the write lock."""
    row = connection.first(NEXT)
    return row.due_ms if row else None


def claim(connection: Connection, *, token: str, now_ms: int, most: int) -> Batch:
    """Take what is due under a lease. Deliveries of disabled or deleted endpoints end here."""
    end = now_ms + LEASE_MS
    taken = connection.run(CLAIM, token=token, now_ms=now_ms, lease_end=end, most=most)
    rows = connection.all(READ, token=token, lease_end=end) if taken else []
    for row in rows:
        if row.status != "enabled":
            connection.run(DROP if row.url is None else FAIL, delivery=row.id, held=token)
    return Batch(taken, [row for row in rows if row.status == "enabled"])


def ack(connection: Connection, *, outcomes: Sequence[Outcome]) -> int:
    """Record attempts and what follows from them; one whose lease was lost meanwhile changes nothing. How many counted."""
    counted: list[Outcome] = []
    attempts: list[dict[str, str | int | float | None]] = []
    for outcome in outcomes:
        number = connection.first(
            ACK,
            delivery=outcome.delivery,
            held=outcome.lease,
            new_state=state_of(outcome),
            next_due=outcome.at_ms if outcome.next_ms is None else outcome.next_ms,
        )
        if number is not None:
            counted.append(outcome)
            attempts.append(
                {
                    "delivery_id": outcome.delivery,
                    "number": number.attempts,
                    "at_ms": outcome.at_ms,
                    "outcome": outcome.outcome,
                    "milliseconds": outcome.milliseconds,
                    "next_ms": outcome.next_ms,
                }
            )
    connection.run_many(RECORD, attempts)
    judge_endpoints(connection, counted)
    return len(counted)


def state_of(outcome: Outcome) -> int:
    """What the delivery has become."""
    if outcome.verdict == "ok":
        return DELIVERED
    return FAILED if outcome.next_ms is None else PENDING


def judge_endpoints(connection: Connection, outcomes: Sequence[Outcome]) -> None:
    """One success clears an endpoint's record; failures after it begin or go on with a new one."""
    for endpoint in sorted({outcome.endpoint for outcome in outcomes}):
        own = sorted((o for o in outcomes if o.endpoint == endpoint and o.verdict != "ours"), key=lambda o: o.at_ms)
        successes = [place for place, outcome in enumerate(own) if outcome.verdict == "ok"]
        if successes:
            note_success(connection, endpoint=endpoint)
        failures = own[successes[-1] + 1 :] if successes else own
        gone = any(outcome.verdict == "gone" for outcome in own)
        if failures or gone:
            first, last = (failures or own)[0], own[-1]
            note_failure(connection, endpoint=endpoint, first=first.at_ms // 1000, last=last.at_ms // 1000, gone=gone)


def give_back(connection: Connection, *, leases: Sequence[tuple[str, str]], now_ms: int) -> int:
    """End leases early, at shutdown: (delivery, lease) each, due at once for the next worker."""
    return connection.run_many(GIVE_BACK, [{"delivery": delivery, "held": lease, "now_ms": now_ms} for delivery, lease in leases])
