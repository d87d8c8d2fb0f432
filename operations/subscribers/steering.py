"""Which networks a line prefers."""

from typing import Annotated, Literal

from pydantic import AliasChoices, Field
from typing_extensions import TypedDict

from operations.deps import Ctx
from operations.services.network.lines import Line, LineRef, own_line
from operations.services.network.passing import Data
from operations.services.network.visible import require_steering_list
from registry.errors import EndOfLife, NotFound, OcsConflict, OcsError, Refusal
from registry.limits import Scope
from registry.operation import Example, operation

STEERING_ERROR = 16
NO_LIST = "Neither the line nor its account has a steering list, so there is nothing to push"


class Steering(LineRef):
    """Which list; null removes it."""

    list_id: Annotated[
        int | None,
        Field(
            ge=1,
            le=2**53 - 1,
            validation_alias=AliasChoices("listId", "steeringListId", "steering_list_id"),
            description="Id of list_steering_lists; null removes the list.",
        ),
    ]


class SteeringChanged(TypedDict):
    """What applies from the next push on."""

    listId: int | None


class SteeringPushed(TypedDict):
    """The SIM is told by SMS."""

    pushed: Literal[True]


async def list_there(ctx: Ctx, params: Steering) -> Line:
    """The caller's own line, and a list that its reseller has."""
    line = await own_line(ctx, params)
    if params.list_id is not None:
        await require_steering_list(line.upstream, params.list_id, "listId")
    return line


@operation(
    "PUT",
    "/v1/subscribers/{iccid}/steering-list",
    scope=Scope.WRITE,
    upstream=True,
    operator=True,
    access=list_there,
    raises=[NotFound, EndOfLife, OcsError],
    examples=[Example("Prefer the Nordic networks", {"iccid": "8988303700000100286", "listId": 17}, {"data": {"listId": 17}})],
)
async def modify_subscriber_steering_list(ctx: Ctx, params: Steering, line: Line) -> Data[SteeringChanged]:
    """Assign a steering list (preferred networks) to a line, or remove it.

    The SIM learns of it only when push_steering_to_subscriber is called.
    """
    await line.upstream.ocs.subscriber.modify_steering_list(line.subscriber_id, params.list_id)
    return {"data": {"listId": params.list_id}}


@operation(
    "POST",
    "/v1/subscribers/{iccid}/steering-list/push",
    scope=Scope.WRITE,
    upstream=True,
    access=own_line,
    raises=[NotFound, EndOfLife, OcsError],
    examples=[Example("Tell the SIM", {"iccid": "8988303700000100286"}, {"data": {"pushed": True}})],
)
async def push_steering_to_subscriber(ctx: Ctx, params: LineRef, line: Line) -> Data[SteeringPushed]:
    """Send a line's steering list to its SIM.

    The preferred networks of the country it is in go out as an SMS to the SIM; a line never seen cannot be told.
    """
    try:
        await line.upstream.ocs.subscriber.push_steering(line.subscriber_id)
    except OcsError as refusal:
        if refusal.ocs_code == STEERING_ERROR and not await has_list(line):
            raise OcsConflict(NO_LIST, ocs_code=STEERING_ERROR, hint="modify_subscriber_steering_list assigns one") from None
        raise
    return {"data": {"pushed": True}}


async def has_list(line: Line) -> bool:
    """Whether the line or its account, read afresh, has a steering list; without one there is nothing to push, however often."""
    if line.row.get("steeringListId") is not None:
        return True
    line.upstream.reads.forget(line.upstream.identity, "accounts")
    try:
        accounts = await line.upstream.accounts()
    except Refusal:
        return True  # nobody can say: the refusal stands as it came
    return any(row.get("id") == line.row.get("accountId") and row.get("steeringListId") is not None for row in accounts)
