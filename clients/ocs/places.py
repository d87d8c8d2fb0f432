"""Places for calls under way with one token: who holds one, who waits, and which are kept for calls that issue eSIMs.

Where several organisations share a token, the one that holds the fewest comes next. A wait that would be too long is refused at once.
What is read in the background has half of the places at most, and waits behind every call that somebody waits for.
"""

import math
from collections import Counter, deque
from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar

import anyio

from registry.clock import Clock
from registry.shared_limits import PlaceCount

BACKGROUND_OWNER = "background:"
"""Begins the name under which an organisation's background calls wait."""


class Places:
    """A count of places with a queue for each owner: many calls of one owner delay that owner alone."""

    def __init__(self, count: int | PlaceCount) -> None:
        """`count`: the places of this process, or this process's part of places that several processes share."""
        self._count = PlaceCount(count) if isinstance(count, int) else count
        self._count.more = self._hand_on
        self._queued = 0
        self._held: dict[str, int] = {}
        self._waiting: dict[str, deque[anyio.Event]] = {}

    def try_take(self, owner: str) -> bool:
        """Takes a place for `owner` if one is free. Unlike `take` it needs no turn of the event loop."""
        if not self._count.take():
            return False
        self._hold(owner)
        return True

    async def take(self, owner: str) -> Callable[[], None]:
        """Waits for a place without a time limit; the returned function gives it back."""
        if not self.try_take(owner):
            await self._wait(owner)
        return lambda: self.give_back(owner)

    async def _wait(self, owner: str) -> None:
        called = anyio.Event()
        queue = self._waiting.setdefault(owner, deque())
        queue.append(called)
        self._queued += 1
        self._count.want(self._queued)
        try:
            await called.wait()
        except BaseException:
            if called.is_set():  # called and cancelled at once
                self.give_back(owner)
            else:
                self._leave(owner, called)
            raise

    def give_back(self, owner: str) -> None:
        """Frees a place of `owner` for the next call."""
        self._count.give_back()
        held = self._held.pop(owner) - 1
        if held:
            self._held[owner] = held
        self._hand_on()

    def _hand_on(self) -> None:
        """Gives free places to waiting calls."""
        while self._waiting and self._count.take():
            # Owners with equally many places take turns: the one that was called goes to the end.
            following = min(self._waiting, key=lambda waiting: (waiting.startswith(BACKGROUND_OWNER), self._held.get(waiting, 0)))
            queue = self._waiting.pop(following)
            called = queue.popleft()
            if queue:
                self._waiting[following] = queue
            self._hold(following)
            self._leave_queue()
            called.set()

    def _hold(self, owner: str) -> None:
        self._held[owner] = self._held.get(owner, 0) + 1

    def _leave(self, owner: str, called: anyio.Event) -> None:
        queue = self._waiting[owner]
        queue.remove(called)
        if not queue:
            del self._waiting[owner]
        self._leave_queue()

    def _leave_queue(self) -> None:
        self._queued -= 1
        self._count.want(self._queued)


ISSUING: ContextVar[bool] = ContextVar("issuing", default=False)
"""Whether the calls that are made now are part of issuing an eSIM."""
DURATION_SAMPLES_MINIMUM = 8
"""Calls that have to be over before it is known how long one takes."""
DURATION_WEIGHT = 0.1
"""How much the newest call counts in the mean."""


@contextmanager
def issuing() -> Generator[None]:
    """Lets every call in the block take the places that are reserved for issuing."""
    token = ISSUING.set(True)
    try:
        yield
    finally:
        ISSUING.reset(token)


BACKGROUND: ContextVar[bool] = ContextVar("background", default=False)
"""Whether nobody waits for the calls that are made now."""


@contextmanager
def in_background() -> Generator[None]:
    """Lets every call in the block wait behind those that somebody waits for."""
    token = BACKGROUND.set(True)
    try:
        yield
    finally:
        BACKGROUND.reset(token)


class WaitTooLong(Exception):
    """No place will be free in time; `seconds` is the expected wait."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"a place is expected in {seconds:.1f} s")
        self.seconds = seconds

    @property
    def retry_after(self) -> int:
        """Whole seconds after which the queue is probably short enough."""
        return max(1, math.ceil(self.seconds))


class PlaceQueue:
    """Places, the calls that wait for them, and how long these calls will wait."""

    def __init__(self, places: Places, clock: Clock) -> None:
        self._places, self._clock = places, clock
        self._waiting: Counter[str] = Counter()
        self._held = 0
        self._mean = 0.0
        self._samples = 0

    def try_take(self, owner: str, seconds: float) -> Callable[[], None] | None:
        """Takes a place, if one is free, for a call of at most `seconds`; the returned function gives it back."""
        return self._taken(lambda: self._places.give_back(owner), seconds) if self._places.try_take(owner) else None

    async def take(self, owner: str, seconds: float) -> Callable[[], None]:
        """Waits for a place. Raises WaitTooLong at once where wait and call are expected to take more than `seconds`."""
        expected = self.expected(owner)
        if expected + self._mean > seconds:
            raise WaitTooLong(expected)
        self._waiting[owner] += 1
        try:
            return self._taken(await self._places.take(owner), seconds)
        finally:
            self._waiting[owner] -= 1
            if not self._waiting[owner]:
                del self._waiting[owner]

    def expected(self, owner: str) -> float:
        """Expected seconds until a place is free for one more call of `owner`; owners take turns. 0 until the length of calls is known.

        What waits in the background is overtaken, and so does not count for a call that somebody waits for.
        """
        if self._samples < DURATION_SAMPLES_MINIMUM:
            return 0.0
        own, behind = self._waiting.get(owner, 0), owner.startswith(BACKGROUND_OWNER)
        others = (count for other, count in self._waiting.items() if other != owner and (behind or not other.startswith(BACKGROUND_OWNER)))
        before = own + sum(min(count, own + 1) for count in others)
        return (before + 1) * self._mean / max(1, self._held)

    def _taken(self, give_back: Callable[[], None], most: float) -> Callable[[], None]:
        """Choice: no call counts as longer than it may last; else the expected waits would be far too long after a pause of the process."""
        began = self._clock.monotonic()
        self._held += 1

        def done() -> None:
            self._held -= 1
            seconds = min(most, max(0.0, self._clock.monotonic() - began))
            self._samples += 1
            self._mean += (seconds - self._mean) * (1 / self._samples if self._samples < DURATION_SAMPLES_MINIMUM else DURATION_WEIGHT)
            give_back()

        return done


class TokenPlaces:
    """The places of one token: those for every call, those for issuing calls alone, and how many of the former the background may have."""

    def __init__(self, ordinary: Places, clock: Clock, *, reserved: Places | None = None, background: Places | None = None) -> None:
        self._ordinary = PlaceQueue(ordinary, clock)
        self._reserved = None if reserved is None else PlaceQueue(reserved, clock)
        self._background = background

    async def take(self, owner: str, seconds: float = math.inf) -> Callable[[], None]:
        """Waits for a place; the returned function gives it back. An issuing call takes a reserved place first, or joins the shorter queue.

        Raises WaitTooLong at once where wait and call are expected to take more than `seconds`.
        """
        if self._background is not None and BACKGROUND.get():
            return await self._take_behind(self._background, owner, seconds)
        queues = [self._ordinary]
        if self._reserved is not None and ISSUING.get():
            queues = [self._reserved, self._ordinary]
        for queue in queues:
            if (give_back := queue.try_take(owner, seconds)) is not None:
                return give_back
        return await min(queues, key=lambda queue: queue.expected(owner)).take(owner, seconds)

    async def _take_behind(self, background: Places, owner: str, seconds: float) -> Callable[[], None]:
        """Waits for one of the places that the background may have, then for its turn among all."""
        behind = BACKGROUND_OWNER + owner
        give_back = await background.take(behind)
        try:
            placed = await self._ordinary.take(behind, seconds)
        except BaseException:
            give_back()
            raise

        def done() -> None:
            placed()
            give_back()

        return done
