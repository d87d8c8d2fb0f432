"""What a line uses after its data is gone."""

from contextlib import suppress
from typing import Literal, NotRequired

from typing_extensions import TypedDict

from clients.ocs.wire.subscriber import GreenZoneCounter
from operations.deps import Ctx
from operations.services.network.lines import Line, LineRef, own_line
from operations.services.network.passing import Data
from registry.errors import EndOfLife, NotFound, OcsError
from registry.limits import Scope
from registry.operation import Example, operation


class CounterReset(TypedDict):
    """The counter as it reads afterwards, where it could be read."""

    reset: Literal[True]
    counter: NotRequired[GreenZoneCounter]


@operation(
    "POST",
    "/v1/subscribers/{iccid}/gz-counter/reset",
    scope=Scope.ADMIN,
    confirm=True,
    upstream=True,
    moves=True,
    access=own_line,
    raises=[NotFound, EndOfLife, OcsError],
    examples=[
        Example(
            "Let a line use the green zone again",
            {"iccid": "8988303700000100286"},
            {"data": {"reset": True, "counter": {"subscriberId": 910045, "volumeOnGZ": 0, "lastResetDate": "2027-01-15T12:00:00"}}},
        )
    ],
)
async def reset_subscriber_gz_counter(ctx: Ctx, params: LineRef, line: Line) -> Data[CounterReset]:
    """Set a line's green-zone volume counter to zero.

    Cannot be undone. The green zone is what stays reachable when a line's data is used up.
    """
    subscribers = line.upstream.ocs.subscriber
    counter = await subscribers.reset_gz_counter(line.subscriber_id)
    if counter is None:
        with suppress(OcsError):  # the reset itself is done and certain
            counter = (await subscribers.get_single_subscriber(line.subscriber_id, with_gz_counter=True)).get("greenZoneCounter")
    return {"data": {"reset": True} if counter is None else {"reset": True, "counter": counter}}
