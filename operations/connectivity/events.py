"""Events of the caller's organisation, and how their deliveries went."""

from collections.abc import Callable
from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypedDict

from operations.deps import Ctx
from operations.event_types.catalogue import PROMISED_TYPES
from operations.ledger.event_placing import queue_chosen
from operations.ledger.event_reading import TypePatterns, wanted_types
from operations.ledger.event_rights import ChooserRights, OperationsIn, readable_events
from operations.ledger.intents import IntentId
from operations.ledger.webhooks import Event, event_of_log, event_of_row
from operations.vocabulary import ListOf, ListPage, list_page
from registry.caller import Caller
from registry.clock import rfc3339_utc
from registry.errors import BadRequest, NotFound, QuotaExceeded
from registry.ids import first_id
from registry.operation import Example, Input, Scope, SpendKind, operation
from registry.rate_limits import minute_limit_reached, minute_number
from registry.redaction import redact
from storage.deliveries import AttemptRow, DeliveryRow, list_deliveries
from storage.engine.sql import Connection
from storage.event_log import count_log_retry, find_log_event, is_test_send, newest_events
from storage.events import EVENT_AHEAD_SECONDS, EventRow, count_event_retry, list_events, read_event
from storage.webhook_endpoints import enqueue_event

EVENT_RETRIES_PER_MINUTE = 10
EventId = Annotated[str, Field(max_length=64, description="Event id, evt_...")]


class EventPage(ListPage):
    """Which part of the list."""

    limit: Annotated[int, Field(ge=1, le=20, description="1-20.")] = 20
    intent: Annotated[IntentId | None, Field(description="Only this intent's, cni_...; not with types.")] = None
    types: TypePatterns = None


class EventRef(Input):
    """Which event."""

    id: EventId


class DeliveryPage(ListPage, EventRef):
    """Which event, and which part of its deliveries."""


class DeliveryAttempt(TypedDict):
    """One signed POST. `outcome` is `ok`, `status:<code>` or a class such as `timeout`, `tls`, `dns`, `refused`, `blocked`."""

    number: int
    at: str
    outcome: str
    milliseconds: float
    next_attempt_at: str | None


class Delivery(TypedDict):
    """An event on its way to one endpoint. Times are RFC 3339 UTC."""

    id: str
    object: Literal["connectivity.delivery"]
    event: str
    endpoint: str
    state: Literal["pending", "delivered", "failed"]
    attempts: list[DeliveryAttempt]
    created_at: str


DELIVERY_STATES: tuple[Literal["pending", "delivered", "failed"], ...] = ("pending", "delivered", "failed")
EXAMPLE_EVENT_ID = "evt_01k0a8w7zv6q4k3m2n1p0r9s8t"
EVENT_EXAMPLE: Event = {
    "id": EXAMPLE_EVENT_ID,
    "object": "connectivity.event",
    "type": "esim.issued",
    "livemode": False,
    "created": 1_795_166_400,
    "data": {"intent": "cni_01k0a8w7zv6q4k3m2n1p0r9s8t", "iccid": "8999012345678901237", "plan": "test_global_1gb"},
}
DELIVERY_EXAMPLE: Delivery = {
    "id": "dlv_01k0a8w7zv6q4k3m2n1p0r9s8t",
    "object": "connectivity.delivery",
    "event": EXAMPLE_EVENT_ID,
    "endpoint": "we_01k0a8w7zv6q4k3m2n1p0r9s8t",
    "state": "delivered",
    "attempts": [{"number": 1, "at": "2026-11-20T09:20:00Z", "outcome": "ok", "milliseconds": 84, "next_attempt_at": None}],
    "created_at": "2026-11-20T09:20:00Z",
}


def render_event(row: EventRow) -> Event:
    return event_of_row(id=row.id, type=row.type, livemode=row.livemode, created=row.created, data=row.data)


def list_of_types(ctx: Ctx, params: EventPage, after: str) -> Callable[[Connection], list[Event]]:
    """What reads the newest events of the chosen types. Raises BadRequest."""
    if params.intent is not None:
        raise BadRequest(
            f"intent ({params.intent}) and types were given together; the events of an intent are those of three types alone",
            param="intent",
            hint="Leave one of the two out",
        )
    wanted = wanted_types(params.types, ctx.caller, ctx.deps.internal_calls.operations_in)

    def find(connection: Connection) -> list[Event]:
        found = newest_events(connection, organisation=ctx.organisation, types=sorted(wanted), after=after, most=params.limit + 1)
        return [event_of_log(event) for event in found]

    return find


def find_shown_event(connection: Connection, *, event: str, caller: Caller, operations_in: OperationsIn) -> Event | None:
    """The event with this id, as the caller may see it: one of the three that everybody sees, or one of the log."""
    row = read_event(connection, event=event, organisation=caller.organisation)
    if row is not None:
        return render_event(row)
    logged = find_log_event(connection, event=event, organisation=caller.organisation)
    if logged is None or not readable_events(connection, caller=caller, events=[logged], operations_in=operations_in)[0]:
        return None
    return event_of_log(logged)


def event_not_found(event: str) -> NotFound:
    return NotFound(f"No event {redact(event)} in your organisation", param="id", hint="list_connectivity_events shows the ids")


@operation(
    "GET",
    "/v1/connectivity/events",
    title="List events",
    examples=[
        Example(
            "What happened to an intent?",
            {"intent": "cni_01k0a8w7zv6q4k3m2n1p0r9s8t"},
            {"object": "list", "data": [EVENT_EXAMPLE], "has_more": False},
        )
    ],
)
async def list_connectivity_events(ctx: Ctx, params: EventPage) -> ListOf[Event]:
    """List events, newest first, at most 20.

    Types: esim.issued, esim.first_attach, usage.threshold_reached; with `types` those that are named.

    `starting_after` gives the older ones. The same objects are sent to the organisation's webhook endpoints as signed POSTs. stream_events
    has the order of commits, and misses nothing; this list is in the order of ids, which are made a moment before.
    """
    after = params.starting_after or first_id("evt_", ctx.now + EVENT_AHEAD_SECONDS)
    if params.types is not None:
        return list_page(await ctx.deps.store.read(list_of_types(ctx, params, after)), params.limit)
    rows = await ctx.deps.store.read(list_events, organisation=ctx.organisation, intent=params.intent, after=after, most=params.limit + 1)
    return list_page([render_event(row) for row in rows], params.limit)


@operation(
    "GET",
    "/v1/connectivity/events/{id}",
    title="Get event",
    raises=[NotFound],
    examples=[Example("One event", {"id": EXAMPLE_EVENT_ID}, EVENT_EXAMPLE)],
)
async def get_connectivity_event(ctx: Ctx, params: EventRef) -> Event:
    """Get one event."""
    operations_in = ctx.deps.internal_calls.operations_in
    shown = await ctx.deps.store.read(find_shown_event, event=params.id, caller=ctx.caller, operations_in=operations_in)
    if shown is None:
        raise event_not_found(params.id)
    return shown


@operation(
    "POST",
    "/v1/connectivity/events/{id}/retry",
    spends=SpendKind.NOTHING,
    reaches_out=True,
    scope=Scope.ANY,
    title="Retry event",
    raises=[NotFound, QuotaExceeded],
    examples=[Example("Send an event again", {"id": EXAMPLE_EVENT_ID}, EVENT_EXAMPLE)],
)
async def retry_connectivity_event(ctx: Ctx, params: EventRef) -> Event:
    """Send an existing event again to every enabled endpoint that gets such events.

    At most 10 a minute. list_event_deliveries tells how it went.

    No second event is made: the `webhook-id` stays the event's id, so that receivers recognise the repetition; timestamp and
    signatures are new. Each delivery starts its schedule of ten attempts again, while its attempts keep their numbers. A delivery
    that is under way at this moment is not sent twice. The eleventh call of a minute is 429 `rate_limited`.
    """
    deps, now, most, named = ctx.deps, ctx.now, EVENT_RETRIES_PER_MINUTE, {"event": params.id, "organisation": ctx.organisation}
    rights = ChooserRights(deps.internal_calls.operations_in)

    def requeue(connection: Connection) -> Event:
        shown = find_shown_event(connection, event=params.id, caller=ctx.caller, operations_in=rights.operations_in)
        if shown is None:
            raise event_not_found(params.id)
        promised = shown["type"] in PROMISED_TYPES
        count = count_event_retry if promised else count_log_retry
        if count(connection, **named, minute=minute_number(now), most=most) is None:
            raise minute_limit_reached(f"{params.id} was retried", most=most, now=now, upgrade_url=deps.site.upgrade_url)
        if promised:
            enqueue_event(connection, **named, type=shown["type"], now_ms=int(now * 1000), ids=deps.ids)
        logged = find_log_event(connection, **named)
        if logged is not None:
            queue_chosen(connection, ctx.organisation, [logged], rights=rights, ids=deps.ids, now=now, again=True)
        return shown

    event = await ctx.settle_result(requeue)
    deps.wake_worker()
    return event


@operation(
    "GET",
    "/v1/connectivity/events/{id}/deliveries",
    title="List event deliveries",
    raises=[NotFound],
    examples=[
        Example("Did my server get it?", {"id": EXAMPLE_EVENT_ID}, {"object": "list", "data": [DELIVERY_EXAMPLE], "has_more": False})
    ],
)
async def list_event_deliveries(ctx: Ctx, params: DeliveryPage) -> ListOf[Delivery]:
    """List an event's deliveries to webhook endpoints, with every attempt.

    Of a test send, too. list_deliveries shows those of many events at once.
    Outcomes are classes: ok, status:502, timeout, tls, dns, refused, blocked, network, protocol.

    The receiver's answer and address are never kept. Newest first. A delivery that still waits is `pending`, and its last attempt
    says when the next one is due. Of a delivery that was retried very often the newest 100 attempts are shown.
    """

    operations_in = ctx.deps.internal_calls.operations_in

    def find(connection: Connection) -> list[tuple[DeliveryRow, list[AttemptRow]]]:
        shown = find_shown_event(connection, event=params.id, caller=ctx.caller, operations_in=operations_in)
        if shown is None and not is_test_send(connection, event=params.id, organisation=ctx.organisation):
            raise event_not_found(params.id)
        return list_deliveries(connection, event=params.id, after=params.starting_after, most=params.limit + 1)

    return list_page([render_delivery(row, attempts) for row, attempts in await ctx.deps.store.read(find)], params.limit)


def render_delivery(row: DeliveryRow, attempts: list[AttemptRow]) -> Delivery:
    return {
        "id": row.id,
        "object": "connectivity.delivery",
        "event": row.event_id,
        "endpoint": row.endpoint_id,
        "state": DELIVERY_STATES[row.state],
        "attempts": [
            {
                "number": attempt.number,
                "at": rfc3339_utc(attempt.at_ms / 1000),
                "outcome": attempt.outcome,
                "milliseconds": attempt.milliseconds,
                "next_attempt_at": None if attempt.next_ms is None else rfc3339_utc(attempt.next_ms / 1000),
            }
            for attempt in attempts
        ],
        "created_at": rfc3339_utc(row.created_ms / 1000),
    }
