"""How a line uses the network: how fast it is, and which networks it prefers."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Annotated, Literal, NamedTuple, NotRequired, get_args

from pydantic import AliasChoices, Field
from typing_extensions import TypedDict

from clients.ocs.packages import Package
from clients.ocs.subscribers import GreenZoneCounter
from clients.ocs.templates import THROTTLE_SPEEDS, Template
from operations.deps import Ctx
from operations.subscribers.packages import read_packages
from operations.upstream.connection import connect_upstream
from operations.upstream.lines import Line, LineRef, find_own_line, note_line, own_line, package_state
from operations.upstream.paging import Data
from operations.upstream.resellers import STEERING_LISTS, TEMPLATE_CACHE_KEY, require_listed
from operations.upstream.steering_lists import LineSteering, SteeringNetwork, read_line_steering
from registry.errors import BadRequest, EndOfLife, NotFound, OcsConflict, OcsError, Refusal
from registry.free_text import FreeText
from registry.operation import Example, Scope, SpendKind, operation
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


LimitSource = Literal["package", "fair_use", "manual", "none", "unknown"]


class Bitrate(TypedDict):
    """The limit of a line."""

    limit: Annotated[str, Field(description="KB_32 to KB_102400 (kbit/s), or UNLIMITED")]
    bitrate: NotRequired[Annotated[int, Field(description="bit/s; 0 when unlimited")]]
    unlimited: bool
    limitSource: NotRequired[
        Annotated[
            LimitSource,
            Field(
                description="package: a threshold of its template; fair_use: the green zone, since the data is used up; manual: set by "
                "hand, since nothing else that is told explains it; none: no limit; unknown: the charging system does not tell enough"
            ),
        ]
    ]


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


async def own_line_with_green_zone(ctx: Ctx, params: LineRef) -> Line:
    """The caller's own line; the counter of its green zone comes with the same call."""
    return await find_own_line(ctx, await connect_upstream(ctx), params.iccid, green_zone=True)


@operation(
    "GET",
    "/v1/subscribers/{iccid}/bitrate",
    upstream=True,
    operator=True,
    title="Get speed limit",
    access=own_line_with_green_zone,
    raises=[NotFound, OcsError],
    examples=[
        Example(
            "Is this line slowed down?",
            {"iccid": "8988303700000100286"},
            {"data": {"limit": "KB_256", "unlimited": False, "bitrate": 256000, "limitSource": "manual"}},
        )
    ],
)
async def hlr_get_bitrate(ctx: Ctx, params: LineRef, line: Line) -> Data[Bitrate]:
    """Get the speed limit that applies to a line now.

    `limitSource`: a package's throttling, fair use, or hlr_set_bitrate.

    The charging system does not say who set a limit. It is concluded from the line's packages, the thresholds of their templates (which
    few charging systems list, so that it is often `unknown` once a package was used) and the counter of the green zone. When they cannot
    be read it is `unknown`, and the limit is right all the same.
    """
    limit = await line.upstream.ocs.subscriber.hlr_get_bitrate(line.imsi)
    return {"data": {**render_speed(limit), "limitSource": await limit_source(line, limit, ctx.now)}}


async def limit_source(line: Line, limit: str, now: float) -> LimitSource:
    """Whose limit it is, as far as two reads more can tell; `now`: Unix seconds. Waits for the network."""
    bits = speed_bits(limit)
    if not bits:
        return "unknown" if bits is None else "none"
    speed = bits // 1000
    zone = green_zone_speed(line.row.get("greenZoneCounter", {}))
    if speed != zone and speed not in THROTTLE_SPEEDS:
        return "manual"
    with suppress(Refusal):
        packages = [package for package in (await read_packages(line)).get("packages", []) if has_used_data(package)]
        in_date = [package for package in packages if package_state(package, now) in ("running", "exhausted")]
        if speed == zone and in_date and all(is_data_used_up(package) for package in in_date):
            return "fair_use"
        templates: Mapping[int, Template] = await read_throttling(line) if packages else {}
        return throttling_source(speed, packages, in_date, templates, zone)
    return "unknown"


def green_zone_speed(counter: GreenZoneCounter) -> int | None:
    """The speed of the green zone that the line has used, kbit/s; None where it has used none.

    Choice: an account's zone of 0 MB gives way to the reseller's, as the documented answers suggest.
    """
    own, shared = counter.get("accountGZ", {}), counter.get("resellerGZ", {})
    zone = own if own.get("maxVolumeMB") else shared
    return zone.get("throttlingKbs") if counter.get("volumeOnGZ") else None


def has_used_data(package: Package) -> bool:
    """Whether one percent of its data is used, which is the lowest threshold that there can be."""
    return 0 < package.get("pckdatabyte", 0) <= package.get("useddatabyte", 0) * 100


def is_data_used_up(package: Package) -> bool:
    return package.get("useddatabyte", 0) >= package.get("pckdatabyte", 0)


async def read_throttling(line: Line) -> Mapping[int, Template]:
    """The templates of the line's reseller by id, a minute old at most. Waits for the network."""
    upstream, reseller = line.upstream, line.row.get("resellerId")
    key = (upstream.identity, TEMPLATE_CACHE_KEY, "throttling", reseller)
    rows = await upstream.reads.get(key, lambda: upstream.ocs.templates.list(reseller_id=reseller))
    return {row.get("prepaidpackagetemplateid", 0): row for row in rows}


def throttling_source(
    speed: int, used: Sequence[Package], in_date: Sequence[Package], templates: Mapping[int, Template], zone: int | None
) -> LimitSource:
    """Whose limit of `speed` kbit/s it is: a package's whose thresholds say so; else somebody's who set it, where nothing else may have.

    A package that has ended, and a green zone that was used before, may have left their limit behind.
    """
    possible = speed == zone
    for package in used:
        template = templates.get(package.get("templateId", package.get("packageTemplate", {}).get("prepaidpackagetemplateid", 0)), {})
        if template.get("throttlingActive") is None:
            possible = True
        elif reached_speed(package, template) == speed:
            if package in in_date:
                return "package"
            possible = True
    return "unknown" if possible else "manual"


def reached_speed(package: Package, template: Template) -> int | None:
    """The speed of the highest threshold that the package's use has reached, kbit/s; None without one."""
    if not template.get("throttlingActive"):
        return None
    members: Mapping[str, object] = template
    pairs = [(members.get(f"throttlingThreshold{number}Perc"), members.get(f"throttlingThreshold{number}Limit")) for number in range(1, 5)]
    limit, used = package.get("pckdatabyte", 0), package.get("useddatabyte", 0)
    thresholds = [(percent, speed) for percent, speed in pairs if isinstance(percent, int) and isinstance(speed, int)]
    reached = [(percent, speed) for percent, speed in thresholds if used * 100 >= limit * percent]
    return max(reached)[1] if reached else None


@operation(
    "PUT",
    "/v1/subscribers/{iccid}/bitrate",
    spends=SpendKind.NOTHING,
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
            {"data": {"limit": "KB_256", "unlimited": False, "bitrate": 256000, "limitSource": "manual"}},
        )
    ],
)
async def hlr_set_bitrate(ctx: Ctx, params: BitrateChange, change: SpeedChange) -> Data[Bitrate]:
    """Limit the speed of a line, or lift the limit.

    Send bitrate or bitrateString. To stop data altogether use set_subscriber_traffic_restrictions.
    """
    await change.line.upstream.ocs.subscriber.hlr_set_bitrate(change.imsi, change.limit)
    note_line(ctx, change.line, speed_limit=(speed_bits(change.limit) or 0) // 1000)
    return {"data": {**render_speed(change.limit), "limitSource": "none" if change.limit == "UNLIMITED" else "manual"}}


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
    """The SIM is told by SMS: the networks of the list in the country. What the charging system does not tell is null."""

    pushed: Literal[True]
    country: NotRequired[Annotated[str | None, Field(description="Where the line was seen last, ISO 3166-1 alpha-2")]]
    listId: NotRequired[Annotated[int | None, Field(description="The line's own list, else its account's")]]
    listName: NotRequired[FreeText | None]
    networks: NotRequired[Annotated[list[SteeringNetwork] | None, Field(description="Networks of the list in that country")]]
    networksKnown: NotRequired[bool]
    warning: NotRequired[Annotated[str, Field(description="The list is known to have no network there")]]


STEERING_PUSH_EXAMPLE: SteeringPushed = {
    "pushed": True,
    "country": "NO",
    "listId": 17,
    "listName": "Nordic first",
    "networks": None,
    "networksKnown": False,
}


async def own_line_and_steering_list(ctx: Ctx, params: SteeringChange) -> Line:
    """The caller's own line. Raises NotFound unless its reseller has the list."""
    line = await own_line(ctx, params)
    if params.list_id is not None:
        await require_listed(line.upstream, STEERING_LISTS, params.list_id, "listId")
    return line


@operation(
    "PUT",
    "/v1/subscribers/{iccid}/steering-list",
    spends=SpendKind.OPEN,
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
    note_line(ctx, line, steering_list=params.list_id or 0)
    ctx.at_close(record_steering_list, organisation=ctx.organisation, iccid=line.iccid, list_id=params.list_id, now=ctx.now)
    return {"data": {"listId": params.list_id}}


async def own_line_steering(ctx: Ctx, params: LineRef) -> LineSteering:
    """The caller's own line, and what is known of what a push will send."""
    return await read_line_steering(await own_line(ctx, params))


@operation(
    "POST",
    "/v1/subscribers/{iccid}/steering-list/push",
    spends=SpendKind.OPEN,
    scope=Scope.WRITE,
    upstream=True,
    access=own_line_steering,
    raises=[NotFound, EndOfLife, OcsError],
    examples=[Example("Tell the SIM", {"iccid": "8988303700000100286"}, {"data": STEERING_PUSH_EXAMPLE})],
)
async def push_steering_to_subscriber(ctx: Ctx, params: LineRef, steering: LineSteering) -> Data[SteeringPushed]:
    """Send a line's steering list to its SIM.

    The preferred networks of the country it is in go out as an SMS to the SIM; a line never seen cannot be told.

    The charging system says that the SMS was sent, not what is in it. The answer names the country where it saw the line last and the list
    that the line goes by, as they were before the push; the networks only where the charging system tells those of a list. `warning` is
    there when they are known and none is in the country, so that the SIM was told nothing for it.
    """
    line = steering.line
    try:
        await line.upstream.ocs.subscriber.push_steering(line.subscriber_id)
    except OcsError as refusal:
        if refusal.ocs_code == STEERING_ERROR_CODE and not await has_steering_list(line):
            raise OcsConflict(NO_STEERING_LIST, ocs_code=STEERING_ERROR_CODE, hint="modify_subscriber_steering_list assigns one") from None
        raise
    ctx.at_close(record_steering_push, organisation=ctx.organisation, iccid=line.iccid, now=ctx.now)
    return {"data": render_steering_push(steering)}


def render_steering_push(steering: LineSteering) -> SteeringPushed:
    pushed: SteeringPushed = {
        "pushed": True,
        "country": steering.country,
        "listId": steering.list_id,
        "listName": steering.name,
        "networks": steering.networks,
        "networksKnown": steering.networks is not None,
    }
    if steering.networks == []:
        pushed["warning"] = (
            f"The steering list {steering.list_id} has no network in {steering.country}, so the SIM prefers none there: assign another "
            "list with modify_subscriber_steering_list, then push again"
        )
    return pushed


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
