"""Usage: what developers report for test intents, and what the network metered and the bridge reports."""

from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypedDict

from operations.connectivity.intents import EsimNotIssued, esim_not_issued, read_own_intent
from operations.deps import Ctx
from operations.ledger.intents import IntentId
from operations.plans import BYTES_PER_MB
from operations.times import UnixTime
from operations.vocabulary import Iccid, ListOf, Mcc, Mnc, PageLimit, StartingAfter, list_page, render_fields
from registry.errors import NotFound
from registry.operation import Auth, Example, Input, Once, Scope, SpendKind, operation
from storage.engine.sql import Connection
from storage.intents import IntentRow
from storage.usage import MeteredLine, UsageRecordRow, insert_metered_line, insert_usage_record, list_usage_records


class UsageRecord(TypedDict):
    """Usage reported for a test intent. `quantity_mb` in megabytes of 10^6 bytes; `created` is Unix seconds."""

    id: str
    object: Literal["connectivity.usage_record"]
    intent: str
    quantity_mb: float
    livemode: bool
    created: int


class NetworkMetered(TypedDict):
    """The network meters a live intent; nothing was stored."""

    object: Literal["connectivity.usage_record"]
    status: Literal["network_metered"]
    intent: str


class NewUsageRecord(Input):
    """How much an eSIM used."""

    intent: IntentId
    quantity_mb: Annotated[float, Field(gt=0, le=1_000_000, allow_inf_nan=False, description="Megabytes (10^6 bytes).")]


class UsageRecordPage(Input):
    """Whose records, and which part of them."""

    intent: IntentId
    limit: PageLimit = 20
    starting_after: StartingAfter = None


def render_usage_record(row: UsageRecordRow) -> UsageRecord:
    return render_fields(row, UsageRecord, object="connectivity.usage_record", livemode=bool(row.livemode))


USAGE_RECORD_EXAMPLE: UsageRecord = {
    "id": "ur_01k0a8w7zv6q4k3m2n1p0r9s8t",
    "object": "connectivity.usage_record",
    "intent": "cni_01k0a8w7zv6q4k3m2n1p0r9s8t",
    "quantity_mb": 512.5,
    "livemode": False,
    "created": 1795168800,
}


async def intent_with_esim(ctx: Ctx, params: NewUsageRecord) -> IntentRow:
    """The caller's intent. Raises NotFound, or EsimNotIssued without an eSIM that could use data."""
    row = await read_own_intent(ctx, params.intent, "intent")
    # Choice: usage before there is an eSIM is refused, since nothing could have used it.
    if row.iccid is None:
        raise esim_not_issued(row.status, "intent")
    return row


@operation(
    "POST",
    "/v1/connectivity/usage_records",
    spends=SpendKind.NOTHING,
    irreversible=True,
    scope=Scope.ANY,
    once=Once(required=True, forever=True),
    status=201,
    also=200,
    title="Report usage",
    access=intent_with_esim,
    raises=[NotFound, EsimNotIssued],
    examples=[Example("512.5 MB were used", {"intent": USAGE_RECORD_EXAMPLE["intent"], "quantity_mb": 512.5}, USAGE_RECORD_EXAMPLE)],
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
    row = UsageRecordRow(deps.ids.new("ur_"), ctx.organisation, intent.id, params.quantity_mb, 0, int(ctx.now))
    # Choice: usage counts in whole bytes, rounded, and any usage is at least one.
    bytes = max(1, round(params.quantity_mb * BYTES_PER_MB))
    answer = await ctx.settle(render_usage_record(row), insert_usage_record, row=row, bytes=bytes, ids=deps.ids)
    deps.wake_worker()
    return answer


@operation(
    "GET",
    "/v1/connectivity/usage_records",
    title="List usage",
    raises=[NotFound],
    examples=[
        Example(
            "What did this eSIM use?",
            {"intent": USAGE_RECORD_EXAMPLE["intent"]},
            {"object": "list", "data": [USAGE_RECORD_EXAMPLE], "has_more": False},
        )
    ],
)
async def list_connectivity_usage_records(ctx: Ctx, params: UsageRecordPage) -> ListOf[UsageRecord]:
    """List the usage records of one intent, newest first."""
    await read_own_intent(ctx, params.intent, "intent")
    rows = await ctx.deps.store.read(
        list_usage_records, intent=params.intent, organisation=ctx.organisation, after=params.starting_after, most=params.limit + 1
    )
    return list_page([render_usage_record(row) for row in rows], params.limit)


class NetworkUsage(Input):
    """One metered line."""

    ref: Annotated[str, Field(min_length=1, max_length=255, description="The line's own id: the same one twice has no effect.")]
    iccid: Iccid
    bytes: Annotated[int, Field(ge=0, le=2**53 - 1, description="Bytes in both directions; 0 for calls and messages.")]
    usage_type: Annotated[Literal["data", "moc", "mtc", "mo_sms", "mt_sms"], Field(description="Only data counts towards the plan.")]
    occurred_at: UnixTime
    mcc: Mcc | None = None
    mnc: Mnc | None = None


class Ingested(TypedDict):
    """False: a line with this `ref` was there already."""

    stored: bool


@operation(
    "POST",
    "/v1/connectivity/usage_records/ingest",
    spends=SpendKind.NOTHING,
    irreversible=True,
    scope=Scope.NONE,
    auth=Auth.INTERNAL,
    title="Ingest metered usage",
    examples=[
        Example(
            "The bridge reports 48 MB",
            {
                "ref": "cdr-77120931",
                "iccid": "8988303700000100286",
                "bytes": 48_000_000,
                "usage_type": "data",
                "occurred_at": "2026-11-20T09:00:00Z",
                "mcc": "208",
                "mnc": "01",
            },
            {"stored": True},
        )
    ],
)
async def ingest_connectivity_usage(ctx: Ctx, params: NetworkUsage) -> Ingested:
    """Take one line of usage that the network metered.

    Called by the bridge with the internal key. `ref` makes a repeated line have no effect.

    The line counts towards the intent that owned the ICCID when it happened, and crosses its thresholds; a line of a SIM that no
    intent owns is kept all the same, for the intent whose eSIM is still being drawn. Only `data` counts. Where totals are reported
    as well (package.usage), the larger of the lines' sum and the highest total counts, so that nothing counts twice.
    """
    line = MeteredLine(**params.model_dump())
    counts = params.usage_type == "data" and params.bytes > 0

    def keep(connection: Connection) -> Ingested:
        return {"stored": insert_metered_line(connection, line=line, counts=counts, now=ctx.now, ids=ctx.deps.ids)}

    answer = await ctx.settle_result(keep)
    ctx.deps.wake_worker()
    return answer
