"""Where a line was seen."""

from clients.ocs.failure import OcsNotFound
from clients.ocs.wire.subscriber import Location
from operations.deps import Ctx
from operations.services.network.lines import Line, LineRef, own_line
from operations.services.network.passing import Data
from registry.errors import NotFound, OcsError
from registry.operation import Example, operation

IMPOSSIBLE = 14


@operation(
    "GET",
    "/v1/subscribers/{iccid}/location",
    upstream=True,
    operator=True,
    title="Get location",
    access=own_line,
    raises=[NotFound, OcsError],
    examples=[
        Example(
            "Where is this tracker?",
            {"iccid": "8988303700000100286"},
            {"data": {"latitude": 59.91, "longitude": 10.75, "accuracy": 300, "dateTime": "2027-01-15T09:41:07"}},
        )
    ],
)
async def get_subscriber_location(ctx: Ctx, params: LineRef, line: Line) -> Data[Location | None]:
    """Get where a line was seen last, by its radio cell; accuracy in metres.

    Null when it was never used or its cell is not known. `dateTime` is UTC.
    """
    try:
        return {"data": await line.upstream.ocs.subscriber.get_location(line.subscriber_id)}
    except OcsError as refusal:
        # Choice: the wire names no code for a line that was never seen; both that it may be say so.
        if isinstance(refusal, OcsNotFound) or refusal.ocs_code == IMPOSSIBLE:
            return {"data": None}
        raise
