"""Trying an endpoint with an invented event."""

from typing import Annotated

from pydantic import Field

from operations.connectivity.events import DELIVERY_EXAMPLE, Delivery, render_delivery
from operations.connectivity.webhook_endpoints import EXAMPLE_ENDPOINT_ID, EndpointRef, endpoint_not_found, refuse_subscription
from operations.deps import Ctx
from operations.event_types.catalogue import EVENT_TYPES
from operations.event_types.declaration import AnyEventType, event_entry
from registry.errors import BadRequest, Conflict, NotFound, QuotaExceeded
from registry.operation import Example, Scope, SpendKind, operation
from registry.rate_limits import minute_limit_reached, minute_number
from storage.deliveries import enqueue_event_for, list_deliveries
from storage.endpoint_selections import count_test_send
from storage.engine.sql import Connection
from storage.event_log import log_test
from storage.webhook_endpoints import read_endpoint

TEST_SENDS_PER_MINUTE = 10


class TestSend(EndpointRef):
    """Which endpoint, and which type."""

    type: Annotated[str, Field(max_length=80, description="Any type of list_event_types.")]


def type_to_try(name: str) -> AnyEventType:
    """The declared type, whoever may read its events: an invented one tells nothing. Raises BadRequest."""
    if name not in EVENT_TYPES:
        raise BadRequest(f"type: there is no type {name[:80]!r}", param="type", hint="list_event_types shows the types, such as order.paid")
    return EVENT_TYPES[name]


@operation(
    "POST",
    "/v1/connectivity/webhook_endpoints/{id}/test",
    spends=SpendKind.NOTHING,
    reaches_out=True,
    scope=Scope.ANY,
    title="Send test event",
    raises=[NotFound, Conflict, BadRequest, QuotaExceeded],
    examples=[
        Example(
            "Does my server take orders?",
            {"id": EXAMPLE_ENDPOINT_ID, "type": "esim.issued"},
            {**DELIVERY_EXAMPLE, "state": "pending", "attempts": []},
        )
    ],
)
async def send_test_event(ctx: Ctx, params: TestSend) -> Delivery:
    """Send an invented event of any type to one endpoint, once.

    It has `livemode: false` and `test: true`. At most 10 a minute.

    It is signed as every event is. It stands in no list of events, whatever the endpoint has chosen, and no failure of it counts against
    the endpoint. list_event_deliveries, given `event` of the answer, says how it went: ok, status:401, dns, timeout.
    """
    deps, now = ctx.deps, ctx.now
    declared = type_to_try(params.type)

    def send(connection: Connection) -> Delivery:
        row = read_endpoint(connection, endpoint=params.id, organisation=ctx.organisation)
        if row is None:
            raise endpoint_not_found(params.id)
        refuse_subscription(connection, row.id)
        if row.status != "enabled":
            raise Conflict(
                f"The webhook endpoint {row.id} is disabled, so nothing can be sent to it",
                code="webhook_endpoint_disabled",
                hint="Enable it first with enable_webhook_endpoint",
            )
        counted = {"minute": minute_number(now), "most": TEST_SENDS_PER_MINUTE}
        if not count_test_send(connection, endpoint=row.id, organisation=ctx.organisation, **counted):
            raise minute_limit_reached(f"{row.id} was tried", most=TEST_SENDS_PER_MINUTE, now=now, upgrade_url=deps.site.upgrade_url)
        event = event_entry(declared, declared.example, organisation=ctx.organisation, id=deps.ids.new("evt_"), now=now, livemode=False)
        log_test(connection, event=event)
        place = {"event": event.id, "type": event.type, "endpoint": row.id, "organisation": ctx.organisation}
        enqueue_event_for(connection, **place, now_ms=int(now * 1000), ids=deps.ids)
        return render_delivery(*list_deliveries(connection, event=event.id, after=None, most=1)[0])

    made = await ctx.settle_result(send)
    deps.wake_worker()
    return made
