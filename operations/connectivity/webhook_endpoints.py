"""Webhook endpoints: where an organisation's events are sent."""

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal, NotRequired, cast

import orjson
from pydantic import Field
from typing_extensions import TypedDict

from clients.webhooks.signature import WEBHOOK_SECRET_BYTES, new_webhook_secret
from operations.deps import Ctx
from operations.ledger.event_rights import caller_who_chose
from operations.ledger.webhooks import check_webhook_address
from operations.vocabulary import ListOf, list_page
from registry.errors import BadRequest, Conflict, NotFound, QuotaExceeded
from registry.free_text import FreeText
from registry.operation import Example, Input, Nothing, Scope, SpendKind, operation
from registry.rate_limits import minute_limit_reached, minute_number
from registry.redaction import redact
from registry.versions import ObjectVersion, Versioned
from storage.deliveries import Requeued, requeue_deliveries, requeue_delivery
from storage.endpoint_selections import EndpointSelection, find_selection, list_selections
from storage.engine.sql import Connection
from storage.mcp_subscriptions import find_subscription_behind
from storage.sealing import webhook_secret_field
from storage.webhook_endpoints import (
    MOST_ENDPOINTS,
    EndpointRow,
    count_endpoint_replay,
    delete_endpoint,
    enable_endpoint,
    hold_endpoint,
    insert_endpoint,
    list_endpoints,
    read_endpoint,
    rotate_endpoint_secret,
)

ENDPOINT_REPLAYS_PER_MINUTE = 10
EndpointKind = Literal["connectivity.webhook_endpoint"]


class NewEndpoint(Input):
    """Where to send events."""

    set_later: ClassVar[Mapping[str, str]] = dict.fromkeys(("types", "tags", "description"), "update_webhook_endpoint")

    url: Annotated[str, Field(description="https URL of a public host, at most 2048 characters.")]


class EndpointRef(Input):
    """Which endpoint."""

    id: Annotated[str, Field(max_length=64, description="Endpoint id, we_...")]


class ReplayQuery(EndpointRef):
    """Which endpoint, and since when or which delivery."""

    # Choice: Unix seconds, the unit of an event's `created`.
    since: Annotated[int | None, Field(ge=0, le=2**40, description="Unix seconds: only what was queued since then.")] = None
    delivery: Annotated[str | None, Field(max_length=64, description="Only this one, dlv_..., whatever became of it; not with since.")] = (
        None
    )


class WebhookEndpoint(TypedDict):
    """Where events are sent. `secret` stands only in the answers that create or rotate it; `created` is Unix seconds.

    `types`, `tags` and `description` stand there once update_webhook_endpoint has set them.
    """

    id: str
    object: EndpointKind
    url: str
    status: Literal["enabled", "disabled"]
    created: int
    types: NotRequired[list[str]]
    tags: NotRequired[list[str]]
    description: NotRequired[FreeText]
    secret: NotRequired[str]


class DeletedEndpoint(TypedDict):
    """The endpoint is gone."""

    id: str
    object: EndpointKind
    deleted: Literal[True]


class Replayed(TypedDict):
    """How many deliveries that had ended, and how many that waited for a later attempt, are on their way now."""

    object: Literal["connectivity.replay"]
    replayed: int
    brought_forward: int


EXAMPLE_ENDPOINT_ID = "we_01k0a8w7zv6q4k3m2n1p0r9s8t"
EXAMPLE_DELIVERY_ID = "dlv_01k0a8w7zv6q4k3m2n1p0r9s8t"
ENDPOINT_EXAMPLE: WebhookEndpoint = {
    "id": EXAMPLE_ENDPOINT_ID,
    "object": "connectivity.webhook_endpoint",
    "url": "https://hooks.example.com/esim",
    "status": "enabled",
    "created": 1_795_166_400,
}
CHOSEN_ENDPOINT_EXAMPLE: WebhookEndpoint = {
    **ENDPOINT_EXAMPLE,
    "types": ["esim.*", "order.*", "organisation.balance_*"],
    "description": "The desk that looks after orders",
}
ENDPOINT_WITH_SECRET_EXAMPLE: WebhookEndpoint = {**ENDPOINT_EXAMPLE, "secret": "whsec_..."}


def render_endpoint(row: EndpointRow, chosen: EndpointSelection | None = None) -> WebhookEndpoint:
    """An endpoint with what was chosen for it."""
    status = cast(Literal["enabled", "disabled"], row.status)
    shown: WebhookEndpoint = {
        "id": row.id,
        "object": "connectivity.webhook_endpoint",
        "url": row.url,
        "status": status,
        "created": row.created,
    }
    if chosen is not None and chosen.types is not None:
        shown["types"] = orjson.loads(chosen.types)
    if chosen is not None and chosen.tags is not None:
        shown["tags"] = orjson.loads(chosen.tags)
    if chosen is not None and chosen.description:
        shown["description"] = chosen.description
    return shown


def endpoint_not_found(endpoint: str) -> NotFound:
    return NotFound(
        f"No webhook endpoint {redact(endpoint)} in your organisation", param="id", hint="list_connectivity_webhook_endpoints shows the ids"
    )


def refuse_subscription(connection: Connection, endpoint: str) -> None:
    """Raises Conflict for the endpoint of an MCP subscription, whose client says what is sent where, and with which secret."""
    found = find_subscription_behind(connection, endpoint=endpoint)
    if found is not None:
        raise Conflict(
            f"{endpoint} sends for the MCP subscription {found.id}, whose client decides where, what, and with which secret",
            code="mcp_subscription",
            hint="Delete it to end the subscription, or make an endpoint of your own",
        )


def chooser_has_ended(endpoint: str) -> Conflict:
    """The refusal to send again with the rights of somebody who has none any more."""
    return Conflict(
        f"Whoever chose the types of {endpoint} may not read events any more: the key or login has ended, or the person has left",
        code="chooser_ended",
        hint="Choose the types anew with update_webhook_endpoint, which makes the rights yours; that enables nothing, so enable it then",
    )


def new_sealed_secret(ctx: Ctx, endpoint: str) -> tuple[str, str]:
    """A new signing secret, and its sealed form, which is stored."""
    secret = new_webhook_secret(ctx.deps.ids.bytes(WEBHOOK_SECRET_BYTES))
    return secret, ctx.deps.keyring.seal(secret, org_id=ctx.organisation, field=webhook_secret_field(endpoint))


@operation(
    "POST",
    "/v1/connectivity/webhook_endpoints",
    spends=SpendKind.OPEN,
    scope=Scope.ANY,
    status=201,
    title="Create webhook endpoint",
    raises=[Conflict],
    examples=[Example("Be told when an eSIM is issued", {"url": "https://hooks.example.com/esim"}, ENDPOINT_WITH_SECRET_EXAMPLE)],
)
async def create_connectivity_webhook_endpoint(ctx: Ctx, params: NewEndpoint) -> WebhookEndpoint:
    """Create a webhook endpoint, which events are sent to as signed POSTs.

    Keep `secret`: shown once, it verifies the signatures. At most 16.

    It gets esim.issued, esim.first_attach and usage.threshold_reached; update_webhook_endpoint chooses other types.

    Deliveries carry `webhook-id` (the event's id), `webhook-timestamp` and `webhook-signature` as Standard Webhooks defines them,
    and `Connectivity-Signature: t=<unix>,v1=<hex>`. Answer 2xx within 15 seconds; anything else is tried again, ten attempts in
    75 hours. Deliveries come at least once and in no promised order: deduplicate by `webhook-id`. A 410, or 120 hours of failures
    only, disables the endpoint.
    """
    # Choice: the same URL may be registered more than once, as two systems behind one address may want.
    await check_webhook_address(ctx, params.url)
    id = ctx.deps.ids.new("we_")
    secret, sealed = new_sealed_secret(ctx, id)
    row = EndpointRow(id=id, url=params.url, status="enabled", created=int(ctx.now))
    answer: WebhookEndpoint = {**render_endpoint(row), "secret": secret}
    return await ctx.settle(answer, insert_endpoint, id=id, organisation=ctx.organisation, url=params.url, secret=sealed, now=ctx.now)


@operation(
    "GET",
    "/v1/connectivity/webhook_endpoints",
    title="List webhook endpoints",
    examples=[Example("Where are my events sent?", {}, {"object": "list", "data": [CHOSEN_ENDPOINT_EXAMPLE], "has_more": False})],
)
async def list_connectivity_webhook_endpoints(ctx: Ctx, _params: Nothing) -> ListOf[WebhookEndpoint]:
    """List your webhook endpoints, newest first, without their secrets."""
    # Choice: no pages, since there are at most 16

    def find(connection: Connection) -> list[WebhookEndpoint]:
        chosen = {each.endpoint: each for each in list_selections(connection, organisation=ctx.organisation)}
        return [render_endpoint(row, chosen.get(row.id)) for row in list_endpoints(connection, organisation=ctx.organisation)]

    return list_page(await ctx.deps.store.read(find), MOST_ENDPOINTS)


def read_endpoint_version(connection: Connection, ctx: Ctx, params: EndpointRef, hold: bool) -> ObjectVersion | None:
    """The version of what can be changed: not of the status, which deliveries decide."""
    row = (hold_endpoint if hold else read_endpoint)(connection, endpoint=params.id, organisation=ctx.organisation)
    if row is None:
        return None
    chosen = find_selection(connection, endpoint=row.id)
    state = [row.id, row.url, *([None, None, ""] if chosen is None else [chosen.types, chosen.tags, chosen.description])]
    return ObjectVersion(state, named=f"{row.id}: ")


ENDPOINT_VERSION = Versioned("webhook endpoint", read_endpoint_version, "get_webhook_endpoint", ("update_webhook_endpoint",))


@operation(
    "GET",
    "/v1/connectivity/webhook_endpoints/{id}",
    tool=False,
    versioned=ENDPOINT_VERSION,
    title="Get webhook endpoint",
    raises=[NotFound],
    examples=[Example("What is this endpoint sent?", {"id": EXAMPLE_ENDPOINT_ID}, CHOSEN_ENDPOINT_EXAMPLE)],
)
async def get_webhook_endpoint(ctx: Ctx, params: EndpointRef) -> WebhookEndpoint:
    """Get one webhook endpoint, without its secret.

    As list_connectivity_webhook_endpoints shows it. Its ETag is for a change that overwrites nobody else's.
    """

    def find(connection: Connection) -> WebhookEndpoint:
        row = read_endpoint(connection, endpoint=params.id, organisation=ctx.organisation)
        if row is None:
            raise endpoint_not_found(params.id)
        return render_endpoint(row, find_selection(connection, endpoint=row.id))

    return await ctx.deps.store.read(find)


@operation(
    "DELETE",
    "/v1/connectivity/webhook_endpoints/{id}",
    spends=SpendKind.NOTHING,
    irreversible=True,
    scope=Scope.ANY,
    title="Delete webhook endpoint",
    raises=[NotFound],
    examples=[
        Example(
            "Stop sending",
            {"id": EXAMPLE_ENDPOINT_ID},
            {"id": EXAMPLE_ENDPOINT_ID, "object": "connectivity.webhook_endpoint", "deleted": True},
        )
    ],
)
async def delete_connectivity_webhook_endpoint(ctx: Ctx, params: EndpointRef) -> DeletedEndpoint:
    """Delete a webhook endpoint and drop its pending deliveries."""

    def remove(connection: Connection) -> DeletedEndpoint:
        if not delete_endpoint(connection, endpoint=params.id, organisation=ctx.organisation):
            raise endpoint_not_found(params.id)
        return {"id": params.id, "object": "connectivity.webhook_endpoint", "deleted": True}

    return await ctx.settle_result(remove)


@operation(
    "POST",
    "/v1/connectivity/webhook_endpoints/{id}/rotate",
    spends=SpendKind.NOTHING,
    irreversible=True,
    scope=Scope.ANY,
    tool=False,
    title="Rotate webhook secret",
    raises=[NotFound, Conflict],
    examples=[Example("Replace a secret that may be known", {"id": EXAMPLE_ENDPOINT_ID}, ENDPOINT_WITH_SECRET_EXAMPLE)],
)
async def rotate_webhook_secret(ctx: Ctx, params: EndpointRef) -> WebhookEndpoint:
    """Give a webhook endpoint a new secret; the old one signs too for 24 hours.

    The new `secret` is shown once. For 24 hours every delivery carries signatures of both, so receivers can change over in peace.

    Rotating again within the 24 hours ends the older secret at once.
    """
    secret, sealed = new_sealed_secret(ctx, params.id)

    def rotate(connection: Connection) -> WebhookEndpoint:
        row = rotate_endpoint_secret(connection, endpoint=params.id, organisation=ctx.organisation, sealed=sealed, now=ctx.now)
        if row is None:
            raise endpoint_not_found(params.id)
        refuse_subscription(connection, row.id)
        return {**render_endpoint(row, find_selection(connection, endpoint=row.id)), "secret": secret}

    return await ctx.settle_result(rotate)


@operation(
    "POST",
    "/v1/connectivity/webhook_endpoints/{id}/enable",
    spends=SpendKind.NOTHING,
    scope=Scope.ANY,
    title="Enable webhook endpoint",
    raises=[NotFound, Conflict],
    examples=[Example("The receiver works again", {"id": EXAMPLE_ENDPOINT_ID}, CHOSEN_ENDPOINT_EXAMPLE)],
)
async def enable_webhook_endpoint(ctx: Ctx, params: EndpointRef) -> WebhookEndpoint:
    """Enable a disabled webhook endpoint again.

    Missed events are not sent by this: use replay_failed_deliveries.

    A 410, or 120 hours of failures only, had disabled it, and what was pending then has failed. Events that happened while it was
    disabled were not queued for it; retry_connectivity_event sends one of them. Enabling an enabled endpoint changes nothing.
    """

    def enable(connection: Connection) -> WebhookEndpoint:
        row = enable_endpoint(connection, endpoint=params.id, organisation=ctx.organisation)
        if row is None:
            raise endpoint_not_found(params.id)
        chosen = find_selection(connection, endpoint=row.id)
        if chosen is not None and chosen.types is not None and caller_who_chose(connection, chosen, ctx.now) is None:
            raise chooser_has_ended(row.id)
        return render_endpoint(row, chosen)

    return await ctx.settle_result(enable)


@operation(
    "POST",
    "/v1/connectivity/webhook_endpoints/{id}/replay",
    spends=SpendKind.NOTHING,
    reaches_out=True,
    scope=Scope.ANY,
    title="Replay failed deliveries",
    raises=[NotFound, Conflict, QuotaExceeded],
    examples=[
        Example(
            "Catch up after an outage",
            {"id": EXAMPLE_ENDPOINT_ID, "since": 1_795_166_400},
            {"object": "connectivity.replay", "replayed": 12, "brought_forward": 3},
        ),
        Example(
            "Send one delivery again",
            {"id": EXAMPLE_ENDPOINT_ID, "delivery": EXAMPLE_DELIVERY_ID},
            {"object": "connectivity.replay", "replayed": 1, "brought_forward": 0},
        ),
    ],
)
async def replay_failed_deliveries(ctx: Ctx, params: ReplayQuery) -> Replayed:
    """Send an endpoint's failed and waiting deliveries now, or one delivery.

    The endpoint must be enabled. At most 10 a minute.

    `replayed` had failed and are sent again; `brought_forward` waited for a later attempt and are sent now. A call takes 10,000 of each,
    those first that were first; where a figure is 10000, repeat it for the rest. Each starts its schedule of ten attempts again, under
    the same `webhook-id`; attempts keep their numbers. The eleventh call of a minute for one endpoint is 429 `rate_limited`. One
    delivery named by `delivery` (the deliveries of an event show their ids) is sent again though it had arrived. What is due or under
    way already counts in neither figure and is not doubled.
    """
    if params.since is not None and params.delivery is not None:
        raise BadRequest(
            f"since ({params.since}) and delivery ({redact(params.delivery)}) were given together; one delivery is sent again whenever "
            "it was queued",
            param="since",
            hint="Send delivery alone for one delivery, or since alone for all that failed since then",
        )
    answer = await ctx.settle_result(replay_deliveries, query=params, ctx=ctx)
    ctx.deps.wake_worker()
    return answer


def replay_deliveries(connection: Connection, *, query: ReplayQuery, ctx: Ctx) -> Replayed:
    """Counts the replay and queues the deliveries. Raises NotFound, Conflict or QuotaExceeded and changes nothing then."""
    endpoint, organisation, now, upgrade_url = query.id, ctx.organisation, ctx.now, ctx.deps.site.upgrade_url
    row = read_endpoint(connection, endpoint=endpoint, organisation=organisation)
    if row is None:
        raise endpoint_not_found(endpoint)
    if row.status != "enabled":
        raise Conflict(
            f"The webhook endpoint {endpoint} is disabled, so nothing can be sent to it",
            code="webhook_endpoint_disabled",
            hint="Enable it first with POST /v1/connectivity/webhook_endpoints/{id}/enable",
        )
    if not count_endpoint_replay(
        connection, endpoint=endpoint, organisation=organisation, minute=minute_number(now), most=ENDPOINT_REPLAYS_PER_MINUTE
    ):
        raise minute_limit_reached(f"{endpoint} was replayed", most=ENDPOINT_REPLAYS_PER_MINUTE, now=now, upgrade_url=upgrade_url)
    queued = queue_replay(connection, endpoint, (query.since or 0) * 1000, query.delivery, int(now * 1000))
    return {"object": "connectivity.replay", "replayed": queued.ended, "brought_forward": queued.waiting}


def queue_replay(connection: Connection, endpoint: str, since_ms: int, delivery: str | None, now_ms: int) -> Requeued:
    """Queues what failed or waits since `since_ms`, or the one `delivery`; returns how many. Raises NotFound."""
    if delivery is None:
        return requeue_deliveries(connection, endpoint=endpoint, since_ms=since_ms, now_ms=now_ms)
    replayed = requeue_delivery(connection, endpoint=endpoint, delivery=delivery, now_ms=now_ms)
    if replayed is None:
        raise NotFound(
            f"The webhook endpoint {endpoint} has no delivery {redact(delivery)}",
            param="delivery",
            hint="GET /v1/connectivity/events/{id}/deliveries shows an event's deliveries and their endpoints",
        )
    return replayed
