"""Usage that developers report for test intents."""

from typing import Annotated

from pydantic import Field

from operations.connectivity.intents import no_such_intent
from operations.connectivity.qr import EsimNotIssued, not_issued
from operations.connectivity.shapes import BYTES_PER_MB, IntentId, NetworkMetered, UsageRecord
from operations.deps import Ctx
from operations.vocabulary import Limit, ListOf, StartingAfter, page
from registry.errors import NotFound
from registry.limits import Scope
from registry.model import Input
from registry.operation import Example, Once, operation
from storage.issuing.intents import IntentRow, find_intent
from storage.network.usage import RecordRow, insert_record, list_records


class NewUsageRecord(Input):
    """How much an eSIM used."""

    intent: IntentId
    quantity_mb: Annotated[float, Field(gt=0, le=1_000_000, allow_inf_nan=False, description="Megabytes (10^6 bytes).")]


class UsageOfIntent(Input):
    """Whose records, and which part of them."""

    intent: IntentId
    limit: Limit = 20
    starting_after: StartingAfter = None


def record_of(row: RecordRow) -> UsageRecord:
    """The record as it is shown."""
    return {
        "id": row.id,
        "object": "connectivity.usage_record",
        "intent": row.intent,
        "quantity_mb": row.quantity_mb,
        "livemode": bool(row.livemode),
        "created": row.created,
    }


EXAMPLE: UsageRecord = {
    "id": "ur_01k0a8w7zv6q4k3m2n1p0r9s8t",
    "object": "connectivity.usage_record",
    "intent": "cni_01k0a8w7zv6q4k3m2n1p0r9s8t",
    "quantity_mb": 512.5,
    "livemode": False,
    "created": 1795168800,
}


async def metered_intent(ctx: Ctx, params: NewUsageRecord) -> IntentRow:
    """The caller's intent, once it has an eSIM that can use anything."""
    row = await own_intent(ctx, params.intent)
    # Choice: usage before there is an eSIM is refused, since nothing could have used it.
    if row.iccid is None:
        raise not_issued(row.status, "intent")
    return row


async def own_intent(ctx: Ctx, intent: str) -> IntentRow:
    """The caller's intent."""
    row = await ctx.deps.store.read(find_intent, intent=intent, organisation=ctx.organisation)
    if row is None:
        raise no_such_intent("intent")
    return row


@operation(
    "POST",
    "/v1/connectivity/usage_records",
    scope=Scope.ANY,
    once=Once(required=True, forever=True),
    status=201,
    also=200,
    title="Report usage",
    access=metered_intent,
    raises=[NotFound, EsimNotIssued],
    examples=[Example("512.5 MB were used", {"intent": EXAMPLE["intent"], "quantity_mb": 512.5}, EXAMPLE)],
)
async def create_connectivity_usage_record(ctx: Ctx, params: NewUsageRecord, intent: IntentRow) -> UsageRecord | NetworkMetered:
    """Report data that a test eSIM used; it adds up and crosses thresholds.

    Live intents are metered by the network: nothing is stored for them.

    At 50, 80 and 100 % of the plan's data one `usage.threshold_reached` event is sent each, once per intent.
    The same idempotency key and quantity return the original record.
    """
    deps = ctx.deps
    if intent.livemode:
        ctx.status = 200
        metered: NetworkMetered = {"object": "connectivity.usage_record", "status": "network_metered", "intent": intent.id}
        return await ctx.settle(metered)
    row = RecordRow(deps.ids.new("ur_"), ctx.organisation, intent.id, params.quantity_mb, 0, int(ctx.now))
    # Choice: usage counts in whole bytes, rounded, and any usage is at least one.
    bytes = max(1, round(params.quantity_mb * BYTES_PER_MB))
    answer = await ctx.settle(record_of(row), insert_record, row=row, bytes=bytes, ids=deps.ids)
    deps.wake_worker()
    return answer


@operation(
    "GET",
    "/v1/connectivity/usage_records",
    title="List usage",
    raises=[NotFound],
    examples=[Example("What did this eSIM use?", {"intent": EXAMPLE["intent"]}, {"object": "list", "data": [EXAMPLE], "has_more": False})],
)
async def list_connectivity_usage_records(ctx: Ctx, params: UsageOfIntent) -> ListOf[UsageRecord]:
    """List the usage records of one intent, newest first."""
    await own_intent(ctx, params.intent)
    rows = await ctx.deps.store.read(
        list_records, intent=params.intent, organisation=ctx.organisation, after=params.starting_after, most=params.limit + 1
    )
    return page([record_of(row) for row in rows], params.limit)
