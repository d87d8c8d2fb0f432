"""How a line uses the network: how fast it is, and which networks it prefers."""

from typing import Annotated, Literal, NamedTuple, NotRequired, get_args

from pydantic import AliasChoices, Field
from typing_extensions import TypedDict

from operations.deps import Ctx
from operations.upstream.lines import Line, LineRef, own_line
from operations.upstream.paging import Data
from operations.upstream.resellers import STEERING_LISTS, require_listed
from registry.errors import BadRequest, EndOfLife, NotFound, OcsConflict, OcsError, Refusal
from registry.operation import Example, Scope, operation
from storage.line_steering import record_steering_list, record_steering_push

SpeedLimit = Literal[
    "KB_32",
    "KB_64",
    "KB_128",
    "KB_256",
    "KB_384",
    "KB_512",
    "KB_1024",
    "KB_2048",
    "KB_3072",
    "KB_5120",
    "KB_7680",
    "KB_10240",
    "KB_20480",
    "KB_51200",
    "KB_102400",
    "UNLIMITED",
]
SPEED_LEVELS: tuple[SpeedLimit, ...] = get_args(SpeedLimit)


class BitrateChange(LineRef):
    """The new limit, in one of two spellings."""

    bitrate: Annotated[int | None, Field(ge=0, le=10**12, description="bit/s, 32000 to 102400000 by level; 0 = unlimited.")] = None
    bitrate_string: Annotated[
        SpeedLimit | None, Field(validation_alias=AliasChoices("bitrateString", "limit"), description="Instead of bitrate.")
    ] = None


class Bitrate(TypedDict):
    """The limit of a line."""

    limit: Annotated[str, Field(description="KB_32 to KB_102400 (kbit/s), or UNLIMITED")]
    bitrate: NotRequired[Annotated[int, Field(description="bit/s; 0 when unlimited")]]
    unlimited: bool


class SpeedChange(NamedTuple):
    """A line that has an IMSI, and the level it is to get."""

    line: Line
    imsi: str
    limit: SpeedLimit


def speed_bits(limit: str) -> int | None:
    """The limit in bit/s; 0 for no limit, None for an unknown word."""
    if limit == "UNLIMITED":
        return 0
    kilobits = limit.removeprefix("KB_")
    return int(kilobits) * 1000 if kilobits.isascii() and kilobits.isdigit() else None


def render_speed(limit: str) -> Bitrate:
    speed = speed_bits(limit)
    answer: Bitrate = {"limit": limit, "unlimited": limit == "UNLIMITED"}
    if speed is not None:
        answer["bitrate"] = speed
    return answer


def speed_level(params: BitrateChange) -> SpeedLimit:
    """The network's level for `params`. Raises BadRequest unless exactly one spelling names one."""
    if (params.bitrate is None) == (params.bitrate_string is None):
        raise BadRequest(
            "Send either bitrate or bitrateString", param="bitrate", hint='For example {"bitrate": 256000} or {"bitrateString": "KB_256"}'
        )
    if params.bitrate_string is not None:
        return params.bitrate_string
    found: SpeedLimit | None = next((limit for limit in SPEED_LEVELS if speed_bits(limit) == params.bitrate), None)
    if found is None:
        levels = ", ".join(str(speed_bits(limit)) for limit in SPEED_LEVELS)
        raise BadRequest(f"bitrate: got {params.bitrate}; the network knows no such level", param="bitrate", hint=f"One of {levels}")
    return found


async def own_speed_change(ctx: Ctx, params: BitrateChange) -> SpeedChange:
    """The line and the level; a wrong level is refused before any call upstream."""
    limit = speed_level(params)
    line = await own_line(ctx, params)
    return SpeedChange(line, line.imsi, limit)


@operation(
    "GET",
    "/v1/subscribers/{iccid}/bitrate",
    upstream=True,
    operator=True,
    title="Get speed limit",
    access=own_line,
    raises=[NotFound, OcsError],
    examples=[
        Example(
            "Is this line slowed down?",
            {"iccid": "8988303700000100286"},
            {"data": {"limit": "KB_256", "unlimited": False, "bitrate": 256000}},
        )
    ],
)
async def hlr_get_bitrate(ctx: Ctx, params: LineRef, line: Line) -> Data[Bitrate]:
    """Get the speed limit that applies to a line now.

    A package's throttling and hlr_set_bitrate both set it.
    """
    return {"data": render_speed(await line.upstream.ocs.subscriber.hlr_get_bitrate(line.imsi))}


@operation(
    "PUT",
    "/v1/subscribers/{iccid}/bitrate",
    scope=Scope.WRITE,
    upstream=True,
    operator=True,
    title="Set speed limit",
    access=own_speed_change,
    raises=[NotFound, EndOfLife, OcsError],
    examples=[
        Example(
            "Slow a line down to 256 kbit/s",
            {"iccid": "8988303700000100286", "bitrate": 256000},
            {"data": {"limit": "KB_256", "unlimited": False, "bitrate": 256000}},
        )
    ],
)
async def hlr_set_bitrate(ctx: Ctx, params: BitrateChange, change: SpeedChange) -> Data[Bitrate]:
    """Limit the speed of a line, or lift the limit.

    Send bitrate or bitrateString. To stop data altogether use set_subscriber_traffic_restrictions.
    """
    await change.line.upstream.ocs.subscriber.hlr_set_bitrate(change.imsi, change.limit)
    return {"data": render_speed(change.limit)}


STEERING_ERROR_CODE = 16
NO_STEERING_LIST = "Neither the line nor its account has a steering list, so there is nothing to push"


class SteeringChange(LineRef):
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


async def own_line_and_steering_list(ctx: Ctx, params: SteeringChange) -> Line:
    """The caller's own line. Raises NotFound unless its reseller has the list."""
    line = await own_line(ctx, params)
    if params.list_id is not None:
        await require_listed(line.upstream, STEERING_LISTS, params.list_id, "listId")
    return line


@operation(
    "PUT",
    "/v1/subscribers/{iccid}/steering-list",
    scope=Scope.WRITE,
    upstream=True,
    operator=True,
    access=own_line_and_steering_list,
    raises=[NotFound, EndOfLife, OcsError],
    examples=[Example("Prefer the Nordic networks", {"iccid": "8988303700000100286", "listId": 17}, {"data": {"listId": 17}})],
)
async def modify_subscriber_steering_list(ctx: Ctx, params: SteeringChange, line: Line) -> Data[SteeringChanged]:
    """Assign a steering list (preferred networks) to a line, or remove it.

    The SIM learns of it only when push_steering_to_subscriber is called.
    """
    await line.upstream.ocs.subscriber.modify_steering_list(line.subscriber_id, params.list_id)
    ctx.at_close(record_steering_list, organisation=ctx.organisation, iccid=line.iccid, list_id=params.list_id, now=ctx.now)
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
        if refusal.ocs_code == STEERING_ERROR_CODE and not await has_steering_list(line):
            raise OcsConflict(NO_STEERING_LIST, ocs_code=STEERING_ERROR_CODE, hint="modify_subscriber_steering_list assigns one") from None
        raise
    ctx.at_close(record_steering_push, organisation=ctx.organisation, iccid=line.iccid, now=ctx.now)
    return {"data": {"pushed": True}}


async def has_steering_list(line: Line) -> bool:
    """Whether the line or its account, read anew, has a steering list; without one a push can never succeed."""
    if line.row.get("steeringListId") is not None:
        return True
    line.upstream.reads.forget(line.upstream.identity, "accounts")
    try:
        accounts = await line.upstream.accounts()
    except Refusal:
        return True  # unknown: the refusal stands as it came
    return any(row.get("id") == line.row.get("accountId") and row.get("steeringListId") is not None for row in accounts)
