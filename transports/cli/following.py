"""Following an organisation's events: what is asked, how often, and what is done when nobody answers for a while."""

import asyncio
import re
import sys
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, cast, get_args

import anyio
import orjson
import typer

from clients.webhooks.retry_after import retry_after_seconds
from operations.services.webhooks.event_body import Event, EventType
from registry.call import Reply
from registry.clock import Clock, SystemClock
from registry.policy import stamp
from transports.cli.door import Door, Where, accepted, open_door
from transports.cli.event_log import EventLog, Page
from transports.cli.failure import Failure, Unreachable
from transports.cli.render import refusal_body
from transports.cli.terminal_text import shown_on

Intent = Annotated[str | None, typer.Option("--intent", help="Only events of this intent, cni_...")]
Types = Annotated[list[str] | None, typer.Option("--type", help="Only events of this type; may be given several times.")]
Last = Annotated[int, typer.Option("--last", min=0, max=100_000, help="Begin with the newest N that are there already.")]
Every = Annotated[
    float, typer.Option("--every", min=0.2, max=3600, help="Seconds between two looks; each takes a call of the daily quota.")
]
Count = Annotated[int | None, typer.Option("--count", min=1, help="End after N events.")]
KNOWN = cast("tuple[str, ...]", get_args(EventType))
PAGE = 20  # the most that one look gets
LEFT = re.compile(r";r=([0-9]+);t=([0-9]+)")
WORKING_DAY = 8 * 3600


@dataclass(frozen=True, slots=True)
class Following:
    """Which events, and how often to look. `last` None: from the first one on."""

    intent: str | None = None
    types: frozenset[str] = frozenset()
    last: int | None = 0
    every: float = 1.0
    count: int | None = None

    def wants(self, event: Event) -> bool:
        """Whether the event is of a type that was asked for; the server has chosen by intent."""
        return not self.types or event["type"] in self.types


def chosen_types(given: list[str] | None) -> frozenset[str]:
    """The types, or a refusal that names them all."""
    unknown = [type for type in given or [] if type not in KNOWN]
    if unknown:
        raise Failure(f"--type {unknown[0]}: no such type; there are {', '.join(KNOWN)}")
    return frozenset(given or [])


def until_interrupted(work: Coroutine[object, object, None]) -> None:
    """Run to its end, or until Ctrl-C, which is how following ends and no failure."""
    with suppress(KeyboardInterrupt):
        asyncio.run(work)


async def follow(where: Where, following: Following, take: Callable[[Event], Awaitable[None]]) -> None:
    """Hand on every event that is wanted, in order, until the count is full."""
    clock, taken = SystemClock(), 0
    async with open_door(where) as door:
        lookout = Lookout(door, following, clock)
        log = EventLog(lookout.page, clock)
        batch = await log.begin(following.last, following.wants)
        say(f"following the events of {door.name}; Ctrl-C ends")
        while True:
            for event in filter(following.wants, batch):
                await take(event)
                taken += 1
                if taken == following.count:
                    return
            await anyio.sleep(following.every)
            batch = await log.news()


class Lookout:
    """Reads pages of the list, and waits where the other side is away or asks to wait."""

    def __init__(self, door: Door, following: Following, clock: Clock) -> None:
        self._door, self._following, self._clock = door, following, clock
        self._answered, self._trouble = False, ""

    async def page(self, after: str | None) -> Page:
        """One page, however long it takes to get it; a refusal that waiting does not mend ends the command."""
        arguments = {"limit": PAGE, "starting_after": after, "intent": self._following.intent}
        given: dict[str, object] = {name: value for name, value in arguments.items() if value is not None}
        while True:
            try:
                reply = await self._door.ask("list_connectivity_events", given)
            except Unreachable:
                if not self._answered:
                    raise
                await self._wait(f"{self._door.name} does not answer", max(1.0, self._following.every))
                continue
            if reply.status == 200:
                self._well(reply)
                return page_of(reply, self._door.name)
            await self._wait_as_told(reply)

    async def _wait_as_told(self, reply: Reply) -> None:
        """The time that a refusal names; others are final."""
        if reply.status != 429 and not (self._answered and reply.status >= 500):
            accepted(reply, "reseller events tail")
            raise Failure(f"--url: {self._door.name} answers {reply.status}; is this the service's address?")
        header = next((value for name, value in reply.headers.items() if name.lower() == "retry-after"), None)
        seconds = retry_after_seconds(header, self._clock.now()) or max(1.0, self._following.every)
        await self._wait(f"{reply.status} {refusal_body(reply).get('code', '')}".strip(), max(1.0, seconds))

    async def _wait(self, trouble: str, seconds: float) -> None:
        """Said once for each kind of trouble, not with every try."""
        if trouble != self._trouble:
            until = f" (at {stamp(self._clock.now() + seconds)})" if seconds >= 60 else ""
            say(f"{trouble}; nothing is lost, the next try is in {seconds:g} s{until}")
        self._trouble = trouble
        await anyio.sleep(seconds)

    def _well(self, reply: Reply) -> None:
        if self._trouble:
            say(f"{self._door.name} answers again")
        if not self._answered:
            warn_of_quota(reply, self._following.every)
        self._answered, self._trouble = True, ""


def warn_of_quota(reply: Reply, every: float) -> None:
    """Say how long the calls of today will do, where that is not long."""
    header = next((value for name, value in reply.headers.items() if name.lower() == "ratelimit"), "")
    found = LEFT.search(header)
    lasting = int(found[1]) * every if found else float("inf")
    if found and lasting < min(int(found[2]), WORKING_DAY):
        say(f"each look takes one of the {found[1]} calls that are left today: {lasting / 60:.0f} minutes; --every 30 lasts longer")


def page_of(reply: Reply, where: str) -> Page:
    """The page that the answer holds."""
    try:
        answer = cast("dict[str, object]", orjson.loads(reply.body))
        events = cast("list[Event]", answer["data"])
        for event in events:
            if not (event["id"] and event["type"] and event["created"] >= 0 and "intent" in event["data"]):
                raise ValueError
        return Page(events, answer["has_more"] is True)
    except (ValueError, LookupError, TypeError):
        raise Failure(f"--url: what {where} answers is no list of events; is this the service's address?", exit_code=3) from None


def say(text: str) -> None:
    """For the person, beside the events."""
    sys.stderr.write(shown_on(sys.stderr, text) + "\n")
    sys.stderr.flush()
