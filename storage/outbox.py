"""The worker's side of deliveries: claim -> lease -> fenced ack, in batches, one path for both databases.

`due_ms` is also the visibility timeout: a claimed row is due again when its lease ends, so another worker retakes what a dead one
held. `attempt` is the place in the schedule, `attempts` counts all ever made. Choice: both move with the ack and not with the claim,
so every counted attempt has its row and an interrupted one is made again.
"""

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

import sqlalchemy as sa

from storage.deliveries import (
    DELIVERED_STATE,
    DELIVERY,
    DELIVERY_ATTEMPT,
    DELIVERY_OF_ENDPOINT,
    FAILED_STATE,
    IS_UNTAKEN,
    PENDING_STATE,
    TAKEN_OF_ENDPOINT,
    among_ids,
    id_range,
    in_id_range,
    remove_attempts,
)
from storage.endpoint_selections import ENDPOINT_SELECTION
from storage.engine.drivers import Value
from storage.engine.sql import Command, Connection, Dialect, Query, first_row, json_rows, pack_rows
from storage.event_log import EVENT_LOG, TEST_POSITION
from storage.events import EVENT
from storage.fair_share import choose_deliveries, is_pending, is_waiting
from storage.mcp_subscriptions import MCP_SUBSCRIPTION
from storage.organisations import ORGANISATION
from storage.webhook_endpoints import (
    FAILING_SECONDS,
    WEBHOOK_ENDPOINT,
    DisabledEndpoint,
    EndpointRecord,
    note_endpoint_failure,
    note_endpoint_success,
    read_endpoint_records,
)
from storage.webhook_receivers import HostOf, judge_receivers, take_receiver_places

# Four times the longest POST: an ack that waits for a busy database still comes in time.
DELIVERY_LEASE_MS = 60_000
ZERO = sa.literal_column("0", sa.Integer)
NO_EVENT = ""
"""The type of an event that is kept no more: a delivery of it that is asked for again has failed, since there is nothing to send."""
AttemptVerdict = Literal["ok", "failed", "gone", "ours"]


class LeasedDelivery(NamedTuple):
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
    proven: int | None
    failing_since: int | None
    private_receivers: int | None
    position: int | None = None
    """In the log; 0 of a test send. None: the event is in no log."""
    line: str | None = None
    line_number: int | None = None
    types: str | None = None
    """What the endpoint has chosen, and who chose it; None: nothing."""
    tags: str | None = None
    kind: str | None = None
    principal: str | None = None
    credential: str | None = None
    subscription: str | None = None
    """The MCP subscription that the endpoint sends for, and when it ends, Unix seconds."""
    expires: int | None = None


class ClaimedBatch(NamedTuple):
    """What one claim took: how many rows, and those of them that are to be sent. `walked` is for the next claim of the same process."""

    taken: int
    leased: list[LeasedDelivery]
    walked: str = ""


class AttemptOutcome(NamedTuple):
    """How one attempt went and what follows: `next_ms` when it is to be tried again. `ours` is a fault the endpoint has no part in.

    `host`: whose rates it counts against, if any.
    """

    delivery: str
    endpoint: str
    lease: str
    at_ms: int
    outcome: str
    milliseconds: float
    verdict: AttemptVerdict
    next_ms: int | None
    host: str | None = None


class AttemptNumber(NamedTuple):
    id: str
    attempts: int


def delivery_settings_query(dialect: Dialect) -> sa.Executable:
    """For this transaction PostgreSQL's COMMIT does not wait for the disk, and its statements are planned for the values that they get.

    Choice: a claim or an ack that is lost with the machine is the same as a worker that died a moment earlier: the delivery is made
    again, which at-least-once allows. The event and its deliveries were durable before. On SQLite commits stay as they are.

    A plan for any values takes a range of ids, which is there to tell the partitions, for a two-hundredth of the table. It is nearly all of
    it, and where much waits, such a plan goes through a month of deliveries by their ids, at each claim.
    """
    settings = {"synchronous_commit": "off", "plan_cache_mode": "force_custom_plan"}
    set_here = [f"set_config('{name}', '{value}', true)" for name, value in settings.items()]
    return sa.select(sa.literal_column("'full'" if dialect.name == "sqlite" else " || ".join(set_here), sa.Text).label("settings"))


def claim_query(dialect: Dialect) -> sa.Executable:
    """Lease the chosen ones that are still due: on PostgreSQL a late ack or a deletion may have come between."""
    return (
        sa.update(DELIVERY)
        .where(is_pending(DELIVERY), DELIVERY.c.due_ms + ZERO <= sa.bindparam("now_ms"), *among_ids(dialect, DELIVERY.c.id, "ids"))
        .values(lease=sa.bindparam("token"), due_ms=sa.bindparam("lease_end"))
    )


APPLY_DELIVERY_SETTINGS = Query(str, delivery_settings_query)
CLAIM_DELIVERIES = Command(claim_query)
EVENT_MEMBERS = ("type", "livemode", "data", "created")
ABSENT = {"type": (sa.literal_column(f"'{NO_EVENT}'", sa.Text),)}
LOG_MEMBERS = ("position", "line", "line_number")
CHOICE_MEMBERS = ("types", "tags", "kind", "principal", "credential")
ENDPOINT_MEMBERS = ("url", "status", "secret", "previous_secret", "previous_until", "proven", "failing_since")


def claimed_rows(dialect: Dialect) -> sa.Executable:
    """What was claimed under a lease.

    A promised event is in both tables; a report, one of before the log, or one without its place, is read in the first alone; every other
    one is in the log alone. One that is kept no more has no type.
    """
    return (
        sa.select(
            *(DELIVERY.c[name] for name in ("id", "endpoint_id", "organisation", "attempt", "event_id")),
            *(sa.func.coalesce(EVENT.c[name], EVENT_LOG.c[name], *ABSENT.get(name, ())).label(name) for name in EVENT_MEMBERS),
            *(WEBHOOK_ENDPOINT.c[name] for name in ENDPOINT_MEMBERS),
            ORGANISATION.c.private_receivers,
            *(EVENT_LOG.c[name] for name in LOG_MEMBERS),
            *(ENDPOINT_SELECTION.c[name] for name in CHOICE_MEMBERS),
            MCP_SUBSCRIPTION.c.id.label("subscription"),
            MCP_SUBSCRIPTION.c.expires,
        )
        .select_from(DELIVERY)
        .join(EVENT, EVENT.c.id == DELIVERY.c.event_id, isouter=True)
        .join(ORGANISATION, ORGANISATION.c.id == DELIVERY.c.organisation, isouter=True)
        .join(WEBHOOK_ENDPOINT, WEBHOOK_ENDPOINT.c.id == DELIVERY.c.endpoint_id, isouter=True)
        .join(EVENT_LOG, (EVENT_LOG.c.id == DELIVERY.c.event_id) & EVENT_LOG.c.position.is_not(None), isouter=True)
        .join(ENDPOINT_SELECTION, ENDPOINT_SELECTION.c.endpoint == DELIVERY.c.endpoint_id, isouter=True)
        .join(MCP_SUBSCRIPTION, MCP_SUBSCRIPTION.c.endpoint == DELIVERY.c.endpoint_id, isouter=True)
        .where(is_pending(DELIVERY), DELIVERY.c.due_ms == sa.bindparam("lease_end"), DELIVERY.c.lease == sa.bindparam("token"))
        .where(*in_id_range(dialect, DELIVERY.c.id))
    )


READ_LEASED = Query(LeasedDelivery, claimed_rows)
DELIVERY_IS_HELD = (DELIVERY.c.id == sa.bindparam("delivery")) & (DELIVERY.c.lease == sa.bindparam("held")) & is_waiting(DELIVERY)


def acknowledge_query(dialect: Dialect) -> sa.Executable:
    """All outcomes of a batch in one statement, each fenced by its own lease."""
    outcome = json_rows(dialect, "outcomes", "outcome", id=sa.Text, lease=sa.Text, state=sa.Integer, due_ms=sa.BigInteger)
    return (
        sa.update(DELIVERY)
        .where(DELIVERY.c.id == outcome.c.id, DELIVERY.c.lease == outcome.c.lease, is_pending(DELIVERY))
        .where(*among_ids(dialect, DELIVERY.c.id, "outcomes"))
        .values(
            state=outcome.c.state, attempt=DELIVERY.c.attempt + 1, attempts=DELIVERY.c.attempts + 1, due_ms=outcome.c.due_ms, lease=None
        )
    )


def record_attempts_query(dialect: Dialect) -> sa.Executable:
    """One row for each attempt that counted."""
    columns = {"delivery_id": sa.Text, "number": sa.Integer, "at_ms": sa.BigInteger, "outcome": sa.Text}
    made = json_rows(dialect, "attempts", "made", **columns, milliseconds=sa.Double, next_ms=sa.BigInteger)
    return sa.insert(DELIVERY_ATTEMPT).from_select(list(made.c.keys()), sa.select(*made.c))


ACKNOWLEDGE_ATTEMPTS = Query(AttemptNumber, acknowledge_query)
RECORD_ATTEMPTS = Command(record_attempts_query)
POSTPONE_DELIVERY = Command(lambda _: sa.update(DELIVERY).where(DELIVERY_IS_HELD).values(lease=None, due_ms=sa.bindparam("next_ms")))
RETURN_DELIVERY = Command(lambda _: sa.update(DELIVERY).where(DELIVERY_IS_HELD).values(lease=None, due_ms=sa.bindparam("now_ms")))
FAIL_DELIVERY = Command(lambda _: sa.update(DELIVERY).where(DELIVERY_IS_HELD).values(state=FAILED_STATE, lease=None))
DROP_DELIVERY = Query(str, lambda _: sa.delete(DELIVERY).where(DELIVERY_IS_HELD).returning(DELIVERY.c.id))


@first_row(int)
def next_delivery_due() -> sa.Executable:
    """When the next pending delivery is due; a read, so that an idle worker never takes the write lock."""
    return sa.select(sa.func.min(DELIVERY.c.due_ms).label("due_ms")).where(is_waiting(DELIVERY))


def claim_deliveries(
    connection: Connection,
    *,
    token: str,
    now_ms: int,
    most: int,
    lease_ms: int = DELIVERY_LEASE_MS,
    host_of: HostOf = lambda url: None,
    after: str = "",
) -> ClaimedBatch:
    """Take what is due under a lease. Deliveries of disabled or deleted endpoints, and of events that are kept no more, end here; those
    whose host has no place wait.

    `after` is the `walked` of this process's claim before. `now_ms`: Unix milliseconds.
    """
    end, horizon = now_ms + lease_ms, now_ms + max(DELIVERY_LEASE_MS, lease_ms)
    connection.first(APPLY_DELIVERY_SETTINGS)
    chosen, walked = choose_deliveries(connection, now_ms=now_ms, horizon=horizon, most=most, after=after)
    which = {"ids": pack_rows([[id] for id in chosen]), **id_range(chosen)} if chosen else {}
    taken = connection.run(CLAIM_DELIVERIES, token=token, now_ms=now_ms, lease_end=end, **which) if chosen else 0
    rows = connection.all(READ_LEASED, token=token, lease_end=end, **id_range(chosen)) if taken else []
    for row in rows:
        if row.url is None:
            remove_attempts(connection, connection.all(DROP_DELIVERY, delivery=row.id, held=token))
        elif row.status != "enabled" or row.type == NO_EVENT:
            connection.run(FAIL_DELIVERY, delivery=row.id, held=token)
    turn = {id: place for place, id in enumerate(chosen)}
    enabled = sorted((row for row in rows if row.status == "enabled" and row.type != NO_EVENT), key=lambda row: turn[row.id])
    later = postpone_deliveries(connection, enabled, token, host_of, now_ms)
    return ClaimedBatch(taken, [row for row in enabled if row.id not in later], walked)


def postpone_deliveries(connection: Connection, rows: Sequence[LeasedDelivery], token: str, host_of: HostOf, now_ms: int) -> set[str]:
    """Let go of those whose host has no place for them now. `now_ms`: Unix milliseconds."""
    due = {rows[each.position].id: each.due_ms for each in take_receiver_places(connection, rows=rows, host_of=host_of, now_ms=now_ms)}
    connection.run_many(POSTPONE_DELIVERY, [{"delivery": id, "held": token, "next_ms": due_ms} for id, due_ms in due.items()])
    return set(due)


def acknowledge_attempts(
    connection: Connection, *, outcomes: Sequence[AttemptOutcome], disabled: list[DisabledEndpoint] | None = None
) -> int:
    """Record attempts and what follows from them; one whose lease was lost meanwhile changes nothing. How many counted.

    `disabled` is given the endpoints that this disables.
    """
    connection.first(APPLY_DELIVERY_SETTINGS)
    counted = [outcome for wave in outcome_waves(outcomes) for outcome in acknowledge_wave(connection, wave)]
    judge_endpoints(connection, counted, [] if disabled is None else disabled)
    judge_receivers(connection, earned=earned_credit(counted))
    return len(counted)


def earned_credit(outcomes: Sequence[AttemptOutcome]) -> dict[str, int]:
    """By host: a success is one, a failure takes two away. Choice: so a host where less than two thirds succeed earns nothing."""
    found: dict[str, int] = {}
    for outcome in outcomes:
        if outcome.host is not None and outcome.verdict != "ours":
            found[outcome.host] = found.get(outcome.host, 0) + (1 if outcome.verdict == "ok" else -2)
    return found


def outcome_waves(outcomes: Sequence[AttemptOutcome]) -> list[dict[str, AttemptOutcome]]:
    """Parts that name each delivery once: a statement of many would not say which of two outcomes it took. Nearly always one part."""
    found: list[dict[str, AttemptOutcome]] = []
    for outcome in outcomes:
        wave = next((wave for wave in found if outcome.delivery not in wave), None)
        if wave is None:
            found.append(wave := {})
        wave[outcome.delivery] = outcome
    return found


def acknowledge_wave(connection: Connection, wave: Mapping[str, AttemptOutcome]) -> list[AttemptOutcome]:
    """Those of the wave that still held their lease."""
    numbers = connection.all(
        ACKNOWLEDGE_ATTEMPTS, outcomes=pack_rows([delivery_after(outcome) for outcome in wave.values()]), **id_range(list(wave))
    )
    if numbers:
        connection.run(RECORD_ATTEMPTS, attempts=pack_rows([attempt_values(wave[row.id], row.attempts) for row in numbers]))
    return [wave[row.id] for row in numbers]


def delivery_after(outcome: AttemptOutcome) -> Sequence[Value]:
    return outcome.delivery, outcome.lease, state_after(outcome), outcome.at_ms if outcome.next_ms is None else outcome.next_ms


def attempt_values(outcome: AttemptOutcome, number: int) -> Sequence[Value]:
    return outcome.delivery, number, outcome.at_ms, outcome.outcome, outcome.milliseconds, outcome.next_ms


def state_after(outcome: AttemptOutcome) -> int:
    if outcome.verdict == "ok":
        return DELIVERED_STATE
    return FAILED_STATE if outcome.next_ms is None else PENDING_STATE


def judge_endpoints(connection: Connection, outcomes: Sequence[AttemptOutcome], disabled: list[DisabledEndpoint]) -> None:
    """One success clears an endpoint's record; failures after it begin or go on with a new one."""
    of_endpoint: dict[str, list[AttemptOutcome]] = {}
    for outcome in sorted(outcomes, key=lambda outcome: outcome.at_ms):
        if outcome.verdict != "ours":
            of_endpoint.setdefault(outcome.endpoint, []).append(outcome)
    for record in read_endpoint_records(connection, endpoints=list(of_endpoint)):
        ended = judge_endpoint(connection, record, of_endpoint[record.id])
        if ended is not None:
            disabled.append(ended)


def judge_endpoint(connection: Connection, record: EndpointRecord, own: Sequence[AttemptOutcome]) -> DisabledEndpoint | None:
    """What an endpoint's attempts, in their order, make of its record; nothing is written when it stays as it is.

    Returns the endpoint where they disable it.

    A record that another worker changes meanwhile stands as if its attempts had come after these.
    """
    successes = [place for place, outcome in enumerate(own) if outcome.verdict == "ok"]
    since = record.failing_since
    if successes and (since is not None or not record.proven):
        note_endpoint_success(connection, endpoint=record.id)
        since = None
    failures = own[successes[-1] + 1 :] if successes else own
    gone = any(outcome.verdict == "gone" for outcome in own)
    if failures or gone:
        first, last = (failures or own)[0].at_ms // 1000, own[-1].at_ms // 1000
        if gone or since is None or record.status != "enabled" or last - since >= FAILING_SECONDS:
            return note_endpoint_failure(connection, endpoint=record.id, first=first, last=last, gone=gone)
    return None


def undelivered(state: sa.ColumnElement[bool]) -> sa.Select[tuple[int]]:
    """The positions of what an endpoint is still to get and `state` is true of; each state has an index of its own."""
    return (
        sa.select(EVENT_LOG.c.position)
        .join_from(DELIVERY, EVENT_LOG, EVENT_LOG.c.id == DELIVERY.c.event_id)
        .where(state, EVENT_LOG.c.position > TEST_POSITION)
    )


UNDELIVERED = sa.union_all(undelivered(DELIVERY_OF_ENDPOINT & IS_UNTAKEN), undelivered(TAKEN_OF_ENDPOINT)).subquery("undelivered")

FIRST_UNDELIVERED = Query(int, lambda _: sa.select(sa.func.min(UNDELIVERED.c.position).label("position")))


def first_undelivered(connection: Connection, *, endpoint: str) -> int | None:
    """The first position in the log of what an endpoint is still to get; None when nothing waits for it."""
    return connection.first(FIRST_UNDELIVERED, endpoint=endpoint)


def return_deliveries(connection: Connection, *, leases: Sequence[tuple[str, str]], now_ms: int) -> int:
    """End leases early, at shutdown: (delivery, lease) each, due at once for the next worker. `now_ms`: Unix milliseconds."""
    return connection.run_many(RETURN_DELIVERY, [{"delivery": delivery, "held": lease, "now_ms": now_ms} for delivery, lease in leases])
