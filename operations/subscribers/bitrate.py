"""How fast a line may be."""

from typing import Annotated, Literal, NamedTuple, NotRequired, get_args

from pydantic import AliasChoices, Field
from typing_extensions import TypedDict

from operations.deps import Ctx
from operations.services.network.lines import Line, LineRef, own_line
from operations.services.network.passing import Data
from registry.errors import BadRequest, EndOfLife, NotFound, OcsError
from registry.limits import Scope
from registry.operation import Example, operation

Limit = Literal[
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
LEVELS: tuple[Limit, ...] = get_args(Limit)


class BitrateChange(LineRef):
    """The new limit, in one of two spellings."""

    bitrate: Annotated[int | None, Field(ge=0, le=10**12, description="bit/s, 32000 to 102400000 by level; 0 = unlimited.")] = None
    bitrate_string: Annotated[
        Limit | None, Field(validation_alias=AliasChoices("bitrateString", "limit"), description="Instead of bitrate.")
    ] = None


class Bitrate(TypedDict):
    """The limit of a line."""

    limit: Annotated[str, Field(description="KB_32 to KB_102400 (kbit/s), or UNLIMITED")]
    bitrate: NotRequired[Annotated[int, Field(description="bit/s; 0 when unlimited")]]
    unlimited: bool


class Wanted(NamedTuple):
    """A line that has an IMSI, and the level it is to get."""

    line: Line
    imsi: str
    limit: Limit


def speed_of(limit: str) -> int | None:
    """The limit in bit/s; 0 when there is none, None for a word we do not know."""
    if limit == "UNLIMITED":
        return 0
    kilobits = limit.removeprefix("KB_")
    return int(kilobits) * 1000 if kilobits.isascii() and kilobits.isdigit() else None


def shown(limit: str) -> Bitrate:
    """The limit in both spellings."""
    speed = speed_of(limit)
    answer: Bitrate = {"limit": limit, "unlimited": limit == "UNLIMITED"}
    if speed is not None:
        answer["bitrate"] = speed
    return answer


def level(params: BitrateChange) -> Limit:
    """Exactly one spelling, and one of the network's levels."""
    if (params.bitrate is None) == (params.bitrate_string is None):
        raise BadRequest(
            "Send either bitrate or bitrateString", param="bitrate", hint='For example {"bitrate": 256000} or {"bitrateString": "KB_256"}'
        )
    if params.bitrate_string is not None:
        return params.bitrate_string
    found: Limit | None = next((limit for limit in LEVELS if speed_of(limit) == params.bitrate), None)
    if found is None:
        levels = ", ".join(str(speed_of(limit)) for limit in LEVELS)
        raise BadRequest(f"bitrate: got {params.bitrate}; the network knows no such level", param="bitrate", hint=f"One of {levels}")
    return found


async def wanted_level(ctx: Ctx, params: BitrateChange) -> Wanted:
    """The level is checked before anybody is asked."""
    limit = level(params)
    line = await own_line(ctx, params)
    return Wanted(line, line.imsi, limit)


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
    return {"data": shown(await line.upstream.ocs.subscriber.hlr_get_bitrate(line.imsi))}


@operation(
    "PUT",
    "/v1/subscribers/{iccid}/bitrate",
    scope=Scope.WRITE,
    upstream=True,
    operator=True,
    title="Set speed limit",
    access=wanted_level,
    raises=[NotFound, EndOfLife, OcsError],
    examples=[
        Example(
            "Slow a line down to 256 kbit/s",
            {"iccid": "8988303700000100286", "bitrate": 256000},
            {"data": {"limit": "KB_256", "unlimited": False, "bitrate": 256000}},
        )
    ],
)
async def hlr_set_bitrate(ctx: Ctx, params: BitrateChange, wanted: Wanted) -> Data[Bitrate]:
    """Limit the speed of a line, or lift the limit.

    Send bitrate or bitrateString. To stop data altogether use set_subscriber_traffic_restrictions.
    """
    await wanted.line.upstream.ocs.subscriber.hlr_set_bitrate(wanted.imsi, wanted.limit)
    return {"data": shown(wanted.limit)}
