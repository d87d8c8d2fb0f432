"""Deliveries of all events, so that nobody has to look event by event."""

from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypedDict

from operations.connectivity.events import DELIVERY_STATES, EXAMPLE_EVENT_ID
from operations.connectivity.webhook_endpoints import EXAMPLE_DELIVERY_ID, EXAMPLE_ENDPOINT_ID
from operations.deps import Ctx
from operations.event_types.catalogue import EVENT_TYPES, PROMISED_TYPES
from operations.ledger.event_reading import TypePatterns, wanted_types
from operations.ledger.event_rights import readable_types
from operations.times import UnixTime
from operations.vocabulary import ListOf, ListPage, list_page, unknown_last_id
from registry.clock import rfc3339_utc
from registry.errors import BadRequest
from registry.ids import LAST_ID_LETTERS, first_id
from registry.operation import Example, operation
from storage.deliveries import PENDING_STATE
from storage.delivery_lists import DeliveryFilter, DeliveryPosition, ListedDelivery, find_place, list_all_deliveries
from storage.engine.sql import Connection
from storage.events import REPORT_EVENT

DeliveryState = Literal["pending", "delivered", "failed"]


class DeliveriesQuery(ListPage):
    """Which deliveries."""

    endpoint: Annotated[str | None, Field(max_length=64, description="Only to this one, we_...")] = None
    state: Annotated[DeliveryState | None, Field(description="Only these.")] = None
    types: TypePatterns = None
    since: Annotated[UnixTime | None, Field(description="Only of events from then on, Unix seconds.")] = None
    until: Annotated[UnixTime | None, Field(description="Only of events before, Unix seconds.")] = None


class DeliveryLine(TypedDict):
    """A delivery in a list of many. `next_attempt_at` is null unless it is pending; list_event_deliveries shows the attempts."""

    id: str
    object: Literal["connectivity.delivery"]
    event: str
    type: str | None
    endpoint: str
    state: DeliveryState
    attempts: int
    next_attempt_at: str | None
    created_at: str


DELIVERY_LINE_EXAMPLE: DeliveryLine = {
    "id": EXAMPLE_DELIVERY_ID,
    "object": "connectivity.delivery",
    "event": EXAMPLE_EVENT_ID,
    "type": "esim.issued",
    "endpoint": EXAMPLE_ENDPOINT_ID,
    "state": "failed",
    "attempts": 10,
    "next_attempt_at": None,
    "created_at": "2026-11-20T09:20:00Z",
}


def delivery_line(row: ListedDelivery) -> DeliveryLine:
    """A row as it is shown."""
    return {
        "id": row.id,
        "object": "connectivity.delivery",
        "event": row.event_id,
        "type": row.type,
        "endpoint": row.endpoint_id,
        "state": DELIVERY_STATES[row.state],
        "attempts": row.attempts,
        "next_attempt_at": rfc3339_utc(row.due_ms / 1000) if row.state == PENDING_STATE else None,
        "created_at": rfc3339_utc(row.created_ms / 1000),
    }


@operation(
    "GET",
    "/v1/connectivity/deliveries",
    title="List deliveries",
    raises=[BadRequest],
    examples=[
        Example("What did not arrive?", {"state": "failed"}, {"object": "list", "data": [DELIVERY_LINE_EXAMPLE], "has_more": False}),
    ],
)
async def list_deliveries(ctx: Ctx, params: DeliveriesQuery) -> ListOf[DeliveryLine]:
    """List deliveries to webhook endpoints by endpoint, state, type and time.

    Those of the newest events come first. replay_failed_deliveries sends what failed again.
    """
    if params.since is not None and params.until is not None and params.since >= params.until:
        text = f"since ({params.since}) is not before until ({params.until}), so that no event fits"
        raise BadRequest(text, param="since", hint="Give an earlier since, or leave one of the two out")
    operations_in = ctx.deps.internal_calls.operations_in
    readable = readable_types(ctx.caller, operations_in)
    types = None if params.types is None else sorted(wanted_types(params.types, ctx.caller, operations_in))
    if types is None and len(readable) < len(EVENT_TYPES):
        types = sorted(readable | {REPORT_EVENT})

    def find(connection: Connection) -> list[ListedDelivery]:
        asked = DeliveryFilter(
            endpoint=params.endpoint,
            state=None if params.state is None else DELIVERY_STATES.index(params.state),
            types=types,
            above=first_id("evt_", 0 if params.since is None else params.since),
            below=page_begin(connection, params, ctx.organisation),
            untyped=(*PROMISED_TYPES, REPORT_EVENT),
        )
        return list_all_deliveries(connection, organisation=ctx.organisation, asked=asked, most=params.limit + 1)

    return list_page([delivery_line(row) for row in await ctx.deps.store.read(find)], params.limit)


def page_begin(connection: Connection, params: DeliveriesQuery, organisation: str) -> DeliveryPosition:
    """Where the page begins. Raises BadRequest for a last id that is none of the organisation's deliveries."""
    limit = DeliveryPosition("evt_" + LAST_ID_LETTERS if params.until is None else first_id("evt_", params.until), "")
    if params.starting_after is None:
        return limit
    place = find_place(connection, delivery=params.starting_after, organisation=organisation)
    if place is None:
        raise unknown_last_id("delivery")
    return min(limit, place)
