"""Events for MCP clients that ask for them: which types there are, and what has happened since a cursor.

The draft is the design sketch of the repository modelcontextprotocol/experimental-ext-triggers-events (docs, design-sketch-proposal), dated
2026-02-19, as of the commit 6104601d8768982d864f26f399d3576320f8bc0a.

Choice: these are operations, so that their calls are authenticated, throttled, charged and audited as every call is, and the MCP door only
spells them in the words of the draft. They are beside the catalogue: no document and no address has them.
"""

from typing import Annotated, Literal

from pydantic import Field, TypeAdapter
from typing_extensions import TypedDict

from operations.deps import Ctx
from operations.event_types.catalogue import EVENT_TYPES
from operations.event_types.declaration import AnyEventType
from operations.ledger.event_reading import read_cursor, read_log_page
from operations.ledger.event_rights import readable_types
from operations.ledger.webhooks import Occurrence, event_of_log, occurrence_of
from registry.caller import Caller, Role
from registry.errors import BadRequest, NotFound, Restricted, RoleRequired
from registry.operation import Input, Nothing, operation
from registry.policy import require_role
from storage.engine.sql import Connection
from storage.event_log import PlacedEvent, end_of_log

MOST_POLLED = 100
USUALLY_POLLED = 50
PAGES_A_POLL = 10
NEXT_POLL_MS = 5_000
"""How soon a client that has read everything is asked to come again."""

DeliveryMode = Literal["poll", "webhook"]

EventName = Annotated[str, Field(max_length=80, description="A type of events/list.")]
LogCursor = Annotated[str | None, Field(max_length=15, description="Begin behind this place in the log. Absent: now.")]
MaxAge = Annotated[int | None, Field(ge=0, le=2**53, description="Nothing that is older than these milliseconds.")]
NoArguments = Annotated[dict[str, object], Field(default_factory=dict, max_length=0, description="No type of events takes any.")]

INPUT_SCHEMA: dict[str, object] = {"type": "object", "properties": {}, "additionalProperties": False}


class OfferedType(TypedDict):
    """A type of events as MCP clients see it."""

    name: str
    description: str
    delivery: list[DeliveryMode]
    inputSchema: dict[str, object]
    payloadSchema: dict[str, object]


class OfferedTypes(TypedDict):
    """The types that the caller may read, in one page."""

    events: list[OfferedType]


class EventPoll(Input):
    """Which events, and from where on."""

    name: EventName
    arguments: NoArguments
    cursor: LogCursor = None
    max_age_ms: MaxAge = None
    max_events: Annotated[int | None, Field(ge=1, le=2**31, description="At most so many; 50 if absent, never more than 100.")] = None


class PolledEvents(TypedDict):
    """What has happened. `truncated`: some of it is not told; `hasMore`: ask again at once, else after `nextPollMs`."""

    events: list[Occurrence]
    cursor: str
    truncated: bool
    hasMore: bool
    nextPollMs: int


async def within_bounds(ctx: Ctx, params: Input) -> Caller:
    """The caller, whose lines, accounts and tags bound what is told."""
    del params
    ctx.row_bounds()
    return ctx.caller


def offered_type(declared: AnyEventType, delivery: list[DeliveryMode]) -> OfferedType:
    """A declared type as it is offered."""
    return {
        "name": declared.name,
        "description": declared.about,
        "delivery": delivery,
        "inputSchema": INPUT_SCHEMA,
        "payloadSchema": TypeAdapter[object](declared.data).json_schema(),
    }


def check_event_name(name: str, ctx: Ctx) -> None:
    """Raises NotFound for a type that there is not, RoleRequired or Restricted for one that the caller may not read."""
    if name not in EVENT_TYPES:
        raise NotFound(f"name: there is no type {name[:80]!r}", code="event_not_found", param="name", hint="events/list shows the types")
    if name not in readable_types(ctx.caller, ctx.deps.internal_calls.operations_in):
        declared = EVENT_TYPES[name]
        if declared.admin:
            require_role(Role.ADMIN, ctx.caller, f"name: {name}")
        raise Restricted(
            f"name: {name} is for whoever may call {declared.read_with}, which this credential may not",
            param="name",
            hint="events/list shows the types that this credential may read",
        )


class LogStart(TypedDict):
    """Where reading of the log begins. `skipped`: events behind the cursor that was sent are kept no more."""

    position: int
    end: int
    skipped: bool


def start_of_reading(connection: Connection, *, organisation: str, cursor: int | None) -> LogStart:
    """Where a client goes on: behind its cursor, or where the log begins that is left, or now. Raises BadRequest."""
    end = end_of_log(connection, organisation=organisation)
    if cursor is None:
        return {"position": end.position, "end": end.position, "skipped": False}
    if cursor > end.position:
        text = f"cursor: {cursor} is past the end of your log, which is {end.position}"
        raise BadRequest(text, param="cursor", hint="Send null to begin now")
    return {"position": max(cursor, end.swept), "end": end.position, "skipped": cursor < end.swept}


class EventsBehind(TypedDict):
    """Events behind a position, up to which position the log was read, and whether some were too old or there are more."""

    events: list[PlacedEvent]
    position: int
    outdated: bool
    more: bool


def read_behind(
    connection: Connection, *, ctx: Ctx, caller: Caller, name: str, position: int, most: int, oldest: float, pages: int = PAGES_A_POLL
) -> EventsBehind:
    """At most `most` events of one type that the caller may read and that are not older than `oldest` (Unix seconds)."""
    found, outdated, more = list[PlacedEvent](), False, True
    while more and pages > 0 and len(found) <= most:
        page = read_log_page(
            connection,
            caller=caller,
            types=frozenset({name}),
            position=position,
            operations_in=ctx.deps.internal_calls.operations_in,
        )
        young = [event for event in page.events if event.created >= oldest]
        outdated = outdated or len(young) < len(page.events)
        found += young
        position, more, pages = page.position, page.more, pages - 1
    if len(found) > most:
        return {"events": found[:most], "position": found[most - 1].position, "outdated": outdated, "more": True}
    return {"events": found, "position": position, "outdated": outdated, "more": more}


def oldest_wanted(max_age_ms: int | None, now: float) -> float:
    """The time before which nothing is wanted, Unix seconds."""
    return 0.0 if max_age_ms is None else now - max_age_ms / 1000


@operation("GET", "/mcp/events/list", tool=False)
async def list_mcp_events(ctx: Ctx, _params: Nothing) -> OfferedTypes:
    """List the types of events that an MCP client may poll or subscribe to."""
    readable = readable_types(ctx.caller, ctx.deps.internal_calls.operations_in)
    delivery: list[DeliveryMode] = ["poll"] if ctx.deps.callbacks is None else ["poll", "webhook"]
    return {"events": [offered_type(declared, delivery) for name, declared in EVENT_TYPES.items() if name in readable]}


@operation(
    "GET", "/mcp/events/poll", tool=False, bounded=True, access=within_bounds, raises=[NotFound, RoleRequired, Restricted, BadRequest]
)
async def poll_mcp_events(ctx: Ctx, params: EventPoll, caller: Caller) -> PolledEvents:
    """Read what has happened since a cursor, in the order of the log.

    Choice: no call waits for an event. The draft lets a server answer an empty poll at once; who wants to hear at once subscribes.
    """
    check_event_name(params.name, ctx)
    cursor = None if params.cursor is None else read_cursor(params.cursor, param="cursor")

    def poll(connection: Connection) -> PolledEvents:
        start = start_of_reading(connection, organisation=ctx.organisation, cursor=cursor)
        if cursor is None:
            return polled(start["position"], [], truncated=False, more=False)
        behind = read_behind(
            connection,
            ctx=ctx,
            caller=caller,
            name=params.name,
            position=start["position"],
            most=min(params.max_events or USUALLY_POLLED, MOST_POLLED),
            oldest=oldest_wanted(params.max_age_ms, ctx.now),
        )
        return polled(behind["position"], behind["events"], truncated=start["skipped"] or behind["outdated"], more=behind["more"])

    return await ctx.deps.store.read(poll)


def polled(position: int, events: list[PlacedEvent], *, truncated: bool, more: bool) -> PolledEvents:
    """The answer to a poll."""
    return {
        "events": [occurrence_of(event_of_log(event)) for event in events],
        "cursor": str(position),
        "truncated": truncated,
        "hasMore": more,
        "nextPollMs": NEXT_POLL_MS,
    }
