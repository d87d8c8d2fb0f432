"""Events for MCP clients that have them sent: a subscription is a webhook endpoint that ends at its time."""

import base64
import hashlib
import hmac
from typing import Annotated, NamedTuple, cast
from urllib.parse import urlsplit

import orjson
from pydantic import Field
from typing_extensions import TypedDict

from clients.webhooks.sender import DeliveryAttempt
from clients.webhooks.signature import WEBHOOK_SECRET_PREFIX, sign_delivery
from operations.connectivity.mcp_events.event_polling import (
    EventName,
    LogCursor,
    MaxAge,
    NoArguments,
    check_event_name,
    oldest_wanted,
    read_behind,
    start_of_reading,
    within_bounds,
)
from operations.deps import CallbackPosts, Ctx
from operations.ledger.event_reading import read_cursor
from operations.ledger.webhooks import SUBSCRIPTION_HEADER, WEBHOOK_USER_AGENT, check_webhook_address, safe_position
from registry.approvals import exceeds_free_amount
from registry.caller import Approval, Caller
from registry.clock import rfc3339_utc
from registry.errors import BadRequest, Conflict, NotFound, NotSupported, QuotaExceeded, Refusal, Restricted, RoleRequired
from registry.operation import Input, Scope, Secret, SpendKind, operation
from storage.allowances import allowance_for, spend_allowances
from storage.deliveries import queue_deliveries
from storage.endpoint_selections import EndpointSelection, put_selection
from storage.engine.sql import Connection
from storage.event_log import lock_placing
from storage.mcp_subscriptions import McpSubscription, find_proven_callback, find_subscription, put_subscription
from storage.organisations import may_receive_privately
from storage.outbox import first_undelivered
from storage.sealing import webhook_secret_field
from storage.webhook_endpoints import (
    delete_endpoint,
    enable_endpoint,
    insert_endpoint,
    read_endpoint,
    read_endpoint_secret,
    rotate_endpoint_secret,
    sweep_subscriptions,
)

SHORTEST_TTL_MS, USUAL_TTL_MS, LONGEST_TTL_MS = 60_000, 3_600_000, 7 * 86_400_000
"""Choice: a subscription without an end is granted to nobody: a week is as long as a client may be away."""

VERIFICATIONS_PER_HOUR = 60
"""Choice: how many receivers an organisation asks in an hour. Those that have said yes are not asked again."""
REPLAYED_PAGES = 100
MOST_REPLAYED = 1000
EXPIRED_AT_ONCE = 100

CallbackUrl = Annotated[str, Field(max_length=2048, description="https address of the receiver.")]


class EventSubscription(Input):
    """What is subscribed to, where it is sent, and for how long."""

    name: EventName
    arguments: NoArguments
    url: CallbackUrl
    secret: Annotated[str, Secret, Field(max_length=120, description="whsec_ and base64 of 24 to 64 random bytes.")]
    cursor: LogCursor = None
    max_age_ms: MaxAge = None
    ttl_ms: Annotated[int | None, Field(ge=0, le=2**53, description="Milliseconds that it is wanted for.")] = None


class SubscriptionKey(Input):
    """Which subscription of the caller's."""

    name: EventName
    arguments: NoArguments
    url: CallbackUrl


class GrantedSubscription(TypedDict):
    """A subscription. Subscribe again before `refreshBefore`; `cursor`: all up to there was delivered or given up."""

    id: str
    refreshBefore: str
    cursor: str
    truncated: bool


class EndedSubscription(TypedDict):
    """Nothing: the subscription is gone."""


def subscription_id(caller: Caller, name: str, url: str) -> str:
    """The id of a subscription, the same whenever the same person subscribes to the same. No method takes it, so it opens nothing."""
    key = orjson.dumps([caller.organisation, caller.principal, url, name, {}])
    return f"sub_{hashlib.sha256(key).hexdigest()[:32]}"


def check_signing_secret(secret: str) -> None:
    """Raises BadRequest, which never repeats the secret."""
    try:
        size = len(base64.b64decode(secret.removeprefix(WEBHOOK_SECRET_PREFIX), validate=True))
    except ValueError:
        size = 0
    if not secret.startswith(WEBHOOK_SECRET_PREFIX) or not 24 <= size <= 64:
        text = "secret: must be whsec_ and the base64 of 24 to 64 random bytes"
        raise BadRequest(text, param="secret", hint="Make one of random bytes for this subscription, and keep it for the receiver")


def granted_seconds(ttl_ms: int | None) -> int:
    """How long a subscription lasts, in seconds. A wish that is too short or too long is brought within what is granted."""
    wished = USUAL_TTL_MS if ttl_ms is None else ttl_ms
    return min(max(wished, SHORTEST_TTL_MS), LONGEST_TTL_MS) // 1000


def callback_refused(reason: str, text: str) -> Refusal:
    """The refusal of a receiver that cannot be reached or does not want to be sent to. `reason`: a word of the draft."""
    hint = 'The receiver has to answer the verification with 2xx and {"challenge": "<the same>"}, within 15 seconds'
    refusal = BadRequest(text, code="callback_endpoint", param="url", hint=hint)
    refusal.own_fields = {"reason": reason}
    return refusal


async def check_callback_address(ctx: Ctx, url: str) -> None:
    """Raises BadRequest where it is no https address, and the refusal of a receiver where deliveries must not go there."""
    try:
        parts = urlsplit(url)
    except ValueError:
        parts = urlsplit("")
    if parts.scheme.lower() != "https" or not parts.netloc:
        raise BadRequest("url: must be an absolute https address", param="url", hint="Deliveries go out over TLS. Use https://")
    try:
        await check_webhook_address(ctx, url)
    except BadRequest as refused:
        raise callback_refused("connection_refused", refused.message) from None


CALLBACK_REASONS = {"timeout": "timeout", "tls": "tls_error"}


def callback_reason(attempt: DeliveryAttempt) -> str:
    """How a failed verification went, in a word of the draft. Nothing of the receiver's answer is told."""
    if attempt.status is None:
        return CALLBACK_REASONS.get(attempt.outcome, "connection_refused")
    return {4: "http_4xx", 5: "http_5xx"}.get(attempt.status // 100, "challenge_failed")


def echoes(body: bytes, challenge: str) -> bool:
    """Whether an answer repeats the challenge."""
    try:
        value: object = orjson.loads(body)
    except orjson.JSONDecodeError:
        return False
    said = cast("dict[str, object]", value).get("challenge") if isinstance(value, dict) else None
    return isinstance(said, str) and hmac.compare_digest(said.encode(), challenge.encode())


def count_verification(connection: Connection, *, organisation: str, upgrade_url: str, now: float) -> None:
    """Raises QuotaExceeded where the organisation has asked as many receivers in this hour as it may. `now`: Unix seconds."""
    wanted = [allowance_for("mcp_verification", organisation, VERIFICATIONS_PER_HOUR)]
    spend_allowances(connection, wanted=wanted, what="verifications of receivers", upgrade_url=upgrade_url, now=now)


async def verify_callback(ctx: Ctx, posts: CallbackPosts, params: EventSubscription, subscription: str) -> None:
    """Ask the receiver whether it wants to be sent to, or whoever subscribes could have anybody flooded. Waits for the network."""
    deps = ctx.deps
    await deps.store.write(count_verification, organisation=ctx.organisation, upgrade_url=deps.site.upgrade_url, now=ctx.now)
    challenge = deps.ids.bytes(24).hex()
    body = orjson.dumps({"type": "verification", "challenge": challenge})
    headers = sign_delivery([params.secret], f"msg_verification_{deps.ids.bytes(12).hex()}", int(ctx.now), body)
    headers |= {"content-type": "application/json", "user-agent": WEBHOOK_USER_AGENT, SUBSCRIPTION_HEADER: subscription}
    private = bool(await deps.store.read(may_receive_privately, organisation=ctx.organisation))
    attempt, answer = await posts.ask(params.url, body, headers, private=private)
    if not attempt.ok:
        reason = callback_reason(attempt)
        raise callback_refused(reason, f"url: the receiver could not be asked whether it wants to be sent to ({reason})")
    if not echoes(answer, challenge):
        raise callback_refused("challenge_failed", "url: the receiver did not repeat the challenge, so nothing is sent to it")


class SubscriptionRequest(NamedTuple):
    """A request to subscribe that has passed all that needs no transaction. `cursor`: where deliveries begin; None: now."""

    id: str
    caller: Caller
    params: EventSubscription
    cursor: int | None


@operation(
    "POST",
    "/mcp/events/subscribe",
    scope=Scope.ANY,
    spends=SpendKind.NOTHING,
    reaches_out=True,
    waits=False,
    tool=False,
    bounded=True,
    access=within_bounds,
    raises=[NotFound, RoleRequired, Restricted, NotSupported, Conflict, BadRequest, QuotaExceeded],
)
async def subscribe_mcp_events(ctx: Ctx, params: EventSubscription, caller: Caller) -> GrantedSubscription:
    """Have events of one type sent to a receiver, from now or a cursor on."""
    posts = ctx.deps.callbacks
    if posts is None:
        raise NotSupported("delivery.mode: events are polled here, and sent to nobody", code="delivery_mode")
    require_no_approval(caller)
    check_event_name(params.name, ctx)
    check_signing_secret(params.secret)
    await check_callback_address(ctx, params.url)
    cursor = None if params.cursor is None else read_cursor(params.cursor, param="cursor")
    request = SubscriptionRequest(subscription_id(caller, params.name, params.url), caller, params, cursor)
    if not await ctx.deps.store.read(is_proven, caller=caller, url=params.url, now=ctx.now):
        await verify_callback(ctx, posts, params, request.id)
    answer = await ctx.settle_result(keep_subscription, ctx=ctx, request=request)
    ctx.deps.wake_worker()
    return answer


def require_no_approval(caller: Caller) -> None:
    """Raises Restricted for a credential whose new webhook endpoints wait for a person: no subscription waits."""
    held = caller.restrictions
    if held.approval is Approval.EVERY_WRITE:
        raise Restricted("Everything that this credential changes waits for an approval, and no subscription does; it may poll")
    if any(exceeds_free_amount(limit, SpendKind.OPEN) for limit in held.limits):
        raise Restricted(
            "This credential has a limit of money, with which the address of a webhook waits for an approval, and no subscription does; "
            "it may poll"
        )


def is_proven(connection: Connection, *, caller: Caller, url: str, now: float) -> bool:
    """Whether a receiver has said yes to this person, and not only to somebody else."""
    known = {"organisation": caller.organisation, "principal": caller.principal}
    return find_proven_callback(connection, **known, url=url, now=int(now)) is not None


def keep_subscription(connection: Connection, *, ctx: Ctx, request: SubscriptionRequest) -> GrantedSubscription:
    """A new subscription, or a new end of one that there is. Whoever subscribes gives it their rights."""
    now, params, organisation = ctx.now, request.params, ctx.organisation
    lock_placing(connection)  # first of all: placing takes endpoints after it, too
    sweep_subscriptions(connection, before=now, most=EXPIRED_AT_ONCE)  # they count no more
    start = start_of_reading(connection, organisation=organisation, cursor=request.cursor)
    before = find_subscription(connection, id=request.id, organisation=organisation)
    if before is not None and before.expires <= now:
        delete_endpoint(connection, endpoint=before.endpoint, organisation=organisation)
        before = None
    endpoint = ctx.deps.ids.new("we_") if before is None else before.endpoint
    expires = int(now) + granted_seconds(params.ttl_ms)
    if before is None:
        sealed = ctx.deps.keyring.seal(params.secret, org_id=organisation, field=webhook_secret_field(endpoint))
        insert_endpoint(connection, id=endpoint, organisation=organisation, url=params.url, secret=sealed, now=now)
    else:
        renew_endpoint(connection, ctx=ctx, endpoint=endpoint, secret=params.secret)
    row = McpSubscription(endpoint, request.id, organisation, request.caller.principal, params.url, expires)
    put_subscription(connection, row=row)
    put_selection(connection, row=selection_of_subscription(ctx, endpoint, request))
    if before is None and request.cursor is not None:
        position, cut = queue_events_since(connection, ctx=ctx, endpoint=endpoint, request=request, position=start["position"])
        truncated = start["skipped"] or cut
    else:
        position, truncated = start["end"], False
    undelivered = first_undelivered(connection, endpoint=endpoint)
    ctx.record_change(f"events {params.name}, endpoint {endpoint}, until {rfc3339_utc(expires)}")
    cursor = str(safe_position(position, undelivered))
    return {"id": request.id, "refreshBefore": rfc3339_utc(expires), "cursor": cursor, "truncated": truncated}


def selection_of_subscription(ctx: Ctx, endpoint: str, request: SubscriptionRequest) -> EndpointSelection:
    """What a subscription's endpoint has chosen, with the rights of the credential that subscribed last."""
    caller = request.caller
    return EndpointSelection(
        endpoint=endpoint,
        organisation=ctx.organisation,
        types=orjson.dumps([request.params.name]).decode(),
        tags=None,
        description=f"MCP subscription {request.id}",
        kind=caller.kind,
        principal=caller.principal,
        credential=caller.key_id,
        changed=int(ctx.now),
    )


def renew_endpoint(connection: Connection, *, ctx: Ctx, endpoint: str, secret: str) -> None:
    """Send to an endpoint again where that had ended, and sign with the secret; one before signs as well for a day."""
    organisation, keyring, field = ctx.organisation, ctx.deps.keyring, webhook_secret_field(endpoint)
    known = read_endpoint_secret(connection, endpoint=endpoint, organisation=organisation) or ""
    if not hmac.compare_digest(keyring.open(known, org_id=organisation, field=field).encode(), secret.encode()):
        sealed = keyring.seal(secret, org_id=organisation, field=field)
        rotate_endpoint_secret(connection, endpoint=endpoint, organisation=organisation, sealed=sealed, now=ctx.now)
    row = read_endpoint(connection, endpoint=endpoint, organisation=organisation)
    if row is not None and row.status != "enabled":
        enable_endpoint(connection, endpoint=endpoint, organisation=organisation)


def queue_events_since(connection: Connection, *, ctx: Ctx, endpoint: str, request: SubscriptionRequest, position: int) -> tuple[int, bool]:
    """Queue what has happened since the cursor, at most 1,000 events. The position up to which that is, and whether some are missing."""
    behind = read_behind(
        connection,
        ctx=ctx,
        caller=request.caller,
        name=request.params.name,
        position=position,
        most=MOST_REPLAYED,
        oldest=oldest_wanted(request.params.max_age_ms, ctx.now),
        pages=REPLAYED_PAGES,
    )
    for event in behind["events"]:
        queue_deliveries(
            connection,
            event=event.id,
            type=event.type,
            endpoints=[endpoint],
            organisation=ctx.organisation,
            now_ms=int(ctx.now * 1000),
            ids=ctx.deps.ids,
        )
    return behind["position"], behind["outdated"] or behind["more"]


@operation(
    "POST",
    "/mcp/events/unsubscribe",
    scope=Scope.ANY,
    spends=SpendKind.NOTHING,
    waits=False,
    tool=False,
    bounded=True,
    access=within_bounds,
    raises=[NotFound],
)
async def unsubscribe_mcp_events(ctx: Ctx, params: SubscriptionKey, caller: Caller) -> EndedSubscription:
    """End a subscription at once, with what still waits to be sent for it."""

    def end(connection: Connection) -> EndedSubscription:
        id = subscription_id(caller, params.name, params.url)
        found = find_subscription(connection, id=id, organisation=ctx.organisation)
        if found is None or found.expires <= ctx.now:
            text = f"You have no subscription to {params.name} at this address, or it has ended"
            raise NotFound(text, code="subscription_not_found", param="url", hint="Send name, arguments and delivery.url as subscribed")
        delete_endpoint(connection, endpoint=found.endpoint, organisation=ctx.organisation)
        ctx.record_change(f"endpoint {found.endpoint}")
        return {}

    return await ctx.settle_result(end)
