"""Since when and until when a line was used."""

from clients.ocs.wire.package import Period
from clients.ocs.wire.statistics import SubscriberPeriod
from operations.deps import Ctx
from operations.services.network.lines import Line, LineRef, own_line
from operations.services.network.passing import Data
from registry.errors import NotFound, OcsError
from registry.operation import Example, operation

PERIOD: Period = {"start": "2026-11-02T07:12:44", "end": "2027-01-15T09:41:07"}
EXAMPLE: SubscriberPeriod = {"subscriberId": 910045, "period": PERIOD}


@operation(
    "GET",
    "/v1/subscribers/{iccid}/active-period",
    upstream=True,
    operator=True,
    title="Get first and last usage",
    access=own_line,
    raises=[NotFound, OcsError],
    examples=[Example("Is this line still in use?", {"iccid": "8988303700000100286"}, {"data": EXAMPLE})],
)
async def subscriber_active_period(ctx: Ctx, params: LineRef, line: Line) -> Data[SubscriberPeriod]:
    """Get the first and last usage of a line, UTC.

    `period` is null when it was never used.
    """
    found = await line.upstream.ocs.statistics.active_period(line.subscriber_id)
    return {"data": {"period": None, **found, "subscriberId": line.subscriber_id}}
