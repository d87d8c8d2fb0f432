"""The events of an organisation in the order in which they happened, each once, read from a list that has the newest first."""

from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from operations.services.webhooks.event_body import Event
from registry.clock import Clock

# An event's id is made before its transaction commits, so one may appear below others that were seen: so far down is looked.
LATE_SECONDS = 5.0
REMEMBERED = 50_000


class Page(NamedTuple):
    """Events, newest first, and whether there are older ones."""

    events: Sequence[Event]
    more: bool


class EventLog:
    """Remembers what was seen. A reading that fails half-way is made again from its beginning, and nothing is lost by it."""

    def __init__(self, page: Callable[[str | None], Awaitable[Page]], clock: Clock) -> None:
        self._page, self._clock = page, clock
        self._seen = set[str]()
        self._floor = ""  # this id and those before it are old
        self._last_news = float("-inf")

    async def begin(self, last: int | None, wanted: Callable[[Event], bool]) -> list[Event]:
        """The newest `last` that are wanted of those that are there already (None: all); `news` goes on from here."""
        found: list[Event] = []
        page = await self._page(None)
        found += page.events
        while page.more and (last is None or sum(map(wanted, found)) < last):
            page = await self._page(found[-1]["id"])
            found += page.events
        self._floor = found[-1]["id"] if page.more else ""
        self._seen.update(event["id"] for event in found)
        chosen = [event for event in found if wanted(event)]
        return list(reversed(chosen if last is None else chosen[:last]))

    async def news(self) -> list[Event]:
        """What has come since; read on until a page brings nothing new, and far enough for those that came late."""
        page = await self._page(None)
        newest = page.events[0]["created"] if page.events else 0
        found = fresh = self._fresh(page)
        while page.more and page.events[-1]["id"] > self._floor and (fresh or self._may_be_late(newest - page.events[-1]["created"])):
            page = await self._page(page.events[-1]["id"])
            fresh = self._fresh(page)
            found = found + fresh
        self._remember(found)
        return sorted(found, key=lambda event: event["id"])

    def _fresh(self, page: Page) -> list[Event]:
        return [event for event in page.events if event["id"] > self._floor and event["id"] not in self._seen]

    def _may_be_late(self, depth: float) -> bool:
        return depth <= LATE_SECONDS and self._clock.monotonic() - self._last_news <= LATE_SECONDS

    def _remember(self, found: Sequence[Event]) -> None:
        if not found:
            return
        self._last_news = self._clock.monotonic()
        self._seen.update(event["id"] for event in found)
        if len(self._seen) > REMEMBERED:
            old = sorted(self._seen)[: REMEMBERED // 2]
            self._floor = max(self._floor, old[-1])
            self._seen.difference_update(old)
