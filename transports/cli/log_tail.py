"""`reseller events tail --types`: events of the chosen types in the order of the log, each once."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import NamedTuple, cast

import anyio
import orjson

from operations.ledger.webhooks import Event
from registry.call import Reply
from transports.cli.render import stream_events
from transports.cli.target import CallTarget, TargetOptions, open_target, require_success
from transports.cli.terminal import Failure, Unreachable, to_stderr

LISTED_AT_ONCE = 20


@dataclass(frozen=True, slots=True)
class LogOptions:
    """Which types, names or globs; where to begin, and how often to look. `last` None: from the oldest event that is kept."""

    types: tuple[str, ...]
    last: int | None = 0
    every: float = 1.0
    count: int | None = None


class LogBatch(NamedTuple):
    """Some events in the order of the log, where to go on, and whether there are more already."""

    events: list[Event]
    cursor: str
    more: bool


async def follow_log(where: TargetOptions, following: LogOptions, take: Callable[[Event], Awaitable[None]]) -> None:
    """Hands every event of the types to `take`, until the count is reached."""
    shown, seen = 0, set[str]()
    async with open_target(where) as target:
        batch = await read_batch(target, following, "0" if following.last is None else None)
        earlier = await newest_of_types(target, following) if following.last else []
        events = [*earlier, *batch.events]
        to_stderr(f"following {', '.join(following.types)} of {target.name}; Ctrl-C ends")
        while True:
            for event in events:
                if event["id"] in seen:
                    continue
                await take(event)
                shown += 1
                if shown == following.count:
                    return
            seen = {event["id"] for event in earlier}
            if not batch.more:
                await anyio.sleep(following.every)
            batch = await next_batch(target, following, batch.cursor)
            events = batch.events


async def next_batch(target: CallTarget, following: LogOptions, cursor: str) -> LogBatch:
    """What came since the cursor; a server that is away for a while is asked again."""
    while True:
        try:
            return await read_batch(target, following, cursor)
        except Unreachable:
            to_stderr(f"{target.name} does not answer; nothing is lost, the next try is in {max(1.0, following.every):g} s")
            await anyio.sleep(max(1.0, following.every))


async def read_batch(target: CallTarget, following: LogOptions, cursor: str | None) -> LogBatch:
    """One look. Raises Failure for a refusal that waiting does not cure, Unreachable where nobody answers."""
    given: dict[str, object] = {"types": list(following.types), "follow": False}
    while True:
        reply = await target.ask("stream_events", given if cursor is None else {**given, "cursor": cursor})
        if reply.status != 429:
            return batch_of(require_success(reply, "reseller events tail"), target.name)
        await anyio.sleep(max(1.0, following.every))


def batch_of(reply: Reply, where: str) -> LogBatch:
    """What a stream that has ended said. Raises Failure for anything else."""
    frames = list(stream_events(reply.body))
    ends = [frame for frame in frames if frame.name == "end"]
    if not ends:
        raise Failure(f"--url: what {where} answers is no stream of events; is this the service's address?", exit_code=3)
    end = cast("dict[str, str]", ends[0].data)
    if end["reason"] == "credential_ended":
        raise Failure("--key: the credential has ended; give another one", exit_code=1)
    return LogBatch([cast("Event", frame.data) for frame in frames if "type" in frame.data], end["cursor"], end["reason"] == "more")


async def newest_of_types(target: CallTarget, following: LogOptions) -> list[Event]:
    """The newest events so far, as many as were asked for, oldest first."""
    found: list[Event] = []
    while len(found) < (following.last or 0):
        after = {"starting_after": found[-1]["id"]} if found else {}
        reply = await target.ask("list_connectivity_events", {"types": list(following.types), "limit": LISTED_AT_ONCE, **after})
        page = orjson.loads(require_success(reply, "reseller events tail").body)
        found += page["data"]
        if not page["has_more"]:
            break
    return found[: following.last][::-1]
