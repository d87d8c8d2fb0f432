"""Events as they happen: a stream in the order of the log."""

from collections.abc import AsyncGenerator
from typing import Annotated

import orjson
from anyio.lowlevel import checkpoint
from pydantic import Field

from operations.deps import Ctx
from operations.ledger.event_reading import LogPage, TypePatterns, begin_position, read_cursor, read_log_page, wanted_types
from operations.ledger.webhooks import event_of_log
from registry.caller import Caller
from registry.errors import Conflict
from registry.operation import Document, EventStream, Example, Input, operation
from storage.directory import CallerRecord, acting_caller

STREAM_SECONDS_LIMIT = 290.0
"""A stream ends before every door ends it, so that its reader is told where to go on."""
HEARTBEAT_SECONDS = 15.0
RECHECK_SECONDS = 30.0
"""How long a stream goes on at most after its credential has ended."""


class StreamQuery(Input):
    """Which events, and from where on."""

    types: TypePatterns = None
    cursor: Annotated[
        str | None, Field(max_length=15, description="Begin behind the event with this id of a frame; 0: with the oldest. Absent: now.")
    ] = None
    follow: Annotated[bool, Field(description="false: what is there already, at most 1,000 events, and then the end.")] = True


MOST_EVENTS_AT_ONCE = 1000


def end_frame(reason: str, position: int) -> bytes:
    """The last frame of a stream: why it ends, and where another one goes on."""
    return b"event: end\ndata: " + orjson.dumps({"reason": reason, "cursor": str(position)}) + b"\n\n"


def page_frames(page: LogPage) -> bytes:
    """The frames of a page. Where nothing of it was for this reader, one without data moves the reader's place on."""
    frames = [b"id: %d\ndata: %b\n\n" % (event.position, orjson.dumps(event_of_log(event))) for event in page.events]
    if not page.events or page.events[-1].position < page.position:
        frames.append(b"id: %d\n\n" % page.position)
    return b"".join(frames)


async def hold_to_bounds(ctx: Ctx, params: StreamQuery) -> Caller:
    """The caller, whose lines, accounts and tags bound what the stream shows."""
    del params
    ctx.row_bounds()
    return ctx.caller


@operation(
    "GET",
    "/v1/connectivity/events/stream",
    title="Stream events",
    tool=False,
    bounded=True,
    resumes=True,
    raises=[Conflict],
    access=hold_to_bounds,
    examples=[Example("Follow what happens to orders", {"types": ["order.*"], "follow": False})],
)
async def stream_events(ctx: Ctx, params: StreamQuery, caller: Caller) -> Annotated[Document, "text/event-stream"] | EventStream:
    """Follow events as they happen, as server-sent events in the order of commits.

    Each frame has the event as `data` and its place in your log as `id`; a reader that comes again with the header `Last-Event-ID`, or with
    `cursor`, goes on behind it and misses nothing; the header wins. `types` chooses by names or globs; without it come all that you may
    read.

    A frame without data only moves the place on. Lines that begin with a colon keep the connection alive. `event: end` with `{reason,
    cursor}` ends the stream: `renew` after five minutes, `credential_ended` when you may not read any more, `done` with `follow=false`
    at the end of the log, `more` there after 1,000 events. 409 `cursor_too_old`: the events behind it are kept no more.
    """
    named = ctx.call.last_event_id or params.cursor
    param = "Last-Event-ID" if ctx.call.last_event_id else "cursor"
    cursor = None if named is None else read_cursor(named, param=param)
    types = wanted_types(params.types, caller, ctx.deps.internal_calls.operations_in)
    position = await ctx.deps.store.read(begin_position, organisation=ctx.organisation, cursor=cursor, param=param)
    return EventStream(EventReading(ctx, caller, types, position).frames(follow=params.follow))


class EventReading:
    """One reader of the log."""

    def __init__(self, ctx: Ctx, caller: Caller, types: frozenset[str], position: int) -> None:
        self._deps, self._caller, self._types, self._position = ctx.deps, caller, types, position
        self._began = self._checked = ctx.deps.clock.monotonic()

    async def frames(self, *, follow: bool) -> AsyncGenerator[bytes]:
        """Frames until the reader hangs up, the credential ends, or it is time to come again."""
        yield b": events\n\n"
        given = 0
        while True:
            if not await self._may_go_on():
                yield end_frame("credential_ended", self._position)
                return
            page = await self._deps.store.read(
                read_log_page,
                caller=self._caller,
                types=self._types,
                position=self._position,
                operations_in=self._deps.internal_calls.operations_in,
            )
            if page.position > self._position:
                self._position = page.position
                yield page_frames(page)
            given += len(page.events)
            if not follow and (not page.more or given >= MOST_EVENTS_AT_ONCE):
                yield end_frame("more" if page.more else "done", self._position)
                return
            if self._deps.clock.monotonic() - self._began >= STREAM_SECONDS_LIMIT:
                yield end_frame("renew", self._position)
                return
            if page.more:
                await checkpoint()  # a read of SQLite waits for nothing: nobody else would be answered before the end of the log
            elif not await self._deps.watch.news(self._caller.organisation, self._position, HEARTBEAT_SECONDS):
                yield b":\n\n"

    async def _may_go_on(self) -> bool:
        """Whether the credential still lives; what it may read is what it may read now."""
        if self._deps.clock.monotonic() - self._checked < RECHECK_SECONDS:
            return True
        self._checked, was = self._deps.clock.monotonic(), self._caller
        record = CallerRecord(was.kind, was.principal, was.organisation, was.key_id)
        found = await self._deps.store.read(acting_caller, record=record, now=self._deps.clock.now())
        if found is None:
            return False
        self._caller = found
        return True
