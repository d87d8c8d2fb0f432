"""Usage that the network metered, reported by the bridge."""

from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypedDict

from operations.connectivity.moment import Moment
from operations.deps import Ctx
from operations.vocabulary import Iccid, Mcc, Mnc
from registry.ids import Ids
from registry.limits import Scope
from registry.model import Input
from registry.operation import Auth, Example, operation
from storage.connection import Connection
from storage.network.usage import MeteredLine, insert_line


class NetworkUsage(Input):
    """One metered line."""

    ref: Annotated[str, Field(min_length=1, max_length=255, description="The line's own id: the same one twice has no effect.")]
    iccid: Iccid
    bytes: Annotated[int, Field(ge=0, le=2**53 - 1, description="Bytes in both directions; 0 for calls and messages.")]
    usage_type: Annotated[Literal["data", "moc", "mtc", "mo_sms", "mt_sms"], Field(description="Only data counts towards the plan.")]
    occurred_at: Moment
    mcc: Mcc | None = None
    mnc: Mnc | None = None


class Ingested(TypedDict):
    """False: a line with this `ref` was there already."""

    stored: bool


@operation(
    "POST",
    "/v1/connectivity/usage_records/ingest",
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
    answer = await ctx.settle_result(
        ingest, line=line, counts=params.usage_type == "data" and params.bytes > 0, now=ctx.now, ids=ctx.deps.ids
    )
    ctx.deps.wake_worker()
    return answer


def ingest(connection: Connection, *, line: MeteredLine, counts: bool, now: float, ids: Ids) -> Ingested:
    """Keep the line, and say whether it was new."""
    return {"stored": insert_line(connection, line=line, counts=counts, now=now, ids=ids)}
